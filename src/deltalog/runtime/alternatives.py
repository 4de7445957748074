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

from deltalog.engines.scalars import compute, holds
from deltalog.language.ast import (
    Atom,
    Comparison,
    Constant,
    Expression,
    Negation,
    Operation,
    Row,
    Rule,
    Term,
    Value,
    Variable,
)
from deltalog.language.walk import names as variable_names
from deltalog.runtime.hypothetical import Binding, Hypothetical
from deltalog.runtime.realization import ANY, Wish, contradict

Values = Callable[[str, int, Collection[Value], Sequence[Value]], Sequence[Value]]
"""Values for a column, by relation and position: known ones, those that are new and in use (some of
them only here), and one more; and those next to values that it is compared with."""
Unsolved = Callable[[Comparison, str], None]
"""Called with an equation that is not solved for a variable."""
ORDERS = ("<", "<=", ">", ">=")


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


# --- a fact becomes true


def phases(rules: Iterable[Rule]) -> Iterator[Phase]:
    """Every choice of missing atoms of every rule, few first."""
    rules = tuple(rules)
    most = max((len(_positive(rule)) for rule in rules), default=0)
    for count in range(most + 1):
        for rule in rules:
            for missing in combinations(_positive(rule), count):
                yield Phase(rule, missing)


def completions(
    phase: Phase,
    row: Row,
    state: Hypothetical,
    values: Values,
    unsolved: Unsolved = lambda test, name: None,
) -> Iterator[Instance]:
    """The instances of a phase with this head, whose other atoms hold in the state.

    An instance whose missing atoms hold nevertheless belongs to another phase.
    """
    rule, missing = phase
    given = unified(rule.head, row)
    if given is None:
        return
    present = [atom for atom in _positive(rule) if not any(atom is each for each in missing)]
    bound = {*given, *variable_names(*present)}
    tests = [each for each in rule.body if isinstance(each, Comparison)]
    asked = [test for test in tests if bound.issuperset(variable_names(test))]
    rest = [test for test in tests if test not in asked]
    for found in state.bindings((*present, *asked), given, rule.body):
        for binding in completed(found, missing, rest, values, unsolved):
            made = instance(rule, binding)
            if not any(state.holds(*_of(atom, binding)) for atom in missing):
                yield made


def completed(
    binding: Binding,
    missing: Sequence[Atom],
    tests: Sequence[Comparison],
    values: Values,
    unsolved: Unsolved = lambda test, name: None,
) -> Iterator[Binding]:
    """Bindings of all variables of missing atoms, which pass the tests."""
    solved = determined(dict(binding), tests)
    if solved is None:
        return
    free: dict[str, tuple[str, int]] = {}
    for atom in missing:
        for i, term in enumerate(atom.arguments):
            if isinstance(term, Variable) and term.name not in solved:
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
        yield from completed({**solved, name: value}, missing, tests, values, unsolved)


def compared_with(tests: Iterable[Comparison], name: str, binding: Binding) -> list[Value]:
    """The values of a variable at which comparisons by order change from false to true.

    `Q + 1 < 10` changes at 9; where that is not exact, there are none.
    """
    found: dict[Value, None] = {}
    for test in tests:
        free = {each for each in variable_names(test) if each not in binding}
        if test.operator in ORDERS and free == {name}:
            found |= dict.fromkeys(solutions(test, name, binding))
    return list(found)


def determined(binding: dict[str, Value], tests: Sequence[Comparison]) -> dict[str, Value] | None:
    """The binding with variables that equations determine; None if a test fails already."""
    found = dict(binding)
    while True:
        size = len(found)
        for test in tests:
            free = [name for name in variable_names(test) if name not in found]
            if not free and not is_passed(test, found):
                return None
            if len(free) == 1 and test.operator == "=":
                for value in solutions(test, free[0], found):
                    found[free[0]] = value
        if len(found) == size:
            return found


def solutions(test: Comparison, name: str, binding: Binding) -> Iterator[Value]:
    """The value that makes an equation true, if there is exactly one and it can be computed."""
    for side, other in ((test.left, test.right), (test.right, test.left)):
        if name in variable_names(side) and name not in variable_names(other):
            value = evaluated(other, binding)
            if isinstance(side, Variable) and not isinstance(other, Operation):
                yield value  # which may be null
                return
            solved = None if value is None else _inverted(side, name, value, binding)
            if solved is not None:
                yield solved
            return


def _inverted(side: Expression, name: str, value: Value, binding: Binding) -> Value:
    """The value of a variable with which an expression has this value; None if not exact."""
    if isinstance(side, Variable):
        return value
    if not isinstance(side, Operation) or side.type not in ("int", "decimal"):
        return None
    if side.function == "-" and len(side.arguments) == 1:
        return _inverted(side.arguments[0], name, compute("-", side.type, (value,)), binding)
    if side.function not in ("+", "-", "*") or len(side.arguments) != 2:
        return None
    left, right = side.arguments
    is_left = name in variable_names(left)
    if is_left and name in variable_names(right):
        return None
    known = evaluated(right if is_left else left, binding)
    if side.function == "*":
        if not isinstance(known, int) or not isinstance(value, int) or not known or value % known:
            return None
        return _inverted(left if is_left else right, name, value // known, binding)
    if side.function == "+":
        operands: tuple[Value, Value] = (value, known)
    else:
        operands = (value, known) if is_left else (known, value)
    back = "+" if side.function == "-" and is_left else "-"
    inner = compute(back, side.type, operands)
    return None if inner is None else _inverted(left if is_left else right, name, inner, binding)


# --- a fact becomes false


def derivation(
    rules: Iterable[Rule], row: Row, state: Hypothetical, wishes: Set[Wish]
) -> Instance | None:
    """An instance that derives a fact in a state, and that no wish is going to break."""
    for rule in rules:
        given = unified(rule.head, row)
        if given is not None:
            for binding in state.bindings(rule.body, given):
                made = instance(rule, binding)
                if not any(_is_broken(wish, wishes) for wish in made.wishes):
                    return made
    return None


def _is_broken(literal: Wish, wishes: Set[Wish]) -> bool:
    """Whether the opposite of a literal is wished for."""
    if ANY not in literal.row:
        return literal._replace(holds=not literal.holds) in wishes
    return any(contradict(literal, wish) for wish in wishes)


def breaks(made: Instance, values: Values) -> Iterator[Wish]:
    """Wishes by each of which an instance does not derive its head any more."""
    for wish in made.positive:
        yield wish._replace(holds=False)
    for wish in made.negative:
        yield from _filled(wish._replace(holds=True), values)


def _filled(wish: Wish, values: Values) -> Iterator[Wish]:
    """The wish with values in place of every ANY."""
    free = next((i for i, value in enumerate(wish.row) if value is ANY), None)
    if free is None:
        yield wish
        return
    known = [value for value in wish.row if value is not ANY]
    for value in values(wish.relation, free, known, ()):
        yield from _filled(
            wish._replace(row=(*wish.row[:free], value, *wish.row[free + 1 :])), values
        )


# --- rules and values


def unified(head: Atom, row: Row) -> dict[str, Value] | None:
    """The values of head variables with which a head is this fact."""
    found: dict[str, Value] = {}
    for term, value in zip(head.arguments, row, strict=True):
        known = value
        if isinstance(term, Variable):
            known = found.setdefault(term.name, value)
        elif isinstance(term, Constant):
            known = term.value
        if known != value:
            return None
    return found


def instance(rule: Rule, binding: Binding) -> Instance:
    positive = tuple(Wish(True, *_of(atom, binding)) for atom in _positive(rule))
    negated = (each.atom for each in rule.body if isinstance(each, Negation))
    return Instance(rule, positive, tuple(Wish(False, *_of(atom, binding)) for atom in negated))


def _of(atom: Atom, binding: Binding) -> tuple[str, Row]:
    return atom.predicate, tuple(_value(term, binding) for term in atom.arguments)


def _value(term: Term, binding: Binding) -> Value:
    if isinstance(term, Variable):
        return ANY if term.is_wildcard else binding[term.name]
    assert isinstance(term, Constant), "desugared atoms hold no expressions"
    return term.value


def _positive(rule: Rule) -> list[Atom]:
    return [literal for literal in rule.body if isinstance(literal, Atom)]


def is_passed(test: Comparison, binding: Binding) -> bool:
    if any(name not in binding for name in variable_names(test)):
        return True  # not yet known
    sides = [(side, evaluated(side, binding)) for side in (test.left, test.right)]
    if any(value is None and isinstance(side, Operation) for side, value in sides):
        return False  # an operation without a value; a variable or constant may be null
    return holds(test.operator, sides[0][1], sides[1][1])


def evaluated(expression: Expression, binding: Binding) -> Value:
    match expression:
        case Constant(value=value):
            return value
        case Variable(name=name):
            return binding[name]
        case Operation(function=function, arguments=arguments, type=type_):
            return compute(function, str(type_), [evaluated(each, binding) for each in arguments])


def rules_by_head(rules: Iterable[Rule]) -> Mapping[str, tuple[Rule, ...]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.head.predicate, []).append(rule)
    return {name: tuple(each) for name, each in found.items()}
