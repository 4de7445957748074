"""The rows of relations that describe the program (`analysis/system_relations.py`).

They are computed when a query reads them, and exist for that query only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from deltalog.analysis.system_relations import SYSTEM_RELATIONS
from deltalog.language.ast import TYPES, Query, Row
from deltalog.language.walk import atoms_of

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.queries import Inputs


def system_inputs(database: MemoryDatabase, query: Query) -> Inputs:
    """The relations of the system that a query reads, with their rows."""
    read = {atom.predicate for atom, _ in atoms_of(query.body)} & SYSTEM_RELATIONS.keys()
    return tuple((SYSTEM_RELATIONS[name], tuple(_ROWS[name](database))) for name in sorted(read))


def _type_rows(database: MemoryDatabase) -> Iterator[Row]:
    return ((name,) for name in TYPES)


def _relation_rows(database: MemoryDatabase) -> Iterator[Row]:
    for name, relation in database.relations.items():
        yield name, relation.kind, name in database.model.stored


def _column_rows(database: MemoryDatabase) -> Iterator[Row]:
    for name, relation in database.relations.items():
        for position, column in enumerate(relation.columns, start=1):
            yield name, position, column.name, column.type, column.nullable, column.key


def _constraint_rows(database: MemoryDatabase) -> Iterator[Row]:
    constraints = database.propagation.constraints
    for check in () if constraints is None else constraints.checks:
        yield check.name, check.relation, check.mode, check.is_immediate


def _rule_rows(database: MemoryDatabase) -> Iterator[Row]:
    return ((each.name, each.priority, each.is_active) for each in database.rule_states())


def _dead_letters(database: MemoryDatabase) -> Iterator[Row]:
    for letter in database.delivery_book().dead_letters:
        message = letter.sequence, letter.id, letter.rule, letter.name, letter.payload
        time = datetime.fromisoformat(letter.time)
        yield letter.recipient, *message, letter.attempts, letter.error, time


_ROWS: dict[str, Callable[[MemoryDatabase], Collection[Row] | Iterator[Row]]] = {
    "sys_type": _type_rows,
    "sys_relation": _relation_rows,
    "sys_column": _column_rows,
    "sys_constraint": _constraint_rows,
    "sys_rule": _rule_rows,
    "sys_dead_letter": _dead_letters,
}
assert _ROWS.keys() == SYSTEM_RELATIONS.keys()
