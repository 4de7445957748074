"""Which columns recursion passes through unchanged."""

from __future__ import annotations

import pytest

from deltalog.analysis.stratification import component_partition
from deltalog.checks.program import check_program
from deltalog.language.parser import parse_text
from deltalog.plan.pivots import Pivot, pivot_of
from deltalog.rewrites.desugar import desugar
from deltalog.runtime.fixpoint import lower_stages

EDGES = "base edge(src: int, dst: int).\n"


def found(text: str) -> Pivot | None:
    """The pivot of the recursive component of a program."""
    program = parse_text(EDGES + text)
    core = desugar(program, check_program(program).relations)
    parts, _ = lower_stages(component_partition(core.rules))
    pivots = [pivot_of(plans) for plans in parts if isinstance(plans, tuple)]
    return next((each for each in pivots if each is not None), None)


@pytest.mark.parametrize(
    ("rules", "columns"),
    [
        ("p(X, Y) :- edge(X, Y). p(X, Z) :- p(X, Y), edge(Y, Z).", {"p": 0}),
        ("p(X, Y) :- edge(X, Y). p(X, Z) :- edge(X, Y), p(Y, Z).", {"p": 1}),
        ("p(X, Y) :- edge(X, Y). p(X, Z) :- p(X, Y), p(Y, Z).", None),
        ("p(X, Y) :- edge(X, Y). p(Y, X) :- p(X, Y).", None),
        ("p(X, 1, Y) :- edge(X, Y). p(X, N, Z) :- p(X, N, Y), edge(Y, Z).", {"p": 0}),
        ("p(X, Y) :- edge(X, Y). p(X, X) :- p(X, Y), p(X, Z), edge(Y, Z).", {"p": 0}),
        ("p(X) :- edge(X, _). p(X) :- p(Y), edge(Y, X).", None),
        (
            "p(X, Y) :- edge(X, Y). p(X, Z) :- q(Y, X), edge(Y, Z). q(Z, X) :- p(X, Z).",
            {"p": 0, "q": 1},
        ),
    ],
)
def test_pivots(rules: str, columns: dict[str, int] | None) -> None:
    pivots = found(rules)
    assert (None if pivots is None else dict(pivots.columns)) == columns


def test_what_is_beside() -> None:
    """A relation with the pivot in a column is shared, every other one is copied."""
    pivots = found(
        "base may(src: int, dst: int).\n"
        "p(X, Y) :- edge(X, Y). p(X, Z) :- p(X, Y), edge(Y, Z), may(X, Z), not edge(Z, X)."
    )
    assert pivots is not None
    assert dict(pivots.shared) == {"may": 0}
    assert pivots.copied == ("edge",)
    assert [plan.head for plan in pivots.exits] == ["p"]
