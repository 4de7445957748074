"""A table of an SQL database as a source: what dialects share.

    SELECT "src", "dst" FROM "edge" WHERE "src" IS ?          a probe
    SELECT "op", "src", "dst" FROM "edge_changes" WHERE …     what the table announces

A table announces its changes in a second one, which its owner's triggers fill (`script`); it has
the columns `seq`, `op` (`+` or `-`) and those of the relation. Both are read in one transaction of
the database, so a probe and the announcements are of one snapshot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import source_catalogue as catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.engines.external.source import Columns, Event, Precision
from deltalog.language.ast import Row
from deltalog.runtime.checked_rows import checked_rows


def quote_sql_name(name: str) -> str:
    """A name as SQL has it; a dot separates it from its schema."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def quote_columns(columns: Iterable[str]) -> list[str]:
    """The columns of a relation as the script for its table has them."""
    names = tuple(columns)
    for name in names or (None,):
        hint = 'give the columns one by one, as in `script("src", "dst")`'
        check_argument(isinstance(name, str), "columns", names, hint)
    return [quote_sql_name(name) for name in names]


class SqlSource(ABC):
    """One table with its announcements, for one relation."""

    precision: Precision = "exact"
    same = "IS"
    placeholder = "?"

    def __init__(self, relation: Relation, place: str, table: str, changes: str) -> None:
        self.relation = relation
        self.name = f"{place}, table {table}"
        self._announcements = changes
        names = ", ".join(quote_sql_name(column.name) for column in relation.columns)
        self._rows = f"SELECT {names} FROM {quote_sql_name(table)}"
        self._count = f"SELECT count(*) FROM {quote_sql_name(table)}"
        self._events = f'SELECT "op", {names} FROM {quote_sql_name(changes)}'

    @abstractmethod
    def open(self) -> None: ...
    @abstractmethod
    def close(self) -> None: ...
    @abstractmethod
    def acknowledge(self) -> None: ...
    @abstractmethod
    def disconnect(self) -> None: ...
    @abstractmethod
    def _fetch_rows(self, text: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]: ...
    @abstractmethod
    def _new_events(self) -> Iterable[tuple[Any, ...]]:
        """Cells of the events that are not acknowledged: `op`, then the columns."""

    @abstractmethod
    def _to_cells(self, columns: Columns, key: Row) -> Sequence[Any]: ...
    @abstractmethod
    def _from_cells(self, rows: Iterable[tuple[Any, ...]]) -> list[Row]: ...

    def find(self, columns: Columns, key: Row) -> list[Row]:
        tests = " AND ".join(self._test_of_column(column) for column in columns) or "1 = 1"
        cells = self._to_cells(columns, key)
        rows = self._checked_facts(self._fetch_rows(f"{self._rows} WHERE {tests}", cells))
        return [row for row in rows if tuple(row[c] for c in columns) == key]

    def _test_of_column(self, column: int) -> str:
        return (
            f"{quote_sql_name(self.relation.columns[column].name)} {self.same} {self.placeholder}"
        )

    def scan(self) -> list[Row]:
        return self._checked_facts(self._fetch_rows(self._rows))

    def count(self) -> int:
        ((found,),) = self._fetch_rows(self._count)
        return int(found)

    def events(self) -> list[Event]:
        cells = list(self._new_events())
        rows = self._checked_facts(row for _, *row in cells)
        return [(op == "+", row) for (op, *_), row in zip(cells, rows, strict=True)]

    def _checked_facts(self, cells: Iterable[Sequence[Any]]) -> list[Row]:
        try:
            rows = self._from_cells(tuple(row) for row in cells)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise self._unreadable_error(f"a value is not of its type ({error})") from None
        return checked_rows(self.relation, rows)

    def _unreadable_error(self, reason: str) -> DataError:
        hint = None
        is_missing = "no such table" in reason or "does not exist" in reason
        if is_missing and self._announcements in reason:
            columns = ", ".join(f'"{column.name}"' for column in self.relation.columns)
            hint = f"the owner of the table runs the SQL of `script({columns})` once"
        return unreadable_source(self.relation.name, self.name, reason, hint)


def unreadable_source(relation: str, place: str, reason: str, hint: str | None = None) -> DataError:
    """The error for a source that does not answer; `reason` has no credentials."""
    words = {"name": relation, "place": place, "reason": reason}
    return DataError([catalogue.SOURCE_UNREADABLE.at(None, hint=hint, **words)])
