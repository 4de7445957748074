"""Parameters in queries: values that need no quoting, typed by the place where they stand."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

import deltalog
from deltalog.language.parser import parse_query
from deltalog.language.printer import print_query

PROGRAM = """
    base edge(src: int, dst: int).
    base person(name: str key, born: date, height: float, pay: decimal, boss: str?).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    virtual view near.
    near(X, Y) :- edge(X, Y), X < Y.
    edge(1, 2). edge(2, 3). edge(3, 1).
"""
ANN = ("ann", date(2000, 1, 1), 1.5, Decimal("10.25"), None)
BOB = ('b"o\\b', date(1999, 1, 1), 2.0, Decimal(7), "ann")


@pytest.fixture(params=["embedded", "reference"])
def db(request: pytest.FixtureRequest) -> deltalog.MemoryDatabase:
    facts = {"person": [ANN, BOB]}
    return deltalog.connect(program=PROGRAM, facts=facts, engine=request.param)


@pytest.mark.parametrize(
    ("text", "values", "answers"),
    [
        ("path($src, Y)", {"src": 1}, [(1,), (2,), (3,)]),
        ("near($src, Y)", {"src": 1}, [(2,)]),
        ("? edge(X, $to), X != $to.", {"to": 3}, [(2,)]),
        ("edge(X, Y), not edge(Y, $z)", {"z": 1}, [(1, 2), (3, 1)]),
        ("edge(X, Y), (X = $a ; Y = $a)", {"a": 2}, [(1, 2), (2, 3)]),
        ("edge(X, Y), Z = X + $n", {"n": 10}, [(1, 2, 11), (2, 3, 12), (3, 1, 13)]),
        ("edge(X, Y), X > $n", {"n": 1.5}, [(2, 3), (3, 1)]),
        ("edge($a, $b)", {"a": 1, "b": 2}, [()]),
        ("person($who, _, H, _, _)", {"who": 'b"o\\b'}, [(2.0,)]),
        ("person(N, $day, _, _, _)", {"day": date(2000, 1, 1)}, [("ann",)]),
        ("person(N, _, $h, _, _)", {"h": 2}, [('b"o\\b',)]),
        ("person(N, _, _, $pay, _)", {"pay": 10.25}, [("ann",)]),
        ("person(N, _, _, P, _), P + $more = Q", {"more": 0.5}, None),
        ("person(N, _, _, _, $boss)", {"boss": None}, [("ann",)]),
        ("person(N, B, _, _, _), B < $day", {"day": date(2000, 1, 1)}, None),
    ],
)
def test_a_parameter_stands_for_a_literal(
    db: deltalog.MemoryDatabase, text: str, values: dict[str, Any], answers: list[Any] | None
) -> None:
    found = db.query(text, values)
    if answers is None:
        assert len(found) in (1, 2)
    else:
        assert found == answers


def test_the_same_text_is_asked_with_other_values(db: deltalog.MemoryDatabase) -> None:
    for source in (1, 2, 3, 4, 1):
        assert db.query("edge($s, Y)", {"s": source}) == db.query(f"edge({source}, Y)")


def test_what_is_printed_reads_back_as_the_same_query() -> None:
    query = parse_query("path($src, Y), Y > $src_2")
    assert print_query(query) == "? path($src, Y), Y > $src_2."
    assert parse_query(print_query(query)) == query


@pytest.mark.parametrize(
    ("text", "values", "code", "words"),
    [
        ("edge($src, Y)", {}, "E0719", "  |      ^^^^"),
        ("edge($src, Y)", {"scr": 1}, "E0720", "did you mean `src`?"),
        ("edge(1, Y)", {"src": 1}, "E0720", "the query has no parameters"),
        ("edge($src, Y)", {"src": "1"}, "E0721", "  |      ^^^^\n"),
        ("edge($src, Y)", {"src": True}, "E0721", "which is int"),
        ("edge($src, Y)", {"src": 2**63}, "E0721", "use an int from"),
        ("edge($src, Y)", {"src": None}, "E0721", "null does not fit"),
        ("edge($src, Y)", {"src": [1]}, "E0721", "[1] does not fit"),
        ("edge(X, Y), Z = $x", {"x": [1]}, "E0721", "`$x`"),
        ("edge(X, Y), X < $x", {"x": "a"}, "E0721", "does not fit the parameter"),
        ("person(N, $day, _, _, _)", {"day": "2000-01-01"}, "E0721", "use a datetime.date"),
        ("edge(X, Y), X < $1", {}, "E0101", "unexpected character `$`"),
    ],
)
def test_wrong_parameters(
    db: deltalog.MemoryDatabase, text: str, values: dict[str, Any], code: str, words: str
) -> None:
    with pytest.raises(deltalog.ProgramError) as caught:
        db.query(text, values)
    assert code in caught.value.codes
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["p($x) :- edge($x, 1).", "edge($x, 1).", "? edge($x, Y)."])
def test_a_program_has_no_parameters(text: str) -> None:
    with pytest.raises(deltalog.ProgramError) as caught:
        deltalog.connect(program=f"{PROGRAM}{text}")
    assert caught.value.codes == ("E0119",)


def test_a_caret_points_at_what_was_typed(db: deltalog.MemoryDatabase) -> None:
    with pytest.raises(deltalog.ProgramError) as caught:
        db.query("  edge(1, Y")
    assert "1 |   edge(1, Y\n  |            ^" in str(caught.value)
    assert "found the end" in str(caught.value)
    with pytest.raises(deltalog.ProgramError) as caught:
        db.query("edgy(1, Y)")
    assert "1 | edgy(1, Y)\n  | ^^^^^^^^^^\n" in str(caught.value)
