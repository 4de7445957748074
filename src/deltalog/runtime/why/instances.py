"""Rule instances that derive facts in a state, found for many facts at once.

    path(1, 3)   ←   edge(1, 2), path(2, 3)          by path(X, Y) :- edge(X, Z), path(Z, Y).

What a negated literal excludes is an `Absence`, a comparison is kept with its values. An instance
of an aggregate has the rows of its group as premises: the first ones, and how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from deltalog.engines.scalars import aggregate_value, function_value
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Row,
    Value,
    Variable,
)
from deltalog.language.printer import print_literal
from deltalog.language.values import sort_key
from deltalog.language.walk import substitute_literal
from deltalog.runtime.derivation import Absence, Fact
from deltalog.runtime.why.clauses import Clause, Clauses
from deltalog.runtime.why.state import AskedState, Binding, pattern_of

CONTRIBUTORS_MAX = 20
"""Rows of the group of an aggregate that a proof shows."""


@dataclass(frozen=True)
class Compared:
    """A comparison or equation that holds, with the values it holds for: `3 < 5`."""

    text: str

    def __str__(self) -> str:
        return self.text


Premise: TypeAlias = Fact | Absence | Compared


@dataclass(frozen=True, eq=False)
class Instance:
    """A rule instance: its premises in the order of the body, and the values of its variables.

    `contributors` is the number of rows of an aggregate, of which `premises` are the first.
    """

    clause: Clause
    premises: tuple[Premise, ...]
    binding: Binding = field(repr=False)
    contributors: int | None = None

    @property
    def facts(self) -> Iterator[Fact]:
        return (each for each in self.premises if isinstance(each, tuple))


def rule_instances(
    state: AskedState, clauses: Clauses, facts: Iterable[Fact]
) -> Iterator[tuple[Fact, Instance]]:
    """Yield every rule instance that derives one of the facts, which are of views."""
    by_name: dict[str, list[Row]] = {}
    for name, row in facts:
        by_name.setdefault(name, []).append(row)
    for name, rows in by_name.items():
        for clause in clauses[name]:
            found = _of_aggregate if clause.is_aggregate else _of_rule
            yield from (((name, row), each) for row, each in found(state, clause, rows))


def _of_rule(
    state: AskedState, clause: Clause, rows: Iterable[Row]
) -> Iterator[tuple[Row, Instance]]:
    groups = [group for row in rows if (group := clause.group_of(row)) is not None]
    given = [tuple(group[name] for name in clause.group) for group in groups]
    (body,) = clause.bodies
    for binding in state.bindings(body, clause.group, given):
        row = tuple(term_value(term, binding) for term in clause.head.arguments)
        yield row, Instance(clause, premises_of(body, binding), binding)


def _of_aggregate(
    state: AskedState, clause: Clause, rows: Iterable[Row]
) -> Iterator[tuple[Row, Instance]]:
    wanted: dict[Row, list[Row]] = {}
    for row in rows:
        group = clause.group_of(row)
        if group is not None:
            wanted.setdefault(tuple(group[name] for name in clause.group), []).append(row)
    for key, (bindings, values) in groups_of(state, clause, wanted).items():
        for row in wanted[key]:
            if aggregated_values(clause, row) == values:
                yield row, _group_instance(clause, row, bindings)


Group: TypeAlias = list[tuple[int, Binding]]
"""Bindings of one group, each with the number of the body that it satisfies; sorted."""


def groups_of(
    state: AskedState, clause: Clause, keys: Iterable[Row]
) -> dict[Row, tuple[Group, Row]]:
    """The distinct bindings of each group, and what the aggregates of the head make of them."""
    keys = list(keys)
    found: dict[Row, dict[Row, tuple[int, Binding]]] = {}
    for number, body in enumerate(clause.bodies):
        for binding in state.bindings(body, clause.group, keys):
            key = tuple(binding[name] for name in clause.group)
            counted = tuple(binding[name] for name in clause.counted)
            found.setdefault(key, {}).setdefault(counted, (number, binding))
    groups = {
        key: [each for _, each in sorted(members.items(), key=lambda item: sort_key(item[0]))]
        for key, members in found.items()
    }
    return {key: (group, _group_totals(clause, group)) for key, group in groups.items()}


def _group_totals(clause: Clause, group: Group) -> Row:
    found: list[Value] = []
    for term in clause.head.arguments:
        if isinstance(term, Aggregate):
            argument = term.argument
            values = [None if argument is None else term_value(argument, b) for _, b in group]
            found.append(aggregate_value(term.function, term.type, values))
    return tuple(found)


def aggregated_values(clause: Clause, row: Row) -> Row:
    """The values of a fact in the columns of aggregates."""
    pairs = zip(clause.head.arguments, row, strict=True)
    return tuple(value for term, value in pairs if isinstance(term, Aggregate))


def _group_instance(clause: Clause, row: Row, group: Group) -> Instance:
    shown = [premises_of(clause.bodies[n], binding) for n, binding in group[:CONTRIBUTORS_MAX]]
    premises = tuple(dict.fromkeys(chain.from_iterable(shown)))
    known = clause.group_of(row)
    assert known is not None
    named = {
        term.function: value
        for term, value in zip(clause.head.arguments, row, strict=True)
        if isinstance(term, Aggregate)
    }
    return Instance(clause, premises, {**named, **known}, len(group))


def premises_of(body: tuple[Literal, ...], binding: Binding) -> tuple[Premise, ...]:
    """The literals of a body as they are for the values of its variables."""
    return tuple(premise_of(literal, binding) for literal in body)


def premise_of(literal: Literal, binding: Binding) -> Premise:
    match literal:
        case Atom():
            return literal.predicate, tuple(term_value(x, binding) for x in literal.arguments)
        case Negation(atom=atom):
            known = tuple(sorted(pattern_of(atom, binding).items()))
            return Absence(atom.predicate, len(atom.arguments), known)
        case Comparison():
            return Compared(literal_text(literal, binding))
        case _:
            raise AssertionError("disjunctions have been distributed")


def literal_text(literal: Literal, binding: Binding) -> str:
    """A literal with values for the variables that have one."""

    def value(variable: Variable) -> Expression:
        if variable.name not in binding:
            return variable
        return constant_of(binding[variable.name])

    return print_literal(substitute_literal(literal, value))


def constant_of(value: Value) -> Constant:
    """A value as a constant of its own type."""
    types = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}
    return Constant(value, types.get(type(value), type(value).__name__.lower()))


def term_value(term: object, binding: Binding) -> Value:
    if isinstance(term, Variable):
        return binding[term.name]
    if isinstance(term, Constant):
        return term.value
    assert hasattr(term, "arguments")
    operands = [term_value(each, binding) for each in term.arguments]
    return function_value(term.function, str(term.type), operands)  # type: ignore[attr-defined]
