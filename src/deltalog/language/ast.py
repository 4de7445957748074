"""The rule tree: what a program is once its text has been read.

Nodes are frozen and hold tuples, so two programs are equal when they say the same thing: spans and
origins do not take part in equality. Rewrites return new nodes and never touch old ones.

    path(X, Y) :- edge(X, Z), path(Z, Y).
    Rule(head=Atom("path", (Variable("X"), Variable("Y"))), body=(Atom("edge", …), Atom("path", …)))

Every `_` is a variable of its own; the parser names them `_1`, `_2`, … in each clause.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

from deltalog.source import Origin, Span

TYPES = ("int", "float", "str", "bool", "date", "timestamp", "decimal")
AGGREGATES = ("count", "sum", "min", "max", "avg")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "ends_with")

Value: TypeAlias = int | float | str | bool | date | datetime | Decimal | Fraction | None
"""A Fraction occurs only in generated rules, where sums are kept exactly."""
Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or, in a query, a parameter: its name begins with `$`, its value is input."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def is_wildcard(self) -> bool:
        """Whether it was written `_` (its name is then an underscore and a number)."""
        return self.name[0] == "_" and self.name[1:].isdecimal()

    @property
    def is_parameter(self) -> bool:
        return self.name[0] == "$"


@dataclass(frozen=True, slots=True)
class Constant:
    """A value and its type; the type keeps `1`, `1.0` and `true` apart. `null` has type null."""

    value: Value
    type: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or function applied to expressions; `type` is its operand type once known."""

    function: str
    arguments: tuple[Expression, ...]
    type: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum(S)` in a head: the function over the distinct bindings of all body variables."""

    function: str
    argument: Expression | None
    type: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


Expression: TypeAlias = Variable | Constant | Operation
Term: TypeAlias = Variable | Constant | Operation | Aggregate


@dataclass(frozen=True, slots=True)
class Atom:
    predicate: str
    arguments: tuple[Term, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not p(X, _)`: no fact matches."""

    atom: Atom
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`D * 2 > 100`; `type` is the type both sides are compared in, once known."""

    operator: str
    left: Expression
    right: Expression
    type: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Disjunction:
    branches: tuple[tuple[Literal, ...], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Literal: TypeAlias = Atom | Negation | Comparison | Disjunction


@dataclass(frozen=True, slots=True)
class Rule:
    """`leads` says that the first atom is small and evaluation should start from it.

    `message` is the template of a sentence, as in `… say "{X} reaches {Y}"`; rewrites drop it.
    """

    head: Atom
    body: tuple[Literal, ...] = ()
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    leads: bool = field(default=False, compare=False, repr=False)
    message: str | None = None

    @property
    def is_aggregate(self) -> bool:
        return any(isinstance(term, Aggregate) for term in self.head.arguments)

    @property
    def span(self) -> Span | None:
        return self.origin.span


@dataclass(frozen=True, slots=True)
class DisjunctiveRule:
    """`a ; b :- c.`: one of the heads holds where the body does. Without a body it is a fact.

    Without heads it is a contradiction, which only rewrites make. In what they make, a variable of
    a head that the body does not bind stands for some value of its column, or a new one.
    """

    heads: tuple[Atom, ...]
    body: tuple[Literal, ...] = ()
    origin: Origin = field(default=Origin(), compare=False, repr=False)

    @property
    def span(self) -> Span | None:
        return self.origin.span


@dataclass(frozen=True, slots=True)
class Query:
    """`? path(1, Y).` Its answers are the bindings of its named variables, or of the `outputs`."""

    body: tuple[Literal, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    outputs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str | None = None
    nullable: bool = False
    key: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`base edge(src: int, dst: int).` or `materialized view path.` (columns to be inferred)."""

    kind: OneOf["base", "view"]
    predicate: str
    columns: tuple[Column, ...] | None = None
    storage: OneOf["materialized", "virtual"] | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """`deny cycle(X) :- path(X, X).` keeps a view empty, `require ic(2).` keeps a fact.

    With a body it defines the view that it speaks of. `message` is a template: `{X}` stands for the
    value of a variable of the head.
    """

    kind: OneOf["deny", "require"]
    head: Atom
    body: tuple[Literal, ...] = ()
    mode: OneOf["enforce", "warn", "view"] = "enforce"
    is_immediate: bool = False
    message: str | None = None
    origin: Origin = field(default=Origin(), compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.head.predicate

    @property
    def definition(self) -> tuple[Rule, ...]:
        """The rule for the view that it defines, if it does."""
        return (Rule(self.head, self.body, self.origin),) if self.body else ()


@dataclass(frozen=True, slots=True)
class Event:
    """`on delete salary(E, S)`: facts of a relation that a transaction inserts, deletes or sets."""

    kind: OneOf["insert", "delete", "set"]
    atom: Atom


@dataclass(frozen=True, slots=True)
class Action:
    """One step of what a rule does; `reject` has a message template and no atom.

    `where` is read when the rule is executed, and is no part of the condition that triggers it.
    """

    verb: OneOf["insert", "delete", "set", "call", "emit", "reject"]
    atom: Atom | None = None
    message: str | None = None
    where: tuple[Literal, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ActiveRule:
    """`rule low for I when quantity(I, Q), Q < 10 do insert scarce(I).`

    It acts for each instance for which its condition became true, `otherwise` where it became
    false. Without a written `instance`, that is all variables of event and condition.
    `parameter_types` has a type or None for each parameter, and is empty if none is written.
    """

    name: str
    condition: tuple[Literal, ...]
    actions: tuple[Action, ...]
    otherwise: tuple[Action, ...] = ()
    parameters: tuple[Variable, ...] = ()
    instance: tuple[Variable, ...] | None = None
    priority: int = 0
    is_immediate: bool = False
    is_nervous: bool = False
    event: Event | None = None
    parameter_types: tuple[str | None, ...] = ()
    origin: Origin = field(default=Origin(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UpdateChoice:
    """`to insert path(X, Y) do insert edge(X, Y).`: what a request for a view does, by default."""

    kind: OneOf["insert", "delete"]
    head: Atom
    actions: tuple[Action, ...]
    origin: Origin = field(default=Origin(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Program:
    """Declarations, rules, facts, queries and what else there is, each as written."""

    declarations: tuple[Declaration, ...] = ()
    rules: tuple[Rule, ...] = ()
    facts: tuple[Atom, ...] = ()
    queries: tuple[Query, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    active_rules: tuple[ActiveRule, ...] = ()
    disjunctive_rules: tuple[DisjunctiveRule, ...] = ()
    update_choices: tuple[UpdateChoice, ...] = ()

    @property
    def definitions(self) -> tuple[Rule, ...]:
        """The rules, and those that constraints define views by."""
        if not self.constraints:
            return self.rules
        return (*self.rules, *(rule for each in self.constraints for rule in each.definition))
