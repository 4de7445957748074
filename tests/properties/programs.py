"""Random valid programs, with facts for them and transactions on those facts.

Programs are right by construction, nothing is generated and thrown away:

- *Stratified*: components are made one after the other. A component may use, negate and aggregate
  what came before it; itself it may only use positively.
- *Safe*: a rule is made from its positive atoms outwards, and whatever needs a value is chosen
  among the variables that already have one. Only then is the body shuffled.
- *Finite*: a rule of a recursive component puts a computed value into its head only after
  comparing it with both ends of the domain. So a recursion invents no value outside the domain.
- *Within 32 bits*, for the oracle: every variable carries an interval that holds its values; an
  operation or a sum that could leave ±`MAGNITUDE_MAX` is not made.
- *Typed*: every column is `int`, except those of averages. A view with an average has one rule and
  occurs in no body.

Choices are ordered so that Hypothesis shrinks towards `v0(X, Y) :- b0(X, Y).`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import Literal as OneOf
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from hypothesis.vendor.pretty import RepresentationPrinter

from deltalog.language.ast import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Declaration,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Program,
    Rule,
    Term,
    Variable,
)
from deltalog.language.printer import print_program
from deltalog.language.walk import substitute_atom, substitute_literal

DOMAIN_MAX = 4
CONSTANTS = (0, 1, 2, 3, 4, -1, -2)
MAGNITUDE_MAX = 10**6
VARIABLES = ("X", "Y", "Z", "W")
COMPUTED = ("A", "B")
LOCAL = "L"
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
TRANSACTION_KINDS = (
    *("insert", "delete", "both") * 2, "again", "undo", "clear", "idle", "empty",
)  # fmt: skip
ROWS_MAX = (1, 6, 14, 20)

Choice = TypeVar("Choice")
Storage: TypeAlias = OneOf["materialized", "virtual"] | None
Row: TypeAlias = tuple[int, ...]
Facts: TypeAlias = dict[str, set[Row]]
Transaction: TypeAlias = tuple[Facts, Facts]


@dataclass(frozen=True)
class Features:
    """What programs may contain; switch off what the strategy under test does not do."""

    recursion: bool = True
    negation: bool = True
    aggregates: bool = True
    disjunction: bool = True
    arithmetic: bool = True
    expressions_in_atoms: bool = True
    view_declarations: bool = False
    longer_joins: bool = False  # every closure has a rule with three or four atoms, too


@dataclass(frozen=True)
class Scenario:
    program: Program
    facts: Facts
    transactions: list[Transaction]

    def __str__(self) -> str:
        """The program as a person would write it, then facts and transactions."""
        steps = [f"insert {inserts} delete {deletes}" for inserts, deletes in self.transactions]
        return "\n".join([print_program(self.program), f"{self.facts}", *steps])

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """How Hypothesis shows a failing example."""
        printer.text(f"\n{self}\n")


# --- intervals: where a value can lie -----------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    low: int
    high: int

    @property
    def width(self) -> int:
        return self.high - self.low + 1

    @property
    def magnitude(self) -> int:
        return max(abs(self.low), abs(self.high))

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def scaled(self, times: int) -> Interval:
        """Holds every sum of one up to `times` values of this interval."""
        return Interval(min(self.low, self.low * times), max(self.high, self.high * times))


DOMAIN = Interval(0, DOMAIN_MAX)
WRITTEN = Interval(min(CONSTANTS), max(CONSTANTS))


def _hull(intervals: Iterable[Interval]) -> Interval:
    """Holds the values of all `intervals` and every constant a rule can contain."""
    return reduce(Interval.hull, intervals, WRITTEN)


def _towards_zero(dividend: Interval, magnitude: int) -> Interval:
    """No more than `magnitude` from zero, on the side the dividend is on."""
    return Interval(
        -magnitude if dividend.low < 0 else 0,
        magnitude if dividend.high > 0 else 0,
    )


def _result(function: str, left: Interval, right: Interval) -> Interval:
    match function:
        case "+":
            return Interval(left.low + right.low, left.high + right.high)
        case "-":
            return Interval(left.low - right.high, left.high - right.low)
        case "mod":
            return _towards_zero(left, left.magnitude)
        case "/":
            return Interval(-left.magnitude, left.magnitude)
        case _:
            corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            return Interval(min(corners), max(corners))


Valued: TypeAlias = tuple[Expression, Interval]


def _constant(number: int) -> Valued:
    return Constant(number, "int"), Interval(number, number)


def _applied(function: str, left: Valued, right: Valued) -> Valued:
    interval = _result(function, left[1], right[1])
    if interval.magnitude > MAGNITUDE_MAX:
        return left
    return Operation(function, (left[0], right[0])), interval


def _negative(operand: Valued) -> Valued:
    interval = Interval(-operand[1].high, -operand[1].low)
    return Operation("-", (operand[0],)), interval


# --- drawing ------------------------------------------------------------------------------------


@dataclass
class _Drawing:
    draw: DrawFn
    features: Features

    def number(self, low: int, high: int) -> int:
        return low if low == high else self.draw(_numbers(low, high))

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of the choices; shrinks to the first."""
        return choices[self.number(0, len(choices) - 1)]

    def chance(self, of: int) -> bool:
        """True once in `of` times; shrinks to False."""
        return self.number(1, of) == of

    def constant(self) -> Valued:
        return _constant(self.number(0, DOMAIN_MAX))


def _rotated(choices: Sequence[Choice], by: int) -> Sequence[Choice]:
    """The same choices, but another one is the simplest."""
    start = by % len(choices)
    return [*choices[start:], *choices[:start]]


@cache
def _numbers(low: int, high: int) -> SearchStrategy[int]:
    """Remembered, since making a strategy costs more than drawing from it."""
    return st.integers(low, high)


# --- one rule -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    name: str
    columns: tuple[Interval, ...]


@dataclass
class _Body(_Drawing):
    """A body in the making; `bound` holds the variables that have a value, and where it lies."""

    is_recursive: bool = False
    is_aggregate: bool = False
    literals: list[Literal] = field(default_factory=list)
    bound: dict[str, Interval] = field(default_factory=dict)
    wildcards: list[Interval] = field(default_factory=list)

    def branch(self) -> _Body:
        """A body that starts from what is bound here."""
        return replace(self, literals=[], bound=dict(self.bound))

    # expressions

    def operand(self) -> Valued:
        if self.bound and self.pick("vvvc") == "v":
            name = self.pick(list(self.bound))
            return Variable(name), self.bound[name]
        return _constant(self.pick(CONSTANTS))

    def expression(self, functions: Sequence[str] = ("+", "-", "*", "/", "mod")) -> Valued:
        value = self.operand()
        if not self.features.arithmetic:
            return value
        for _ in range(self.pick((0, 0, 1, 1, 2))):
            value = self.grown(value, functions)
        return value

    def grown(self, value: Valued, functions: Sequence[str]) -> Valued:
        match self.pick("lllrn"):
            case "l":
                return _applied(self.pick(functions), value, self.operand())
            case "r":
                return _applied(self.pick(functions), self.operand(), value)
            case _:
                return _negative(value)

    # literals

    def positive(self, relation: Relation) -> None:
        """An atom that binds its variables; in the simplest case a chain, `p(X, Y), q(Y, Z)`."""
        start = len(self.literals)
        columns = enumerate(relation.columns, start)
        arguments = tuple(self.binding(_rotated(VARIABLES, n), column) for n, column in columns)
        self.literals.append(Atom(relation.name, arguments))

    def binding(self, names: Sequence[str], column: Interval) -> Term:
        match self.pick("ffffvvvcww"):
            case "f":
                return self.bind(names[0], column)
            case "v":
                return self.bind(self.pick(names), column)
            case "c":
                return self.constant()[0]
            case _:
                self.wildcards.append(column)
                return Variable("_")

    def bind(self, name: str, values: Interval) -> Variable:
        self.bound.setdefault(name, values)
        return Variable(name)

    def test(self, relation: Relation, kinds: str = "vvvc") -> Atom:
        """An atom that uses what is bound."""
        return Atom(relation.name, tuple(self.tested(kinds) for _ in relation.columns))

    def tested(self, kinds: str) -> Term:
        match self.pick(kinds):
            case "w":
                return Variable("_")
            case "e" if self.features.expressions_in_atoms:
                return self.expression()[0]
            case "v" if self.bound:
                return Variable(self.pick(list(self.bound)))
            case _:
                return self.constant()[0]

    def negation(self, relations: Sequence[Relation]) -> None:
        relation = self.pick(relations)
        self.literals.append(Negation(self.test(relation, "vvvvcwwe")))

    def comparison(self) -> None:
        left, right = self.expression()[0], self.expression()[0]
        self.literals.append(Comparison(self.pick(COMPARISONS), left, right))

    def assignment(self) -> None:
        """A new variable with a computed value, within the domain if the rule is recursive."""
        expression, values = self.expression()
        name = COMPUTED[sum(name in self.bound for name in COMPUTED)]
        self.equation(name, expression)
        self.bound[name] = self.limited(name, values) if self.is_recursive else values

    def equation(self, name: str, expression: Expression) -> None:
        sides: tuple[Expression, Expression] = (Variable(name), expression)
        left, right = sides[::-1] if self.chance(4) else sides
        self.literals.append(Comparison("=", left, right))

    def limited(self, name: str, values: Interval) -> Interval:
        high = self.number(1, DOMAIN_MAX)
        self.literals.append(Comparison("<=", Variable(name), Constant(high, "int")))
        if values.low < 0:
            self.literals.append(Comparison(">", Variable(name), Constant(-1, "int")))
        return DOMAIN

    def disjunction(self, relations: Sequence[Relation], negatable: Sequence[Relation]) -> None:
        """Branches that all bind the same one or two variables."""
        targets = [self.pick(VARIABLES) for _ in range(self.number(1, 2))]
        self.alternatives(tuple(dict.fromkeys(targets)), relations, negatable, nesting=1)

    def alternatives(
        self,
        targets: tuple[str, ...],
        relations: Sequence[Relation],
        negatable: Sequence[Relation],
        nesting: int,
    ) -> None:
        branches = [self.branch() for _ in range(self.number(2, 3))]
        for branch in branches:
            if nesting and self.chance(8):
                branch.alternatives(targets, relations, negatable, nesting - 1)
            else:
                branch.alternative(targets, self.pick(relations))
            branch.restriction(negatable)
        self.literals.append(Disjunction(tuple(tuple(branch.literals) for branch in branches)))
        for target in targets:
            self.bind(target, _hull(branch.bound[target] for branch in branches))

    def alternative(self, targets: tuple[str, ...], relation: Relation) -> None:
        """One atom, and an equation for each target that it does not bind."""
        arguments = tuple(self.reaching(targets, column) for column in relation.columns)
        self.literals.append(Atom(relation.name, arguments))
        for target in targets:
            if target not in self.bound:
                value = self.operand() if self.is_recursive else self.expression()
                self.equation(target, value[0])
                self.bound[target] = value[1]

    def reaching(self, targets: tuple[str, ...], column: Interval) -> Term:
        match self.pick("ttttvcwl"):
            case "t":
                return self.bind(self.pick(targets), column)
            case "v" if self.bound:
                return Variable(self.pick(list(self.bound)))
            case "w" if not self.is_aggregate:
                return Variable("_")
            case "l" if not self.is_aggregate:
                return self.bind(LOCAL, column)
            case _:
                return self.constant()[0]

    def restriction(self, negatable: Sequence[Relation]) -> None:
        kind = self.pick("....cn")
        if kind == "c":
            self.comparison()
        elif kind == "n" and self.features.negation:
            self.negation(negatable)

    # the whole

    def decorate(self, relations: Sequence[Relation], lower: Sequence[Relation]) -> None:
        """Everything beyond the first atoms; `lower` may be negated, `relations` only used."""
        if self.features.disjunction and not self.is_divided and self.chance(4):
            self.disjunction(relations, lower)
        for _ in range(self.pick((0, 0, 0, 1, 2))):
            if self.features.arithmetic:
                self.assignment()
        if self.bound and self.chance(8):
            self.literals.append(self.test(self.pick(relations), "vvvce"))
        for _ in range(self.pick((0, 0, 0, 1))):
            self.comparison()
        if self.features.negation:
            for _ in range(self.pick((0, 0, 0, 1, 1, 2))):
                self.negation(lower)

    def shuffled(self) -> tuple[Literal, ...]:
        if self.chance(3):
            return tuple(self.draw(st.permutations(self.literals)))
        return tuple(self.literals)

    @property
    def is_divided(self) -> bool:
        """A second disjunction would share the first one's local variable."""
        return any(isinstance(literal, Disjunction) for literal in self.literals)

    @property
    def bindings_max(self) -> int:
        return reduce(int.__mul__, (i.width for i in (*self.bound.values(), *self.wildcards)), 1)

    # heads

    def head_terms(self, arity: int) -> list[tuple[Term, Interval]]:
        return [self.head_term(place) for place in range(arity)]

    def head_term(self, place: int) -> tuple[Term, Interval]:
        kind = self.pick("vvvvvvce")
        if kind == "v" and self.bound:
            name = self.pick(_rotated(list(self.bound), place))
            return Variable(name), self.bound[name]
        if kind == "e" and self.features.expressions_in_atoms and not self.is_recursive:
            return self.expression()
        return self.constant()

    def aggregate(self, functions: Sequence[str]) -> tuple[Term, Interval]:
        function = self.pick(functions)
        times = self.bindings_max
        if function == "count" and times <= MAGNITUDE_MAX:
            return Aggregate("count", None), Interval(1, times)
        argument, values = self.expression(("+", "-", "*"))
        if function == "sum" and values.scaled(times).magnitude <= MAGNITUDE_MAX:
            return Aggregate("sum", argument), values.scaled(times)
        return Aggregate(function if function in ("max", "avg") else "min", argument), values


def numbered_wildcards(rule: Rule) -> Rule:
    """Wildcards named as the parser names them: `_1`, `_2`, … in the order written."""
    count = 0

    def numbered(variable: Variable) -> Variable:
        nonlocal count
        if variable.name != "_":
            return variable
        count += 1
        return Variable(f"_{count}")

    head = substitute_atom(rule.head, numbered)
    return Rule(head, tuple(substitute_literal(literal, numbered) for literal in rule.body))


# --- components: views that come together -------------------------------------------------------


@dataclass
class _Maker(_Drawing):
    lower: list[Relation] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    views: int = 0

    def name(self) -> str:
        self.views += 1
        return f"v{self.views - 1}"

    def arity(self, least: int = 0) -> int:
        return self.pick([n for n in (2, 1, 2, 0, 3) if n >= least])

    def component(self) -> None:
        kinds: list[Callable[[], None]] = [self.plain]
        if self.features.recursion:
            kinds += [self.closure, self.linear, self.non_linear, self.mutual]
        if self.features.aggregates:
            kinds += [self.aggregated, self.averaged]
        self.pick(kinds)()

    # without recursion

    def plain(self) -> None:
        name, arity = self.name(), self.arity()
        self.register(name, [self.plain_rule(name, arity) for _ in range(self.number(1, 3))])

    def plain_rule(self, name: str, arity: int) -> list[Interval]:
        body = self.body()
        return self.finish(name, body.head_terms(arity), body)

    def aggregated(self) -> None:
        name, arity = self.name(), self.arity(least=1)
        functions = ("count", "sum", "min", "max")
        heads = [self.aggregate_rule(name, arity, functions) for _ in range(self.number(1, 2))]
        if self.chance(6):
            heads.append(self.plain_rule(name, arity))
        self.register(name, heads)

    def averaged(self) -> None:
        """Not registered, so no later rule uses it."""
        self.aggregate_rule(self.name(), self.arity(least=1), ("avg", "avg", "count", "sum"))

    def aggregate_rule(self, name: str, arity: int, functions: Sequence[str]) -> list[Interval]:
        body = self.body(is_aggregate=True)
        terms = [body.aggregate(functions)]
        for place in range(arity - 1):
            terms.append(body.aggregate(functions) if body.chance(6) else body.head_term(place))
        return self.finish(name, self.draw(st.permutations(terms[::-1])), body)

    # with recursion

    def closure(self) -> None:
        """Reachability along a binary relation, the way people write it, then decorated."""
        edges = self.pick([r for r in self.lower if len(r.columns) == 2])
        name = self.name()
        heads = [self.path_rule(name, edges, [(edges, "XY")])]
        view = Relation(name, (_hull(self.all_columns(heads)),) * 2)
        steps = ([(edges, "XZ"), (view, "ZY")], [(view, "XZ"), (edges, "ZY")],
                 [(view, "XZ"), (view, "ZY")])  # fmt: skip
        longer = ([(edges, "XZ"), (view, "ZW"), (view, "WY")],
                  [(view, "XZ"), (edges, "ZW"), (view, "WY")],
                  [(view, "XZ"), (view, "ZW"), (view, "WY")],
                  [(edges, "XZ"), (view, "ZW"), (edges, "WV"), (view, "VY")])  # fmt: skip
        if self.features.longer_joins:
            self.path_rule(name, edges, self.pick(longer), view)
        self.path_rule(name, edges, self.pick(steps), view)
        self.lower.append(view)

    def path_rule(
        self,
        name: str,
        edges: Relation,
        steps: list[tuple[Relation, str]],
        view: Relation | None = None,
    ) -> list[Interval]:
        body = _Body(self.draw, self.features, is_recursive=view is not None)
        for relation, names in steps:
            arguments = zip(names, relation.columns, strict=True)
            body.literals.append(Atom(relation.name, tuple(body.bind(*a) for a in arguments)))
        if body.chance(3):
            body.decorate([edges, *([view] if view else [])], self.lower)
        return self.finish(name, [(Variable(n), body.bound[n]) for n in "XY"], body)

    def linear(self) -> None:
        self.recursive(members=1, uses=1)

    def non_linear(self) -> None:
        self.recursive(members=1, uses=2)

    def mutual(self) -> None:
        self.recursive(members=self.number(2, 3), uses=1)

    def recursive(self, members: int, uses: int) -> None:
        """Each member has rules that leave the recursion and rules that use the next member."""
        shapes = [(self.name(), self.arity()) for _ in range(members)]
        exits = [self.plain_rule(*shape) for shape in shapes for _ in range(self.number(1, 2))]
        values = _hull(self.all_columns(exits))
        component = [Relation(name, (values,) * arity) for name, arity in shapes]
        for position, relation in enumerate(component):
            following = component[(position + 1) % members]
            for _ in range(self.number(1, 2)):
                self.recursive_rule(relation, [following] * uses, component)
        self.lower += component

    def recursive_rule(
        self, relation: Relation, used: list[Relation], component: list[Relation]
    ) -> None:
        """The recursion is in atoms of `used`, or at times only in branches of a disjunction."""
        body = _Body(self.draw, self.features, is_recursive=True)
        if self.features.disjunction and body.chance(6):
            body.disjunction([*component, *self.lower], self.lower)
        else:
            for atom in used:
                body.positive(atom)
        for _ in range(self.pick((1, 1, 0))):
            body.positive(self.pick(self.lower))
        more = component if len(used) > 1 else []
        body.decorate([*self.recent(), *more], self.lower)
        self.finish(relation.name, body.head_terms(len(relation.columns)), body)

    # parts

    def recent(self) -> list[Relation]:
        """What came before, the latest more than once: dependencies become long, not wide."""
        return [*self.lower, *self.lower[-2:], *self.lower[-2:]]

    def all_columns(self, heads: list[list[Interval]]) -> list[Interval]:
        columns = [column for relation in self.lower for column in relation.columns]
        return columns + [column for head in heads for column in head]

    def body(self, is_aggregate: bool = False) -> _Body:
        body = _Body(self.draw, self.features, is_aggregate=is_aggregate)
        for _ in range(self.pick((1, 1, 2, 2, 3, 0))):
            body.positive(self.pick(self.recent()))
        body.decorate(self.recent(), self.recent())
        if not body.literals:
            body.positive(self.pick(self.recent()))
        return body

    def finish(
        self, name: str, terms: Sequence[tuple[Term, Interval]], body: _Body
    ) -> list[Interval]:
        head = Atom(name, tuple(term for term, _ in terms))
        self.rules.append(numbered_wildcards(Rule(head, body.shuffled())))
        return [values for _, values in terms]

    def register(self, name: str, heads: list[list[Interval]]) -> None:
        columns = (reduce(Interval.hull, column) for column in zip(*heads, strict=True))
        self.lower.append(Relation(name, tuple(columns)))


# --- strategies ---------------------------------------------------------------------------------


@st.composite
def base_relations(draw: DrawFn) -> tuple[Declaration, ...]:
    """Declarations of `b0`, `b1`, …; the first one is binary, so that there is a graph."""
    arities = [2, *draw(st.lists(st.sampled_from((2, 1, 3, 0)), min_size=1, max_size=3))]
    return tuple(
        Declaration("base", f"b{n}", tuple(Column(f"c{c}", "int") for c in range(arity)))
        for n, arity in enumerate(arities)
    )


@st.composite
def programs(
    draw: DrawFn,
    features: Features = Features(),
    bases: tuple[Declaration, ...] | None = None,
) -> Program:
    """Views `v0`, `v1`, … in one to six components over `bases`, which are drawn if not given."""
    if bases is None:
        bases = draw(base_relations())
    lower = [Relation(name, (DOMAIN,) * arity) for name, arity in _arities(bases).items()]
    maker = _Maker(draw, features, lower)
    for _ in range(draw(st.integers(1, 6))):
        maker.component()
    views = draw(_view_declarations(maker.views)) if features.view_declarations else []
    return Program((*bases, *views), tuple(maker.rules))


def _view_declarations(views: int) -> SearchStrategy[list[Declaration]]:
    """For each view none, or one of the three forms."""
    forms: tuple[tuple[Storage, ...], ...] = ((), (), (None,), ("materialized",), ("virtual",))
    return st.tuples(*[st.sampled_from(forms)] * views).map(
        lambda chosen: [
            Declaration("view", f"v{n}", None, storage)
            for n, form in enumerate(chosen)
            for storage in form
        ]
    )


def _arities(declarations: Iterable[Declaration]) -> dict[str, int]:
    return {
        declaration.predicate: len(declaration.columns or ())
        for declaration in declarations
        if declaration.kind == "base"
    }


def _rows(arity: int, rows_min: int, rows_max: int) -> SearchStrategy[set[Row]]:
    """From lists and not sets, whose strategy rejects what it has drawn before."""
    row = st.tuples(*[st.integers(0, DOMAIN_MAX)] * arity)
    return st.lists(row, min_size=rows_min, max_size=rows_max).map(set)


def facts(declarations: Iterable[Declaration]) -> SearchStrategy[Facts]:
    """A set of rows, perhaps empty, for each base relation."""
    arities = _arities(declarations)
    return st.fixed_dictionaries(
        {name: _rows(arity, 0, ROWS_MAX[arity]) for name, arity in arities.items()}
    )


def applied(state: Facts, transaction: Transaction) -> Facts:
    """The facts after a transaction: deletes first, so what is also inserted is there."""
    inserts, deletes = transaction
    return {
        name: (rows - deletes.get(name, set())) | inserts.get(name, set())
        for name, rows in state.items()
    }


@st.composite
def transactions(
    draw: DrawFn, declarations: Iterable[Declaration], state: Facts, transactions_max: int = 4
) -> list[Transaction]:
    """Transactions on `state`, each made for the facts the ones before it leave behind.

    Besides ordinary ones: empty, without effect (inserting what is there, deleting what is not),
    deleting and inserting the same rows, undoing the transaction before, clearing relations.
    """
    arities = _arities(declarations)
    made: list[Transaction] = []
    undo: Transaction = ({}, {})
    for _ in range(draw(st.integers(0, transactions_max))):
        kind = draw(st.sampled_from(TRANSACTION_KINDS))
        transaction = undo if kind == "undo" else draw(_of_kind(kind, arities, state))
        after = applied(state, transaction)
        undo = (_difference(state, after), _difference(after, state))
        state = after
        made.append(transaction)
    return made


@st.composite
def _of_kind(draw: DrawFn, kind: str, arities: dict[str, int], state: Facts) -> Transaction:
    inserts: Facts = {}
    deletes: Facts = {}
    changed = st.lists(st.sampled_from(list(arities)), unique=True, min_size=1, max_size=3)
    for name in draw(changed) if kind != "empty" else ():
        random = draw(_rows(arities[name], rows_min=1, rows_max=3))
        present = draw(_some(state[name]))
        match kind:
            case "insert":
                inserts[name] = random
            case "delete":
                deletes[name] = present
            case "both":
                inserts[name], deletes[name] = random, present
            case "again":
                inserts[name], deletes[name] = present | random, present | random
            case "idle":
                inserts[name], deletes[name] = present, random - state[name]
            case "clear":
                deletes[name] = set(state[name])
    return _stripped(inserts), _stripped(deletes)


def _some(rows: set[Row]) -> SearchStrategy[set[Row]]:
    if not rows:
        return st.just(set())
    return st.lists(st.sampled_from(sorted(rows)), min_size=1, max_size=3).map(set)


def _stripped(changes: Facts) -> Facts:
    return {name: rows for name, rows in changes.items() if rows}


def _difference(first: Facts, second: Facts) -> Facts:
    return _stripped({name: rows - second[name] for name, rows in first.items()})


@st.composite
def scenarios(draw: DrawFn, features: Features = Features()) -> Scenario:
    """A program, facts to begin with, and transactions on them.

    The rules come last: when Hypothesis varies a drawing, whatever follows the changed place tends
    to fall back to its simplest form, and no facts at all make the best rules pointless.
    """
    bases = draw(base_relations())
    state = draw(facts(bases))
    steps = draw(transactions(bases, state))
    return Scenario(draw(programs(features, bases)), state, steps)
