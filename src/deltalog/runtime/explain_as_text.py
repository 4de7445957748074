"""An explanation of a database, or of a query to it, as text: `Database.explain`."""

from __future__ import annotations

from collections.abc import Collection

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Query
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.explain import explain
from deltalog.runtime.explanation_text import SECTIONS, explanation_text
from deltalog.runtime.network import network_of
from deltalog.runtime.network_text import network_text


def explain_as_text(
    database: MemoryDatabase, query: Query | None, show: Collection[str] | None, propagation: bool
) -> str:
    """The sections in `show`, or all of them; or the propagation network."""
    if propagation:
        if query is not None or show is not None:
            hint = "the network covers the whole program: leave out the query and `show`"
            check_argument(False, "propagation", propagation, hint)
        return network_text(network_of(database))
    sections = SECTIONS if show is None else tuple([show] if isinstance(show, str) else show)
    for name in sections:
        if name not in SECTIONS:
            hint = did_you_mean(str(name), SECTIONS) or f"the sections are {', '.join(SECTIONS)}"
            raise DataError(
                [catalogue.UNKNOWN_OPTION.at(None, what="section", name=name, hint=hint)]
            )
    return explanation_text(explain(database, query), sections)
