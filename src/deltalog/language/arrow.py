"""Rows as Arrow: one mapping of types, for files and for results in memory alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from deltalog.language.ast import Column, Row
from deltalog.language.values import rounded_decimal

if TYPE_CHECKING:
    import pyarrow


def arrow_type(type_: str) -> pyarrow.DataType:
    """Return the Arrow type of values of a type."""
    import pyarrow

    match type_:
        case "float":
            return pyarrow.float64()
        case "str":
            return pyarrow.string()
        case "bool":
            return pyarrow.bool_()
        case "date":
            return pyarrow.date32()
        case "timestamp":
            return pyarrow.timestamp("us")
        case "decimal":
            return pyarrow.decimal128(38, 18)
        case _:
            return pyarrow.int64()


def arrow_schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """The Arrow schema of a relation, the same for files and for results in memory."""
    import pyarrow

    return pyarrow.schema(
        [
            pyarrow.field(column.name, arrow_type(column.type or "int"), column.nullable)
            for column in columns
        ]
    )


def arrow_table(columns: Sequence[Column], rows: Iterable[Row]) -> pyarrow.Table:
    """The rows as an Arrow table; without columns it still knows how many rows there are."""
    import pyarrow

    listed = rows if isinstance(rows, list) else list(rows)
    schema = arrow_schema(columns)
    if not columns:
        return pyarrow.table({"rows": pyarrow.nulls(len(listed))}).select([])
    arrays = [
        pyarrow.array([row[position] for row in listed], field.type)
        for position, field in enumerate(schema)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def arrow_rows(table: pyarrow.Table) -> list[Row]:
    """Return the rows of a table with the schema of `arrow_schema` as canonical tuples."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(_column_values, table.columns), strict=True))


def _column_values(column: pyarrow.ChunkedArray) -> list[Any]:
    import pyarrow

    values: list[Any] = column.to_pylist()
    if pyarrow.types.is_decimal(column.type):  # Arrow shows all 18 places
        return [None if value is None else rounded_decimal(value) for value in values]
    return values


def with_columns(table: pyarrow.Table, columns: Sequence[Column]) -> pyarrow.Table:
    """Return the table with the names of these columns, and with what they say about null."""
    import pyarrow

    if not columns:
        return table
    return pyarrow.Table.from_arrays(table.columns, schema=arrow_schema(columns))


def in_order(table: pyarrow.Table) -> pyarrow.Table:
    """Return the table sorted by its columns from left to right, null before everything else.

    Arrow would put null last: whether there is a value is a column of its own.
    """
    import pyarrow
    import pyarrow.compute

    keys: dict[str, Any] = {}
    for position, column in enumerate(table.columns):
        if column.null_count:
            keys[f"{position} is there"] = pyarrow.compute.is_valid(column)
        keys[f"{position}"] = column
    if not keys or table.num_rows < 2:
        return table
    sort_keys = [(name, "ascending") for name in keys]
    return table.take(pyarrow.compute.sort_indices(pyarrow.table(keys), sort_keys=sort_keys))


def is_key(table: pyarrow.Table, columns: Sequence[int]) -> bool:
    """Whether rows that have the same values in these columns are the same rows."""
    if len(columns) == table.num_columns:
        return True
    keys = _count_distinct_rows(table.select(list(columns)))
    return keys == table.num_rows or keys == _count_distinct_rows(table)


def _count_distinct_rows(table: pyarrow.Table) -> int:
    return int(table.group_by(table.column_names).aggregate([]).num_rows)
