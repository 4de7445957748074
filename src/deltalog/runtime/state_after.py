"""Read the state that a transaction would make, without making it.

The change is propagated, as far as the query reads it, and stored relations are read through it
(`runtime/queries.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from deltalog.analysis.system_relations import SYSTEM_RELATIONS
from deltalog.checks.program import check_program, check_query
from deltalog.language.ast import Query, Row, Rule
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.model import query_model
from deltalog.runtime.parameters import Parameters, bound_query
from deltalog.runtime.queries import answer_query, stored_reads, whole_relation
from deltalog.runtime.rows import Rows
from deltalog.runtime.system_relations import system_inputs
from deltalog.runtime.wanted_views import known_views

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Wanted = Callable[[], ChangeSet]
"""Returns the changes of a transaction so far; called once the database is locked."""


def query_after(
    database: MemoryDatabase, wanted: Wanted, text: str | Query, parameters: Parameters | None
) -> Rows:
    """The answers of a query on the state after a change."""
    with database.turn():
        query = bound_query(text, parameters, database.model.readable)
        return _answer_after(database, wanted(), query, magic=True)


def query_with_views(
    database: MemoryDatabase, wanted: Wanted, query: Query, rules: tuple[Rule, ...]
) -> Rows:
    """The answers of a query on the state after a change, with views that only it has."""
    with database.turn():
        program = database.model.checked.program
        checked = check_program(replace(program, rules=(*program.rules, *rules), queries=()))
        model = query_model(checked, database.model.stored.intersection(checked.relations))
        change = _change_of(database, wanted(), stored_reads(model, query))
        return answer_query(
            database.engine, model, query, database.limits, database.watch, True, change
        )


def facts_after(database: MemoryDatabase, wanted: Wanted, relation: str) -> set[Row]:
    """All facts of a base relation or view in the state after a change."""
    with database.turn():
        database.check_relation(relation)
        if relation in database.model.stored:
            change = _change_of(database, wanted(), {relation})
            facts = database.current_facts(relation)
            return facts - change.deleted[relation] | change.inserted[relation]
        asked = whole_relation(database.relations[relation])
        return set(_answer_after(database, wanted(), asked, magic=False))


def _answer_after(database: MemoryDatabase, wanted: ChangeSet, query: Query, magic: bool) -> Rows:
    """Propagate the change without making it, and read stored relations through it."""
    model = database.model.as_written
    check_query(query, database.model.readable)
    change = _change_of(database, wanted, stored_reads(model, query, SYSTEM_RELATIONS))
    arguments = database.limits, database.watch, magic, change, system_inputs(database, query)
    return answer_query(database.engine, model, query, *arguments)


def _change_of(database: MemoryDatabase, wanted: ChangeSet, reads: Set[str]) -> ChangeSet:
    """The net change of these stored relations; without views nothing is propagated."""
    views = {name for name in reads if database.relations[name].kind == "view"}
    if not views:
        return database.net(wanted.only(*(name for name in wanted.relations if name in reads)))
    known = known_views(database.propagation, database.relations, views)
    return database.propagate_wanted(wanted, False, known).only(*reads)
