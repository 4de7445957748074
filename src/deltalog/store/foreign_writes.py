"""Notice what others do to a file open for writing: they may write to it, or take it away.

Readers of the log write down how far they are, dispatchers what they have delivered, and nobody
else may write. SQLite counts commits of a connection and of others at hardly any cost, and those of
others alone at more, so every commit asks for the first count and looks closer only if it has moved
on. If others have written and it was about neither readers nor deliveries, memory knows nothing of
it, and SQLite would give their pages checksums.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from deltalog.store.journal_tables import journal_writes
from deltalog.store.storage import Storage, mark_spoiled

_UNKNOWN = -1


class ForeignWrites:
    """Checks of a file; inside a transaction they hold for the state that it sees."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._connection = storage.connection
        self.commits = self._commits_of_others = _UNKNOWN
        self._readers: list[Any] = []
        self.look_at = 0.0

    def look(self) -> None:
        """Before a commit: raise if others have written; now and then, if the file has moved."""
        if monotonic() >= self.look_at:
            self.check_place()
            self.look_at = monotonic() + self._storage.seconds_unlooked
        if self._connection.data_version() != self.commits:
            self.check_writes()

    def check(self) -> None:
        """Raise if the file has moved, or others have written."""
        self.check_place()
        if self._commits_of_others != _UNKNOWN:
            self.check_writes()

    def check_place(self) -> None:
        """Raise if the file has moved."""
        self._storage.check_unmoved()

    def check_writes(self) -> None:
        """Raise if others have written, and mark the file; the first time only remember."""
        found = int(self._connection.pragma("data_version"))
        if found != self._commits_of_others:
            readers = self._known_readers()
            if self._commits_of_others != _UNKNOWN and readers == self._readers:
                raise mark_spoiled(self._storage.path, self._connection)
            self._commits_of_others, self._readers = found, readers
        self.commits = self._connection.data_version()

    def registered(self) -> None:
        """This connection has written about readers."""
        self._readers = self._known_readers()

    def forget(self) -> None:
        """A commit has failed: SQLite counts also what it had to forget."""
        self._commits_of_others = _UNKNOWN

    def _known_readers(self) -> list[Any]:
        readers = self._connection.execute("SELECT * FROM deltalog__readers").fetchall()
        return [*readers, journal_writes(self._connection)]
