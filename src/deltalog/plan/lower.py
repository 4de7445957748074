"""From a rule to its plan: the only road between the two trees.

Before: a rule in the form `desugar` leaves it. After: an equivalent `RulePlan`. The order of steps
is the evaluation order of `analysis/binding.py`, started from the atom whose new rows are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from deltalog.analysis.binding import evaluation_order
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import names
from deltalog.plan.nodes import (
    Absent,
    Aggregation,
    Assign,
    Compute,
    Fixed,
    Match,
    Operand,
    Pipeline,
    RulePlan,
    Slot,
    Step,
    Test,
    Total,
    Window,
)


def lower(rule: Rule, growing: Set[str]) -> RulePlan:
    """The plan of a rule; `growing` are the predicates that may grow while it runs."""
    body = rule.body
    moving = [i for i, x in enumerate(body) if isinstance(x, Atom) and x.predicate in growing]
    output = _group(rule) if rule.is_aggregate else rule.head.arguments
    variants = tuple(
        _pipeline(body, output, first=position, windows=_windows(moving, position))
        for position in moving
    )
    initial = None if moving else _pipeline(body, output)
    return RulePlan(
        rule.head.predicate,
        variants,
        initial,
        tuple(atom.predicate for atom in (body[i] for i in moving) if isinstance(atom, Atom)),
        _aggregation(rule) if rule.is_aggregate else None,
        rule.origin,
    )


def lower_all(rules: Iterable[Rule], growing: Set[str]) -> tuple[RulePlan, ...]:
    return tuple(lower(rule, growing) for rule in rules)


def _windows(moving: list[int], delta: int) -> dict[int, tuple[Window, int]]:
    """Atoms before the delta read the old rows, atoms after it all: no pair is joined twice."""
    return {
        position: (
            Window.NEW if position == delta else Window.OLD if position < delta else Window.ALL,
            occurrence,
        )
        for occurrence, position in enumerate(moving)
    }


def _group(rule: Rule) -> tuple[Variable, ...]:
    """The variables that tell one group from another."""
    terms = (term for term in rule.head.arguments if not isinstance(term, Aggregate))
    return tuple(Variable(name) for name in names(*terms))


def _aggregation(rule: Rule) -> Aggregation:
    variables = _binding_names(rule.body)
    given = tuple(variable.name for variable in _group(rule))
    slots = _Slots(given)
    head = tuple(
        Total(term.function, _column(term, variables), term.type)
        if isinstance(term, Aggregate)
        else slots.value(term)
        for term in rule.head.arguments
    )
    output = tuple(Variable(name) for name in variables)
    return Aggregation(head, _pipeline(rule.body, output, given=given))


def _binding_names(body: tuple[Literal, ...]) -> tuple[str, ...]:
    """All body variables, except those that exist only inside `not`."""
    return names(*(literal for literal in body if not isinstance(literal, Negation)))


def _column(term: Aggregate, variables: tuple[str, ...]) -> int | None:
    if term.argument is None:
        return None
    assert isinstance(term.argument, Variable)
    return variables.index(term.argument.name)


class _Slots:
    """Variables to slots, in the order in which they get a value."""

    def __init__(self, given: tuple[str, ...]) -> None:
        self.of: dict[str, Slot] = {name: Slot(i) for i, name in enumerate(given)}

    def new(self, name: str) -> Slot:
        assert name not in self.of
        return self.of.setdefault(name, Slot(len(self.of)))

    def value(self, term: Term) -> Slot | Fixed:
        if isinstance(term, Constant):
            return Fixed(term.value, term.type)
        assert isinstance(term, Variable), f"not in desugared form: {term}"
        return self.of[term.name]

    def operand(self, expression: Expression) -> Operand:
        if isinstance(expression, Operation):
            operands = tuple(self.operand(argument) for argument in expression.arguments)
            return Compute(expression.function, str(expression.type), operands)
        return self.value(expression)


def _pipeline(
    body: tuple[Literal, ...],
    output: tuple[Term, ...],
    first: int | None = None,
    windows: dict[int, tuple[Window, int]] | None = None,
    given: tuple[str, ...] = (),
) -> Pipeline:
    slots = _Slots(given)
    start = body[first] if first is not None else None
    assert start is None or isinstance(start, Atom)
    position_of = {id(literal): i for i, literal in enumerate(body)}
    steps: list[Step] = []
    for literal in evaluation_order(body, set(given), start):
        step = _step(literal, slots)
        if isinstance(step, Match):
            window, occurrence = (windows or {}).get(position_of[id(literal)], (Window.ALL, 0))
            step = replace(step, window=window, occurrence=occurrence)
        steps.append(step)
    emitted = tuple(slots.value(term) for term in output)
    return Pipeline(tuple(steps), emitted, len(slots.of), len(given))


def _step(literal: Literal, slots: _Slots) -> Step:
    match literal:
        case Atom():
            return _match(literal, slots)
        case Negation(atom=atom):
            key = tuple(
                (column, slots.value(term))
                for column, term in enumerate(atom.arguments)
                if not (isinstance(term, Variable) and term.name not in slots.of)
            )
            return Absent(atom.predicate, key)
        case Comparison():
            return _comparison(literal, slots)
    raise AssertionError(f"not in desugared form: {literal}")


def _match(atom: Atom, slots: _Slots) -> Match:
    known = set(slots.of)
    key: list[tuple[int, Slot | Fixed]] = []
    bind: list[tuple[int, Slot]] = []
    same: list[tuple[int, Slot]] = []
    for column, term in enumerate(atom.arguments):
        if isinstance(term, Variable) and term.name not in slots.of:
            bind.append((column, slots.new(term.name)))
        elif isinstance(term, Variable) and term.name not in known:
            same.append((column, slots.of[term.name]))
        else:
            key.append((column, slots.value(term)))
    return Match(atom.predicate, tuple(key), tuple(bind), tuple(same))


def _comparison(comparison: Comparison, slots: _Slots) -> Step:
    if comparison.operator == "=":
        for target, value in (
            (comparison.left, comparison.right),
            (comparison.right, comparison.left),
        ):
            if isinstance(target, Variable) and target.name not in slots.of:
                operand = slots.operand(value)
                return Assign(slots.new(target.name), operand)
    return Test(
        comparison.operator,
        slots.operand(comparison.left),
        slots.operand(comparison.right),
        str(comparison.type),
    )
