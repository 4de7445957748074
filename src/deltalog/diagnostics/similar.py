"""Near-miss names: what the user probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `name`, or None when nothing is near enough to be helpful.

    >>> similar_name("pth", ["edge", "path"])
    'path'
    """
    candidates = sorted(set(known) - {name})
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    if name.casefold() in by_folded:
        return by_folded[name.casefold()]
    matches = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A ready hint, or None."""
    nearest = similar_name(name, known)
    return None if nearest is None else f"did you mean `{nearest}`?"
