"""The views whose change a caller wants, by their names."""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.analysis.columns import Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.runtime.propagation import Propagation


def known_views(
    propagation: Propagation, relations: Relations, views: Iterable[str] | None
) -> frozenset[str] | None:
    """Return the views that a caller names, or None for all of them; another name is an error."""
    if views is None:
        return None
    named = [views] if isinstance(views, str) else list(views)
    for name in named:
        if name not in propagation.views:
            hint = did_you_mean(str(name), propagation.views)
            if name in relations:
                hint = f"`{name}` is a base relation, whose change is always returned"
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="view", name=name, hint=hint)])
    return frozenset(named)
