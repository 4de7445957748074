"""When `auto` starts afresh: after large changes, and sooner when a recursive view loses facts."""

from __future__ import annotations

import pytest

import deltalog
from deltalog.runtime.protocols import Facts

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


NODES = 200
VAIN = BASE + "base vain(a: int, b: int). "
HARD = (
    VAIN
    + """
    path(X, Y) :- edge(X, Y).
    path(X, Z) :- path(X, Y), edge(Y, Z).
    path(X, Z) :- path(X, Y), vain(Y, Z).
"""
)
CHAIN = [(n, n + 1) for n in range(NODES)]
NOWHERE = [(-1 - y, z) for z in range(NODES) for y in range(40)]
"""Each fact that is examined looks for support in forty facts that give none."""


@pytest.mark.parametrize("also", [[], NOWHERE[:60]], ids=["run by the engine", "run by us"])
def test_a_deletion_that_is_too_much_work_is_given_up(also: list[tuple[int, int]]) -> None:
    facts = {"edge": CHAIN, "vain": NOWHERE}
    database = deltalog.connect(program=HARD, facts=facts)
    change = database.apply(delete={"edge": [CHAIN[NODES // 2]], "vain": also})
    (node,) = database.propagation.ran
    assert node.choice.strategy == "recompute"
    assert len(change.deleted["path"]) == 101 * 100
    assert not change.inserted
    assert not database.audit()
    database.apply(insert={"edge": [CHAIN[NODES // 2]]})  # nothing is left over
    assert not database.audit()
    assert database.facts("path") == deltalog.connect(program=HARD, facts=facts).facts("path")


def test_a_strategy_that_was_asked_for_is_not_given_up() -> None:
    facts = {"edge": CHAIN, "vain": NOWHERE}
    database = deltalog.connect(program=HARD, facts=facts, strategy="rederive")
    database.apply(delete={"edge": [CHAIN[NODES // 2]]})
    (node,) = database.propagation.ran
    assert node.choice.strategy == "rederive"
    assert not database.audit()
