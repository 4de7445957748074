"""One state of a database, of which bodies of rules are asked for many bindings at once.

    state.bindings((edge(X, Z), path(Z, Y)), given X, Y in {(1, 3), (1, 4)})
    ?  given__(X, Y), edge(X, Z), path(Z, Y).        one query, rewritten by Magic Sets

So a level of a search costs one query for each rule, however many facts it looks at: on Spark that
is what makes it seconds. A state that is not the current one is read through a `change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from deltalog.analysis.binding import bound_variables
from deltalog.analysis.columns import Relation
from deltalog.analysis.rule_types import variable_types
from deltalog.checks.program import CheckedProgram
from deltalog.engines.base import Engine
from deltalog.language.ast import Atom, Column, Constant, Literal, Query, Row, Value, Variable
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.derivation import Absence, Fact
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.limits import Limits
from deltalog.runtime.loaded_change import LoadedChange
from deltalog.runtime.model import Model, query_model
from deltalog.runtime.queries import answer_query, stored_reads
from deltalog.runtime.why.fitting import fitting_row, fitting_values

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.fixpoint import Watch

Binding: TypeAlias = dict[str, Value]


class _AskedForm(NamedTuple):
    """The query that asks a body, the relation that leads it, and the change of what it reads."""

    query: Query
    given: Relation
    change: LoadedChange


@dataclass(frozen=True)
class AskedState:
    """The relations of a model on an engine, after a net `change` of those that are stored.

    States of one engine that are asked at the same time have different names. Whoever makes a state
    closes it.
    """

    engine: Engine
    model: Model
    limits: Limits
    watch: Watch | None = None
    change: ChangeSet = NO_CHANGE
    name: str = ""

    @cached_property
    def _loaded_change(self) -> LoadedChange:
        return LoadedChange(self.engine, self.model, self.change, self.name)

    @cached_property
    def _asked_forms(self) -> dict[tuple[object, ...], _AskedForm]:
        return {}

    def close(self) -> None:
        """Drop what it has on the engine."""
        self._loaded_change.close()

    def bindings(
        self,
        body: tuple[Literal, ...],
        given: Sequence[str],
        rows: Iterable[Row],
        whole: tuple[Literal, ...] = (),
    ) -> Iterator[Binding]:
        """Yield the values of all variables with which a body holds, those `given` in `rows`.

        If it is a part of another body, the `whole` of that knows the types of variables.
        """
        inputs = list(dict.fromkeys(rows))
        if not inputs:
            return
        if not body:
            yield from (dict(zip(given, row, strict=True)) for row in inputs)
            return
        form = self._asked_form(body, tuple(given), whole)
        found = answer_query(
            self.engine,
            self.model,
            form.query,
            self.limits,
            self.watch,
            True,
            form.change,
            [(form.given, inputs)] if given else (),
        )
        for row in found:
            yield dict(zip(form.query.outputs or (), row, strict=True))

    def _asked_form(
        self, body: tuple[Literal, ...], given: tuple[str, ...], whole: tuple[Literal, ...]
    ) -> _AskedForm:
        key = body, given, whole
        if key not in self._asked_forms:
            self._asked_forms[key] = self._made_form(*key)
        return self._asked_forms[key]

    def _made_form(
        self, body: tuple[Literal, ...], given: tuple[str, ...], whole: tuple[Literal, ...]
    ) -> _AskedForm:
        types = variable_types(whole or body, self.model.relations)
        columns = tuple(Column(f"g{i}", types.get(n), True) for i, n in enumerate(given))
        leading = Relation(names.GIVEN, "base", columns)
        lead = Atom(names.GIVEN, tuple(map(Variable, given)))
        bound = bound_variables(body, frozenset(given))
        outputs = tuple(dict.fromkeys((*given, *(n for n in variable_names(*body) if n in bound))))
        query = Query((lead, *body) if given else body, outputs=outputs)
        change = self._loaded_change
        if change:
            reads = stored_reads(self.model, query, {leading.name: leading} if given else {})
            change = change.only(reads)
        return _AskedForm(query, leading, change)

    def holding(self, facts: Iterable[Fact]) -> set[Fact]:
        """Return those of the facts that hold; another program may not have their relation."""
        by_name: dict[str, list[Row]] = {}
        for name, row in facts:
            relation = self.model.checked.relations.get(name)
            fitting = None if relation is None else fitting_row(relation, row)
            if fitting is not None:
                by_name.setdefault(name, []).append(fitting)
        return {
            (name, row)
            for name, rows in by_name.items()
            for row in self.matching(name, range(len(rows[0])), rows)
        }

    def excluding(self, absences: Iterable[Absence]) -> dict[Absence, list[Row]]:
        """Return the facts that each of some absences excludes, where there are any."""
        asked: dict[tuple[str, tuple[int, ...]], dict[Row, list[Absence]]] = {}
        for absence in absences:
            relation = self.model.checked.relations.get(absence.predicate)
            if relation is None or relation.arity != absence.arity:
                continue
            places = tuple(i for i, _ in absence.key)
            columns = tuple(relation.columns[i] for i in places)
            values = fitting_values(columns, tuple(value for _, value in absence.key))
            if values is not None:
                keys = asked.setdefault((absence.predicate, places), {})
                keys.setdefault(values, []).append(absence)
        found: dict[Absence, list[Row]] = {}
        for (name, places), keys in asked.items():
            for row in self.matching(name, places, keys):
                for absence in keys[tuple(row[i] for i in places)]:
                    found.setdefault(absence, []).append(row)
        return found

    def matching(self, relation: str, columns: Sequence[int], keys: Iterable[Row]) -> list[Row]:
        """Return the rows that have one of the keys in these columns, sorted."""
        atom = Atom(relation, names.row_variables(self.model.relations[relation].arity))
        terms = [term.name for term in atom.arguments if isinstance(term, Variable)]
        found = self.bindings((atom,), [terms[i] for i in columns], keys)
        return [tuple(each[name] for name in terms) for each in found]


@dataclass(frozen=True)
class ReplacedProgram:
    """The program before the one that a version brought, and the change of base facts with it."""

    version: int
    checked: CheckedProgram
    base: ChangeSet


def state_of_program(
    database: MemoryDatabase,
    checked: CheckedProgram,
    back: ChangeSet,
    facts_then: Callable[[str], Iterable[Row]],
    name: str = "",
) -> AskedState:
    """The state that an earlier program had over base facts, of which `back` leads to now.

    Where the database has these base relations with the same columns, they are read where they are,
    through the change. Else they are copied: `facts_then` returns all facts of one.
    """
    base = {name: each for name, each in checked.relations.items() if each.kind == "base"}
    model = query_model(checked, frozenset(base))
    if all(_has_same(database.model, relation) for relation in base.values()):
        change = back.only(*(name for name in back.relations if name in base))
        return AskedState(database.engine, model, database.limits, database.watch, change, name)
    engine = database.engine.fresh()
    for name, relation in base.items():
        create_relations(engine, {name: relation})
        engine.insert(name, facts_then(name))
    return AskedState(engine, model, database.limits, database.watch)


def _has_same(model: Model, relation: Relation) -> bool:
    other = model.checked.relations.get(relation.name)
    columns = [(c.type, c.nullable) for c in relation.columns]
    return (
        other is not None
        and other.kind == "base"
        and [(c.type, c.nullable) for c in other.columns] == columns
    )


def current_state(
    database: MemoryDatabase, change: ChangeSet = NO_CHANGE, name: str = ""
) -> AskedState:
    """The state that a database has now, or has after an exact change of what it stores."""
    model = database.model.as_written
    return AskedState(database.engine, model, database.limits, database.watch, change, name)


def pattern_of(atom: Atom, binding: Mapping[str, Value]) -> dict[int, Value]:
    """The columns of an atom that have a value, with it."""
    found: dict[int, Value] = {}
    for i, term in enumerate(atom.arguments):
        if isinstance(term, Constant):
            found[i] = term.value
        elif isinstance(term, Variable) and term.name in binding:
            found[i] = binding[term.name]
    return found
