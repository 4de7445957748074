"""The active rules of a program: what each watches, and what is asked when it is executed.

    rule reorder for I when quantity(I, Q), Q < 9 do …      watches reorder__condition
    rule farewell on delete salary(E, S) when … do …        watches salary

Made once for a program. Which of them are triggered, and in which order they run, is decided by
`runtime/check_phase.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from deltalog.analysis.active_rules import INACTIVE, activation_relation, event_variables
from deltalog.analysis.columns import Relation, Relations
from deltalog.language.ast import ActiveRule, Constant, Query, Row, Value, Variable
from deltalog.rewrites.action_rules import (
    AskedAction,
    asked_action,
    driven_by,
    fired_query,
    triggered_relation,
)
from deltalog.rewrites.condition_rules import condition_views
from deltalog.runtime.checked_rows import key_of

if TYPE_CHECKING:
    from deltalog.checks.program import CheckedProgram
    from deltalog.engines.base import Engine

Delta = tuple[frozenset[Row], frozenset[Row]]
"""Facts of a watched relation that are inserted and deleted, from one state to a later one."""
NO_DELTA: Delta = (frozenset(), frozenset())


def compose_deltas(first: Delta, later: Delta) -> Delta:
    """The change that one and then a later one make together."""
    if not first[0] and not first[1]:
        return later
    return (
        (first[0] - later[1]) | (later[0] - first[1]),
        (first[1] - later[0]) | (later[1] - first[0]),
    )


@dataclass(frozen=True)
class PreparedRule:
    """An active rule with the queries for its actions; `watched` is the relation that drives it."""

    rule: ActiveRule
    watched: str
    relations: Relations

    @property
    def name(self) -> str:
        return self.rule.name

    @cached_property
    def input(self) -> Relation:
        """The relation of the triggered instances, or events, that actions are asked for."""
        return triggered_relation(self.rule, self.relations)

    @cached_property
    def actions(self) -> tuple[AskedAction, ...]:
        return tuple(asked_action(self.rule, each, False) for each in self.rule.actions)

    @cached_property
    def otherwise(self) -> tuple[AskedAction, ...]:
        return tuple(asked_action(self.rule, each, True) for each in self.rule.otherwise)

    @cached_property
    def fired(self) -> tuple[Query, tuple[int, ...], tuple[int, ...]]:
        """The query for what is triggered and holds."""
        return fired_query(self.rule)

    def triggered(self, since: Delta) -> tuple[set[Row], set[Row]]:
        """Instances, or events, for which it is to be executed, and those for its `else`.

        `since` is the change of what it watches since it was last checked.
        """
        rose, fell = set(since[0]), set(since[1])
        if self.rule.event is not None:
            return set(self._event_bindings(rose, fell)), set()  # per activation, when executed
        width = self.input.arity
        rose, fell = ({row[:width] for row in each} for each in (rose, fell))
        return rose, fell if self.rule.otherwise else set()

    def _event_bindings(self, rose: set[Row], fell: set[Row]) -> Iterator[Row]:
        """The bindings of the variables of the event that facts match."""
        event = self.rule.event
        assert event is not None
        facts = fell if event.kind == "delete" else rose
        if event.kind == "set":
            relation = self.relations[event.atom.predicate]
            replaced = {key_of(relation, row) for row in fell}
            facts = {row for row in rose if key_of(relation, row) in replaced}
        names = [variable.name for variable in event_variables(self.rule)]
        for row in facts:
            binding = _match_terms(event.atom.arguments, row)
            if binding is not None:
                yield tuple(binding[name] for name in names)

    def for_activations(self, events: set[Row], activations: Collection[Row]) -> set[Row]:
        """Every event with the parameters of every activation that agrees with it."""
        rule = self.rule
        terms = (*event_variables(rule), *rule.parameters)
        names = [variable.name for variable in driven_by(rule)]
        bindings = (_match_terms(terms, (*e, *a)) for e in events for a in activations)
        return {tuple(b[name] for name in names) for b in bindings if b is not None}


def _match_terms(terms: Iterable[object], row: Row) -> dict[str, Value] | None:
    found: dict[str, Value] = {}
    for term, value in zip(terms, row, strict=True):
        if isinstance(term, Variable):
            if found.setdefault(term.name, value) != value:
                return None
        elif isinstance(term, Constant) and term.value != value:
            return None
    return found


class ActiveRules:
    """All active rules of a program, in the order in which triggered ones are executed.

    That is by priority, the highest first, and then in the order of the program.
    """

    def __init__(self, checked: CheckedProgram) -> None:
        program = checked.program
        conditions = (view.head.predicate for view in condition_views(program))
        prepared = []
        for rule in program.active_rules:
            watched = next(conditions) if rule.event is None else rule.event.atom.predicate
            prepared.append(PreparedRule(rule, watched, checked.relations))
        self.rules = tuple(sorted(prepared, key=lambda each: -each.rule.priority))
        self.by_name = {each.name: each for each in prepared}
        self.has_immediate = any(each.rule.is_immediate for each in prepared)
        self.by_watched: dict[str, list[PreparedRule]] = {}
        for each in self.rules:
            self.by_watched.setdefault(each.watched, []).append(each)
        self.called = {
            action.atom.predicate: each.name
            for each in prepared
            for action in (*each.rule.actions, *each.rule.otherwise)
            if action.verb == "call" and action.atom is not None
        }
        self.place = {each.name: place for place, each in enumerate(self.rules)}

    @classmethod
    def of(cls, checked: CheckedProgram) -> ActiveRules | None:
        """Those of a program, or None if it has none."""
        return cls(checked) if checked.program.active_rules else None

    def watched(self, inactive: Iterable[str] = ()) -> frozenset[str]:
        """The relations that rules watch, but for those that only inactive ones do."""
        idle = set(inactive)
        return frozenset(each.watched for each in self.rules if each.name not in idle)

    def inactive(self, engine: Engine) -> set[str]:
        """The names of the rules that are not active now."""
        found = {str(row[0]) for row in engine.rows(INACTIVE)}
        for each in self.rules:
            if each.rule.parameters and not engine.size(activation_relation(each.rule)):
                found.add(each.name)
        return found
