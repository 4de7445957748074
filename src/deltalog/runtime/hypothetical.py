"""A state that a change of base relations would lead to: asked, never made.

A question about it reads stored relations that the change does not reach as they are. Views that it
reaches are read in one of two ways, which have the same answers:

    demanded     rederived from what is below them by Magic Sets, as far as the question needs it
    propagated   the change is propagated once, and stored views are read through their change

A change may reach half of all facts, of which a question needs three; or three facts, of which a
question that binds nothing would rederive all. So it is demanded first, and propagated where
that has been slow (`Pace`). Answers are remembered: many nodes of a search ask the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from deltalog.analysis.columns import Relation, Relations
from deltalog.analysis.rule_types import variable_types
from deltalog.language.ast import Atom, Column, Literal, Query, Row, Value, Variable
from deltalog.language.values import sort_key
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.fetched_rows import FetchedRows
from deltalog.runtime.model import Model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.queries import Inputs, answer_query, stored_reads
from deltalog.runtime.rows import Rows

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Binding = Mapping[str, Value]


SLOW_SECONDS = 0.25
"""If questions about a state usually take longer than this, the other way is tried."""
STATES_MIN = 5
"""States after which it is known how long they usually take: plans are made for the first ones."""


class Pace:
    """How long states took to read, one way and the other, by the relations that change."""

    def __init__(self) -> None:
        self._demanded: dict[tuple[str, ...], list[float]] = {}
        self._propagated: dict[tuple[str, ...], list[float]] = {}

    def prefers_propagation(self, changed: tuple[str, ...]) -> bool:
        demanded = self._demanded.get(changed, ())
        if len(demanded) < STATES_MIN:
            return False
        usual = median(demanded[-4 * STATES_MIN :])
        return usual > SLOW_SECONDS and median(self._propagated.get(changed, [0.0])) < usual

    def demanded(self, changed: tuple[str, ...], seconds: float, is_new: bool) -> None:
        """Add the time of a question; `is_new` if it is the first about a state."""
        taken = self._demanded.setdefault(changed, [])
        if is_new:
            taken.append(0.0)
        taken[-1] += seconds

    def propagated(self, changed: tuple[str, ...], seconds: float) -> None:
        self._propagated.setdefault(changed, []).append(seconds)


class Hypothetical:
    """The state of a database after a net change of its base relations."""

    def __init__(
        self,
        database: MemoryDatabase,
        base: ChangeSet,
        watched: frozenset[str] = frozenset(),
        pace: Pace | None = None,
        fetched: FetchedRows | None = None,
    ) -> None:
        """`watched` are views whose change is wanted although they may not be stored.

        `pace` is shared by the states of one search, and so is what they have `fetched`.
        """
        self.database = database
        self.base = base
        self._watched = watched
        self._model = database.model.as_written
        self._pace = pace or Pace()
        self._fetched = fetched
        self._changed = base.relations
        self._is_propagated = bool(base) and self._pace.prefers_propagation(self._changed)
        self._is_new = True
        self._held: dict[tuple[str, Row], bool] = {}
        self._found: dict[tuple[object, ...], list[dict[str, Value]]] = {}

    @cached_property
    def delta(self) -> ChangeSet:
        """The exact change of base relations, and of views that are stored or watched."""
        begun = time.perf_counter()
        stored = frozenset(self.database.model.stored_views()) & self.database.propagation.views
        found = self.database.propagate_wanted(self.base, False, stored | self._watched)
        self._pace.propagated(self._changed, time.perf_counter() - begun)
        return found

    @cached_property
    def watched_delta(self) -> ChangeSet:
        """The exact change of the views that are watched, propagated to nothing else."""
        if self._is_propagated or not self.base:
            return self.delta
        network = self.database.propagation
        route = network.narrow_route(self._watched)
        run = Propagated(
            network, self.base, self.database.limits, self.database.watch, False, route
        )
        with run as outcome:
            return outcome.changes()

    def holds(self, relation: str, row: Row) -> bool:
        """Whether a fact of a base relation or view is in this state."""
        if (relation, row) not in self._held:
            self._held[relation, row] = self._is_held(relation, row)
        return self._held[relation, row]

    def _is_held(self, relation: str, row: Row) -> bool:
        if names.is_generated(relation):  # the key of a view, which queries do not know
            return self._is_derived(relation, row)
        is_reached = bool(self.base) and relation not in self._rederiving_model.stored
        if relation not in self._model.stored or (is_reached and not self._is_propagated):
            terms = tuple(Variable(f"V{i}") for i in range(len(row)))
            bound = {term.name: value for term, value in zip(terms, row, strict=True)}
            return any(True for _ in self.bindings((Atom(relation, terms),), bound))
        change = self.delta if is_reached else self.base
        if row in change.inserted[relation]:
            return True
        if row in change.deleted[relation]:
            return False
        return next(iter(self.database.engine.present(relation, [row])))

    @property
    def _rederiving_model(self) -> Model:
        return self._model.rederiving(self._changed)

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
        needed = tuple(name for name in dict.fromkeys(variable_names(*body)) if name in given)
        key = body, tuple((name, given[name]) for name in needed)
        if key not in self._found:
            self._found[key] = self._body_bindings(
                body, {name: given[name] for name in needed}, whole
            )
        return [{**given, **each} for each in self._found[key]]

    def _body_bindings(
        self, body: tuple[Literal, ...], given: Binding, whole: tuple[Literal, ...]
    ) -> list[dict[str, Value]]:
        begun = time.perf_counter()
        types = variable_types(whole or body, self._model.relations)
        columns = tuple(Column(f"g{i}", types.get(name), True) for i, name in enumerate(given))
        leading = Relation(names.GIVEN, "base", columns)
        lead = Atom(names.GIVEN, tuple(map(Variable, given)))
        query = Query((lead, *body) if given else body)
        model, change = self._change_read_by(query, {leading.name: leading} if given else {})
        inputs = [(leading, [tuple(given.values())])] if given else ()
        rows = self._answer_query(model, query, change, inputs)
        outputs = [column.name for column in rows.columns]
        ordered = sorted(rows, key=sort_key)
        if model is not self._model:
            self._pace.demanded(self._changed, time.perf_counter() - begun, self._is_new)
            self._is_new = False
        return [dict(zip(outputs, row, strict=True)) for row in ordered]

    def _answer_query(self, model: Model, query: Query, change: ChangeSet, inputs: Inputs) -> Rows:
        """The answers, on rows that are fetched if they are elsewhere and not too many."""
        database = self.database
        arguments = model, query, database.limits, database.watch, True, change, inputs
        found = None if self._fetched is None else self._fetched.answer_query(*arguments)
        return answer_query(database.engine, *arguments) if found is None else found

    def _change_read_by(self, query: Query, inputs: Relations) -> tuple[Model, ChangeSet]:
        """The model that a query is asked of, and the change of what it reads there."""
        if not self.base:
            return self._model, self.base
        reads = stored_reads(self._model, query, inputs)
        reached = (name for name in reads if self.database.relations[name].kind == "view")
        if any(name not in self._rederiving_model.stored for name in reached):
            if self._is_propagated:
                return self._model, self._restrict_change(self.delta, reads)
            model = self._rederiving_model
            return model, self._restrict_change(self.base, stored_reads(model, query, inputs))
        return self._model, self._restrict_change(self.base, reads)

    def _restrict_change(self, change: ChangeSet, reads: frozenset[str]) -> ChangeSet:
        return change.only(*(name for name in change.relations if name in reads))
