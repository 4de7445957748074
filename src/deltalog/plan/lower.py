"""From a rule to its plan: the only road between the two trees.

Before: a rule in the form `desugar` leaves it. After: an equivalent `RulePlan`. The order of steps
is the evaluation order of `analysis/binding.py`, started from the atom whose new rows are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from deltalog.analysis.binding import Fanout, evaluation_order
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
from deltalog.language.walk import variable_names
from deltalog.plan.nodes import (
    Absent,
    Aggregation,
    Assign,
    Compute,
    Fixed,
    Match,
    Operand,
    Overlay,
    Pipeline,
    RulePlan,
    Slot,
    Step,
    Test,
    Total,
    Window,
)

Overlays = Mapping[str, "Overlay | str"]
"""States that are not stored, by predicate; a plain name is another name for a stored relation."""


def lower_rule(
    rule: Rule,
    growing: Set[str],
    overlays: Overlays = MappingProxyType({}),
    fanout: Fanout | None = None,
) -> RulePlan:
    """The plan of a rule; `growing` are the predicates that may grow while it runs.

    `overlays` names the predicates that are not stored but read as a stored relation with changes,
    `fanout` tells about the data that is there, if there is some.
    """
    body = rule.body
    grows = {i: _growing_part(literal, growing, overlays) for i, literal in enumerate(body)}
    moving = [i for i, relation in grows.items() if relation is not None]
    output = _group_variables(rule) if rule.is_aggregate else rule.head.arguments
    lowering = Lowering(overlays, fanout=fanout)
    variants = tuple(
        lowering.pipeline(body, output, first=position, windows=_windows_of_atoms(moving, position))
        for position in moving
    )
    has_old_rows = all(
        isinstance(overlays.get(_predicate_of(body[i]) or ""), Overlay) for i in moving
    )
    leader = 0 if rule.leads and body and isinstance(body[0], Atom) else None
    initial = (
        lowering.pipeline(body, output, leader, _windows_of_atoms(moving, len(body)))
        if has_old_rows
        else None
    )
    return RulePlan(
        rule.head.predicate,
        variants,
        initial,
        tuple(str(grows[i]) for i in moving),
        _lower_aggregation(rule, lowering) if rule.is_aggregate else None,
        rule.origin,
    )


def lower_all(
    rules: Iterable[Rule],
    growing: Set[str],
    overlays: Overlays = MappingProxyType({}),
    fanout: Fanout | None = None,
) -> tuple[RulePlan, ...]:
    return tuple(lower_rule(rule, growing, overlays, fanout) for rule in rules)


def _predicate_of(literal: Literal) -> str | None:
    return literal.predicate if isinstance(literal, Atom) else None


def _growing_part(literal: Literal, growing: Set[str], overlays: Overlays) -> str | None:
    """The relation whose new rows are new for this literal: of an overlay, its insertions."""
    predicate = _predicate_of(literal)
    relation = overlays.get(predicate or "", predicate)
    relation = relation.plus if isinstance(relation, Overlay) else relation
    return relation if relation in growing else None


def _windows_of_atoms(moving: list[int], delta: int) -> dict[int, tuple[Window, int]]:
    """Atoms before the delta read the old rows, atoms after it all: no pair is joined twice.

    With the delta behind the last atom every atom reads its old rows.
    """
    return {
        position: (
            Window.NEW if position == delta else Window.OLD if position < delta else Window.ALL,
            occurrence,
        )
        for occurrence, position in enumerate(moving)
    }


def _group_variables(rule: Rule) -> tuple[Variable, ...]:
    """The variables that tell one group from another."""
    terms = (term for term in rule.head.arguments if not isinstance(term, Aggregate))
    return tuple(Variable(name) for name in variable_names(*terms))


def _lower_aggregation(rule: Rule, lowering: Lowering) -> Aggregation:
    variables = _binding_names(rule.body)
    inputs = tuple(variable.name for variable in _group_variables(rule))
    slots = _Slots(inputs)
    head = tuple(
        Total(term.function, _binding_column(term, variables), term.type)
        if isinstance(term, Aggregate)
        else slots.value(term)
        for term in rule.head.arguments
    )
    output = tuple(Variable(name) for name in variables)
    return Aggregation(head, lowering.pipeline(rule.body, output, inputs=inputs))


def _binding_names(body: tuple[Literal, ...]) -> tuple[str, ...]:
    """All body variables, except those that exist only inside `not`."""
    return variable_names(*(literal for literal in body if not isinstance(literal, Negation)))


def _binding_column(term: Aggregate, variables: tuple[str, ...]) -> int | None:
    if term.argument is None:
        return None
    assert isinstance(term.argument, Variable)
    return variables.index(term.argument.name)


class _Slots:
    """Variables to slots, in the order in which they get a value."""

    def __init__(self, inputs: tuple[str, ...]) -> None:
        self.of: dict[str, Slot] = {name: Slot(i) for i, name in enumerate(inputs)}

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


_EVERYTHING = (Window.ALL, 0)


@dataclass(frozen=True)
class Lowering:
    """Literals to steps, reading states that are not stored through their overlays.

    Of the predicates in `ranked` only older rows are read; and other predicates come first where
    they bind as much, since a recursive view is mostly larger than what it is made of.
    """

    overlays: Overlays
    ranked: Set[str] = frozenset()
    fanout: Fanout | None = None

    def pipeline(
        self,
        body: tuple[Literal, ...],
        output: tuple[Term, ...],
        first: int | None = None,
        windows: Mapping[int, tuple[Window, int]] = MappingProxyType({}),
        inputs: tuple[str, ...] = (),
    ) -> Pipeline:
        slots = _Slots(inputs)
        start = body[first] if first is not None else None
        assert start is None or isinstance(start, Atom)
        position_of = {id(literal): i for i, literal in enumerate(body)}
        steps: list[Step] = []
        for literal in evaluation_order(body, set(inputs), start, self.ranked, self.fanout):
            read = windows.get(position_of[id(literal)], _EVERYTHING)
            steps.append(self._lower_literal(literal, slots, read))
        emitted = tuple(slots.value(term) for term in output)
        return Pipeline(tuple(steps), emitted, len(slots.of), len(inputs))

    def _lower_literal(self, literal: Literal, slots: _Slots, read: tuple[Window, int]) -> Step:
        match literal:
            case Atom():
                return self._lower_atom(literal, slots, *read)
            case Negation(atom=atom):
                key = tuple(
                    (column, slots.value(term))
                    for column, term in enumerate(atom.arguments)
                    if not (isinstance(term, Variable) and term.name not in slots.of)
                )
                return Absent(self._relation_to_read(atom), key)
            case Comparison():
                return _lower_comparison(literal, slots)
        raise AssertionError(f"not in desugared form: {literal}")

    def _relation_to_read(self, atom: Atom) -> str | Overlay:
        return self.overlays.get(atom.predicate, atom.predicate)

    def _lower_atom(self, atom: Atom, slots: _Slots, window: Window, occurrence: int) -> Match:
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
        return Match(
            self._relation_to_read(atom),
            tuple(key),
            tuple(bind),
            tuple(same),
            window,
            occurrence,
            atom.predicate in self.ranked,
        )


def _lower_comparison(comparison: Comparison, slots: _Slots) -> Step:
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
