"""Selections: the part of a relation or view that somebody reads or subscribes to.

    path                 all facts
    path.src=1           those with 1 in column `src`: the answer to `? path(1, Y).`

The *positions* of bound columns are in order, so that equal selections are equal values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from deltalog.analysis.relation import Relation
from deltalog.language.ast import Atom, Constant, Query, Row, Value, Variable
from deltalog.language.values import sort_key
from deltalog.runtime.database import MemoryDatabase


@dataclass(frozen=True)
class Selection:
    """The facts of a relation that have these values at these positions."""

    relation: Relation
    positions: tuple[int, ...] = ()
    values: Row = ()

    @classmethod
    def of(cls, relation: Relation, bindings: Mapping[str, Value]) -> Selection:
        bound = [i for i, column in enumerate(relation.columns) if column.name in bindings]
        values = tuple(bindings[relation.columns[i].name] for i in bound)
        return cls(relation, tuple(bound), values)

    @property
    def name(self) -> str:
        return self.relation.name

    @cached_property
    def bindings(self) -> dict[str, Value]:
        columns = self.relation.columns
        pairs = zip(self.positions, self.values, strict=True)
        return {columns[position].name: value for position, value in pairs}

    def matches(self, row: Row) -> bool:
        pairs = zip(self.positions, self.values, strict=True)
        return all(row[position] == value for position, value in pairs)

    def of_rows(self, rows: Iterable[Row]) -> list[Row]:
        """The selected among some rows, sorted."""
        return sorted_rows(list(filter(self.matches, rows)) if self.positions else list(rows))

    def rows_now(self, database: MemoryDatabase) -> list[Row]:
        """The selected facts of today, sorted; a virtual view derives no more than these."""
        if not self.positions:
            return sorted_rows(list(database.facts(self.name)))
        bound = dict(zip(self.positions, self.values, strict=True))
        columns = self.relation.columns
        terms = tuple(
            Constant(bound[i], column.type)
            if i in bound and bound[i] is not None and column.type is not None
            else Variable(f"C{i}")
            for i, column in enumerate(columns)
        )
        free = [i for i, term in enumerate(terms) if isinstance(term, Variable)]
        answers = database.query(Query((Atom(self.name, terms),)))
        return self.of_rows(_filled_row(terms, free, row) for row in answers)

    def rows_at(self, database: MemoryDatabase, version: int) -> list[Row]:
        """The selected facts of a version, sorted."""
        if version == database.version:
            return self.rows_now(database)
        return self.of_rows(database.facts(self.name, version))


def _filled_row(terms: tuple[Constant | Variable, ...], free: list[int], answer: Row) -> Row:
    made = [term.value if isinstance(term, Constant) else None for term in terms]
    for position, value in zip(free, answer, strict=True):
        made[position] = value
    return tuple(made)


def sorted_rows(rows: list[Row]) -> list[Row]:
    """The rows in the order in which rows are shown."""
    return rows if len(rows) < 2 else sorted(rows, key=sort_key)
