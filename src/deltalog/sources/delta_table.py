"""A Delta table, as Spark writes it, as a source of facts: read by delta-rs, without Spark.

connect(program=…, sources={"edge": DeltaLakeTable("warehouse/edge")})

A snapshot is a version of the table, so it is `exact`. Files and groups of rows that cannot hold a
key are skipped by their statistics. The table announces its changes by its versions: by its change
data feed if it has one (`delta.enableChangeDataFeed`), else by the difference of its files, of
which only those are read that were added or removed. Removed files must still be there for that:
whoever vacuums the table leaves those of the last hours. A table with deletion vectors or mapped
columns is read as a whole where it has no feed (`delta_scan.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.external.source import Columns, Event, Precision
from deltalog.language.ast import Row
from deltalog.runtime.checked_rows import checked_rows
from deltalog.sources.delta_scan import needs_scan, scan_table
from deltalog.sources.sql_source import unreadable_source

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

Result = TypeVar("Result")
FEED = "delta.enableChangeDataFeed"
INSERTED, DELETED = ("insert", "update_postimage"), ("delete", "update_preimage")


@dataclass(frozen=True)
class DeltaLakeTable:
    """A folder, or the address of a bucket, with a Delta table."""

    path: str | Path

    def bind(self, relation: Relation) -> DeltaSource:
        return DeltaSource(self, relation)


class DeltaSource:
    """One version of the table at a time."""

    precision: Precision = "exact"

    def __init__(self, described: DeltaLakeTable, relation: Relation) -> None:
        self.relation = relation
        self.name = f"Delta table {Path(described.path).name}"
        self._path = str(described.path)
        self._names = [column.name for column in relation.columns]
        self._table = self._read_guarded(lambda: _open_delta_table(self._path))
        self._identity = self._read_guarded(lambda: self._table.metadata().id)
        self._data: pyarrow.dataset.Dataset | None = None
        self._events: tuple[int, list[Event]] | None = None
        self._position = -1
        self._check_columns()
        self.acknowledge()

    def _check_columns(self) -> None:
        known = {field.name for field in self._table.schema().fields}
        missing = [name for name in self._names if name not in known]
        if missing:
            raise self._unreadable_error(f"it has no column `{missing[0]}`")

    # --- snapshots

    def open(self) -> None:
        """Go to the last version of the table."""
        before = self._table.version()
        self._read_guarded(self._table.update_incremental)
        if self._read_guarded(lambda: self._table.metadata().id) != self._identity:
            raise self._unreadable_error("it is another table by now")
        if self._table.version() != before:
            self._data = None

    def close(self) -> None:
        """A version stays as it is: nothing is held."""

    def acknowledge(self) -> None:
        self._position = int(self._table.version())
        self._before = None if needs_scan(self._table) else self._table_dataset()
        self._events = None

    def disconnect(self) -> None:
        """Nothing is held."""

    def _table_dataset(self) -> pyarrow.dataset.Dataset:
        if self._data is None:
            self._data = self._read_guarded(self._table.to_pyarrow_dataset)
        return self._data

    # --- rows

    def find(self, columns: Columns, key: Row) -> list[Row]:
        import pyarrow

        if needs_scan(self._table):
            rows = self._scan_rows(self._table, columns, key)
            return [row for row in rows if tuple(row[c] for c in columns) == key]
        try:
            found = self._table_dataset().to_table(
                columns=self._names, filter=self._test_of_key(columns, key, False)
            )
        except pyarrow.ArrowNotImplementedError:
            # pyarrow 24: a file that delta-rs has rewritten has texts of another type, "views",
            # which are compared with nothing but themselves.
            rows = self._read_rows(self._test_of_key(columns, key, True))
        except (OSError, pyarrow.ArrowException):
            rows = self._read_rows(self._test_of_key(columns, key, False))  # which reports it
        else:
            rows = self._rows_of_table(found)
        return [row for row in rows if tuple(row[c] for c in columns) == key]

    def _test_of_key(self, columns: Columns, key: Row, is_cast: bool) -> Any:
        import pyarrow
        import pyarrow.dataset

        schema = self._table_dataset().schema
        test = pyarrow.dataset.scalar(True)
        for column, value in zip(columns, key, strict=True):
            field, type_ = (
                pyarrow.dataset.field(self._names[column]),
                schema.field(self._names[column]).type,
            )
            if value is None:
                test &= field.is_null()
            else:
                field = field.cast(type_) if is_cast else field
                test &= field == self._read_guarded(lambda v=value, t=type_: pyarrow.scalar(v, t))  # type: ignore[misc]
        return test

    def scan(self) -> list[Row]:
        return self._scan_rows(self._table) if needs_scan(self._table) else self._read_rows(None)

    def _scan_rows(self, table: Any, columns: Columns = (), key: Row = ()) -> list[Row]:
        return self._rows_of_table(
            self._read_guarded(lambda: scan_table(table, self._names, columns, key))
        )

    def count(self) -> int:
        if needs_scan(self._table):
            return len(self._read_guarded(lambda: scan_table(self._table, self._names[:1], (), ())))
        return int(self._read_guarded(lambda: self._table_dataset().count_rows()))

    def _read_rows(self, test: Any, files: pyarrow.dataset.Dataset | None = None) -> list[Row]:
        data = self._table_dataset() if files is None else files
        return self._rows_of_table(
            self._read_guarded(lambda: data.to_table(columns=self._names, filter=test))
        )

    def _rows_of_table(self, table: pyarrow.Table) -> list[Row]:
        found = [table.column(name).to_pylist() for name in self._names]
        return checked_rows(self.relation, list(zip(*found, strict=True)))

    # --- announcements

    def events(self) -> list[Event]:
        version = int(self._table.version())
        if version == self._position:
            return []
        if self._events is None or self._events[0] != version:
            self._events = version, self._net_events(self._changes_until(version))
        return self._events[1]

    def _net_events(self, changes: Iterator[tuple[int, Sequence[Row]]]) -> list[Event]:
        """The events, without rows that were only moved from file to file."""
        counts: Counter[Row] = Counter()
        for sign, rows in changes:
            for row in rows:
                counts[row] += sign
        return [(count > 0, row) for row, count in counts.items() for _ in range(abs(count))]

    def _changes_until(self, version: int) -> Iterator[tuple[int, Sequence[Row]]]:
        if self._table.metadata().configuration.get(FEED) == "true":
            yield from self._changes_from_feed(version)
            return
        if self._before is None or needs_scan(self._table):
            before = self._read_guarded(lambda: _open_delta_table(self._path, self._position))
            yield 1, self.scan()
            yield -1, self._scan_rows(before)
            return
        now = self._table_dataset()
        for sign, files in (
            (1, _files_not_in(now, self._before)),
            (-1, _files_not_in(self._before, now)),
        ):
            if files is not None:
                yield sign, self._read_rows(None, files)

    def _changes_from_feed(self, version: int) -> Iterator[tuple[int, Sequence[Row]]]:
        import pyarrow

        def read() -> Any:
            first = self._position + 1
            return self._table.load_cdf(starting_version=first, ending_version=version).read_all()

        table = pyarrow.table(self._read_guarded(read))
        kinds, rows = table.column("_change_type").to_pylist(), self._rows_of_table(table)
        for sign, names in ((1, INSERTED), (-1, DELETED)):
            yield sign, [row for row, kind in zip(rows, kinds, strict=True) if kind in names]

    def _read_guarded(self, read: Callable[[], Result]) -> Result:
        """Read; what goes wrong is an error that names the source and no address."""
        import pyarrow
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            return read()
        except TableNotFoundError:
            raise self._unreadable_error("there is no such table") from None
        except FileNotFoundError:
            reason = f"files of version {self._position} are gone"
            raise self._unreadable_error(reason) from None
        except (DeltaError, OSError, pyarrow.ArrowException) as error:
            raise self._unreadable_error(type(error).__name__) from None

    def _unreadable_error(self, reason: str) -> DataError:
        return unreadable_source(self.relation.name, self.name, reason)


def _open_delta_table(path: str, version: int | None = None) -> Any:
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        words = {"name": "a Delta table as a source", "needed": "deltalake"}
        hint = "install it with `pip install 'deltalog[spark]'`"
        raise DataError([catalogue.PACKAGE_NEEDED.at(None, **words, hint=hint)]) from error
    return DeltaTable(path, version=version)


def _files_not_in(data: pyarrow.dataset.Dataset, other: pyarrow.dataset.Dataset) -> Any:
    """The files of a version that another one does not have, or None."""
    import pyarrow.dataset

    known = {fragment.path for fragment in other.get_fragments()}
    own = [fragment for fragment in data.get_fragments() if fragment.path not in known]
    if not own:
        return None
    return pyarrow.dataset.FileSystemDataset(own, data.schema, data.format, data.filesystem)
