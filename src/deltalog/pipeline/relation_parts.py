"""A relation of a state, or its feed of changes, in parts that a task reads without Spark.

    table at version 14, log of 15 and 16   →   the files of the table, each without the rows that
                                                the log names, and the rows that the log inserts

A part is small to send: it names files, what is left out of them, and what is asked for. What is
asked for skips files and groups of rows by their statistics. What the log says of a row counts for
all files that were written before it. A version before that of the table is the table without what
came later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_

import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs

from deltalog.engines.spark.columns import ARROW_TYPES, shared_names
from deltalog.language.ast import Row, Value
from deltalog.pipeline.change_log import TableLog
from deltalog.pipeline.feed_columns import FeedColumn, Stretch, stretches_between
from deltalog.pipeline.log_rows import DELETE, FIXED, INSERT, decoded_rows
from deltalog.pipeline.reading import FEED
from deltalog.pipeline.state import State
from deltalog.pipeline.state_tables import table_at
from deltalog.pipeline.stored_table import HOLDS_COLUMN, StoredTable, one_of
from deltalog.pipeline.table_files import files_below, without_rows

FEED_TYPES = (pyarrow.string(), pyarrow.int64(), pyarrow.timestamp("us", tz="UTC"))
LOG_FILES_MAX = 16
"""Files of the log that one task reads."""
Bindings = Mapping[str, Sequence[Value]]
"""The values that columns may have."""
Columns = tuple[FeedColumn, ...]
_LOG_NAMES = ("relation", "change", "version", "at")
_LOG_FIELDS = tuple(field for field in FIXED if field[0] in _LOG_NAMES)


def output_schema(columns: Columns, is_feed: bool) -> pyarrow.Schema:
    fields = [(column.name, ARROW_TYPES[column.type]) for column in columns]
    return pyarrow.schema([*fields, *(zip(FEED, FEED_TYPES, strict=True) if is_feed else ())])


@dataclass(frozen=True)
class RowsPart:
    """Rows that are known already."""

    rows: pyarrow.Table

    def read(self) -> Iterator[pyarrow.RecordBatch]:
        yield from self.rows.to_batches()


@dataclass(frozen=True)
class FilesPart:
    """Parquet files with rows of a table, without those of `mask`; of a feed, with a stamp."""

    table: StoredTable
    paths: tuple[str, ...]
    columns: Columns
    bindings: Bindings
    mask: frozenset[Row] = frozenset()
    stamp: tuple[str, int, datetime] | None = None

    def read(self) -> Iterator[pyarrow.RecordBatch]:
        table = self.table
        names = table.columns or (HOLDS_COLUMN,)
        types = [ARROW_TYPES[type_] for type_ in table.types] or [pyarrow.bool_()]
        schema = pyarrow.schema(list(zip(names, types, strict=True)))
        wanted = _condition_of_bindings(self.columns, self.bindings)
        near = (
            table.wanted(tuple(range(len(table.columns))), list(self.mask))
            if (self.mask and table.columns)
            else None
        )
        if self.mask and not table.columns:
            return
        for batch in _read_batches(table, self.paths, schema, wanted):
            held = pyarrow.Table.from_batches([batch])
            if near is not None:
                held = without_rows(held, table.columns, near, self.mask, table.rows)
            yield from _shape_result(held, self.columns, self.stamp).to_batches()


@dataclass(frozen=True)
class LogPart:
    """Changes of a relation in files of the log, for the versions of a stretch."""

    table: StoredTable
    relation: str
    paths: tuple[str, ...]
    stretch: Stretch
    bindings: Bindings
    after: int
    until: int

    def read(self) -> Iterator[pyarrow.RecordBatch]:
        types = self.table.types
        shared = dict(zip(self.table.columns, shared_names(types), strict=True))
        own = [(shared[c], ARROW_TYPES[t]) for c, t in zip(self.table.columns, types, strict=True)]
        columns = tuple(
            column._replace(source=shared.get(column.source or ""))
            for column in self.stretch.columns
        )
        wanted = self._condition_of_versions()
        bound = _condition_of_bindings(columns, self.bindings)
        wanted = wanted if bound is None else wanted & bound
        for batch in _read_batches(
            self.table, self.paths, pyarrow.schema([*_LOG_FIELDS, *own]), wanted
        ):
            held = pyarrow.Table.from_batches([batch])
            stamp = tuple(held.column(name) for name in ("change", "version", "at"))
            yield from _shape_result(held, columns, stamp).to_batches()

    def _condition_of_versions(self) -> pc.Expression:
        version, change = pc.field("version"), pc.field("change")
        first, last = self.stretch.first, self.stretch.last
        inserted = (change == INSERT) & (version >= first) & (version <= last)
        deleted = (change == DELETE) & (version > first) & (version <= last + 1)
        among = (version > self.after) & (version <= self.until)
        return (pc.field("relation") == self.relation) & among & (inserted | deleted)


Plain = RowsPart | FilesPart
"""A part of a relation itself."""


@dataclass(frozen=True)
class StampedPart:
    """A part of a relation as inserted by a version."""

    part: Plain
    columns: Columns
    stamp: tuple[str, int, datetime]

    def read(self) -> Iterator[pyarrow.RecordBatch]:
        for batch in self.part.read():
            held = pyarrow.Table.from_batches([batch])
            yield from _shape_result(held, self.columns, self.stamp).to_batches()


Part = Plain | LogPart | StampedPart


def align_batch(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """The same rows with the columns of a schema; those that are missing are null."""
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pyarrow.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _read_batches(
    table: StoredTable, paths: Iterable[str], schema: pyarrow.Schema, wanted: pc.Expression | None
) -> Iterator[pyarrow.RecordBatch]:
    found = [table.location.files(path) for path in paths]
    system, parquet = found[0][0], pyarrow.dataset.ParquetFileFormat()
    fragments = [parquet.make_fragment(path, system) for _, path in found]
    data = pyarrow.dataset.FileSystemDataset(fragments, schema, parquet, system)
    yield from data.to_batches(filter=wanted)


def _condition_of_bindings(columns: Columns, bindings: Bindings) -> pc.Expression | None:
    """The condition that columns have the values they are bound to."""
    known = {column.name: column for column in columns}
    found = []
    for name, values in bindings.items():
        _, type_, source = known[name]
        missing = pc.scalar(None in values)
        found.append(missing if source is None else one_of(source, type_, list(values)))
    return reduce(and_, found) if found else None


def _shape_result(
    held: pyarrow.Table, columns: Columns, stamp: Sequence[object] | None
) -> pyarrow.Table:
    """Rows with the columns of the result."""
    arrays = [_result_column(held, column) for column in columns]
    for value, type_ in zip(stamp or (), FEED_TYPES, strict=False):
        is_column = isinstance(value, pyarrow.ChunkedArray)
        made = value if is_column else pyarrow.repeat(pyarrow.scalar(value, type_), held.num_rows)
        arrays.append(made)
    return pyarrow.Table.from_arrays(arrays, schema=output_schema(columns, stamp is not None))


def _result_column(held: pyarrow.Table, column: FeedColumn) -> pyarrow.ChunkedArray | pyarrow.Array:
    if column.name == HOLDS_COLUMN and column.type == "bool":
        return pyarrow.repeat(True, held.num_rows)
    if column.source is None:
        return pyarrow.nulls(held.num_rows, ARROW_TYPES[column.type])
    return held.column(column.source).cast(ARROW_TYPES[column.type])


# --- a relation at a version ----------------------------------------------------------------------


def contents_at(
    state: State, table: StoredTable, name: str, version: int, bindings: Bindings
) -> Sequence[Plain]:
    """A stored relation at a version; `table` is as the program of that version has it."""
    current = table_at(state, name)
    if current is None:  # what it held was deleted with it
        later = TableLog(state).net(version, state.last.version, name)
        return known_rows(table, later.deleted[name], bindings)
    if current.version > state.last.version:  # it was brought up since the log was read
        state.refresh()
    if current.version <= version:
        return _parts_brought_forward(state, current, table, name, version, bindings)
    return _parts_taken_back(state, current, table, name, version, bindings)


def own_columns(table: StoredTable) -> Columns:
    listed = zip(table.columns or (HOLDS_COLUMN,), table.types or ("bool",), strict=True)
    return tuple(FeedColumn(name, type_, name) for name, type_ in listed)


def _parts_brought_forward(
    state: State,
    current: StoredTable,
    table: StoredTable,
    name: str,
    version: int,
    bindings: Bindings,
) -> Sequence[Plain]:
    """The table as it is, and what commits have done since."""
    base = current.version
    files = state.files_since_whole(name, base, version)
    pieces: list[tuple[int, Sequence[str]]] = []
    if not files or files[0][1].whole is None:
        pieces.append((base, _table_files(current, bindings)))
    else:
        base = files[0][0]
    for at, each in files:
        folder = each.inserted if each.whole is None else each.whole
        assert folder is not None
        pieces.append((at, files_below(*state.location.files(folder), folder)))
    last: dict[Row, tuple[int, str]] = {}
    changes = state.log.changes(name, base, version)
    numbers, kinds = (changes.column(each).to_pylist() for each in ("version", "change"))
    for row, number, kind in zip(decoded_rows(changes, table.types), numbers, kinds, strict=True):
        last[row] = number, kind
    parts: list[Plain] = []
    for at, paths in pieces:
        mask = frozenset(row for row, (number, _) in last.items() if number > at)
        parts += [FilesPart(table, (p,), own_columns(table), bindings, mask) for p in paths]
    return [*parts, *known_rows(table, [r for r, (_, k) in last.items() if k != DELETE], bindings)]


def _parts_taken_back(
    state: State,
    current: StoredTable,
    table: StoredTable,
    name: str,
    version: int,
    bindings: Bindings,
) -> Sequence[Plain]:
    """The table as it is, without what commits have done after a version."""
    held = table_at(state, name, current.version)
    net = TableLog(state).net(version, current.version, name)
    parts: list[Plain] = []
    if held is not None and len(held.columns) == len(table.columns):
        mask = frozenset(net.inserted[name])
        columns = tuple(
            column._replace(source=source)
            for column, source in zip(
                own_columns(table), held.columns or (HOLDS_COLUMN,), strict=True
            )
        )
        paths = _table_files(current, bindings if held.columns == table.columns else {})
        parts += [FilesPart(held, (path,), columns, bindings, mask) for path in paths]
    return [*parts, *known_rows(table, net.deleted[name], bindings)]


def _table_files(table: StoredTable, bindings: Bindings) -> list[str]:
    """The files of a table that can hold rows with these values."""
    if not table.exists:
        return []
    wanted = _condition_of_bindings(own_columns(table), bindings)
    return [f"{table.relative}/{path}" for path in table.files_for(wanted)]


def known_rows(table: StoredTable, rows: Iterable[Row], bindings: Bindings) -> list[RowsPart]:
    """Rows of the driver that have the values which columns are bound to."""
    held = table.encoded_plain(list(rows))
    wanted = _condition_of_bindings(own_columns(table), bindings)
    held = held if wanted is None else held.filter(wanted)
    return [RowsPart(held)] if held.num_rows else []


# --- a feed ---------------------------------------------------------------------------------------


def feed_parts(state: State, name: str, after: int, until: int, bindings: Bindings) -> list[Part]:
    """The changes of a relation after a version, up to another."""
    parts: list[Part] = []
    paths = state.log.table.files_for(after, until)
    groups = [tuple(paths[i : i + LOG_FILES_MAX]) for i in range(0, len(paths), LOG_FILES_MAX)]
    found = stretches_between(state, name, after, until)
    for stretch in found:
        parts += [LogPart(stretch.table, name, g, stretch, bindings, after, until) for g in groups]
    times = {record.version: record.at for record in state.records if record.counts}
    for version, files in state.files_of(name, after, until):
        for kind, folder in ((INSERT, files.inserted), (DELETE, files.deleted)):
            age = version if kind == INSERT else version - 1
            known = [stretch for stretch in found if stretch.first <= age <= stretch.last]
            at = times.get(version)
            if folder is not None and known and at is not None:
                table, columns = known[0].table, known[0].columns
                stamp = kind, version, at
                parts += [
                    FilesPart(table, (path,), columns, bindings, stamp=stamp)
                    for path in files_below(*state.location.files(folder), folder)
                ]
    return parts
