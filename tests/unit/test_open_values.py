"""View updates: values that nothing determines stay open as long as they can."""

from __future__ import annotations

import deltalog
from deltalog import Budget

GRAPH = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
Facts = dict[str, list[tuple[object, ...]]]


def realized(
    program: str, facts: Facts, request: str, budget: Budget | None = None
) -> tuple[list[str], list[str]]:
    """Realizations as they are printed, and the reasons why they may not be all."""
    db = deltalog.connect(program=program, facts=facts, engine="reference")
    found = db.realize(request, budget=budget)
    return [str(each) for each in found], list(found.reasons)


def test_a_comparison_below_decides_a_value_that_was_open() -> None:
    program = "base n(x: int). base w(x: int). v(X) :- n(X), X > 5. h() :- v(X), not w(X)."
    assert realized(program, {"n": [(3,)]}, "+h()") == (["Realization(+n(6,))"], [])


def test_a_value_is_open_until_the_budget_allows_it() -> None:
    """Neither of both missing facts is tried with any of the 300 teams."""
    program = "base member(p: str, team: int). base grant(team: int, d: str). "
    program += "sees(P, D) :- member(P, T), grant(T, D)."
    facts: Facts = {"member": [("bob", i) for i in range(300)]}
    found = realized(program, facts, '+sees("ann", "d")', Budget(3, changes=1))
    assert found == ([], ["realizations of more than 1 changes"])


def test_a_chain_is_not_tried_with_every_value_between() -> None:
    """One new edge from what 1 reaches to what reaches 40: every other one needs a second edge."""
    edges: Facts = {"edge": [(i, i + 1) for i in range(1, 40) if i != 20]}
    found, reasons = realized(GRAPH, edges, "+path(1, 40)", Budget(500, 3_600, changes=1))
    assert len(set(found)) == 20 * 20
    assert reasons == ["realizations of more than 1 changes"]


def test_open_values_that_a_head_repeats_are_equal() -> None:
    program = "base p(x: int). base q(x: int, y: int). same(X, X) :- p(X). "
    program += "h() :- same(X, Y), q(X, Y)."
    found, _ = realized(program, {"q": [(1, 2), (3, 3)]}, "+h()", Budget(changes=1))
    assert found == ["Realization(+p(3,))"]


def test_a_view_that_always_needs_another_fact_of_its_own_has_none() -> None:
    program = "base b(x: int, y: int). v(Y) :- b(Y, X), w(X). w(X) :- v(X). "
    program += "h(X) :- v(X), not w(1). ok(X) :- b(X, X)."
    facts: Facts = {"b": [(2, 2)]}
    assert realized(program, facts, "+h(1)", Budget(20)) == ([], [])
    assert realized(program, facts, "+v(2)", Budget(20)) == ([], [])
    assert realized(program, facts, "-ok(2)", Budget(20)) == (["Realization(-b(2, 2))"], [])
