"""A table of an SQLite database as a source of facts.

connect(program=…, sources={"edge": SqliteTable("graph.sqlite", "edge")})
print(SqliteTable("graph.sqlite", "edge").script("src", "dst"))      # for the owner of the table

The database is opened read-only. A snapshot is a read transaction: with a write-ahead log it holds
nobody up. SQLite has one writer at a time, so `seq` grows in the order of commits, and the last
one that was read is where to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from deltalog.analysis.columns import Relation
from deltalog.engines.external.source import Columns
from deltalog.language.ast import Row
from deltalog.sources.sql_source import SqlSource, quote_columns, quote_sql_name
from deltalog.store.cells import from_cells, to_cells

SCRIPT = """\
CREATE TABLE IF NOT EXISTS {changes} ("seq" INTEGER PRIMARY KEY AUTOINCREMENT, "op" TEXT, {names});
CREATE TRIGGER IF NOT EXISTS {inserted} AFTER INSERT ON {table} BEGIN
  INSERT INTO {changes} ("op", {names}) VALUES ('+', {new});
END;
CREATE TRIGGER IF NOT EXISTS {deleted} AFTER DELETE ON {table} BEGIN
  INSERT INTO {changes} ("op", {names}) VALUES ('-', {old});
END;
CREATE TRIGGER IF NOT EXISTS {updated} AFTER UPDATE ON {table} BEGIN
  INSERT INTO {changes} ("op", {names}) VALUES ('-', {old});
  INSERT INTO {changes} ("op", {names}) VALUES ('+', {new});
END;
"""


@dataclass(frozen=True)
class SqliteTable:
    """A table in an SQLite file; `changes` is where it announces, `TABLE_changes` if left out."""

    path: str | Path
    table: str
    changes: str | None = None

    @property
    def announcements(self) -> str:
        return self.changes or f"{self.table}_changes"

    def script(self, *columns: str) -> str:
        """The SQL by which the owner of the table lets it announce its changes."""
        names = quote_columns(columns)
        return SCRIPT.format(
            table=quote_sql_name(self.table),
            changes=quote_sql_name(self.announcements),
            names=", ".join(names),
            new=", ".join(f"NEW.{name}" for name in names),
            old=", ".join(f"OLD.{name}" for name in names),
            **{
                event: quote_sql_name(f"{self.announcements}_{event}")
                for event in ("inserted", "deleted", "updated")
            },
        )

    def bind(self, relation: Relation) -> SqliteSource:
        return SqliteSource(self, relation)


class SqliteSource(SqlSource):
    """A connection of its own for each table, which only reads."""

    def __init__(self, described: SqliteTable, relation: Relation) -> None:
        place = f"SQLite database {Path(described.path).name}"
        super().__init__(relation, place, described.table, described.announcements)
        self._last = (
            f'SELECT coalesce(max("seq"), 0) FROM {quote_sql_name(described.announcements)}'
        )
        self._types = tuple(column.type for column in relation.columns)
        try:
            self._connection = apsw.Connection(str(described.path), flags=apsw.SQLITE_OPEN_READONLY)
            self._connection.set_busy_timeout(10_000)
        except apsw.Error as error:
            raise self._unreadable_error(str(error)) from None
        self._position = self._read_position()

    def _read_position(self) -> int:
        ((last,),) = self._fetch_rows(self._last)
        return int(last)

    def open(self) -> None:
        self._fetch_rows("BEGIN")
        self._seen = self._read_position()  # the first read begins the snapshot

    def close(self) -> None:
        if self._connection.in_transaction:
            self._fetch_rows("ROLLBACK")

    def acknowledge(self) -> None:
        self._position = self._seen

    def disconnect(self) -> None:
        with suppress(apsw.Error):
            self._connection.close()

    def _new_events(self) -> Iterable[tuple[Any, ...]]:
        return self._fetch_rows(f'{self._events} WHERE "seq" > ? ORDER BY "seq"', (self._position,))

    def _fetch_rows(self, text: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(text, tuple(values)))
        except apsw.Error as error:
            raise self._unreadable_error(str(error)) from None

    def _to_cells(self, columns: Columns, key: Row) -> Sequence[Any]:
        (cells,) = to_cells([key], tuple(self._types[c] for c in columns))
        return cells

    def _from_cells(self, rows: Iterable[tuple[Any, ...]]) -> list[Row]:
        return from_cells(rows, self._types)
