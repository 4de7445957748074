"""Facts as columns: every form of a table, in and out, is the same facts as tuples."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow
import pyarrow.compute
import pytest

import deltalog
from deltalog import ChangeSet, Database, DataError, Rows
from deltalog.engines.base import LazyRows, LazyTable
from deltalog.runtime import incoming, shown

PROGRAM = """
    base full(i: int?, f: float?, s: str?, b: bool?, d: date?, t: timestamp?, m: decimal?).
    base edge(src: int, dst: int).
    base salary(name: str key, amount: int).
    base flag().
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
NAMES = ("i", "f", "s", "b", "d", "t", "m")
LARGEST = Decimal("99999999999999999999.999999999999999999")
MOMENT = datetime(2026, 1, 31, 12, 30, 0, 500_000)
FULL: list[tuple[Any, ...]] = [
    (1, 2.5, "x", True, date(2026, 1, 31), MOMENT, Decimal("0.1")),
    (-(2**63) + 1, -1e300, "", False, date.min, datetime.min, LARGEST.copy_negate()),
    (2**63 - 1, 0.0, "ü€😀", True, date.max, datetime.max, LARGEST),
    (None,) * 7,
]


class OnlyStream:
    """A table of a package that nobody here knows."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class OnlyArray:
    def __init__(self, batch: pyarrow.RecordBatch) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def nullable_frame(rows: Rows) -> pandas.DataFrame:
    return rows.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)


def to_polars(rows: Rows) -> Any:
    pytest.importorskip("polars")
    return rows.to_polars()


FORMS: dict[str, Callable[[Rows], Any]] = {
    "arrow": Rows.to_arrow,
    "chunks": lambda rows: pyarrow.concat_tables([rows.to_arrow()[:2], rows.to_arrow()[2:]]),
    "batch": lambda rows: rows.to_arrow().combine_chunks().to_batches()[0],
    "reader": lambda rows: rows.to_arrow().to_reader(),
    "stream": lambda rows: OnlyStream(rows.to_arrow()),
    "array": lambda rows: OnlyArray(rows.to_arrow().combine_chunks().to_batches()[0]),
    "reordered": lambda rows: rows.to_arrow().select(list(reversed(rows.names))),
    "pandas": Rows.to_pandas,
    "pandas with Arrow": nullable_frame,
    "polars": to_polars,
    "numpy": Rows.to_numpy,
    "fields": lambda rows: rows.to_numpy(structured=True),
    "dicts": Rows.to_dicts,
    "dict of lists": lambda rows: {n: [row[i] for row in rows] for i, n in enumerate(rows.names)},
    "dict of columns": lambda rows: dict(zip(rows.names, rows.to_arrow().columns, strict=True)),
    "rows": lambda rows: rows,
    "tuples": list,
}


@pytest.fixture(params=["embedded", "reference", "file"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "file":
        return deltalog.connect(tmp_path / "one.db", program=PROGRAM)
    return deltalog.connect(program=PROGRAM, engine=request.param)


@pytest.fixture
def memory() -> Database:
    return deltalog.connect(program=PROGRAM)


def rows_of(relation: str, facts: list[tuple[Any, ...]]) -> Rows:
    return deltalog.connect(program=PROGRAM, facts={relation: facts}).rows(relation)


def exactly(facts: set[tuple[Any, ...]]) -> list[str]:
    """As text: 0.1 and 0.10, or 1 and True, are equal but not the same."""
    return sorted(repr(row) for row in facts)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_facts(db: Database, form: str) -> None:
    given = FORMS[form]
    delta = db.apply(insert={"full": given(rows_of("full", FULL))})
    assert exactly(db.facts("full")) == exactly(set(FULL))
    assert exactly(delta.inserted["full"]) == exactly(set(FULL))
    assert list(db.rows("full")) == list(rows_of("full", FULL))
    delta = db.apply(delete={"full": given(rows_of("full", FULL[:3]))})
    assert delta.deleted["full"] == set(FULL[:3])
    assert db.facts("full") == {FULL[3]}


@pytest.mark.parametrize("form", FORMS)
def test_facts_of_a_new_database_have_every_form(form: str, tmp_path: Path) -> None:
    for path in (None, tmp_path / "new.db"):
        facts = {"full": FORMS[form](rows_of("full", FULL))}
        assert exactly(deltalog.connect(path, program=PROGRAM, facts=facts).facts("full")) == (
            exactly(set(FULL))
        )
    assert deltalog.connect(tmp_path / "new.db").facts("full") == set(FULL)


@pytest.mark.parametrize("form", FORMS)
def test_set_replaces_by_key_in_every_form(db: Database, form: str) -> None:
    db.apply(insert={"salary": [("ann", 5), ("bob", 6)]})
    with db.transaction() as tx:
        tx.set("salary", FORMS[form](rows_of("salary", [("ann", 7), ("cay", 8)])))
    assert db.facts("salary") == {("ann", 7), ("bob", 6), ("cay", 8)}
    assert tx.delta.deleted["salary"] == {("ann", 5)}


def test_set_takes_one_row_or_many(db: Database) -> None:
    with db.transaction() as tx:
        tx.set("salary", ("ann", 1))
        tx.set("salary", ["bob", 2])
        tx.set("salary", {"amount": 3, "name": "cay"})
        tx.set("salary", [("dan", 5), ("dan", 5)])
        tx.set("salary", {"name": ["eve"], "amount": [6]})
        tx.set("salary", [])
    assert db.facts("salary") == {("ann", 1), ("bob", 2), ("cay", 3), ("dan", 5), ("eve", 6)}


def test_a_fact_without_columns_is_a_table_too(db: Database) -> None:
    db.apply(insert={"flag": [()]})
    table = db.rows("flag").to_arrow()
    assert (table.num_rows, table.num_columns) == (1, 0)
    assert db.rows("flag").to_dicts() == [{}]
    db.apply(delete={"flag": table})
    assert db.facts("flag") == set()
    db.apply(insert={"flag": db.rows("flag").to_pandas()})
    assert db.facts("flag") == set()


@pytest.mark.parametrize("size", [1, 10, incoming.COLUMNAR_FROM])
def test_a_table_that_is_partly_there_and_repeats_itself(db: Database, size: int) -> None:
    db.apply(insert={"edge": [(0, 1), (5, 5)]})
    pairs = [(2 * n, 2 * n + 1) for n in range(size)]
    table = rows_of("edge", pairs).to_arrow()
    delta = db.apply(insert={"edge": pyarrow.concat_tables([table, table])})
    assert delta.inserted["edge"] == set(pairs) - {(0, 1)}
    assert delta.inserted["path"] == set(pairs) - {(0, 1)}
    assert delta.deleted == {}
    assert not db.apply(insert={"edge": table})
    delta = db.apply(delete={"edge": pyarrow.concat_tables([table, table])})
    assert delta.deleted["edge"] == set(pairs)
    assert db.facts("edge") == {(5, 5)}
    assert not db.apply(delete={"edge": table})


def test_many_tuples_are_taken_like_a_table(db: Database) -> None:
    pairs = [(n, -n) for n in range(incoming.COLUMNAR_FROM + 1)]
    assert isinstance(incoming.rows_as_columns(db.relations["edge"], pairs), LazyTable)
    assert db.apply(insert={"edge": [*pairs, *pairs]}).inserted["edge"] == set(pairs)
    assert db.apply(delete={"edge": iter(pairs)}).deleted["edge"] == set(pairs)


def table_of(*pairs: tuple[int, int]) -> pyarrow.Table:
    return rows_of("edge", list(pairs)).to_arrow()


def test_operations_count_in_their_order_with_tables_too(db: Database) -> None:
    db.apply(insert={"edge": [(1, 1), (2, 2)]})
    with db.transaction() as tx:
        tx.insert("edge", table_of((3, 3), (4, 4)))
        tx.insert("edge", table_of((4, 4), (5, 5)))
        tx.delete("edge", table_of((1, 1), (4, 4)))
        tx.insert("edge", [(6, 6)])
        tx.delete("edge", [(5, 5)])
        tx.insert("edge", table_of((1, 1)))
        assert tx.net() == ChangeSet({"edge": {(3, 3), (6, 6)}}, {})
    assert db.facts("edge") == {(1, 1), (2, 2), (3, 3), (6, 6)}
    assert tx.delta.inserted["edge"] == {(3, 3), (6, 6)}


def test_two_tables_of_one_relation_stay_whole(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("edge", table_of((3, 3), (4, 4)))
        tx.insert("edge", table_of((4, 4), (5, 5)))
        assert "edge" in tx._tables
        tx.insert("edge", [])
        assert "edge" in tx._tables
        assert tx.net().inserted["edge"] == {(3, 3), (4, 4), (5, 5)}
    assert db.facts("edge") == {(3, 3), (4, 4), (5, 5)}


def test_apply_deletes_first_with_tables_too(db: Database) -> None:
    db.apply(insert={"edge": table_of((1, 2), (2, 3))})
    delta = db.apply(delete={"edge": table_of((1, 2), (2, 3))}, insert={"edge": table_of((2, 3))})
    assert delta.only("edge") == ChangeSet({}, {"edge": {(1, 2)}})
    assert db.what_if(insert={"edge": table_of((3, 4))}).inserted["path"] == {(3, 4), (2, 4)}
    assert db.facts("edge") == {(2, 3)}


def test_tables_and_rows_of_different_relations_in_one_transaction(db: Database) -> None:
    frame = pandas.DataFrame({"name": ["ann", "bob"], "amount": [1, 2]})
    delta = db.apply(insert={"salary": frame, "edge": table_of((1, 2)), "full": [FULL[0]]})
    assert delta.inserted["salary"] == {("ann", 1), ("bob", 2)}
    assert delta.inserted["path"] == {(1, 2)}
    assert db.facts("full") == {FULL[0]}


def test_a_table_is_in_the_file_with_its_past(tmp_path: Path) -> None:
    pairs = [(n, n + 1) for n in range(20)]
    with deltalog.connect(tmp_path / "one.db", program=PROGRAM) as db:
        db.apply(insert={"edge": [(3, 4)]})
        db.apply(insert={"edge": table_of(*pairs), "full": rows_of("full", FULL).to_pandas()})
        db.apply(delete={"edge": table_of(*pairs[5:])})
    with deltalog.connect(tmp_path / "one.db") as db:
        assert db.facts("edge") == set(pairs[:5])
        assert db.facts("edge", 2) == set(pairs)
        assert exactly(db.facts("full")) == exactly(set(FULL))
        assert db.delta(1, 2).inserted["edge"] == set(pairs) - {(3, 4)}
        assert db.audit() == ()


def test_a_key_may_not_be_taken_twice_by_a_table(db: Database) -> None:
    frame = pandas.DataFrame({"name": ["ann", "bob", "ann"], "amount": [1, 2, 3]})
    with pytest.raises(DataError, match="E0705"):
        db.apply(insert={"salary": frame})
    with pytest.raises(DataError, match="E0705"):
        deltalog.connect(program=PROGRAM, facts={"salary": frame})
    assert db.facts("salary") == set()
    db.apply(insert={"salary": [("ann", 9)]})
    with pytest.raises(DataError, match="E0705"):
        db.apply(insert={"salary": frame[:2]})
    assert db.facts("salary") == {("ann", 9)}
    twice = pandas.DataFrame({"name": ["bob", "bob"], "amount": [1, 1]})
    assert db.apply(insert={"salary": twice}).inserted["salary"] == {("bob", 1)}
    found = deltalog.connect(program=PROGRAM, facts={"salary": twice}).facts("salary")
    assert found == {("bob", 1)}


# Columns of other types, and null


def taken(type_: str, column: Any) -> list[Any]:
    db = deltalog.connect(program=f"base b(n: int, x: {type_}).")
    db.apply(insert={"b": {"n": range(len(column)), "x": column}})
    return [row[1] for row in db.rows("b")]


SERIES = pandas.Series
FITTING: list[tuple[str, Any, list[Any]]] = [
    ("int", numpy.array([1, -2], "int8"), [1, -2]),
    ("int", numpy.array([1, 2**63 - 1], "uint64"), [1, 2**63 - 1]),
    ("int", numpy.array([1, 2], ">i4"), [1, 2]),
    ("int", numpy.array([1, 2], object), [1, 2]),
    ("int?", numpy.ma.MaskedArray([1, 2], mask=[True, False]), [None, 2]),
    ("int", SERIES([1, 2]), [1, 2]),
    ("int?", SERIES([1.0, None]), [1, None]),
    ("int?", SERIES([1, None], dtype="Int64"), [1, None]),
    ("int?", SERIES([1, None], dtype=object), [1, None]),
    ("int?", [None, numpy.int64(3)], [None, 3]),
    ("int?", pyarrow.nulls(2), [None, None]),
    ("float", numpy.array([1, 2]), [1.0, 2.0]),
    ("float", numpy.array([0.5, -0.0], "float32"), [0.5, 0.0]),
    ("float", numpy.array([0.5], "longdouble"), [0.5]),
    ("float", pyarrow.array([2**53 + 1]), [float(2**53 + 1)]),
    ("float?", SERIES([0.5, float("nan")]), [0.5, None]),
    ("float?", SERIES([None, 0.5], dtype=object), [None, 0.5]),
    ("str", numpy.array(["a", "bc"]), ["a", "bc"]),
    ("str", SERIES(["a", "b", "a"], dtype="category"), ["a", "b", "a"]),
    ("str?", SERIES(["a", float("nan"), None]), ["a", None, None]),
    ("str?", pyarrow.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    ("str", pyarrow.array(["a", "b"], pyarrow.large_string()), ["a", "b"]),
    ("str", pyarrow.array(["a", "b"], pyarrow.string_view()), ["a", "b"]),
    ("bool", numpy.array([True, False]), [True, False]),
    ("bool?", SERIES([True, None]), [True, None]),
    ("date", numpy.array(["2026-01-31", "1969-12-31"], "datetime64[D]"),
     [date(2026, 1, 31), date(1969, 12, 31)]),
    ("date", numpy.array(["2026-01"], "datetime64[M]"), [date(2026, 1, 1)]),
    ("date?", numpy.array(["NaT", "2026-01-31"], "datetime64[D]"), [None, date(2026, 1, 31)]),
    ("date", pyarrow.array([date(1969, 12, 31)], pyarrow.date64()), [date(1969, 12, 31)]),
    ("date?", SERIES([date(2026, 1, 31), None]), [date(2026, 1, 31), None]),
    ("timestamp", SERIES([pandas.Timestamp("2026-01-31 12:30:00.5")]), [MOMENT]),
    ("timestamp?", SERIES([pandas.NaT, pandas.Timestamp(MOMENT)]), [None, MOMENT]),
    ("timestamp", SERIES([pandas.Timestamp(MOMENT, tz="UTC").tz_convert("Asia/Tokyo")]), [MOMENT]),
    ("timestamp", numpy.array([-1, 1_500], "datetime64[ns]"),
     [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1, 0, 0, 0, 1)]),
    ("timestamp", numpy.array([-1], "datetime64[h]"), [datetime(1969, 12, 31, 23)]),
    ("timestamp", pyarrow.array([7], pyarrow.timestamp("ms")),
     [datetime(1970, 1, 1, 0, 0, 0, 7000)]),
    ("timestamp", [MOMENT.replace(tzinfo=timezone(timedelta(hours=2)))],
     [MOMENT - timedelta(hours=2)]),
    ("timestamp", [MOMENT.replace(tzinfo=UTC)], [MOMENT]),
    ("decimal", numpy.array([1, -2]), [Decimal(1), Decimal(-2)]),
    ("decimal", numpy.array([2**64 - 1], "uint64"), [Decimal(2**64 - 1)]),
    ("decimal?", SERIES([0.1, None]), [Decimal("0.1"), None]),
    ("decimal", pyarrow.array([Decimal("1.50")]), [Decimal("1.5")]),
    ("decimal", pyarrow.array([Decimal("1.5" + 30 * "0")], pyarrow.decimal256(60, 31)),
     [Decimal("1.5")]),
    ("decimal?", [Decimal("2.50"), None, 3, 0.5],
     [Decimal("2.5"), None, Decimal(3), Decimal("0.5")]),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "column", "expected"), FITTING)
def test_columns_that_fit(type_: str, column: Any, expected: list[Any]) -> None:
    found = taken(type_, column)
    assert list(map(repr, found)) == list(map(repr, expected))
    as_rows = deltalog.connect(program=f"base b(n: int, x: {type_}).")
    as_rows.apply(insert={"b": list(enumerate(expected))})
    assert [row[1] for row in as_rows.rows("b")] == found


NAN = float("nan")
MISFITS: list[tuple[str, Any, int]] = [
    ("int", numpy.array([1.0]), 1),
    ("int", numpy.array([True]), 1),
    ("int", numpy.array([1, 2**63], "uint64"), 2),
    ("int", numpy.array([1, -(2**63)]), 2),
    ("int", [1, 2, 2**63], 3),
    ("int", [1, True], 2),
    ("int?", SERIES([None, 1.5]), 2),
    ("int?", SERIES([None, 2.0**60]), 2),
    ("int", SERIES([1.0, 2.0]), 1),
    ("int", SERIES([1, None]), 2),
    ("int", SERIES(["1"]), 1),
    ("int", pyarrow.array([None, 1]), 1),
    ("float", numpy.array([1.0, NAN]), 2),
    ("float?", numpy.array([1.0, NAN]), 2),
    ("float?", pyarrow.array([None, NAN, 1.0]), 2),
    ("float?", [0.5, NAN], 2),
    ("float", SERIES([1.0, NAN]), 2),
    ("float", numpy.array([1.0, numpy.inf]), 2),
    ("float", numpy.array([True]), 1),
    ("float", pyarrow.array([Decimal(1)]), 1),
    ("str", numpy.array([b"a"]), 1),
    ("str", ["a", 1], 2),
    ("str", ["a", "\ud800"], 2),
    ("str?", pyarrow.array([None, b"a"]), 2),
    ("bool", numpy.array([0, 1]), 1),
    ("date", pyarrow.array([MOMENT]), 1),
    ("date", SERIES([pandas.Timestamp("2026-01-31")]), 1),
    ("date", pyarrow.array([0, 2**31 - 1], pyarrow.int32()).view(pyarrow.date32()), 2),
    ("timestamp", pyarrow.array([date.min]), 1),
    ("timestamp", pyarrow.array([0, 2**62], pyarrow.timestamp("s")), 2),
    ("timestamp", numpy.array([0, -(2**62)], "datetime64[us]"), 2),
    ("timestamp", numpy.array([1], "timedelta64[s]"), 1),
    ("decimal", pyarrow.array([Decimal(1), Decimal("1e-19")]), 2),
    ("decimal", pyarrow.array([Decimal(10) ** 20]), 1),
    ("decimal?", numpy.array([0.5, NAN]), 2),
    ("decimal", ["1"], 1),
]


@pytest.mark.parametrize(("type_", "column", "row"), MISFITS)
def test_columns_that_do_not_fit(type_: str, column: Any, row: int) -> None:
    with pytest.raises(DataError) as caught:
        taken(type_, column)
    assert caught.value.codes == ("E0704",)
    assert f" in row {row} does not fit column `x` of `b`" in str(caught.value)


def test_broken_text_from_elsewhere_is_refused() -> None:
    broken = pyarrow.array([b"a", b"\xff"]).view(pyarrow.string())
    with pytest.raises(DataError, match="in row 2"):
        taken("str", broken)


def test_a_bad_table_changes_nothing(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("edge", table_of((1, 2)))
        with pytest.raises(DataError):
            tx.insert("edge", pandas.DataFrame({"src": [1, 2], "dst": [1.5, 2.5]}))
    assert db.facts("edge") == {(1, 2)}


def test_every_column_that_does_not_fit_is_reported(memory: Database) -> None:
    frame = pandas.DataFrame({"src": ["a", "b"], "dst": [1.5, 2.5]})
    with pytest.raises(DataError) as caught:
        memory.apply(insert={"edge": frame})
    assert caught.value.codes == ("E0704", "E0704")


def test_numbers_instead_of_names_are_positions(memory: Database) -> None:
    memory.apply(insert={"edge": pandas.DataFrame([[1, 2], [3, 4]])})
    assert memory.facts("edge") == {(1, 2), (3, 4)}


def test_columns_without_declared_names_go_by_position() -> None:
    db = deltalog.connect(program="pair(1, 2).")
    db.apply(insert={"pair": pandas.DataFrame({"a": [3], "b": [4]})})
    db.apply(insert={"pair": pandas.DataFrame({"c2": [6], "c1": [5]})})
    assert db.facts("pair") == {(1, 2), (3, 4), (5, 6)}


def test_a_frame_may_be_empty(db: Database) -> None:
    assert not db.apply(insert={"edge": pandas.DataFrame({"src": [], "dst": []})})
    assert not db.apply(insert={"edge": numpy.empty((0, 2))})


# Out


def test_all_forms_have_the_same_rows_in_the_same_order(db: Database) -> None:
    db.apply(insert={"full": FULL})
    rows = db.query(f"full({', '.join(NAMES).upper()})")
    ordered = list(rows)
    assert ordered[0] == (None,) * 7
    assert [row[0] for row in ordered[1:]] == sorted(row[0] for row in ordered[1:])
    assert [tuple(record.values()) for record in rows.to_arrow().to_pylist()] == ordered
    assert list(map(tuple, rows.to_numpy().tolist())) == ordered
    assert [tuple(each.values()) for each in rows.to_dicts()] == ordered
    assert rows.to_pandas()["S"].tolist() == [row[2] for row in ordered]
    assert list(db.rows("full")) == ordered
    assert db.rows("full").names == NAMES


def test_arrays_have_two_dimensions_or_fields(db: Database) -> None:
    db.apply(insert={"edge": [(3, 4), (1, 2)], "salary": [("ann", 1)]})
    pairs = db.rows("path").to_numpy()
    assert (pairs.dtype, pairs.tolist()) == (numpy.int64, [[1, 2], [3, 4]])
    fields = db.rows("edge").to_numpy(structured=True)
    assert (fields.dtype.names, fields["dst"].tolist()) == (("src", "dst"), [2, 4])
    assert db.rows("salary").to_numpy().tolist() == [["ann", 1]]
    assert db.query("edge(9, X)").to_numpy().shape == (0, 1)


def test_rows_are_an_arrow_stream(db: Database) -> None:
    db.apply(insert={"edge": [(1, 2)]})
    assert pyarrow.table(db.rows("edge")).to_pylist() == [{"src": 1, "dst": 2}]


def test_rows_stay_as_they_were(db: Database) -> None:
    db.apply(insert={"salary": [("ann", 1), ("bob", 2)]})
    rows = db.rows("salary")
    db.apply(delete={"salary": [("ann", 1)]}, insert={"salary": [("cay", 3)]})
    assert rows == [("ann", 1), ("bob", 2)]


def test_rows_of_a_virtual_view_and_of_an_unknown_one() -> None:
    db = deltalog.connect(program=PROGRAM, facts={"edge": [(1, 2), (2, 3)]}, materialize=False)
    assert db.rows("path") == [(1, 2), (1, 3), (2, 3)]
    assert db.rows("path").names == ("x", "y")
    with pytest.raises(DataError, match="did you mean `path`"):
        db.rows("pth")


def test_a_delta_is_a_table_with_signs_or_two_tables(db: Database) -> None:
    db.apply(insert={"edge": [(1, 2), (2, 3)]})
    delta = db.apply(delete={"edge": [(1, 2)]}, insert={"edge": [(0, 2)]})
    assert delta.to_arrow("path").to_pydict() == {
        "op": ["-", "-", "+", "+"],
        "x": [1, 1, 0, 0],
        "y": [2, 3, 2, 3],
    }
    assert delta.inserted.rows("edge").to_dicts() == [{"src": 0, "dst": 2}]
    assert delta.deleted.rows("path").to_numpy().tolist() == [[1, 2], [1, 3]]
    assert delta.only("edge").deleted.rows("edge").names == ("src", "dst")
    assert (-delta).inserted.rows("edge").to_dicts() == [{"src": 1, "dst": 2}]
    assert (delta + delta).to_arrow("full").schema.names == ["op", *NAMES]
    assert delta.to_arrow("full").num_rows == 0
    with pytest.raises(DataError, match="did you mean `edge`"):
        delta.inserted.rows("egde")
    db.apply(
        delete={"edge": delta.inserted.rows("edge")}, insert={"edge": delta.deleted.rows("edge")}
    )
    assert db.facts("edge") == {(1, 2), (2, 3)}


def test_a_delta_made_by_hand_has_columns_too() -> None:
    delta = ChangeSet({"p": {(1, None), (2, "b")}}, {"p": {(3, "c")}})
    assert delta.to_arrow("p").to_pydict() == {
        "op": ["-", "+", "+"],
        "c1": [3, 1, 2],
        "c2": ["c", None, "b"],
    }
    assert delta.inserted.rows("p") == [(1, None), (2, "b")]
    assert delta.inserted.rows("q") == []


def test_a_column_named_op_is_not_mistaken() -> None:
    db = deltalog.connect(program="base log(op: str).")
    delta = db.apply(insert={"log": [("x",)]})
    assert delta.to_arrow("log").to_pydict() == {"op__": ["+"], "op": ["x"]}


def test_text_of_a_delta_outlives_the_numbers_of_the_engine() -> None:
    db = deltalog.connect(program="base word(x: str). long(X) :- word(X), length(X) > 3.")
    first = [(f"first{n}",) for n in range(20_000)]
    delta = db.apply(insert={"word": first})
    rows = db.rows("word")
    gone = db.apply(delete={"word": first})
    for start in range(3):
        db.apply(insert={"word": [(f"later{start}.{n}",) for n in range(20_000)]})
    assert delta.inserted["long"] == set(first)
    assert gone.to_arrow("word").column("x").to_pylist() == sorted(x for (x,) in first)
    assert rows == sorted(first)


# Showing


def test_a_large_result_is_shown_without_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    db = deltalog.connect(program=PROGRAM)
    pairs = numpy.arange(2 * shown.SORTED_MAX + 2).reshape(-1, 2)
    delta = db.apply(insert={"edge": pairs})

    def read_all(*_: object) -> None:
        raise AssertionError("it was read")

    rows, answers = db.rows("edge"), db.query("path(X, Y)")
    for each in (rows, answers):
        assert isinstance(each.held, LazyRows)
        monkeypatch.setattr(each.held, "read", read_all)
    for held in delta.sides[0].values():
        monkeypatch.setattr(held, "read", read_all)
    assert repr(delta).startswith("ChangeSet(+edge(0, 1), ")
    assert repr(delta).endswith("… 1992 more)")
    assert repr(rows).endswith("… 993 more]")
    assert repr(answers).startswith("Rows(X, Y)[(0, 1), ")
    assert repr(delta.inserted) == "{'edge': 1001 facts, 'path': 1001 facts}"
    for each in (delta, rows, answers):
        assert 20 <= each._repr_html_().count("<tr>") <= 21


def test_html_is_escaped_and_bounded(db: Database) -> None:
    delta = db.apply(insert={"salary": [("<b>", 1), ("x" * 1000, 2)]})
    for each in (delta, db.rows("salary"), db.query("salary(X, Y)")):
        html = each._repr_html_()
        assert "<b>" not in html
        assert "&lt;b&gt;" in html
        assert len(html) < 1000
    assert "<td>salary(name: str, amount: int)</td><td>base</td><td>2</td>" in db._repr_html_()
    assert repr(db).endswith("Database(5 relations, version 1)")
    many = " ".join(f"base r{n}(x: int)." for n in range(shown.HTML_RELATIONS + 5))
    assert "… 5 more" in deltalog.connect(program=many)._repr_html_()


# Keys


def salaries(*names: str, amount: int = 1) -> pyarrow.Table:
    return pyarrow.table({"name": list(names), "amount": [amount] * len(names)})


def test_a_table_of_a_relation_with_a_key_stays_whole(memory: Database) -> None:
    for names in (("ann", "bob"), ("cay", "cay", "ann"), ("dan",)):
        with memory.transaction() as tx:
            tx.insert("salary", salaries(*names))
            assert "salary" in tx._tables
    assert memory.facts("salary") == {(name, 1) for name in ("ann", "bob", "cay", "dan")}


def test_a_key_is_found_taken_when_the_table_is_given(db: Database) -> None:
    db.apply(insert={"salary": salaries("ann", "bob")})
    with db.transaction() as tx:
        with pytest.raises(DataError, match="`salary` already contains the fact"):
            tx.insert("salary", salaries("cay", "bob", amount=2))
        tx.insert("salary", salaries("dan", "bob"))
    assert db.facts("salary") == {(name, 1) for name in ("ann", "bob", "dan")}


def test_a_key_is_found_taken_that_another_transaction_took(db: Database) -> None:
    tx = db.transaction()
    tx.insert("salary", salaries("ann", "bob", amount=2))
    db.apply(insert={"salary": [("ann", 1)]})
    with pytest.raises(DataError, match="E0705"):
        tx.commit()
    assert db.facts("salary") == {("ann", 1)}


def test_keys_after_a_table_are_those_of_the_transaction(db: Database) -> None:
    db.apply(insert={"salary": [("zoe", 1)]})
    with db.transaction() as tx:
        tx.insert("salary", salaries("ann", "bob"))
        tx.set("salary", ("ann", 5))
        with pytest.raises(DataError, match="E0705"):
            tx.insert("salary", [("bob", 7)])
        tx.delete("salary", salaries("bob", "zoe"))
        tx.insert("salary", [("bob", 7)])
        tx.insert("salary", salaries("zoe", amount=3))
    assert db.facts("salary") == {("ann", 5), ("bob", 7), ("zoe", 3)}


def test_a_table_deletes_by_whole_rows_and_frees_keys(db: Database) -> None:
    db.apply(insert={"salary": salaries("ann", "bob", "cay")})
    with db.transaction() as tx:
        tx.delete("salary", salaries("ann", "bob"))
        tx.insert("salary", salaries("ann", amount=2))
        with pytest.raises(DataError, match="E0705"):
            tx.insert("salary", salaries("cay", amount=2))
    assert db.facts("salary") == {("ann", 2), ("cay", 1)}
    assert tx.delta.deleted["salary"] == {("ann", 1), ("bob", 1)}


def test_a_key_of_several_columns() -> None:
    program = 'base seat(hall: int key, number: int key, who: str?). seat(1, 9, "x").'
    kept = deltalog.connect(program=program)
    frame = pandas.DataFrame({"hall": [2, 1, 2], "number": [1, 1, 2], "who": ["a", None, "c"]})
    kept.apply(insert={"seat": frame})
    assert not kept.apply(insert={"seat": frame})
    other = frame.assign(who=["a", "b", "c"])
    with pytest.raises(DataError, match="E0705"):
        kept.apply(insert={"seat": other})
    with pytest.raises(DataError, match="E0705"):
        deltalog.connect(program=program, facts={"seat": pandas.concat([frame, other])})
    assert kept.facts("seat") == {(2, 1, "a"), (1, 1, None), (2, 2, "c"), (1, 9, "x")}


def test_texts_that_rules_compare_come_by_tables_too() -> None:
    program = "base word(a: str, b: str). less(A, B) :- word(A, B), A < B."
    sorting = deltalog.connect(program=program)
    for start in range(0, 40_000, 20_000):  # numbers of the first texts are given out again
        names = [f"{n * 7919 % 100_003:06}" for n in range(start, start + 20_000)]
        table = pyarrow.table({"a": names, "b": names[::-1]})
        expected = {(a, b) for a, b in zip(names, names[::-1], strict=True) if a < b}
        assert sorting.apply(insert={"word": table}).inserted["less"] == expected
        assert sorting.apply(delete={"word": table}).deleted["less"] == expected
    assert sorting.facts("less") == set()


# --- memory of the caller -----------------------------------------------------------------------


def _aliased(form: str) -> tuple[Any, Callable[[], None]]:
    """Return facts in a form, and what overwrites the memory that they are in."""
    array = numpy.array([[1, 2], [2, 3]], order="F")
    columns = [array[:, 0].copy(), array[:, 1].copy()]
    given: Any = array
    if form == "frame":
        given = pandas.DataFrame(array, columns=["src", "dst"], copy=False)
    elif form == "series":
        given = {
            name: pandas.Series(array[:, i], copy=False) for i, name in enumerate(("src", "dst"))
        }
    elif form == "arrays":
        given = {"src": array[:, 0], "dst": array[:, 1]}
    elif form == "arrow":
        buffers = [pyarrow.py_buffer(column) for column in columns]
        made = [pyarrow.Array.from_buffers(pyarrow.int64(), 2, [None, each]) for each in buffers]
        given = pyarrow.table(dict(zip(("src", "dst"), made, strict=True)))
    elif form == "fields":
        given = numpy.array([(1, 2), (2, 3)], dtype=[("src", int), ("dst", int)])

    def overwrite() -> None:
        array[:] = 99
        for column in columns:
            column[:] = 99
        if form == "fields":
            given["src"] = 99

    return given, overwrite


@pytest.mark.parametrize("form", ["array", "frame", "series", "arrays", "arrow", "fields"])
@pytest.mark.parametrize("operation", ["insert", "delete"])
def test_a_transaction_does_not_see_later_writes_to_what_was_given(
    form: str, operation: str
) -> None:
    before = {"edge": [(1, 2), (2, 3)]} if operation == "delete" else {}
    db = deltalog.connect(program=PROGRAM, facts=before, engine="reference")
    given, overwrite = _aliased(form)
    with db.transaction() as tx:
        getattr(tx, operation)("edge", given)
        overwrite()
    assert db.facts("edge") == (set() if operation == "delete" else {(1, 2), (2, 3)})


def test_runs_and_extension_types_are_decoded() -> None:
    db = deltalog.connect(program="base e(x: int, s: str, b: bool).", engine="reference")
    runs = pyarrow.compute.run_end_encode(pyarrow.array([1, 1, 2]))
    texts = pyarrow.ExtensionArray.from_storage(pyarrow.json_(), pyarrow.array(["1", "2", "{}"]))
    bools = pyarrow.ExtensionArray.from_storage(
        pyarrow.bool8(), pyarrow.array([0, 1, 1], pyarrow.int8())
    )
    db.apply(insert={"e": pyarrow.table({"x": runs, "s": texts, "b": bools})})
    assert db.facts("e") == {(1, "1", False), (1, "2", True), (2, "{}", True)}


def test_arrow_is_not_imported_for_rows_that_are_few() -> None:
    script = """
import sys, deltalog
program = "base edge(src: int, dst: int). r(X) :- edge(X, _)."
rows = [(n, -n) for n in range(30_000)]
db = deltalog.connect(program=program, engine="reference")
assert len(db.apply(insert={"edge": rows}).inserted["r"]) == 30_000
db = deltalog.connect(program=program, facts={"edge": rows}, engine="reference")
print("pyarrow" in sys.modules)
"""
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False\n"
