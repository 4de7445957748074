"""Binding: which variables have a value, and the order in which a body is evaluated."""

from __future__ import annotations

import pytest

from deltalog.analysis.binding import (
    bound_variables,
    elements_not_in_all,
    evaluation_order,
    variables_bound_by,
    variables_needed_by,
)
from deltalog.language.ast import Atom, Literal
from deltalog.language.parser import parse_query
from deltalog.language.printer import print_literal


def body(text: str) -> tuple[Literal, ...]:
    return parse_query(text).body


def literal(text: str) -> Literal:
    (only,) = body(text)
    return only


def ordered(text: str, *bound: str) -> list[str]:
    return [print_literal(each) for each in evaluation_order(body(text), set(bound))]


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("p(X, Y)", {"X", "Y"}),
        ("p(X, 1, null)", {"X"}),
        ("not p(X, Y)", set()),
        ("X > 1", set()),
        ("X = 1", {"X"}),
        ("1 = X", {"X"}),
        ("X = Y", set()),
        ("X = X", set()),
        ("X = Y + 1, p(Y)", {"X", "Y"}),
        ("X + 1 = Y, p(Y)", {"Y"}),
        ("X = Y, Y = Z, Z = W, p(W)", {"X", "Y", "Z", "W"}),
        ("X = Y + 1, Y = X + 1", set()),
        ("p(X + 1, Y)", {"Y"}),
        ("(p(X, Y) ; q(X))", {"X"}),
        ("(p(X) ; X = 1)", {"X"}),
        ("(p(X) ; X = Y), q(Y)", {"X", "Y"}),
        ("(p(X) ; X = Y)", set()),
        ("((p(X) ; q(X)) ; r(X, Y))", {"X"}),
    ],
)
def test_what_a_body_binds(text: str, bound: set[str]) -> None:
    assert bound_variables(body(text)) == bound


def test_what_is_given_stays_bound_and_binds_more() -> None:
    assert bound_variables(body("X = Y + 1"), {"Y"}) == {"X", "Y"}
    assert variables_bound_by(literal("X = Y"), {"Y"}) == {"X"}
    assert variables_bound_by(literal("X = Y"), {"X", "Y"}) == {"X", "Y"}


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("p(X, Y)", set()),
        ("p(X, Y + Z)", {"Y", "Z"}),
        ("not p(X, _)", {"X"}),
        ("not p(X + Y, _, 1)", {"X", "Y"}),
        ("X < Y * 2", {"X", "Y"}),
    ],
)
def test_what_a_literal_needs(text: str, needed: set[str]) -> None:
    assert variables_needed_by(literal(text)) == needed


def test_uneven_is_what_only_some_have() -> None:
    assert elements_not_in_all([{"X", "Y"}, {"X", "Z"}, {"X"}]) == {"Y", "Z"}
    assert elements_not_in_all([{"X"}]) == set()


def test_tests_come_as_soon_as_they_can() -> None:
    assert ordered("p(X), q(Y), X < Y, X > 1, not r(X)") == [
        "p(X)", "X > 1", "not r(X)", "q(Y)", "X < Y",
    ]  # fmt: skip


def test_the_atom_with_most_bound_arguments_comes_first() -> None:
    assert ordered("edge(X, Z), path(Z, Y)", "X") == ["edge(X, Z)", "path(Z, Y)"]
    assert ordered("edge(X, Z), path(Z, Y)", "Y") == ["path(Z, Y)", "edge(X, Z)"]
    assert ordered("a(X, Y, Z), b(Y, 1)") == ["b(Y, 1)", "a(X, Y, Z)"]


def test_a_pure_test_comes_before_everything_that_binds() -> None:
    assert ordered("a(X, Y, Z, W), b(X)", "X", "Y", "Z") == ["b(X)", "a(X, Y, Z, W)"]


def test_ties_stay_as_written() -> None:
    assert ordered("a(X), b(Y), c(Z)") == ["a(X)", "b(Y)", "c(Z)"]


def test_an_equation_waits_for_its_values() -> None:
    assert ordered("A = B * 2, B = X + 1, p(X), q(A)") == [
        "p(X)", "B = X + 1", "A = B * 2", "q(A)",
    ]  # fmt: skip


def test_an_atom_can_be_put_first() -> None:
    literals = body("p(X, 1), q(Y)")
    last = literals[1]
    assert isinstance(last, Atom)
    assert evaluation_order(literals, frozenset(), last) == (last, literals[0])


def test_one_of_two_equal_atoms_is_put_first() -> None:
    literals = body("p(X), p(X)")
    second = literals[1]
    assert isinstance(second, Atom)
    order = evaluation_order(literals, frozenset(), second)
    assert order[0] is second
    assert order[1] is literals[0]


def test_an_unsafe_body_is_returned_whole() -> None:
    assert sorted(ordered("X > Y, p(Z), X = Y + 1")) == ["X = Y + 1", "X > Y", "p(Z)"]


def test_of_equals_a_large_predicate_comes_last() -> None:
    text = body("path(X, Y), edge(Y, Z), size(X, S)")
    order = evaluation_order(text, {"X", "Z"}, large={"path"})
    assert [print_literal(each) for each in order] == ["edge(Y, Z)", "path(X, Y)", "size(X, S)"]
    alone = evaluation_order(body("path(X, Y), edge(Z, W)"), {"X"}, large={"path"})
    assert [print_literal(each) for each in alone] == ["path(X, Y)", "edge(Z, W)"]
