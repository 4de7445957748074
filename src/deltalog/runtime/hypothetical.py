"""A state that a change of base relations would lead to: asked, never made.

The change is propagated once; facts and rule instances are then looked up through it, so that a
question costs what it asks for and not what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from deltalog.analysis.columns import Relation
from deltalog.analysis.rule_types import variable_types
from deltalog.language.ast import Atom, Column, Literal, Query, Row, Value, Variable
from deltalog.language.values import sort_key
from deltalog.language.walk import names as variable_names
from deltalog.rewrites import names
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.queries import answer, stored_reads

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Binding = Mapping[str, Value]


class Hypothetical:
    """The state of a database after a net change of its base relations."""

    def __init__(
        self, database: MemoryDatabase, base: ChangeSet, watched: frozenset[str] = frozenset()
    ) -> None:
        """`watched` are views whose change is wanted although they may not be stored."""
        self.database = database
        self.base = base
        self._watched = watched
        self._model = database.model.as_written

    @cached_property
    def delta(self) -> ChangeSet:
        """The exact change of base relations, and of views that are stored or watched."""
        stored = frozenset(self.database.model.stored_views()) & self.database.propagation.views
        return self.database.propagate_wanted(self.base, False, stored | self._watched)

    def holds(self, relation: str, row: Row) -> bool:
        """Whether a fact of a base relation or view is in this state."""
        if names.is_generated(relation):  # the key of a view, which queries do not know
            return self._is_derived(relation, row)
        if relation not in self._model.stored:
            terms = tuple(Variable(f"V{i}") for i in range(len(row)))
            bound = {term.name: value for term, value in zip(terms, row, strict=True)}
            return any(True for _ in self.bindings((Atom(relation, terms),), bound))
        change = self.base if self.database.relations[relation].kind == "base" else self.delta
        if row in change.inserted[relation]:
            return True
        if row in change.deleted[relation]:
            return False
        return next(iter(self.database.engine.present(relation, [row])))

    def _is_derived(self, relation: str, row: Row) -> bool:
        for rule in self._model.rules:
            if rule.head.predicate == relation:
                terms = zip(rule.head.arguments, row, strict=True)
                given = {term.name: v for term, v in terms if isinstance(term, Variable)}
                if any(True for _ in self.bindings(rule.body, given)):
                    return True
        return False

    def matching(self, relation: str, row: Mapping[int, Value]) -> list[Row]:
        """All facts that have these values at these positions, sorted."""
        arity = self.database.relations[relation].arity
        terms = tuple(Variable(f"V{i}") for i in range(arity))
        bound = {f"V{i}": value for i, value in row.items()}
        found = self.bindings((Atom(relation, terms),), bound)
        return list(dict.fromkeys(tuple(each[t.name] for t in terms) for each in found))

    def bindings(
        self, body: tuple[Literal, ...], given: Binding, whole: tuple[Literal, ...] = ()
    ) -> Iterable[dict[str, Value]]:
        """The values of all variables with which a body holds, some of them `given`; sorted.

        If it is a part of another body, the `whole` of that knows the types of variables.
        """
        if not body:
            return [dict(given)]
        relations = self._model.relations
        needed = [name for name in variable_names(*body) if name in given]
        types = variable_types(whole or body, relations)
        columns = tuple(Column(f"g{i}", types.get(name), True) for i, name in enumerate(needed))
        leading = Relation(names.GIVEN, "base", columns)
        lead = Atom(names.GIVEN, tuple(map(Variable, needed)))
        query = Query((lead, *body) if needed else body)
        reads = stored_reads(self._model, Query(body)) if self.base else frozenset()
        database = self.database
        rows = answer(
            database.engine,
            self._model,
            query,
            database.limits,
            database.watch,
            True,
            self._change(reads),
            [(leading, [tuple(given[name] for name in needed)])] if needed else (),
        )
        outputs = [column.name for column in rows.columns]
        ordered = sorted(rows, key=sort_key)
        return [{**given, **dict(zip(outputs, row, strict=True))} for row in ordered]

    def _change(self, reads: frozenset[str]) -> ChangeSet:
        """The change of the stored relations that a query reads."""
        if not self.base:
            return self.base
        kinds = {self.database.relations[name].kind for name in reads}
        change = self.delta if "view" in kinds else self.base
        return change.only(*(name for name in change.relations if name in reads))
