"""Rows: the answer to a query, ordered, comparable, typed in Arrow and pandas."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow
import pytest

import deltalog
from deltalog import Rows
from deltalog.language.ast import Column, Row

PROGRAM = """
    base all_types(
        i: int?, f: float?, s: str?, b: bool?, d: date?, t: timestamp?, m: decimal?
    ).
    all_types(1, 2.5, "x", true, date"2026-01-31", timestamp"2026-01-31 12:30:00.5", 0.1).
    all_types(null, null, null, null, null, null, null).
    pair(2, "b"). pair(10, "a"). pair(2, "a").
"""
VARIABLES = "I, F, S, B, D, T, M"


@pytest.fixture(scope="module")
def db() -> deltalog.MemoryDatabase:
    return deltalog.connect(program=PROGRAM)


def one_column(*values: object) -> Rows:
    return Rows((Column("X", "int", True),), {(value,) for value in values})  # type: ignore[misc]


def test_rows_are_sorted_by_the_order_of_their_types(db: deltalog.MemoryDatabase) -> None:
    assert list(db.query("pair(X, Y)")) == [(2, "a"), (2, "b"), (10, "a")]
    assert list(db.query("pair(X, Y), Z = Y")) == [(2, "a", "a"), (2, "b", "b"), (10, "a", "a")]
    assert list(db.query("all_types(X, _, _, _, _, _, _)")) == [(None,), (1,)]


def test_columns_are_the_variables_in_order_of_occurrence(db: deltalog.MemoryDatabase) -> None:
    rows = db.query("Z = Y, pair(X, Y), pair(_, Y), not pair(_, Z), X > 1")
    assert rows.names == ("Z", "Y", "X")
    assert [column.type for column in rows.columns] == ["str", "str", "int"]
    assert not rows


def test_rows_are_a_sequence() -> None:
    rows = one_column(3, 1, 2)
    assert len(rows) == 3
    assert rows[0] == (1,)
    assert rows[-1] == (3,)
    assert rows[1:] == ((2,), (3,))
    assert (2,) in rows
    assert rows.index((3,)) == 2
    assert list(reversed(rows)) == [(3,), (2,), (1,)]


def test_rows_equal_sets_and_ordered_lists_of_tuples() -> None:
    rows = one_column(1, 2)
    assert rows == one_column(2, 1)
    assert rows == {(2,), (1,)}
    assert rows == frozenset({(2,), (1,)})
    assert rows == [(1,), (2,)]
    assert rows == ((1,), (2,))
    assert rows != [(2,), (1,)]
    assert rows != {(1,)}
    assert rows != "rows"


def test_rows_have_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(one_column(1))


def test_many_rows_are_shown_in_part() -> None:
    assert repr(one_column(1, 2)) == "Rows(X)[(1,), (2,)]"
    assert repr(one_column(*range(10))).endswith("(7,), … 2 more]")


def test_arrow_has_the_type_of_every_column(db: deltalog.MemoryDatabase) -> None:
    table = db.query(f"all_types({VARIABLES})").to_arrow()
    assert table.schema == pyarrow.schema(
        {
            "I": pyarrow.int64(),
            "F": pyarrow.float64(),
            "S": pyarrow.string(),
            "B": pyarrow.bool_(),
            "D": pyarrow.date32(),
            "T": pyarrow.timestamp("us"),
            "M": pyarrow.decimal128(38, 18),
        }
    )
    assert table.num_rows == 2


def test_arrow_gives_the_values_back(db: deltalog.MemoryDatabase) -> None:
    rows = db.query(f"all_types({VARIABLES})")
    back: list[Row] = [tuple(record.values()) for record in rows.to_arrow().to_pylist()]
    assert rows == back
    moment = datetime(2026, 1, 31, 12, 30, 0, 500_000)
    assert back[1] == (1, 2.5, "x", True, date(2026, 1, 31), moment, Decimal("0.1"))
    assert back[0] == (None,) * 7


def test_no_rows_still_have_types(db: deltalog.MemoryDatabase) -> None:
    table = db.query(f"all_types({VARIABLES}), I > 1").to_arrow()
    assert table.num_rows == 0
    assert table.schema.field("M").type == pyarrow.decimal128(38, 18)


@pytest.mark.parametrize(("query", "count"), [("pair(2, _)", 1), ("pair(3, _)", 0)])
def test_a_query_without_variables_has_one_empty_row_or_none(
    db: deltalog.MemoryDatabase, query: str, count: int
) -> None:
    rows = db.query(query)
    assert list(rows) == [()] * count
    assert bool(rows) == (count == 1)
    assert rows.to_arrow().num_rows == count
    assert rows.to_arrow().num_columns == 0
    assert len(rows.to_pandas()) == count


def test_pandas_has_the_columns_and_values(db: deltalog.MemoryDatabase) -> None:
    frame = db.query("pair(X, Y)").to_pandas()
    assert list(frame.columns) == ["X", "Y"]
    assert frame["X"].tolist() == [2, 2, 10]
    assert frame["X"].dtype == "int64"
    assert frame["Y"].tolist() == ["a", "b", "a"]


def test_the_largest_decimals_and_ints_survive_arrow() -> None:
    widest = "99999999999999999999.999999999999999999"
    program = f'big(9223372036854775807, decimal"{widest}"). big(-9223372036854775807, -1).'
    table = deltalog.connect(program=program).query("big(I, D)").to_arrow()
    assert table.column("I").to_pylist() == [-(2**63) + 1, 2**63 - 1]
    assert table.column("D").to_pylist() == [Decimal(-1), Decimal(widest)]
