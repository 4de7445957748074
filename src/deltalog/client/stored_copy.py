"""The copy of a view, with the offset that it belongs to: in memory, and in one file.

    copy     name, value        identity, columns, offset
    fact     key, cells         ["ada","handbook"]

The file is a SQLite database. A delta and the offset behind it are one transaction, so after a
crash the file has both or neither: what is sent again is applied to the state before it, or, if
it was stored already, lies before the offset and is dropped.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deltalog.client.rows import RowFormat, columns_of, converted_rows
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Row
from deltalog.runtime.violations import json_value

Rows = dict[str, Row]


class StoredCopy:
    """Rows by their keys; without a file only in memory."""

    def __init__(self, file: Path | None, identity: str) -> None:
        self.rows: Rows = {}
        self.offset: str | None = None
        self.columns: list[dict[str, Any]] | None = None
        self._name = "" if file is None else file.name
        self._connection = None if file is None else self._open_file(file, identity)

    def _open_file(self, file: Path, identity: str) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS copy (name TEXT PRIMARY KEY, value TEXT)"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS fact (key TEXT PRIMARY KEY, cells TEXT)")
            connection.execute("INSERT OR IGNORE INTO copy VALUES ('identity', ?)", (identity,))
            connection.execute("COMMIT")
            found = dict(connection.execute("SELECT name, value FROM copy"))
            if found["identity"] != identity:
                connection.close()
                raise self._foreign_copy(found["identity"], identity)
            if "columns" in found:
                self._load_rows(connection, found)
        except sqlite3.Error as error:
            raise self._unusable_copy(error) from error
        return connection

    def _load_rows(self, connection: sqlite3.Connection, found: Mapping[str, str]) -> None:
        self.columns, self.offset = json.loads(found["columns"]), found.get("offset")
        stored = connection.execute("SELECT key, cells FROM fact").fetchall()
        cells = (json.loads(text) for _, text in stored)
        rows = converted_rows(columns_of(self.columns or ()), cells)
        self.rows = {key: row for (key, _), row in zip(stored, rows, strict=True)}

    def _foreign_copy(self, found: str, wanted: str) -> DataError:
        entry = service_catalogue.FOREIGN_COPY
        return DataError([entry.at(None, name=self._name, found=found, wanted=wanted)])

    def _unusable_copy(self, error: Exception) -> DataError:
        hint = "delete it to begin anew, unless another client uses it"
        entry = service_catalogue.BAD_COPY
        return DataError([entry.at(None, name=self._name, reason=str(error), hint=hint)])

    def replace(
        self, rows: Rows, offset: str, row_format: RowFormat
    ) -> tuple[list[Row], list[Row]]:
        """Begin anew with these rows; returns which are new, and which are there no more."""
        inserted = [row for key, row in rows.items() if self.rows.get(key) != row]
        deleted = [row for key, row in self.rows.items() if rows.get(key) != row]
        columns = [
            {"name": c.name, "type": c.type, "nullable": c.nullable, "key": c.key}
            for c in row_format.columns
        ]
        self._write_rows(rows.items(), (), offset, json.dumps(columns))
        self.rows, self.offset, self.columns = rows, offset, columns
        return inserted, deleted

    def change(self, new: Rows, absent: Iterable[str], offset: str) -> None:
        """Store and delete rows, with the offset behind that."""
        absent = [key for key in absent if key not in new]
        self._write_rows(new.items(), absent, offset, None)
        self.rows.update(new)
        for key in absent:
            self.rows.pop(key, None)
        self.offset = offset

    def _write_rows(
        self,
        new: Iterable[tuple[str, Row]],
        absent: Iterable[str],
        offset: str,
        columns: str | None,
    ) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
            if columns is not None:
                connection.execute("DELETE FROM fact")
                connection.execute("INSERT OR REPLACE INTO copy VALUES ('columns', ?)", (columns,))
            connection.executemany("DELETE FROM fact WHERE key = ?", ((key,) for key in absent))
            written = ((key, json.dumps([json_value(cell) for cell in row])) for key, row in new)
            connection.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", written)
            connection.execute("INSERT OR REPLACE INTO copy VALUES ('offset', ?)", (offset,))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise self._unusable_copy(error) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
