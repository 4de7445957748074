"""The journal of deliveries in a database file, written by a dispatcher beside the writer.

Its tables (`store/journal_tables.py`) are no facts and have no versions, so a second process may
write them while the writer has its lock; it changes a count with each transaction, and
`store/foreign_writes.py` takes that for what it is. Since messages and journal are in one file with
one write-ahead log, no record of a delivery survives the loss of its message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from deltalog.analysis.active_rules import MESSAGES
from deltalog.diagnostics import catalogue, service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.delivery_records import Book, Record, StoredMessage, key, values
from deltalog.runtime.messages import Message
from deltalog.store.journal_tables import (
    TABLES,
    WRITES,
    has_journal,
    journal_layout,
    key_columns,
    read_book,
)
from deltalog.store.schema import RANK, quoted
from deltalog.store.sqlite import opened, reported
from deltalog.store.storage import open_to_read, real_path
from deltalog.store.writer_lock import WriterLock


class JournalUse(Enum):
    """The purpose of opening a journal: deliveries, wishes beside a dispatcher, or reading."""

    DISPATCH = "dispatch"
    CHANGE = "change"
    READ = "read"


class FileJournal:
    """The journal of one file, for one dispatcher at a time; close it to make place for another."""

    def __init__(self, path: Path, use: JournalUse = JournalUse.DISPATCH) -> None:
        self.path = real_path(Path(path))
        open_to_read(self.path).close()  # it is a database, and undamaged
        self._lock = WriterLock(self.path.with_name(f"{self.path.name}-dispatch"))
        if use is JournalUse.DISPATCH and not self._lock.acquire(0.0):
            raise DataError([service_catalogue.DISPATCHER_AT_WORK.at(None, name=self.path)])
        try:
            self._file = os.stat(self.path)
            self._connection = opened(self.path, is_writable=use is not JournalUse.READ)
            try:
                if use is not JournalUse.READ:
                    self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        self._commits_of_others = -1

    def _prepare(self) -> None:
        with reported(self.path, is_commit=True):
            self._connection.pragma("synchronous", "NORMAL")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if not has_journal(self._connection):
                    self._connection.execute(journal_layout())
                    self._connection.execute(f"UPDATE {WRITES} SET count = count + 1")
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    # --- messages

    def stored(self, after: int) -> list[StoredMessage]:
        with self._reading() as table:
            if table is None:
                return []
            found = self._connection.execute(
                f"SELECT sequence, rule, name, {RANK} FROM {table} WHERE sequence > ? "
                "ORDER BY sequence",
                (after,),
            )
            return [StoredMessage(*row) for row in found]

    def message(self, stored: StoredMessage) -> Message | None:
        with self._reading() as table:
            if table is None:
                return None
            columns = f"SELECT sequence, id, rule, name, payload FROM {table} WHERE"
            by_rank = f"{columns} {RANK} = ? AND sequence = ?"
            row = self._connection.execute(by_rank, (stored.place, stored.sequence)).fetchone()
            if row is None:
                by_sequence = f"{columns} sequence = ?"
                row = self._connection.execute(by_sequence, (stored.sequence,)).fetchone()
            return None if row is None else Message(*row)

    @contextmanager
    def _reading(self) -> Iterator[str | None]:
        """One state of the file, with the table that has the messages, if there is one."""
        with reported(self.path):
            self._connection.execute("BEGIN")
            try:
                name = self._connection.execute(
                    "SELECT stored_in FROM deltalog__relations WHERE name = ?", (MESSAGES,)
                ).get
                yield None if name is None else quoted(str(name))
            finally:
                self._roll_back()

    # --- records

    def read(self) -> Book:
        with self._reading():
            return read_book(self._connection)

    def write(self, put: Sequence[Record], removed: Sequence[Record]) -> None:
        with reported(self.path, is_commit=True):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for record in removed:
                    columns = " AND ".join(f"{name} = ?" for name in key_columns(type(record)))
                    statement = f"DELETE FROM {TABLES[type(record)]} WHERE {columns}"
                    self._connection.execute(statement, key(record))
                for record in put:
                    found = values(record)
                    marks = ", ".join("?" * len(found))
                    statement = f"INSERT OR REPLACE INTO {TABLES[type(record)]} VALUES ({marks})"
                    self._connection.execute(statement, found)
                self._connection.execute(f"UPDATE {WRITES} SET count = count + 1")
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def is_changed(self) -> bool:
        self._check_unmoved()
        with reported(self.path):
            found = int(self._connection.pragma("data_version"))
        is_changed = found != self._commits_of_others
        self._commits_of_others = found
        return is_changed

    def _check_unmoved(self) -> None:
        with suppress(OSError):
            if os.path.samestat(self._file, os.stat(self.path)):
                return
        raise DataError([catalogue.FILE_MOVED.at(None, name=self.path)])

    def close(self) -> None:
        self._connection.close()
        self._lock.release()
