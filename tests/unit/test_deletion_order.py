"""What a deletion looks at does not depend on how a recursive rule is written."""

from __future__ import annotations

import pytest

import deltalog
from deltalog.engines.relation import Relation

LEFT = "path(X, Z) :- path(X, Y), edge(Y, Z)."
RIGHT = "path(X, Z) :- edge(X, Y), path(Y, Z)."
GRID = [
    (8 * row + column, 8 * (row + down) + column + 1 - down)
    for row in range(7)
    for column in range(7)
    for down in (0, 1)
]


def looked_at(recursion: str, strategy: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows read by keys while an edge in the middle of the grid is deleted."""
    program = f"base edge(a: int, b: int). path(X, Y) :- edge(X, Y). {recursion}"
    database = deltalog.connect(
        program=program, engine="reference", strategy=strategy, facts={"edge": GRID}
    )
    count = 0
    matching = Relation.matching

    def counted(self: Relation, *arguments: object) -> list[object]:
        nonlocal count
        found = list(matching(self, *arguments))  # type: ignore[arg-type]
        count += len(found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Relation, "matching", counted)
        database.apply(delete={"edge": [(27, 28)]})
    assert not database.audit()
    return count


@pytest.mark.parametrize("strategy", ["rederive", "demand"])
def test_both_ways_to_write_a_closure(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = (looked_at(rule, strategy, monkeypatch) for rule in (LEFT, RIGHT))
    assert left < 1.5 * right
    assert right < 1.5 * left


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_what_only_younger_facts_derive_comes_back(engine: str) -> None:
    """path(1, 3) goes because path(1, 4) is younger than itself, is doubtful, and is rederived."""
    program = """
    base edge(a: int, b: int).
    path(X, Y) :- edge(X, Y).
    path(X, Z) :- path(X, Y), edge(Y, Z).
    """
    db = deltalog.connect(
        program=program,
        engine=engine,
        strategy="rederive",
        facts={"edge": [(1, 2), (2, 3), (4, 3)]},
    )
    db.apply(insert={"edge": [(1, 4)]})
    change = db.apply(delete={"edge": [(2, 3)]})
    assert change.deleted["path"] == {(2, 3)}
    assert db.statistics.generated["path__doubtful"] == 1
    assert db.audit() == ()
