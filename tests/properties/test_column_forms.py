"""Facts given as columns do what the same facts do as tuples, whatever the operations around them.

The model is a set of tuples. Every operation of a history is given to three databases, on the
reference engine as tuples, on the embedded engine and in a file in any of the forms; states and
deltas must be those of the model, to the letter.
"""

from __future__ import annotations

import tempfile
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pyarrow
from effort import effort
from hypothesis import given
from hypothesis import strategies as st

import deltalog
from deltalog.analysis.columns import Relation
from deltalog.language.arrow import arrow_table
from deltalog.language.values import INT_MAX, INT_MIN, canonical_value

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.sampled_from((0, 1, -1, INT_MIN, INT_MAX)) | st.integers(INT_MIN, INT_MAX),
    "float": st.sampled_from((0.0, 0.5, -2.0)) | st.floats(allow_nan=False, allow_infinity=False),
    "str": st.sampled_from(("", "a", "b")) | st.text(max_size=3),
    "bool": st.booleans(),
    "date": st.sampled_from((date.min, date.max, date(1970, 1, 1))) | st.dates(),
    "timestamp": st.sampled_from((datetime.min, datetime.max)) | st.datetimes(),
    "decimal": st.sampled_from((Decimal(0), Decimal("0.1")))
    | st.decimals(-(10**20) + 1, 10**20 - 1, places=18),
}
FORMS = ("tuples", "arrow", "batches", "pandas", "numpy", "fields", "dicts", "columns", "rows")


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[str], list[Any]]:
    """Column types, and transactions of operations `(holds, form, rows)` on few distinct rows."""
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    nullable = [draw(st.booleans()) for _ in types]
    columns = [
        VALUES[type_].map(lambda value, type_=type_: canonical_value(value, type_))
        | (st.none() if is_null else st.nothing())
        for type_, is_null in zip(types, nullable, strict=True)
    ]
    universe = draw(st.lists(st.tuples(*columns), min_size=1, max_size=6))
    operation = st.tuples(
        st.booleans(),
        st.sampled_from(FORMS),
        st.lists(st.sampled_from(universe), max_size=6),
    )
    declared = [f"{t}{'?' * n}" for t, n in zip(types, nullable, strict=True)]
    return declared, draw(st.lists(st.lists(operation, max_size=3), max_size=5))


def shaped(relation: Relation, rows: list[Any], form: str) -> Any:
    """Rows in a form, also twice the same one."""
    if form == "tuples":
        return rows
    if form == "dicts":
        names = [column.name for column in relation.columns]
        return [dict(zip(names, row, strict=True)) for row in rows]
    table = arrow_table(relation.columns, rows)
    match form:
        case "arrow":
            return table
        case "batches":
            return pyarrow.concat_tables([table[:1], table[1:]]).to_reader()
        case "pandas":
            return table.to_pandas(integer_object_nulls=True)
        case "numpy":
            found = numpy.empty((len(rows), relation.arity), object)
            for position in range(relation.arity):
                found[:, position] = [row[position] for row in rows]
            return found
        case "fields":
            whole = numpy.empty(len(rows), [(c.name, object) for c in relation.columns])
            for position, column in enumerate(relation.columns):
                whole[column.name] = [row[position] for row in rows]
            return whole
        case "columns":
            return dict(zip(table.column_names, table.columns, strict=True))
        case _:
            return deltalog.Rows(relation.columns, set(rows))


def exactly(facts: Any) -> list[str]:
    return sorted(map(repr, facts))


@effort(quick=50, fuzz=5_000)
@given(histories())
def test_columns_do_what_tuples_do(history: tuple[list[str], list[Any]]) -> None:
    declared, transactions = history
    columns = ", ".join(f"x{i}: {type_}" for i, type_ in enumerate(declared))
    variables = ", ".join(f"X{i}" for i in range(len(declared)))
    program = f"base b({columns}). v({variables}) :- b({variables})."
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.db"
        databases = [
            deltalog.connect(program=program),
            deltalog.connect(program=program, engine="reference"),
            deltalog.connect(path, program=program),
        ]
        state: set[Any] = set()
        for operations in transactions:
            before, state = state, set(state)
            for holds, _, rows in operations:
                state = state | set(rows) if holds else state - set(rows)
            for db in databases:
                with db.transaction() as tx:
                    for holds, form, rows in operations:
                        given_rows = shaped(db.relations["b"], rows, form)
                        (tx.insert if holds else tx.delete)("b", given_rows)
                for name in ("b", "v"):
                    assert exactly(tx.delta.inserted.rows(name)) == exactly(state - before)
                    assert exactly(tx.delta.deleted[name]) == exactly(before - state)
                    assert exactly(db.facts(name)) == exactly(state)
                    assert exactly(db.rows(name)) == exactly(state)
                    table = db.rows(name).to_arrow()
                    assert list(map(tuple, map(dict.values, table.to_pylist()))) == list(
                        db.rows(name)
                    )
        databases[2].close()  # type: ignore[attr-defined]
        with deltalog.connect(path) as again:
            assert exactly(again.facts("b")) == exactly(state)
        facts = {"b": shaped(databases[0].relations["b"], list(state), "arrow")}
        assert exactly(deltalog.connect(program=program, facts=facts).facts("v")) == exactly(state)
