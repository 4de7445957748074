"""A state of a database as the search for derivations reads it: rows by the values they have.

    CurrentState(database)           what is stored, virtual views asked for
    ChangedState(current, change)    the same after a change of relations and views

Rows of stored relations are looked up; those of a virtual view are the answers of a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from deltalog.language.ast import Atom, Constant, Query, Row, Term, Value, Variable
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.queries import answer_query

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


class ReadableState(Protocol):
    """Facts of relations and views at one time."""

    def matching(self, relation: str, key: Mapping[int, Value]) -> Iterable[Row]:
        """Return the rows that have these values in these columns."""


class CurrentState:
    """The state that a database has now."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    def matching(self, relation: str, key: Mapping[int, Value]) -> Iterable[Row]:
        database = self._database
        if relation in database.model.stored:
            return list(database.engine.lookup(relation, key))
        declared = database.model.checked.relations[relation]
        terms: list[Term] = [
            Constant(key[i], "null" if key[i] is None else str(column.type))
            if i in key
            else Variable(f"V{i}")
            for i, column in enumerate(declared.columns)
        ]
        query = Query((Atom(relation, tuple(terms)),))
        found = answer_query(
            database.engine, database.model, query, database.limits, database.watch
        )
        return [_whole_row(row, key, declared.arity) for row in found]


def _whole_row(answer_row: Row, key: Mapping[int, Value], arity: int) -> Row:
    """The whole row, of which a query returned the columns that were not given."""
    rest = iter(answer_row)
    return tuple(key[i] if i in key else next(rest) for i in range(arity))


class ChangedState:
    """Another state after an exact change, which must have all relations that change."""

    def __init__(self, before: ReadableState, change: ChangeSet) -> None:
        self._before = before
        self._change = change

    def matching(self, relation: str, key: Mapping[int, Value]) -> Iterable[Row]:
        deleted, inserted = self._change.deleted[relation], self._change.inserted[relation]
        kept = [row for row in self._before.matching(relation, key) if row not in deleted]
        return kept + [row for row in inserted if row_fits(row, key)]


def row_fits(row: Row, key: Mapping[int, Value]) -> bool:
    """Whether a row has these values in these columns."""
    return all(row[i] == value for i, value in key.items())
