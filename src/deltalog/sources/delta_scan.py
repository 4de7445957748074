"""Read a version of a Delta table row by row where its files alone do not say what is there.

Spark deletes rows by *deletion vectors*: the file stays, and the log says which of its rows count.
Columns may be *mapped*: in files they have other names. delta-rs reads such tables by its engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deltalog.language.ast import Row, Value

if TYPE_CHECKING:
    import pyarrow

FEATURES = frozenset({"deletionVectors", "columnMapping"})


def needs_scan(table: Any) -> bool:
    """Whether files of the table must not be read as they are."""
    return not FEATURES.isdisjoint(table.protocol().reader_features or ())


def scan_table(table: Any, names: Sequence[str], columns: Sequence[int], key: Row) -> pyarrow.Table:
    """Some columns of the rows that may have a key; there may be others among them."""
    import pyarrow

    tests = [
        test
        for column, value in zip(columns, key, strict=True)
        if (test := _sql_test(names[column], value)) is not None
    ]
    predicate = " AND ".join(tests) or None
    return pyarrow.table(table.scan(columns=list(names), predicate=predicate).read_all())


def _sql_test(name: str, value: Value) -> str | None:
    """The test of SQL for one column, or None for values that are compared afterwards."""
    column = '"' + name.replace('"', '""') + '"'
    if value is None:
        return f"{column} IS NULL"
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"{column} = '{quoted}'"
    return f"{column} = {value}" if type(value) is int else None
