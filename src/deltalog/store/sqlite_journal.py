"""Records about deliveries in tables of SQLite: of a database file, or in a file of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.delivery_records import Book, Record, record_key, record_values
from deltalog.store.journal_tables import (
    TABLES,
    WRITES,
    has_journal,
    journal_layout,
    key_columns,
    read_book,
)
from deltalog.store.sqlite import open_connection, sqlite_errors_reported
from deltalog.store.writer_lock import WriterLock


class JournalUse(Enum):
    """The purpose of opening a journal: deliveries, wishes beside a dispatcher, or reading."""

    DISPATCH = "dispatch"
    CHANGE = "change"
    READ = "read"


class SqliteJournal:
    """The records of one file, for one dispatcher at a time; close it to make place for another."""

    def __init__(self, path: Path, use: JournalUse, *, is_created: bool = False) -> None:
        self.path = path
        self._lock = WriterLock(path.with_name(f"{path.name}-dispatch"))
        if use is JournalUse.DISPATCH and not self._lock.acquire(0.0):
            raise DataError([service_catalogue.DISPATCHER_AT_WORK.at(None, name=path)])
        try:
            is_writable = use is not JournalUse.READ
            self._connection = open_connection(path, is_writable=is_writable, is_created=is_created)
            try:
                if is_writable:
                    self._prepare_file(is_created)
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    def _prepare_file(self, is_created: bool) -> None:
        with sqlite_errors_reported(self.path, is_commit=True):
            if is_created:
                self._connection.pragma("journal_mode", "wal")
            self._connection.pragma("synchronous", "NORMAL")
        with self._counted_writing():
            if not has_journal(self._connection):
                self._connection.execute(journal_layout())

    @contextmanager
    def _counted_writing(self) -> Iterator[None]:
        """One transaction, which is counted."""
        with sqlite_errors_reported(self.path, is_commit=True):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute(f"UPDATE {WRITES} SET count = count + 1")
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def _reading_snapshot(self) -> Iterator[None]:
        """One state of the file."""
        with sqlite_errors_reported(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._roll_back()

    def read(self) -> Book:
        with self._reading_snapshot():
            return read_book(self._connection)

    def write(self, put: Sequence[Record], removed: Sequence[Record]) -> None:
        with self._counted_writing():
            for record in removed:
                columns = " AND ".join(f"{name} = ?" for name in key_columns(type(record)))
                statement = f"DELETE FROM {TABLES[type(record)]} WHERE {columns}"
                self._connection.execute(statement, record_key(record))
            for record in put:
                found = record_values(record)
                marks = ", ".join("?" * len(found))
                statement = f"INSERT OR REPLACE INTO {TABLES[type(record)]} VALUES ({marks})"
                self._connection.execute(statement, found)

    def close(self) -> None:
        self._connection.close()
        self._lock.release()
