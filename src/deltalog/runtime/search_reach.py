"""Whether an insertion can help to derive a fact without the facts that it is a reason of.

    wanted: under(d, F), by under(d, E), parent(E, F)         both are missing

The new parent(E, F) derives nothing but facts under(_, F) from facts under(_, E). A proof of
under(d, E) asks for facts under(d, _) only, so it would use the new fact to derive under(d, F),
of which it is to be a reason: it does not help, and under(d, E) needs another change.

A fact has a proof in which no fact is its own reason, and a search looks for such proofs only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from deltalog.language.ast import Atom, Constant, Negation, Row, Rule, Value, Variable
from deltalog.runtime.placeholders import Placeholder, Unifier
from deltalog.runtime.realization import ANY, Wish
from deltalog.runtime.search_nodes import is_aggregated

GOALS_MAX = 64
"""Kinds of facts that a proof asks for; of more it is assumed that everything helps."""


class Goal(NamedTuple):
    """Facts that a proof may ask for: those of a relation, with some values known."""

    relation: str
    pattern: Row
    is_positive: bool


class Reach:
    """The rules that proofs use, with what is known of their variables."""

    def __init__(self, rules: Mapping[str, tuple[Rule, ...]]) -> None:
        self._rules = rules
        self._goals: dict[Goal, frozenset[Goal] | None] = {}

    def helps(self, inserted: Wish, wanted: Wish, above: Collection[Wish]) -> bool:
        """Whether an insertion may be used by a proof that has none of the facts `above`."""
        pattern = tuple(ANY if isinstance(v, Placeholder) else v for v in wanted.row)
        goals = self._goals_below(Goal(wanted.relation, pattern, True))
        if goals is None:
            return True
        hidden = [*above, wanted]
        for goal in goals:
            for rule in self._rules.get(goal.relation, ()):
                known = _known_variables(rule.head, goal.pattern)
                for atom, is_positive in _signed_atoms(rule) if known is not None else ():
                    if atom.predicate != inserted.relation:
                        continue
                    if not (goal.is_positive and is_positive):
                        return True
                    if self._is_used(inserted, atom, rule, known or {}, above, hidden):
                        return True
        return False

    def _is_used(
        self,
        inserted: Wish,
        atom: Atom,
        rule: Rule,
        known: Mapping[str, Value],
        above: Collection[Wish],
        hidden: Collection[Wish],
    ) -> bool:
        """Whether an instance of a rule reads an insertion, and none of the hidden facts."""
        unifier, values = Unifier(), dict(known)
        for term, value in zip(atom.arguments, inserted.row, strict=True):
            if isinstance(term, Constant):
                mine: Value = term.value
            else:
                assert isinstance(term, Variable), "desugared atoms hold no expressions"
                mine = values.setdefault(term.name, value)
            if not unifier.equate(mine, value):
                return False
        read = [each for each, is_positive in _signed_atoms(rule) if is_positive]
        if any(_is_among(each, values, unifier, hidden) for each in read):
            return False
        return not _is_among(rule.head, values, unifier, above)

    def _goals_below(self, first: Goal) -> frozenset[Goal] | None:
        """All goals below one; None if they are many, or pass an aggregate."""
        if first not in self._goals:
            self._goals[first] = self._find_goals(first)
        return self._goals[first]

    def _find_goals(self, first: Goal) -> frozenset[Goal] | None:
        waiting, seen = [first], {first}
        while waiting:
            goal = waiting.pop()
            for rule in self._rules.get(goal.relation, ()):
                if is_aggregated(rule) or len(seen) > GOALS_MAX:
                    return None
                known = _known_variables(rule.head, goal.pattern)
                for atom, is_positive in _signed_atoms(rule) if known is not None else ():
                    pattern = tuple(_pattern_value(term, known or {}) for term in atom.arguments)
                    below = Goal(atom.predicate, pattern, goal.is_positive and is_positive)
                    if below not in seen:
                        seen.add(below)
                        waiting.append(below)
        return frozenset(seen)


def _signed_atoms(rule: Rule) -> Iterator[tuple[Atom, bool]]:
    for literal in rule.body:
        if isinstance(literal, Atom):
            yield literal, True
        elif isinstance(literal, Negation):
            yield literal.atom, False


def _known_variables(head: Atom, pattern: Row) -> dict[str, Value] | None:
    """The values of variables of a head that is a fact of a pattern; None if it cannot be."""
    found: dict[str, Value] = {}
    for term, value in zip(head.arguments, pattern, strict=True):
        if value is not ANY:
            mine = term.value if isinstance(term, Constant) else value
            if isinstance(term, Variable):
                mine = found.setdefault(term.name, value)
            if mine != value:
                return None
    return found


def _pattern_value(term: object, known: Mapping[str, Value]) -> Value:
    if isinstance(term, Variable):
        return known.get(term.name, ANY)
    return term.value if isinstance(term, Constant) else ANY


def _is_among(
    atom: Atom, values: Mapping[str, Value], unifier: Unifier, wishes: Collection[Wish]
) -> bool:
    """Whether an atom is certainly one of some wishes, once some values are equal."""
    row = unifier.row(tuple(_pattern_value(term, values) for term in atom.arguments))
    return any(wish.relation == atom.predicate and unifier.row(wish.row) == row for wish in wishes)
