"""The syntax tree of AMOSQL: what is written, before names have a meaning.

    set quantity(:item1) = 139;
    Update("set", Call("quantity", (ObjectName("item1"),)), Constant(139, "int"))

Names are in lower case; letters do not differ by case in AMOSQL. Spans take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from deltalog.language.ast import Constant
from deltalog.source import Span


@dataclass(frozen=True, slots=True)
class Name:
    """`i`: a variable that `for each` or a parameter declares."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ObjectName:
    """`:item1`: a variable of the session, or else the object of that name."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`threshold(i)`; `name_span` is the place of the name alone."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)
    name_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compared:
    operator: str
    left: Expression
    right: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Connected:
    """`a and b`, `a or b`, `not a`."""

    connective: OneOf["and", "or", "not"]
    operands: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypedName:
    """`item i`: a parameter or a variable with its type; a parameter may have no name."""

    type: str
    name: str | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select:
    values: tuple[Expression, ...]
    variables: tuple[TypedName, ...]
    condition: Expression | None
    span: Span = field(compare=False, repr=False)
    into: tuple[ObjectName, ...] = ()


Expression: TypeAlias = (
    Constant | Name | ObjectName | Call | Arithmetic | Compared | Connected | Select
)

# --- statements


@dataclass(frozen=True, slots=True)
class Update:
    """`set f(x) = e for each T v where p`; `remove f(x)` has no value."""

    verb: OneOf["set", "add", "remove"]
    target: Call
    value: Expression | None
    variables: tuple[TypedName, ...]
    condition: Expression | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`set :x = e`: a variable of the session."""

    target: ObjectName
    value: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Invocation:
    """`order(:item1, 5)`: a procedure is executed; of any other function the values are shown."""

    call: Call
    span: Span = field(compare=False, repr=False)


Step: TypeAlias = Update | Assignment | Invocation | Select


@dataclass(frozen=True, slots=True)
class Procedure:
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Foreign:
    """`foreign "orders:order" deterministic`: a function of Python that is registered as `order`.

    What stands before the colon says in which file it is. Without a text the name is that of the
    function itself.
    """

    function: str | None
    is_deterministic: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateType:
    name: str
    supertypes: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """A stored function has no body."""

    name: str
    parameters: tuple[TypedName, ...]
    result: TypedName
    is_bag: bool
    body: Select | Procedure | Foreign | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RuleEvent:
    """`on update quantity(i)`."""

    kind: OneOf["insert", "delete", "update"]
    call: Call
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateRule:
    name: str
    parameters: tuple[TypedName, ...]
    variables: tuple[TypedName, ...]
    event: RuleEvent | None
    condition: Expression | None
    action: Procedure
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateInstances:
    type: str
    objects: tuple[ObjectName, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ChangeTypes:
    """`add type T to :x`, `remove type T from :x`."""

    verb: OneOf["add", "remove"]
    type: str
    objects: tuple[ObjectName, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeleteObjects:
    objects: tuple[ObjectName, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Activation:
    verb: OneOf["activate", "deactivate"]
    rule: str
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Boundary:
    """`begin`, `commit`, `rollback`."""

    verb: OneOf["begin", "commit", "rollback"]
    span: Span = field(compare=False, repr=False)


SchemaStatement: TypeAlias = CreateType | CreateFunction | CreateRule
Statement: TypeAlias = (
    SchemaStatement | CreateInstances | ChangeTypes | DeleteObjects | Activation | Boundary | Step
)
