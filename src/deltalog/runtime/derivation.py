"""One derivation of a fact in a state: the rule that derives it, and derivations of its premises.

    path(1, 3)                           path(X, Y) :- edge(X, Z), path(Z, Y).
    ├─ edge(1, 2)                        a base fact
    └─ path(2, 3)                        path(X, Y) :- edge(X, Y).
       └─ edge(2, 3)

It is well-founded: no fact is a premise of itself. Facts of a component that is not recursive have
any rule instance that holds. In a recursive component instances are collected backwards from the
fact, breadth-first, until those found derive it from facts outside (a least fixpoint, so what is
derived first needs no later one). What a negated literal says is shown as the absent fact.

The rules are those of the program as written, desugared; the state is only read, by any engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from deltalog.analysis.binding import evaluation_order
from deltalog.analysis.dependencies import dependencies_of
from deltalog.engines.scalars import aggregate_value, comparison_holds, function_value
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Row,
    Rule,
    Term,
    Value,
    Variable,
)
from deltalog.language.values import print_value
from deltalog.language.walk import atoms_of, variable_names
from deltalog.runtime.readable_state import ReadableState, row_fits

FACTS_MAX = 20_000
"""Facts of a recursive component that are looked at before a search ends without a result."""
PREMISES_MAX = 1_000
"""Premises of an aggregate that are shown."""
LINES_MAX = 200

Fact: TypeAlias = tuple[str, Row]
Binding: TypeAlias = dict[str, Value]


@dataclass(frozen=True)
class Absence:
    """`not p(1, _)`: no fact of a predicate has these values in these columns."""

    predicate: str
    arity: int
    key: tuple[tuple[int, Value], ...]

    def __str__(self) -> str:
        values = dict(self.key)
        shown = [print_value(values[i]) if i in values else "_" for i in range(self.arity)]
        return f"not {self.predicate}({', '.join(shown)})" if shown else f"not {self.predicate}"


@dataclass(frozen=True)
class Derivation:
    """A fact, the rule that derives it (None: a base fact), its premises and absent facts."""

    predicate: str
    row: Row
    rule: Rule | None = None
    premises: tuple[Derivation, ...] = ()
    absent: tuple[Absence, ...] = ()

    @property
    def fact(self) -> Fact:
        return self.predicate, self.row

    def __str__(self) -> str:
        """The tree as indented lines, the first ones of many."""
        lines: list[str] = []
        pending: list[tuple[int, Derivation | Absence]] = [(0, self)]
        while pending and len(lines) < LINES_MAX:
            depth, each = pending.pop()
            if isinstance(each, Derivation):
                lines.append("  " * depth + fact_text(each.predicate, each.row))
                below: list[Derivation | Absence] = [*each.premises, *each.absent]
                pending += [(depth + 1, inner) for inner in reversed(below)]
            else:
                lines.append("  " * depth + str(each))
        return "\n".join([*lines, "…"] if pending else lines)


def fact_text(predicate: str, row: Row) -> str:
    """The fact as it is written in a program, without its stop."""
    return f"{predicate}({', '.join(map(print_value, row))})" if row else predicate


@dataclass(frozen=True)
class Instance:
    """A rule instance that holds: the facts and absent facts that it derives its head from."""

    rule: Rule
    facts: tuple[Fact, ...]
    absent: tuple[Absence, ...]


@dataclass
class _Search:
    """Instances found so far that derive facts of one component, and what they still lack."""

    waiting: dict[Fact, list[tuple[Fact, Instance, set[Fact]]]] = field(default_factory=dict)
    proved: dict[Fact, Instance] = field(default_factory=dict)

    def add(self, fact: Fact, instance: Instance, inner: set[Fact]) -> None:
        lacking = {each for each in inner if each not in self.proved}
        if not lacking:
            self.prove(fact, instance)
        for each in lacking:
            self.waiting.setdefault(each, []).append((fact, instance, lacking))

    def prove(self, fact: Fact, instance: Instance) -> None:
        found = [(fact, instance)]
        while found:
            fact, instance = found.pop()
            if fact in self.proved:
                continue
            self.proved[fact] = instance
            for head, using, lacking in self.waiting.pop(fact, ()):
                lacking.discard(fact)
                if not lacking:
                    found.append((head, using))


class DerivationSearch:
    """Searches for derivations by the rules of one program, in any state of it."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.head.predicate, []).append(rule)
        self._component: dict[str, frozenset[str]] = {}
        for component in dependencies_of(rules).components:
            read = {
                atom.predicate
                for name in component
                for rule in self._rules.get(name, ())
                for atom, _ in atoms_of(rule.body)
            }
            inside = component if read & component else frozenset()
            self._component.update(dict.fromkeys(component, inside))

    def derive(self, state: ReadableState, predicate: str, row: Row) -> Derivation | None:
        """Return a derivation of a fact; None if it does not hold, or none is found in time."""
        return self._derive_fact(state, (predicate, row), {})

    def _derive_fact(
        self, state: ReadableState, fact: Fact, known: dict[Fact, Derivation]
    ) -> Derivation | None:
        if fact in known:
            return known[fact]
        predicate, row = fact
        if predicate not in self._rules:
            holding = any(True for _ in state.matching(predicate, dict(enumerate(row))))
            return Derivation(predicate, row) if holding else None
        for head, instance in self._justified_facts(state, fact):
            premises = [self._derive_fact(state, each, known) for each in instance.facts]
            if None in premises:
                return None
            found = tuple(each for each in premises if each is not None)
            known[head] = Derivation(*head, instance.rule, found, instance.absent)
        return known.get(fact)

    def _justified_facts(self, state: ReadableState, fact: Fact) -> list[tuple[Fact, Instance]]:
        """Facts of the component, premises first, up to this one, each with an instance."""
        component = self._component[fact[0]]
        if not component:
            first = next(self.instances(state, fact), None)
            return [] if first is None else [(fact, first)]
        search, seen, pending = _Search(), {fact}, deque([fact])
        while pending and fact not in search.proved and len(seen) <= FACTS_MAX:
            each = pending.popleft()
            for instance in self.instances(state, each):
                inner = {used for used in instance.facts if used[0] in component}
                search.add(each, instance, inner)
                pending.extend(used for used in inner if used not in seen)
                seen |= inner
        if fact not in search.proved:
            return []
        return _needed_instances(search.proved, fact, component)

    # --- rule instances

    def instances(self, state: ReadableState, fact: Fact) -> Iterator[Instance]:
        """Yield the rule instances that derive a fact in a state."""
        predicate, row = fact
        for rule in self._rules.get(predicate, ()):
            start = _head_binding(rule.head, row)
            if start is None:
                continue
            body = evaluation_order(rule.body, frozenset(start))
            found = self._solve_body(state, body, start)
            if rule.is_aggregate:
                yield from _aggregate_instance(rule, row, list(found))
            else:
                yield from (Instance(rule, *_premises_of(rule.body, each)) for each in found)

    def _solve_body(
        self, state: ReadableState, body: tuple[Literal, ...], binding: Binding
    ) -> Iterator[Binding]:
        if not body:
            yield binding
            return
        literal, rest = body[0], body[1:]
        match literal:
            case Atom():
                for row in self._matching_rows(state, literal, binding):
                    found = _match_atom(literal, row, binding)
                    if found is not None:
                        yield from self._solve_body(state, rest, found)
            case Negation(atom=atom):
                if not any(True for _ in self._matching_rows(state, atom, binding)):
                    yield from self._solve_body(state, rest, binding)
            case Comparison():
                compared = _solve_comparison(literal, binding)
                if compared is not None:
                    yield from self._solve_body(state, rest, compared)

    def _matching_rows(self, state: ReadableState, atom: Atom, binding: Binding) -> Iterator[Row]:
        key = dict(_known_columns(atom, binding))
        if "__" not in atom.predicate:
            yield from state.matching(atom.predicate, key)
            return
        for rule in self._rules.get(atom.predicate, ()):  # a helper of desugar: not in any state
            start = {
                term.name: key[i]
                for i, term in enumerate(rule.head.arguments)
                if i in key and isinstance(term, Variable)
            }
            for found in self._solve_body(state, evaluation_order(rule.body, set(start)), start):
                row = tuple(_evaluate_term(term, found)[1] for term in rule.head.arguments)
                if row_fits(row, key):
                    yield row


def _needed_instances(
    proved: Mapping[Fact, Instance], fact: Fact, component: frozenset[str]
) -> list[tuple[Fact, Instance]]:
    """Facts that a proof of the fact uses, premises first, with their instances."""
    wanted, pending = {fact}, [fact]
    while pending:
        for used in proved[pending.pop()].facts:
            if used[0] in component and used not in wanted:
                wanted.add(used)
                pending.append(used)
    return [(each, instance) for each, instance in proved.items() if each in wanted]


def _head_binding(head: Atom, row: Row) -> Binding | None:
    """The variables of a head by the values of a fact; None if a constant differs."""
    found: Binding = {}
    for term, value in zip(head.arguments, row, strict=True):
        if isinstance(term, Variable):
            if found.setdefault(term.name, value) != value:
                return None
        elif isinstance(term, Constant) and term.value != value:
            return None
    return found


def _aggregate_instance(rule: Rule, row: Row, found: list[Binding]) -> Iterator[Instance]:
    """All bindings of a group together, if their aggregates are those of the fact."""
    variables = variable_names(*rule.body)
    distinct = list({tuple(each.get(n) for n in variables): each for each in found}.values())
    for term, value in zip(rule.head.arguments, row, strict=True):
        if isinstance(term, Aggregate):
            values = [
                None if term.argument is None else _evaluate_term(term.argument, each)[1]
                for each in distinct
            ]
            if not distinct or aggregate_value(term.function, term.type, values) != value:
                return
    facts: dict[Fact, None] = {}
    absent: dict[Absence, None] = {}
    for each in distinct[:PREMISES_MAX]:
        used, missing = _premises_of(rule.body, each)
        facts.update(dict.fromkeys(used))
        absent.update(dict.fromkeys(missing))
    yield Instance(rule, tuple(facts), tuple(absent))


def _premises_of(
    body: tuple[Literal, ...], binding: Binding
) -> tuple[tuple[Fact, ...], tuple[Absence, ...]]:
    facts: list[Fact] = []
    absent: list[Absence] = []
    for literal in body:
        if isinstance(literal, Atom):
            row = tuple(_evaluate_term(term, binding)[1] for term in literal.arguments)
            facts.append((literal.predicate, row))
        elif isinstance(literal, Negation):
            atom = literal.atom
            known = tuple(_known_columns(atom, binding))
            absent.append(Absence(atom.predicate, len(atom.arguments), known))
    return tuple(facts), tuple(absent)


def _known_columns(atom: Atom, binding: Binding) -> Iterator[tuple[int, Value]]:
    for i, term in enumerate(atom.arguments):
        if isinstance(term, Constant):
            yield i, term.value
        elif isinstance(term, Variable) and term.name in binding:
            yield i, binding[term.name]


def _match_atom(atom: Atom, row: Row, binding: Binding) -> Binding | None:
    found = dict(binding)
    for term, value in zip(atom.arguments, row, strict=True):
        if isinstance(term, Variable) and found.setdefault(term.name, value) != value:
            return None
    return found


def _solve_comparison(literal: Comparison, binding: Binding) -> Binding | None:
    """The binding, or a longer one that an equation makes; None if it does not hold."""
    for target, other in ((literal.left, literal.right), (literal.right, literal.left)):
        if literal.operator == "=" and isinstance(target, Variable) and target.name not in binding:
            has_value, value = _evaluate_term(other, binding)
            return {**binding, target.name: value} if has_value else None
    has_left, left = _evaluate_term(literal.left, binding)
    has_right, right = _evaluate_term(literal.right, binding)
    return (
        binding
        if has_left and has_right and comparison_holds(literal.operator, left, right)
        else None
    )


def _evaluate_term(term: Term, binding: Binding) -> tuple[bool, Value]:
    """Whether a term has a value, and which: null is one."""
    if isinstance(term, Variable):
        return True, binding[term.name]
    if isinstance(term, Constant):
        return True, term.value
    assert not isinstance(term, Aggregate)
    operands = [_evaluate_term(each, binding)[1] for each in _operands_of(term)]
    result = function_value(term.function, str(term.type), operands)
    return result is not None, result


def _operands_of(term: Expression) -> tuple[Expression, ...]:
    assert not isinstance(term, Variable | Constant)
    return term.arguments
