"""Settings of a service in front of a state: texts by name, in a small file beside the log.

    state/service.db     subscriptions, stored queries, keys of requests that changed nothing

The *history* needs no place there: it is derived from the identity of the Delta table of the log,
which is made with the state. A backup goes on differently from its original, so there it is written
down (`renew_history`). A state that is not in a folder of this machine has no such file; what is
kept about it lasts as long as the service.

The key of a request is written in the commit that it belongs to, as the name of a batch: that is
the only thing which happens in the same moment as the commit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw

from deltalog.pipeline.log import Batch
from deltalog.pipeline.state import State
from deltalog.store.settings import HISTORY, new_history
from deltalog.store.sqlite import open_connection, sqlite_errors_reported

FILE = "service.db"
SOURCE = "deltalog service"
"""The source of batches that are keys of requests."""
_TABLE = "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"
_PUT = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class StateSettings:
    """The settings of one state; used in the thread that owns the database."""

    def __init__(self, state: State) -> None:
        self._state = state
        folder = state.location.folder
        self._path = None if folder is None else folder / FILE
        self._connection: apsw.Connection | None = None
        self._memory: dict[str, str] = {}
        self.recording: Callable[[tuple[Batch, ...]], AbstractContextManager[None]] | None = None
        """Writes batches with the next commit, where there is a writer."""

    @property
    def is_writable(self) -> bool:
        return True

    @property
    def is_durable(self) -> bool:
        """Whether settings outlive the process."""
        return self._path is not None

    def _open_file(self, *, is_made: bool) -> apsw.Connection | None:
        path = self._path
        if self._connection is None and path is not None and (is_made or path.exists()):
            self._connection = open_connection(path, is_writable=True, is_created=True)
            with sqlite_errors_reported(path, is_commit=True):
                self._connection.pragma("journal_mode", "wal")
                self._connection.execute(_TABLE)
        return self._connection

    def get(self, name: str) -> str | None:
        """The value of a setting, or None."""
        found = self._kept_value(name)
        if found is None and name == HISTORY:
            return derived_history(self._state)
        return self._batch_of_setting(name) if found is None else found

    def _kept_value(self, name: str) -> str | None:
        connection = self._open_file(is_made=False)
        if connection is None:
            return self._memory.get(name)
        found = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).get
        return None if found is None else str(found)

    def _batch_of_setting(self, name: str) -> str | None:
        """The value that was written with a commit."""
        for source, batch in self._state.batches:
            if source == SOURCE and batch.startswith(f"[{json.dumps(name)}, "):
                return str(json.loads(batch)[1])
        return None

    def list(self, prefix: str = "") -> dict[str, str]:
        """All settings whose names begin with a prefix, sorted by name."""
        connection = self._open_file(is_made=False)
        if connection is None:
            return {n: v for n, v in sorted(self._memory.items()) if n.startswith(prefix)}
        found = connection.execute(
            "SELECT name, value FROM settings WHERE substr(name, 1, ?) = ? ORDER BY name",
            (len(prefix), prefix),
        )
        return {str(name): str(value) for name, value in found}

    def put(self, name: str, value: str) -> None:
        """Set a value, on the disk when this returns."""
        connection = self._open_file(is_made=True)
        if connection is None or self._path is None:
            self._memory[name] = value
            return
        with sqlite_errors_reported(self._path, is_commit=True):
            connection.execute(_PUT, (name, value))

    def delete(self, name: str) -> None:
        connection = self._open_file(is_made=False)
        if connection is None or self._path is None:
            self._memory.pop(name, None)
            return
        with sqlite_errors_reported(self._path, is_commit=True):
            connection.execute("DELETE FROM settings WHERE name = ?", (name,))

    @contextmanager
    def with_next_commit(self, name: str, value: str) -> Iterator[None]:
        """Set a value in the same moment as the commit that the block makes, or not at all."""
        assert self.recording is not None, "who cannot commit refuses before"
        with self.recording(((SOURCE, json.dumps([name, value])),)):
            yield
        self.put(name, value)  # a crash before this leaves the batch, which says the same

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def derived_history(state: State) -> str:
    """The identity of a state as 16 hexadecimal digits: that of the table of its log."""
    return hashlib.sha256(f"deltalog:{state.log.table.identity}".encode()).hexdigest()[:16]


def renew_history(folder: Path) -> None:
    """Give a copy of a state another identity."""
    connection = open_connection(folder / FILE, is_writable=True, is_created=True)
    try:
        connection.execute(_TABLE)
        connection.execute(_PUT, (HISTORY, new_history()))
    finally:
        connection.close()
