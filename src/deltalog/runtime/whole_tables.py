"""Large tables in a transaction, kept whole while nothing else touches their relations.

    insert edge, 1,000,000 rows          one table
    insert edge, 1,000,000 rows more     two tables
    delete edge, [(1, 2)]                rows one by one: now the order of operations counts

Rows may repeat within the tables of a relation; all of them shall be there, or all of them not, so
their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.engines.base import LazyTable
from deltalog.language.ast import Row


class WholeTables:
    """The tables of each relation, and whether their rows shall be there or not."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[bool, list[LazyTable]]] = {}

    def __contains__(self, relation: str) -> bool:
        return relation in self._held

    def __iter__(self) -> Iterator[tuple[str, LazyTable, bool]]:
        """Every relation whose tables have rows, with these as one table."""
        for relation, (holds, tables) in self._held.items():
            if any(map(len, tables)):
                yield relation, _joined(tables), holds

    def put(self, relation: str, table: LazyTable, holds: bool) -> bool:
        """Keep a table; return False if earlier ones of its relation want the opposite."""
        known_holds, tables = self._held.setdefault(relation, (holds, []))
        if known_holds == holds:
            tables.append(table)
        return known_holds == holds

    def rows(self, relation: str) -> tuple[list[Row], bool]:
        """Return the rows of a relation's tables, and whether they shall be there."""
        holds, tables = self._held[relation]
        return [row for table in tables for row in table.read()], holds

    def drop(self, relation: str) -> None:
        del self._held[relation]


def _joined(tables: list[LazyTable]) -> LazyTable:
    import pyarrow

    if len(tables) == 1:
        return tables[0]
    return LazyTable(pyarrow.concat_tables([each.table for each in tables]))
