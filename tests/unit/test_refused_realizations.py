"""Arguments that a search for view updates refuses, and realizations that no longer fit."""

from __future__ import annotations

from typing import Any

import pytest

import deltalog
from deltalog import DataError

GRAPH = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    deny loop(X) :- path(X, X).
"""
ALARM = "base reading(s: int, d: int). alarm(S) :- reading(S, D), D > 90."


@pytest.mark.parametrize(
    ("request_", "values", "expected"),
    [
        ("+alarm(5)", {91: 50}, r"`\+alarm\(5\)` is not realized by them"),
        ("+alarm(91)", {91: 95}, r"`\+alarm\(91\)` is not realized by them"),
        ("+alarm(5)", {92: 95}, "new values, which are: 91"),
        ("+alarm(5)", [91], "new values, which are: 91"),
        ("+alarm(5)", {91: "hot"}, "E0704"),
    ],
)
def test_values_that_do_not_realize_the_request_are_refused(
    request_: str, values: Any, expected: str
) -> None:
    facts = {"reading": [(1, 20)]}
    db = deltalog.connect(program=ALARM, facts=facts, engine="reference")
    with pytest.raises(DataError, match=expected):
        next(iter(db.realize(request_))).apply(values)
    assert db.facts("reading") == {(1, 20)}


def test_a_realization_that_the_state_has_overtaken_is_refused() -> None:
    facts = {"edge": [(1, 2), (2, 3)]}
    db = deltalog.connect(program=GRAPH, facts=facts, engine="reference")
    first = next(iter(db.realize("-path(1, 3)")))
    db.apply(insert={"edge": [(1, 3)]})
    with pytest.raises(DataError, match="E1402"):
        first.apply()
    assert db.facts("edge") == {(1, 2), (2, 3), (1, 3)}


COSTS = ("much", -1, True, float("nan"), float("inf"))


@pytest.mark.parametrize(
    "choice", [{"budget": 5}, {"costs": [1]}, *({"costs": {"edge": cost}} for cost in COSTS)]
)
def test_what_cannot_bound_or_order_a_search_is_refused(choice: dict[str, Any]) -> None:
    facts = {"edge": [(1, 2)]}
    db = deltalog.connect(program=GRAPH, facts=facts, engine="reference")
    with pytest.raises(DataError, match="E0726"):
        db.realize("+path(3, 4)", **choice)
    with pytest.raises(deltalog.ConstraintError) as refused:
        db.apply(insert={"edge": [(2, 1)]})
    with pytest.raises(DataError, match="E0726"):
        refused.value.repairs(**choice)
    with pytest.raises(DataError, match="base relation in `fixed`"):
        refused.value.repairs(fixed=["edgy"])
