"""A table of a PostgreSQL database as a source of facts.

connect(program=…, sources={"edge": PostgresTable("GRAPH_DATABASE", "edge")})

The connection string is in an environment variable, and nowhere else. A snapshot is a read-only
transaction at the level `repeatable read`.

Transactions of PostgreSQL do not commit in the order of their sequence numbers, so "behind the last
number" would miss some. The position is a snapshot: new is what this one sees and the last one did
not (`pg_visible_in_snapshot`), by the transaction that wrote it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.external.source import Columns
from deltalog.language.ast import Row
from deltalog.sources.sql_source import (
    SqlSource,
    quote_columns,
    quote_sql_name,
    unreadable_source,
)

SCRIPT = """\
CREATE TABLE IF NOT EXISTS {changes} AS
  SELECT 0::bigint AS "seq", pg_current_xact_id() AS "txid", '+'::text AS "op", {names}
  FROM {table} WITH NO DATA;
CREATE SEQUENCE IF NOT EXISTS {sequence} OWNED BY {changes}."seq";
ALTER TABLE {changes} ALTER COLUMN "seq" SET DEFAULT nextval('{sequence}');
ALTER TABLE {changes} ALTER COLUMN "txid" SET DEFAULT pg_current_xact_id();
CREATE INDEX IF NOT EXISTS {index} ON {changes} ("txid");
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP IN ('DELETE', 'UPDATE') THEN
    INSERT INTO {changes} ("op", {names}) VALUES ('-', {old});
  END IF;
  IF TG_OP IN ('INSERT', 'UPDATE') THEN
    INSERT INTO {changes} ("op", {names}) VALUES ('+', {new});
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER {trigger} AFTER INSERT OR UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION {function}();
"""
NEW = """\
{events} WHERE "txid" >= pg_snapshot_xmin(%s::pg_snapshot)
  AND NOT pg_visible_in_snapshot("txid", %s::pg_snapshot) ORDER BY "seq"
"""


@dataclass(frozen=True)
class PostgresTable:
    """A table in the database whose connection string is in an environment variable.

    `changes` is the table where it announces, `TABLE_changes` if it is left out.
    """

    variable: str
    table: str
    changes: str | None = None

    @property
    def announcements(self) -> str:
        return self.changes or f"{self.table}_changes"

    def script(self, *columns: str) -> str:
        """The SQL by which the owner of the table lets it announce its changes."""
        names = quote_columns(columns)
        made = {
            kind: quote_sql_name(f"{self.announcements}_{kind}")
            for kind in ("sequence", "function", "trigger", "index")
        }
        made["trigger"] = made["trigger"].rpartition(".")[2]
        made["index"] = made["index"].rpartition(".")[2]
        return SCRIPT.format(
            table=quote_sql_name(self.table),
            changes=quote_sql_name(self.announcements),
            names=", ".join(names),
            new=", ".join(f"NEW.{name}" for name in names),
            old=", ".join(f"OLD.{name}" for name in names),
            **made,
        )

    def bind(self, relation: Relation) -> PostgresSource:
        return PostgresSource(self, relation)


class PostgresSource(SqlSource):
    """A connection of its own for each table, which only reads."""

    same = "IS NOT DISTINCT FROM"
    placeholder = "%s"

    def __init__(self, described: PostgresTable, relation: Relation) -> None:
        place = f"PostgreSQL database of ${described.variable}"
        super().__init__(relation, place, described.table, described.announcements)
        self._types = tuple(column.type for column in relation.columns)
        self._connection = _connect_to_server(described.variable, relation.name, self.name)
        self.open()
        self.acknowledge()
        self.close()

    def open(self) -> None:
        self._fetch_rows("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        ((seen,),) = self._fetch_rows("SELECT pg_current_snapshot()::text")
        self._seen = str(seen)

    def close(self) -> None:
        with suppress(DataError):
            self._fetch_rows("ROLLBACK")

    def acknowledge(self) -> None:
        self._position = self._seen

    def disconnect(self) -> None:
        self._connection.close()

    def _new_events(self) -> Iterable[tuple[Any, ...]]:
        return self._fetch_rows(NEW.format(events=self._events), (self._position, self._position))

    def _fetch_rows(self, text: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        import psycopg

        try:
            found = self._connection.execute(text, tuple(values) or None)
            return [] if found.description is None else list(found.fetchall())
        except psycopg.Error as error:
            raise self._unreadable_error(_reason_without_secrets(error)) from None

    def _to_cells(self, columns: Columns, key: Row) -> Sequence[Any]:
        return key

    def _from_cells(self, rows: Iterable[tuple[Any, ...]]) -> list[Row]:
        """psycopg has Python's values; a numeric column may stand for ints and floats."""
        return [
            tuple(_of_type(cell, type_) for cell, type_ in zip(row, self._types, strict=True))
            for row in rows
        ]


def _of_type(cell: Any, type_: str | None) -> Any:
    if isinstance(cell, Decimal) and type_ == "int" and cell == int(cell):
        return int(cell)
    if isinstance(cell, Decimal) and type_ == "float":
        return float(cell)
    return cell


def _connect_to_server(variable: str, relation: str, place: str) -> Any:
    try:
        import psycopg
    except ImportError as error:
        hint = "install it with `pip install 'deltalog[postgres]'`"
        needed = catalogue.PACKAGE_NEEDED.at(
            None, name="PostgresTable", needed="psycopg", hint=hint
        )
        raise DataError([needed]) from error
    text = os.environ.get(variable)
    if text is None:
        raise unreadable_source(relation, place, f"the environment has no variable {variable}")
    try:
        return psycopg.connect(text, autocommit=True)
    except psycopg.Error as error:
        raise unreadable_source(relation, place, _reason_without_secrets(error)) from None


def _reason_without_secrets(error: Any) -> str:
    """The kind of an error: its text may have the address, the user or the query in it."""
    state = f", SQLSTATE {error.sqlstate}" if error.sqlstate else ""
    return f"{type(error).__name__}{state}"
