"""The journal of deliveries in a database file, written by a dispatcher beside the writer.

Its tables (`store/journal_tables.py`) are no facts and have no versions, so a second process may
write them while the writer has its lock; it changes a count with each transaction, and
`store/foreign_writes.py` takes that for what it is. Since messages and journal are in one file with
one write-ahead log, no record of a delivery survives the loss of its message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deltalog.analysis.active_rules import MESSAGES
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.delivery_records import StoredMessage
from deltalog.runtime.messages import Message
from deltalog.store.schema import RANK, quoted_name
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.sqlite_journal import JournalUse, SqliteJournal
from deltalog.store.storage import open_to_read, real_path


class FileJournal(SqliteJournal):
    """The journal of one database file."""

    def __init__(self, path: Path, use: JournalUse = JournalUse.DISPATCH) -> None:
        path = real_path(Path(path))
        open_to_read(path).close()  # it is a database, and undamaged
        self._file = os.stat(path)
        self._commits_of_others = -1
        super().__init__(path, use)

    def stored(self, after: int) -> list[StoredMessage]:
        with self._reading_messages() as table:
            if table is None:
                return []
            found = self._connection.execute(
                f"SELECT sequence, rule, name, {RANK} FROM {table} WHERE sequence > ? "
                "ORDER BY sequence",
                (after,),
            )
            return [StoredMessage(*row) for row in found]

    def message(self, stored: StoredMessage) -> Message | None:
        with self._reading_messages() as table:
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
    def _reading_messages(self) -> Iterator[str | None]:
        """One state of the file, with the table that has the messages, if there is one."""
        with self._reading_snapshot():
            name = self._connection.execute(
                "SELECT stored_in FROM deltalog__relations WHERE name = ?", (MESSAGES,)
            ).get
            yield None if name is None else quoted_name(str(name))

    def is_changed(self) -> bool:
        self._check_unmoved()
        with sqlite_errors_reported(self.path):
            found = int(self._connection.pragma("data_version"))
        is_changed = found != self._commits_of_others
        self._commits_of_others = found
        return is_changed

    def _check_unmoved(self) -> None:
        with suppress(OSError):
            if os.path.samestat(self._file, os.stat(self.path)):
                return
        raise DataError([catalogue.FILE_MOVED.at(None, name=self.path)])
