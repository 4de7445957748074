"""The part of a database in a file that knows of the delivery of messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.delivery_records import Book, Journal
from deltalog.store.file_journal import FileJournal
from deltalog.store.journal_tables import read_book, read_settled
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.synchronization import FileSynchronization


class FileDeliveries(MemoryDatabase):
    """Deliveries are written down in the file, by this process or another."""

    path: Path
    _connection: apsw.Connection
    _synchronization: FileSynchronization

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        with self.turn():
            self._synchronization.check_ungrouped()
        journal = FileJournal(self.path)
        try:
            yield journal
        finally:
            journal.close()

    def delivery_book(self) -> Book:
        with sqlite_errors_reported(self.path):
            return read_book(self._connection)

    def settled_messages(self) -> dict[str, int]:
        with sqlite_errors_reported(self.path):
            return read_settled(self._connection)
