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


class WholeTables(dict[str, tuple[bool, list[LazyTable]]]):
    """Per relation whether the rows of its tables shall be there, and the tables."""

    def whole(self) -> Iterator[tuple[str, LazyTable, bool]]:
        """Every relation whose tables have rows, with these as one table."""
        for relation, (holds, tables) in self.items():
            if any(map(len, tables)):
                yield relation, _join_tables(tables), holds

    def put(self, relation: str, table: LazyTable, holds: bool) -> bool:
        """Keep a table; return False if earlier ones of its relation want the opposite."""
        known_holds, tables = self.setdefault(relation, (holds, []))
        if known_holds == holds:
            tables.append(table)
        return known_holds == holds

    def rows(self, relation: str) -> tuple[list[Row], bool]:
        """Return the rows of a relation's tables, and whether they shall be there."""
        holds, tables = self[relation]
        return [row for table in tables for row in table.read()], holds


def _join_tables(tables: list[LazyTable]) -> LazyTable:
    import pyarrow

    if len(tables) == 1:
        return tables[0]
    return LazyTable(pyarrow.concat_tables([each.table for each in tables]))
