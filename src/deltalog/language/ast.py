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
    """`leads` says that the first atom is small and evaluation should start from it."""

    head: Atom
    body: tuple[Literal, ...] = ()
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    leads: bool = field(default=False, compare=False, repr=False)

    @property
    def is_aggregate(self) -> bool:
        return any(isinstance(term, Aggregate) for term in self.head.arguments)

    @property
    def span(self) -> Span | None:
        return self.origin.span


@dataclass(frozen=True, slots=True)
class Query:
    """`? path(1, Y).` Its answers are the bindings of its named variables."""

    body: tuple[Literal, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


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
class Program:
    """Declarations, rules, ground facts and queries, in the order they were written."""

    declarations: tuple[Declaration, ...] = ()
    rules: tuple[Rule, ...] = ()
    facts: tuple[Atom, ...] = ()
    queries: tuple[Query, ...] = ()
