"""Read the state that a transaction would make, without making it.

The change is propagated, as far as the query reads it, and stored relations are read through it
(`runtime/queries.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING

from deltalog.checks.program import check_query
from deltalog.language.ast import Query, Row
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.parameters import Parameters, bound_query
from deltalog.runtime.queries import answer, stored_reads, user_model, whole_relation
from deltalog.runtime.rows import Rows
from deltalog.runtime.wanted_views import known_views

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Wanted = Callable[[], ChangeSet]
"""Returns the changes of a transaction so far; called once the database is locked."""


class StateAfter:
    """The `Readable` of the transactions of a database."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    def query_after(self, wanted: Wanted, text: str | Query, parameters: Parameters | None) -> Rows:
        database = self._database
        with database.turn():
            query = bound_query(text, parameters, database.relations)
            return self._answer_after(wanted(), query, magic=True)

    def facts_after(self, wanted: Wanted, relation: str) -> set[Row]:
        database = self._database
        with database.turn():
            database.check_relation(relation)
            if relation in database.model.stored:
                change = self._change_of(wanted(), {relation})
                facts = database.current_facts(relation)
                return facts - change.deleted[relation] | change.inserted[relation]
            asked = whole_relation(database.relations[relation])
            return set(self._answer_after(wanted(), asked, magic=False))

    def _answer_after(self, wanted: ChangeSet, query: Query, magic: bool) -> Rows:
        """Propagate the change without making it, and read stored relations through it."""
        database = self._database
        model = user_model(database.model)
        check_query(query, database.relations)
        change = self._change_of(wanted, stored_reads(model, query))
        return answer(database.engine, model, query, database.limits, database.watch, magic, change)

    def _change_of(self, wanted: ChangeSet, reads: Set[str]) -> ChangeSet:
        """The net change of these stored relations; without views nothing is propagated."""
        database = self._database
        read_views = {name for name in reads if database.relations[name].kind == "view"}
        if not read_views:
            return database.net(wanted.only(*(n for n in wanted.relations if n in reads)))
        views = known_views(database.propagation, database.relations, read_views)
        return database.propagate_wanted(wanted, False, views).only(*reads)
