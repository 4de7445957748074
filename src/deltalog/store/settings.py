"""Settings that a service keeps in the file that it serves: texts by name.

    deltalog__service    name, value: the identity of the history, subscriptions, stored queries

The table is made when something is first put into it, so a file that was never served has none.
Settings are no part of the history: they have no versions, and time travel does not reach them.

The *history* is the random identity of the sequence of versions that the file holds. A copy may go
on differently from its original under the same version numbers, so every copy gets another one
(`renew_history`), and so does a file that goes on without commits that it has lost.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import time
from typing import TYPE_CHECKING

import apsw

from deltalog.store.readers import log_behind
from deltalog.store.schema import guard_triggers

if TYPE_CHECKING:
    from deltalog.store.file_persistence import FilePersistence

TABLE = "deltalog__service"
HISTORY = "history"
_PUT = f"INSERT INTO {TABLE} VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_CREATE = f"CREATE TABLE {TABLE} (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID"


def new_history() -> str:
    """A new identity, 16 hexadecimal digits: of two the later one sorts behind, by the second."""
    return f"{int(time()):08x}{secrets.token_hex(4)}"


def has_settings(connection: apsw.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (TABLE,)).get
    return found is not None


def renew_history(connection: apsw.Connection) -> None:
    """Give a file another identity if it has one."""
    if has_settings(connection):
        connection.execute(f"UPDATE {TABLE} SET value = ? WHERE name = ?", (new_history(), HISTORY))


class FileSettings:
    """The settings of an open database file, which only its writer may change."""

    def __init__(
        self, turn: Callable[[], AbstractContextManager[None]], persistence: FilePersistence
    ) -> None:
        self._turn = turn
        self._persistence = persistence

    @property
    def is_writable(self) -> bool:
        return self._persistence.storage.is_writable

    def get(self, name: str) -> str | None:
        """The value of a setting, or None."""
        connection = self._persistence.connection
        with self._turn(), self._persistence.reading():
            if not has_settings(connection):
                return None
            found = connection.execute(f"SELECT value FROM {TABLE} WHERE name = ?", (name,)).get
            return None if found is None else str(found)

    def list(self, prefix: str = "") -> dict[str, str]:
        """All settings whose names begin with a prefix, sorted by name."""
        connection = self._persistence.connection
        with self._turn(), self._persistence.reading():
            if not has_settings(connection):
                return {}
            found = connection.execute(
                f"SELECT name, value FROM {TABLE} WHERE substr(name, 1, ?) = ? ORDER BY name",
                (len(prefix), prefix),
            )
            return {str(name): str(value) for name, value in found}

    def log_behind(self, version: int) -> tuple[int, bool]:
        """Bytes of the log behind a version, and whether the retention alone keeps all of it."""
        storage = self._persistence.storage
        with self._turn(), self._persistence.reading():
            return log_behind(storage.connection, storage.retention, version)

    def put(self, name: str, value: str) -> None:
        """Set a value, on the disk when this returns."""
        with self._changing_settings() as connection:
            connection.execute(_PUT, (name, value))

    @contextmanager
    def with_next_commit(self, name: str, value: str) -> Iterator[None]:
        """Set a value in the same moment as the commit that the block makes, or not at all."""
        connection, writer = self._persistence.connection, self._persistence.writer
        with self._turn():
            if not has_settings(connection):
                with self._changing_settings():
                    pass
            writer.beside = lambda: connection.execute(_PUT, (name, value))
            try:
                yield
            finally:
                writer.beside = None

    def delete(self, name: str) -> None:
        with self._changing_settings() as connection:
            connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (name,))

    @contextmanager
    def _changing_settings(self) -> Iterator[apsw.Connection]:
        connection = self._persistence.connection
        with self._turn(), self._persistence.writing():
            if not has_settings(connection):
                connection.execute(f"{_CREATE}; {guard_triggers(TABLE)}")
            yield connection


class MemorySettings:
    """The same for a database in memory: they last as long as it does."""

    is_writable = True

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """The value of a setting, or None."""
        return self._values.get(name)

    def list(self, prefix: str = "") -> dict[str, str]:
        """All settings whose names begin with a prefix, sorted by name."""
        return {n: self._values[n] for n in sorted(self._values) if n.startswith(prefix)}

    def put(self, name: str, value: str) -> None:
        self._values[name] = value

    @contextmanager
    def with_next_commit(self, name: str, value: str) -> Iterator[None]:
        """Set a value if the block ends well."""
        yield
        self.put(name, value)

    def delete(self, name: str) -> None:
        self._values.pop(name, None)
