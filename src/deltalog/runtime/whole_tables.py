"""Large tables in a transaction, kept whole while nothing else touches their relations.

    insert edge, 1,000,000 rows          one table
    insert edge, 1,000,000 rows more     two tables
    delete edge, [(1, 2)]                a dict of rows: now the order of operations counts

Rows may repeat within the tables of a relation; all of them shall be there, or all of them not, so
their order does not matter.
"""

from __future__ import annotations

from deltalog.engines.base import Changed, CopiedTable
from deltalog.language.ast import Row


class WholeTables:
    """The tables of each relation, and whether their rows shall be there or not."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[bool, list[CopiedTable]]] = {}

    def __contains__(self, relation: str) -> bool:
        return relation in self._held

    def put(self, relation: str, table: CopiedTable, holds: bool) -> bool:
        """Keep a table; return False if earlier ones of its relation want the opposite."""
        known_holds, tables = self._held.setdefault(relation, (holds, []))
        if known_holds == holds:
            tables.append(table)
        return known_holds == holds

    def pop(self, relation: str) -> dict[Row, bool]:
        """Take the tables of a relation out, as rows."""
        holds, tables = self._held[relation]
        rows = {row: holds for table in tables for row in table.read()}
        del self._held[relation]
        return rows

    def add_to(self, inserted: dict[str, Changed], deleted: dict[str, Changed]) -> None:
        """Add what shall be there and what shall not."""
        for relation, (holds, tables) in self._held.items():
            if any(map(len, tables)):
                (inserted if holds else deleted)[relation] = _joined(tables)


def _joined(tables: list[CopiedTable]) -> CopiedTable:
    import pyarrow

    if len(tables) == 1:
        return tables[0]
    return CopiedTable(pyarrow.concat_tables([each.table for each in tables]))
