"""How a fact can become true or false, one rule at a time.

    wanted: +path(1, 9)        path(X, Y) :- edge(X, Z), path(Z, Y).

One of the rules must have an instance whose literals all hold in the new state. Its positive atoms
are divided into those that hold in the current state, which bind variables, and those that are
missing and have to be requested; variables that stay without a value get one out of their columns,
or a new one. A fact becomes false if every instance that derives it loses a literal.

These are the view-update rules of Behrend & Manthey 2007, Def. 9, read over rules as they are
written: a join, a selection and a projection at a time would make the same requests one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from deltalog.language.ast import (
    Atom,
    Comparison,
    Constant,
    Negation,
    Row,
    Rule,
    Term,
    Value,
    Variable,
)
from deltalog.language.walk import variable_names
from deltalog.runtime.equations import compared_with, determine_variables, is_passed
from deltalog.runtime.hypothetical import Binding, Hypothetical
from deltalog.runtime.placeholders import Placeholder, Unifier, is_open
from deltalog.runtime.realization import ANY, Wish, are_contradictory

Values = Callable[[str, int, Collection[Value], Sequence[Value]], Sequence[Value]]
"""Values for a column, by relation and position: known ones, those that are new and in use (some of
them only here), and one more; and those next to values that it is compared with."""
Opened = Callable[[str, int, int], Value]
"""A new placeholder for a column, by relation and position; the first, second, ... of its kind."""
Unsolved = Callable[[Comparison, str], None]
"""Called with an equation that is not solved for a variable."""


class Phase(NamedTuple):
    """Instances of a rule that lack the same atoms."""

    rule: Rule
    missing: tuple[Atom, ...]


@dataclass(frozen=True)
class Instance:
    """An instance of a rule, as wishes for its literals."""

    rule: Rule
    positive: tuple[Wish, ...]
    negative: tuple[Wish, ...]

    @property
    def wishes(self) -> tuple[Wish, ...]:
        return (*self.positive, *self.negative)

    def missing(self, atoms: Iterable[Atom]) -> Iterator[Wish]:
        """The wishes for some of the positive atoms of the rule."""
        chosen = list(atoms)
        for atom, wish in zip(_positive_atoms(self.rule), self.positive, strict=True):
            if any(atom is each for each in chosen):
                yield wish


# --- a fact becomes true


def rule_phases(rules: Iterable[Rule]) -> Iterator[Phase]:
    """Every choice of missing atoms of every rule, few first."""
    rules = tuple(rules)
    most = max((len(_positive_atoms(rule)) for rule in rules), default=0)
    for count in range(most + 1):
        for rule in rules:
            for missing in combinations(_positive_atoms(rule), count):
                yield Phase(rule, missing)


class Completion(NamedTuple):
    """An instance, and what its facts determine of the placeholders of its head."""

    made: Instance
    unifier: Unifier


def phase_completions(
    phase: Phase,
    row: Row,
    state: Hypothetical,
    values: Values,
    opened: Opened,
    unsolved: Unsolved = lambda test, name: None,
) -> Iterator[Completion]:
    """The instances of a phase with this head, whose other atoms hold in the state.

    What nothing determines stays open, but for what is compared. An instance whose missing atoms
    hold nevertheless belongs to another phase.
    """
    rule, missing = phase
    unifier = Unifier()
    given = unify_head(rule.head, row, unifier)
    if given is None:
        return
    present = [atom for atom in _positive_atoms(rule) if not any(atom is each for each in missing)]
    ground = {name: value for name, value in given.items() if not isinstance(value, Placeholder)}
    bound = {*ground, *variable_names(*present)}
    tests = [each for each in rule.body if isinstance(each, Comparison)]
    asked = [test for test in tests if bound.issuperset(variable_names(test))]
    rest = [test for test in tests if test not in asked]
    compared = {name for test in rest for name in variable_names(test)}
    for found in state.bindings((*present, *asked), ground, rule.body):
        for binding in completed_bindings(found, missing, rest, values, unsolved, compared):
            joined = Unifier(unifier.bound)
            if all(joined.equate(given[n], v) for n, v in binding.items() if n in given):
                whole = {**_open_variables(missing, opened), **given, **binding}
                made = rule_instance(rule, {name: joined.value(v) for name, v in whole.items()})
                if not any(_is_held(wish, state) for wish in made.missing(missing)):
                    yield Completion(made, joined)


def _open_variables(missing: Iterable[Atom], opened: Opened) -> dict[str, Value]:
    """A placeholder for every variable of missing atoms."""
    found: dict[str, Value] = {}
    for atom in missing:
        for i, term in enumerate(atom.arguments):
            if isinstance(term, Variable) and term.name not in found:
                found[term.name] = opened(atom.predicate, i, len(found))
    return found


def _is_held(wish: Wish, state: Hypothetical) -> bool:
    return not is_open(wish) and state.holds(wish.relation, wish.row)


def completed_bindings(
    binding: Binding,
    missing: Sequence[Atom],
    tests: Sequence[Comparison],
    values: Values,
    unsolved: Unsolved = lambda test, name: None,
    wanted: Collection[str] | None = None,
) -> Iterator[Binding]:
    """Bindings of all variables of missing atoms, or of those `wanted`, which pass the tests."""
    solved = determine_variables(dict(binding), tests)
    if solved is None:
        return
    free: dict[str, tuple[str, int]] = {}
    for atom in missing:
        for i, term in enumerate(atom.arguments):
            if not isinstance(term, Variable) or term.name in solved:
                continue
            if wanted is None or term.name in wanted:
                free.setdefault(term.name, (atom.predicate, i))
    if not free:
        names = {name for test in tests for name in variable_names(test)}
        is_known = names <= solved.keys()  # an expression may have no value: 1 / 0
        if is_known and all(is_passed(test, solved) for test in tests):
            yield solved
        return
    anchors = {name: compared_with(tests, name, solved) for name in free}
    name = next((name for name in free if anchors[name]), next(iter(free)))
    for test in tests:
        if test.operator == "=" and name in variable_names(test):
            unsolved(test, name)
    for value in values(*free[name], solved.values(), anchors[name]):
        yield from completed_bindings(
            {**solved, name: value}, missing, tests, values, unsolved, wanted
        )


# --- a fact becomes false


def find_derivation(
    rules: Iterable[Rule], row: Row, state: Hypothetical, wishes: Set[Wish]
) -> Instance | None:
    """An instance that derives a fact in a state, and that no wish is going to break."""
    for rule in rules:
        given = unify_head(rule.head, row)
        if given is not None:
            for binding in state.bindings(rule.body, given):
                made = rule_instance(rule, binding)
                if not any(_is_broken(wish, wishes) for wish in made.wishes):
                    return made
    return None


def _is_broken(literal: Wish, wishes: Set[Wish]) -> bool:
    """Whether the opposite of a literal is wished for."""
    if ANY not in literal.row:
        return literal._replace(holds=not literal.holds) in wishes
    return any(are_contradictory(literal, wish) for wish in wishes)


def breaking_wishes(made: Instance, opened: Opened) -> Iterator[Wish]:
    """Wishes by each of which an instance does not derive its head any more."""
    for wish in made.positive:
        yield wish._replace(holds=False)
    for wish in made.negative:
        row = [opened(wish.relation, i, i) if v is ANY else v for i, v in enumerate(wish.row)]
        yield wish._replace(holds=True, row=tuple(row))


# --- rules and values


def unify_head(head: Atom, row: Row, unifier: Unifier | None = None) -> dict[str, Value] | None:
    """The values of head variables with which a head is this fact."""
    unifier = unifier or Unifier()
    found: dict[str, Value] = {}
    for term, value in zip(head.arguments, row, strict=True):
        known = value
        if isinstance(term, Variable):
            known = found.setdefault(term.name, value)
        elif isinstance(term, Constant):
            known = term.value
        if not unifier.equate(known, value):
            return None
    return {name: unifier.value(value) for name, value in found.items()}


def rule_instance(rule: Rule, binding: Binding) -> Instance:
    positive = tuple(Wish(True, *_fact_of(atom, binding)) for atom in _positive_atoms(rule))
    negated = (each.atom for each in rule.body if isinstance(each, Negation))
    return Instance(
        rule, positive, tuple(Wish(False, *_fact_of(atom, binding)) for atom in negated)
    )


def _fact_of(atom: Atom, binding: Binding) -> tuple[str, Row]:
    return atom.predicate, tuple(_term_value(term, binding) for term in atom.arguments)


def _term_value(term: Term, binding: Binding) -> Value:
    if isinstance(term, Variable):
        return ANY if term.is_wildcard else binding[term.name]
    assert isinstance(term, Constant), "desugared atoms hold no expressions"
    return term.value


def _positive_atoms(rule: Rule) -> list[Atom]:
    return [literal for literal in rule.body if isinstance(literal, Atom)]


def rules_by_head(rules: Iterable[Rule]) -> Mapping[str, tuple[Rule, ...]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.head.predicate, []).append(rule)
    return {name: tuple(each) for name, each in found.items()}
