"""Magic Sets derive facts of what is asked only: exact counts, in a small graph and a large one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import deltalog
from deltalog.language.ast import Atom, Constant, Program
from deltalog.language.parser import parse_text

RULES = """
    base edge(src: int, dst: int).

    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).

    left(X, Y) :- edge(X, Y).
    left(X, Y) :- left(X, Z), edge(Z, Y).

    one_way(X, Y) :- path(X, Y), not path(Y, X).
    last(X)       :- edge(_, X), not path(X, _).

    reach(X, count())  :- path(X, Y).
    farthest(X, max(Y)) :- path(X, Y).
"""
SIZE = 10
PATHS_WITHIN = SIZE * (SIZE - 1) // 2


def program(components: int) -> Program:
    """Chains of ten nodes each, 0 → 1 → … → 9, 10 → 11 → …"""
    edges = [(node, node + 1) for node in range(components * SIZE) if node % SIZE != SIZE - 1]
    facts = tuple(Atom("edge", (Constant(a, "int"), Constant(b, "int"))) for a, b in edges)
    return replace(parse_text(RULES), facts=facts)


@cache
def graph(components: int) -> deltalog.MemoryDatabase:
    """All views are virtual."""
    return deltalog.connect(program=program(components), materialize=False)


CASES = {
    "path({first}, Y)": (
        9,
        {"path__bf__magic": 10, "path__bf__2_1": 9, "path__bf": PATHS_WITHIN, "answer__": 9},
    ),
    "path(X, {last})": (9, {"path__fb__magic": 1, "path__fb": 9, "answer__": 9}),
    "path({first}, {last})": (
        1,
        {"path__bb__magic": 10, "path__bb__2_1": 9, "path__bb": 9, "answer__": 1},
    ),
    "left({first}, Y)": (9, {"left__bf__magic": 1, "left__bf": 9, "answer__": 9}),
    "left(X, {last})": (
        9,
        {"left__fb__magic": 10, "left__fb__2_1": 9, "left__fb": PATHS_WITHIN, "answer__": 9},
    ),
    "one_way({first}, Y)": (
        9,
        {
            "one_way__bf__magic": 1,
            "path__bf__magic": 10,
            "path__bf__2_1": 9,
            "path__bf": PATHS_WITHIN,
            "one_way__bf__1_1": 9,
            "path__bb__magic": 9,
            "path__bb__2_1": 8,
            "one_way__bf": 9,
            "answer__": 9,
        },
    ),
    "last({last})": (1, {"last__b__magic": 1, "path__bf__magic": 1, "last__b": 1, "answer__": 1}),
    "path({first}, Y), not path(Y, {last})": (
        1,
        {
            "path__bf__magic": 10,
            "path__bf__2_1": 9,
            "path__bf": PATHS_WITHIN,
            "path__bb__magic": 9,
            "path__bb__2_1": 8,
            "path__bb": 8,
            "answer__": 1,
        },
    ),
    "reach({first}, N)": (
        1,
        {
            "reach__bf__magic": 1,
            "path__bf__magic": 10,
            "path__bf__2_1": 9,
            "path__bf": PATHS_WITHIN,
            "reach__bf": 1,
            "answer__": 1,
        },
    ),
    "reach({first}, 9)": (
        1,
        {
            "reach__bf__magic": 1,
            "path__bf__magic": 10,
            "path__bf__2_1": 9,
            "path__bf": PATHS_WITHIN,
            "reach__bf": 1,
            "answer__": 1,
        },
    ),
    "farthest({last}, Y)": (0, {"farthest__bf__magic": 1, "path__bf__magic": 1}),
}


@pytest.mark.parametrize("components", [10, 1_000])
@pytest.mark.parametrize("query", CASES)
def test_a_query_derives_facts_of_one_component_only(query: str, components: int) -> None:
    first = components // 2 * SIZE
    rows = graph(components).query(query.format(first=first, last=first + SIZE - 1))
    assert (len(rows), dict(rows.statistics.generated)) == CASES[query]


@pytest.mark.parametrize("query", CASES)
def test_the_answers_are_those_of_full_evaluation(query: str) -> None:
    everything = deltalog.connect(program=program(10))
    asked = query.format(first=50, last=59)
    assert graph(10).query(asked) == everything.query(asked)


def test_an_unknown_node_costs_one_question() -> None:
    rows = graph(1_000).query("path(-1, Y)")
    assert not rows
    assert rows.statistics.generated == {"path__bf__magic": 1}


def test_a_conjunction_passes_its_bindings_on() -> None:
    rows = graph(1_000).query("path(X, Y), edge(5000, X)")
    assert [row[1] for row in rows] == list(range(5002, 5010))
    assert rows.statistics.generated["path__bf__magic"] == SIZE - 1


def test_a_materialised_view_is_only_read() -> None:
    text = f"materialized view path.{RULES}edge(1, 2). edge(2, 3). edge(7, 8)."
    rows = deltalog.connect(program=text, materialize=False).query("reach(1, N)")
    assert rows == [(2,)]
    assert rows.statistics.generated == {"reach__bf__magic": 1, "reach__bf": 1, "answer__": 1}


def test_without_magic_everything_is_derived() -> None:
    full = deltalog.connect(program=f"{RULES}edge(1, 2). edge(2, 3). edge(7, 8).")
    assert full.statistics.generated["path"] == 4
    assert full.query("path(1, Y)").statistics.generated == {"answer__": 2}
