"""Rows of all relations in one table, typed: the k-th int column of each is its k-th int column.

    relation  change  rank  int_0  int_1  str_0
    edge      insert        1      2
    name      delete        7             "ann"

`change` is `insert` or `delete`, which together are the exact change of a relation, or `rank`: the
row was there before and has another rank now (`docs/decisions/0011`). Rows of the log itself have
no relation: `commit` has a record of the whole commit, `batch` a source and what was taken from it,
`refused` a row that was not taken, `reader` a reader of the log and the version it has read up to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow

from deltalog.engines.spark.columns import ARROW_TYPES, arrow_columns, rows_in, shared_names
from deltalog.language.ast import Row

INSERT, DELETE, RERANK = "insert", "delete", "rank"
COMMIT, BATCH, REFUSED, READER = "commit", "batch", "refused", "reader"
FIXED = (
    ("sequence", pyarrow.int64()),
    ("version", pyarrow.int64()),
    ("at", pyarrow.timestamp("us", tz="UTC")),
    ("relation", pyarrow.string()),
    ("change", pyarrow.string()),
    ("rank", pyarrow.int64()),
    ("text", pyarrow.string()),
)


def log_schema(all_types: Iterable[Sequence[str]]) -> pyarrow.Schema:
    """The schema of a log that holds relations with these columns."""
    shared = {
        name: ARROW_TYPES[type_]
        for types in all_types
        for name, type_ in zip(shared_names(types), types, strict=True)
    }
    return pyarrow.schema([*FIXED, *sorted(shared.items())])


@dataclass(frozen=True)
class Stamp:
    """The values that all rows of one commit have in common."""

    sequence: int
    version: int
    at: datetime


@dataclass(frozen=True)
class Changes:
    """Rows of one relation that a commit changes in one way; `ranks` may be left out."""

    relation: str
    change: str
    types: tuple[str, ...]
    rows: Sequence[Row]
    ranks: Sequence[int] | None = None


def encoded_changes(
    stamp: Stamp, changes: Iterable[Changes], schema: pyarrow.Schema
) -> pyarrow.Table:
    """The rows of a commit as a table of the log.

    Relations with the same types are encoded together, so the cost follows rows and types, and not
    the number of relations.
    """
    alike: dict[tuple[str, ...], list[Changes]] = {}
    for each in changes:
        alike.setdefault(each.types, []).append(each)
    parts = [_encode_changes(stamp, types, together, schema) for types, together in alike.items()]
    return pyarrow.concat_tables([schema.empty_table(), *parts])


def _encode_changes(
    stamp: Stamp, types: tuple[str, ...], changes: Sequence[Changes], schema: pyarrow.Schema
) -> pyarrow.Table:
    """Changes of relations that have these types."""
    rows = [row for each in changes for row in each.rows]
    own = dict(zip(shared_names(types), arrow_columns(rows, types), strict=True))
    for name in ("relation", "change"):
        values = [getattr(each, name) for each in changes for _ in each.rows]
        own[name] = pyarrow.array(values, pyarrow.string())
    if any(each.ranks is not None for each in changes):
        ranks = [rank for each in changes for rank in _ranks_of_changes(each)]
        own["rank"] = pyarrow.array(ranks, pyarrow.int64())
    return _add_stamp(stamp, len(rows), own, schema)


def _ranks_of_changes(changes: Changes) -> Sequence[int | None]:
    return [None] * len(changes.rows) if changes.ranks is None else changes.ranks


def encoded_texts(
    stamp: Stamp, change: str, texts: Sequence[str], schema: pyarrow.Schema
) -> pyarrow.Table:
    """Rows that belong to the commit as a whole."""
    own = {"change": change, "text": pyarrow.array(texts, pyarrow.string())}
    return _add_stamp(stamp, len(texts), own, schema)


def _add_stamp(
    stamp: Stamp, size: int, own: Mapping[str, object], schema: pyarrow.Schema
) -> pyarrow.Table:
    known = {"sequence": stamp.sequence, "version": stamp.version, "at": stamp.at, **own}
    return pyarrow.Table.from_arrays(
        [_column_of_value(known.get(field.name), field.type, size) for field in schema],
        schema=schema,
    )


def _column_of_value(value: object, type_: pyarrow.DataType, size: int) -> pyarrow.Array:
    if isinstance(value, pyarrow.Array):
        return value
    if value is None:
        return pyarrow.nulls(size, type_)
    return pyarrow.repeat(pyarrow.scalar(value, type_), size)


def decoded_rows(table: pyarrow.Table, types: tuple[str, ...]) -> list[Row]:
    """The rows of one relation in a part of the log."""
    if not table.num_rows:  # the log may never have had such columns
        return []
    columns = [table.column(name) for name in shared_names(types)]
    return rows_in(columns, types, table.num_rows)
