"""Rows as Arrow: one mapping of types, for files and for results in memory alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from deltalog.language.ast import Column, Row

if TYPE_CHECKING:
    import pyarrow


def arrow_schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """The Arrow schema of a relation, the same for files and for results in memory."""
    import pyarrow

    types = {
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "str": pyarrow.string(),
        "bool": pyarrow.bool_(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us"),
        "decimal": pyarrow.decimal128(38, 18),
    }
    return pyarrow.schema(
        [
            pyarrow.field(column.name, types[column.type or "int"], column.nullable)
            for column in columns
        ]
    )


def arrow_table(columns: Sequence[Column], rows: Iterable[Row]) -> pyarrow.Table:
    """The rows as an Arrow table; without columns it still knows how many rows there are."""
    import pyarrow

    listed = list(rows)
    schema = arrow_schema(columns)
    if not columns:
        return pyarrow.table({"rows": pyarrow.nulls(len(listed))}).select([])
    vectors = list(zip(*listed, strict=True)) or [()] * len(columns)
    arrays = [pyarrow.array(v, field.type) for v, field in zip(vectors, schema, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
