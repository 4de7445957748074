"""When `auto` starts afresh: after large changes, and sooner when a recursive view loses facts."""

from __future__ import annotations

import pytest

import deltalog
from deltalog.runtime.database import Facts

BASE = "base edge(a: int, b: int). base closed(a: int, b: int). "
PATH = (
    BASE
    + """
    path(X, Y) :- edge(X, Y), not closed(X, Y).
    path(X, Z) :- path(X, Y), edge(Y, Z), not closed(Y, Z).
"""
)
LINK = BASE + "link(X, Z) :- edge(X, Y), edge(Y, Z), not closed(X, Y)."
EDGES = [(10 * n + step, 10 * n + step + 1) for n in range(300) for step in (0, 1)]
"""300 chains of two edges."""
MORE = [(10 * n + 2, 10 * n + 3) for n in range(300)]


@pytest.mark.parametrize(
    ("program", "change", "strategy"),
    [
        (PATH, {"delete": {"edge": EDGES[:59]}}, "rederive"),
        (PATH, {"delete": {"edge": EDGES[:60]}}, "recompute"),
        (PATH, {"insert": {"edge": MORE[:200]}}, "rederive"),
        (PATH, {"insert": {"closed": EDGES[:60]}}, "recompute"),
        (LINK, {"delete": {"edge": EDGES[:200]}}, "rederive"),
        (LINK, {"delete": {"edge": EDGES[:500]}}, "recompute"),
        (LINK, {"insert": {"edge": MORE}, "delete": {"edge": EDGES[:199]}}, "rederive"),
        (LINK, {"insert": {"edge": MORE}, "delete": {"edge": EDGES[:200]}}, "recompute"),
    ],
)
def test_what_is_much(program: str, change: dict[str, Facts], strategy: str) -> None:
    database = deltalog.connect(program=program, facts={"edge": EDGES})
    database.apply(**change)
    (node,) = database.propagation.ran
    assert node.choice.strategy == strategy
    assert not database.audit()


def test_few_deletions_are_never_much() -> None:
    database = deltalog.connect(program=PATH, facts={"edge": EDGES[:98]})
    database.apply(delete={"edge": EDGES[:49]})
    (node,) = database.propagation.ran
    assert node.choice.strategy == "rederive"
