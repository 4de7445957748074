"""Facts from anywhere: tables, DataFrames, arrays, columns and rows, checked against a relation.

    pyarrow.table({"dst": [2, 3], "src": [1, 2]})      by name, in any order
    numpy.array([[1, 2], [2, 3]])                      by position
    {"src": [1, 2], "dst": [2, 3]}                     a dict of columns
    [(1, 2), {"src": 2, "dst": 3}]                     rows (`checked_rows.py`)

Every form is checked by `checked_rows.py`. What has columns stays columns, and is given to the
engine as an Arrow table. So are rows of a transaction, if there are many of them. No package is
imported but Arrow.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.base import LazyTable
from deltalog.language.arrow import arrow_rows, arrow_table
from deltalog.language.ast import Row
from deltalog.runtime.checked_columns import Vector
from deltalog.runtime.checked_rows import (
    FORMS,
    checked_rows,
    checked_table,
    columns_differ,
    wrong_arity,
)
from deltalog.runtime.rows import Rows

if TYPE_CHECKING:
    import pyarrow

RowsLike: TypeAlias = Any
"""Rows as tuples, lists or dicts; a dict of columns; a DataFrame of pandas or polars; a NumPy array
of two dimensions or with fields; an Arrow table or whatever gives itself out as one."""
COLUMNAR_FROM = 10_000
"""From this many rows on, a transaction takes rows as columns, which halves its time."""
IMPORT_FROM = 500_000
"""The same as long as Arrow is not imported: importing it takes 0.3 seconds."""


def incoming_facts(relation: Relation, rows: RowsLike) -> list[Row] | LazyTable:
    """Return checked facts; raise a `DataError` that says which of them do not fit, and why."""
    source = None if type(rows) is list else _column_source(relation, rows)
    if source is not None:
        return LazyTable(_source_table(relation, source))
    return checked_rows(relation, rows)


def rows_as_columns(relation: Relation, rows: list[Row]) -> list[Row] | LazyTable:
    """Return checked rows as columns, if there are enough of them to save time."""
    least = COLUMNAR_FROM if "pyarrow" in sys.modules else IMPORT_FROM
    if len(rows) >= least and relation.arity:
        return LazyTable(arrow_table(relation.columns, rows))
    return rows


def incoming_rows(relation: Relation, rows: RowsLike) -> list[Row]:
    """Return the same as tuples."""
    source = None if type(rows) is list else _column_source(relation, rows)
    return (
        checked_rows(relation, rows)
        if source is None
        else arrow_rows(_source_table(relation, source))
    )


def is_many(rows: RowsLike) -> bool:
    """Whether something holds rows and is not one: a table, or a list whose first item is a row."""
    if isinstance(rows, Mapping):
        return any(map(_is_vector, rows.values()))
    if isinstance(rows, Sequence) and not isinstance(rows, Rows):
        return not rows or isinstance(rows[0], list | tuple | Mapping)
    return True


class _Source(NamedTuple):
    """Columns of a size, with their names; None for names if there are none."""

    what: str
    size: int
    names: list[str] | None
    vectors: list[Vector]


def _column_source(relation: Relation, rows: Any) -> _Source | None:
    """The columns of what is given, or None if it consists of rows."""
    pandas, numpy = sys.modules.get("pandas"), sys.modules.get("numpy")
    if isinstance(rows, Rows):  # its names are those of variables
        columns = rows.to_arrow().columns
        return _Source("the rows", len(rows), None, [Vector(column) for column in columns])
    if pandas is not None and isinstance(rows, pandas.DataFrame):
        return _pandas_source(rows)
    if numpy is not None and isinstance(rows, numpy.ndarray):
        if rows.dtype.names is not None and rows.ndim == 1:
            names = list(rows.dtype.names)
            fields = [Vector(rows[name]) for name in names]
            return _Source("the array", len(rows), names, fields)
        if rows.ndim == 2:
            return _Source("the array", len(rows), None, [Vector(column) for column in rows.T])
        return None
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return _arrow_source(relation, rows)
    if isinstance(rows, Mapping):
        return _mapping_source(relation, rows)
    return None


def _pandas_source(frame: Any) -> _Source:
    vectors = [Vector(frame.iloc[:, i], is_pandas=True) for i in range(frame.shape[1])]
    labels = list(frame.columns)
    is_named = labels != list(range(len(labels)))
    names = list(map(str, labels)) if is_named else None
    return _Source("the DataFrame", len(frame), names, vectors)


def _arrow_source(relation: Relation, rows: Any) -> _Source:
    import pyarrow

    try:
        if hasattr(rows, "__arrow_c_stream__"):
            table = pyarrow.RecordBatchReader.from_stream(rows).read_all()
        else:
            table = pyarrow.Table.from_batches([pyarrow.record_batch(rows)])
    except (pyarrow.ArrowException, TypeError, ValueError):
        raise DataError(
            [wrong_arity(relation, f"this {type(rows).__name__}", "is not a table", FORMS)]
        ) from None
    vectors = [Vector(column) for column in table.columns]
    return _Source("the table", table.num_rows, list(table.column_names), vectors)


def _mapping_source(relation: Relation, columns: Mapping[Any, Any]) -> _Source:
    vectors = {}
    for name, values in columns.items():
        if not _is_vector(values):
            raise DataError(
                [wrong_arity(relation, repr(columns)[:80], "is not a dict of columns", FORMS)]
            )
        is_pandas = type(values).__module__.startswith("pandas.")
        vectors[str(name)] = Vector(values, is_pandas)
    sizes = {name: len(vector.values) for name, vector in vectors.items()}
    if len(set(sizes.values())) > 1:
        reason = "they have " + ", ".join(f"{s} (`{n}`)" for n, s in sizes.items()) + " values"
        raise DataError(
            [catalogue.COLUMNS_DIFFER.at(None, what="the dict", name=relation.name, reason=reason)]
        )
    size = next(iter(sizes.values()), 0)
    return _Source("the dict", size, list(vectors), list(vectors.values()))


def _is_vector(values: Any) -> bool:
    """Whether it is a column: a list, a tuple, an array, a series, but no text and no mapping."""
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        return False
    return hasattr(values, "__getitem__")


def _source_table(relation: Relation, source: _Source) -> pyarrow.Table:
    """Match the columns, check each of them, and return them in the relation's order."""
    import pyarrow

    vectors = _match_columns(relation, source)
    if not relation.arity:
        return pyarrow.table({"rows": pyarrow.nulls(source.size)}).select([])
    return checked_table(relation, vectors)


def _match_columns(relation: Relation, source: _Source) -> list[Vector]:
    """The source's columns in the order of the relation's: by name, or else by position."""
    wanted = [column.name for column in relation.columns]
    names = source.names
    by_position = names is None or (not relation.is_declared and sorted(names) != sorted(wanted))
    if names is None or by_position:
        if len(source.vectors) != len(wanted):
            reason = f"it has {len(source.vectors)}, the relation has {len(wanted)}"
            hint = f"they are {', '.join(wanted)}" if wanted else None
            raise DataError(
                [
                    catalogue.COLUMNS_DIFFER.at(
                        None, what=source.what, name=relation.name, reason=reason, hint=hint
                    )
                ]
            )
        return source.vectors
    unknown = [name for name in dict.fromkeys(names) if name not in wanted]
    missing = [name for name in wanted if name not in names]
    if unknown or missing:
        raise DataError([columns_differ(relation, source.what, unknown, missing)])
    if len(names) > len(wanted):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            [
                catalogue.COLUMNS_DIFFER.at(
                    None, what=source.what, name=relation.name, reason=f"`{twice}` occurs twice"
                )
            ]
        )
    return [source.vectors[names.index(name)] for name in wanted]
