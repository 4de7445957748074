"""View updates by a second method, and at a cost that does not follow unrelated data."""

from __future__ import annotations

import random
from collections.abc import Iterator

import clingo
import pytest

import deltalog
from deltalog import Budget

GRAPH = """
    base edge(src: int, dst: int).
    virtual view path.
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
Edge = tuple[int, int]


def proofs(edges: set[Edge], start: int, goal: int) -> Iterator[frozenset[Edge]]:
    """The base facts of all proofs of a path in which no fact is its own reason."""

    def walk(node: int, seen: tuple[int, ...], used: frozenset[Edge]) -> Iterator[frozenset[Edge]]:
        for edge in sorted(edges):
            if edge[0] == node:
                if edge[1] == goal:
                    yield used | {edge}
                if edge[1] not in seen and edge[1] != goal:
                    yield from walk(edge[1], (*seen, edge[1]), used | {edge})

    yield from walk(start, (start,), frozenset())


def minimal_hitting_sets(sets: set[frozenset[Edge]]) -> set[frozenset[Edge]]:
    """The answer sets of one disjunction for each set: minimal models, by clingo."""
    control = clingo.Control(["0"])
    clauses = (" | ".join(f"cut({x},{y})" for x, y in sorted(each)) + "." for each in sets)
    control.add("base", [], "\n".join(clauses))
    control.ground([("base", [])])
    found: set[frozenset[Edge]] = set()

    def add(model: clingo.Model) -> None:
        cuts = (atom.arguments for atom in model.symbols(atoms=True))
        found.add(frozenset((x.number, y.number) for x, y in cuts))

    control.solve(on_model=add)
    return found


@pytest.mark.parametrize("seed", range(25))
def test_deletions_are_the_minimal_hitting_sets_of_all_proofs(seed: int) -> None:
    rng = random.Random(seed)
    pairs = [(x, y) for x in range(4) for y in range(4)]
    edges = {pair for pair in pairs if rng.random() < 0.4}
    db = deltalog.connect(program=GRAPH, facts={"edge": edges}, engine="reference")
    held = sorted(row for row in db.query("path(X, Y)"))
    for row in rng.sample(held, min(2, len(held))):
        start, goal = row
        assert isinstance(start, int)
        assert isinstance(goal, int)
        found = db.realize(f"-path({start}, {goal})")
        ours = {frozenset(each.deleted["edge"]) for each in found}
        assert found.is_complete
        assert ours == minimal_hitting_sets(set(proofs(edges, start, goal))), (edges, row)


@pytest.mark.parametrize("request_", ["-path(1, 4)", "+path(4, 6)"])
def test_unrelated_data_costs_nothing(request_: str) -> None:
    """State is asked by Magic Sets: a hundred times the data, and as many facts."""
    counts = []
    for size in (20, 2_000):
        seen: list[int] = []
        unrelated = [(i, i + 1) for i in range(1000, 1000 + size)]
        db = deltalog.connect(
            program=GRAPH,
            facts={"edge": [(1, 2), (2, 4), (1, 3), (3, 4), (5, 6), *unrelated]},
            engine="reference",
            watch=lambda rounds, facts, seen=seen: seen.append(facts),  # type: ignore[misc]
        )
        seen.clear()
        (first, *_) = db.realize(request_, budget=Budget(answers=1, new_values=0))
        assert len(first) <= 2
        counts.append(sum(seen))
    assert counts[0] == counts[1] > 0
