"""The schema of an AMOSQL database: its types, functions and rules, one statement after another.

    schema = EMPTY.with_statement(parsed)        raises if the statement does not fit

A schema is a value: a statement that is refused leaves the one before. It knows names and types
only; what functions mean in rules is said by `translation.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, ProgramError, raise_if_any
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.amosql.tree import (
    CreateFunction,
    CreateRule,
    CreateType,
    Foreign,
    ObjectName,
    Procedure,
    SchemaStatement,
    Select,
    TypedName,
)
from deltalog.language.ast import AGGREGATES
from deltalog.language.functions import FUNCTIONS
from deltalog.source import Span

LITERAL_TYPES = {
    "integer": "int",
    "real": "float",
    "decimal": "decimal",
    "charstring": "str",
    "boolean": "bool",
    "date": "date",
    "timestamp": "timestamp",
}
"""Types of AMOSQL whose values are no objects, with the types of our columns."""

RESERVED = {"include", "not", "mod", "true", "false", "null", "base", "view", "rule", "deny"}
"""Words of the rule language that no relation is named after."""

HIDDEN_PREFIX = "amosql_"
"""Relations that keep what a session must know again when the database is reopened."""


def column_type(type_: str) -> str:
    """The type of a column that holds values of a type of AMOSQL: objects are texts."""
    return LITERAL_TYPES.get(type_, "str")


def check_different_names(variables: Iterable[TypedName | ObjectName]) -> None:
    """Raise if two of these variables have one name: the second would hide the first."""
    seen: set[str] = set()
    for each in variables:
        if each.name in seen:
            raise name_taken(each.name, "a variable", each.span)
        if each.name is not None:
            seen.add(each.name)


@dataclass(frozen=True)
class ObjectType:
    name: str
    supertypes: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Function:
    """One definition of a function; others of its name have other parameters (resolvents)."""

    name: str
    parameters: tuple[TypedName, ...]
    result: str
    is_bag: bool
    body: Select | Procedure | Foreign | None
    span: Span = field(compare=False, repr=False)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(each.type for each in self.parameters)

    @property
    def is_procedure(self) -> bool:
        """Whether it is executed: it changes something, or is not known to be deterministic."""
        if isinstance(self.body, Foreign):
            return not self.body.is_deterministic
        return isinstance(self.body, Procedure)

    @property
    def kind(self) -> str:
        match self.body:
            case None:
                return "a stored function"
            case Select():
                return "a derived function"
            case Foreign():
                return "a foreign function"
            case _:
                return "a procedure"

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.types)})"


@dataclass(frozen=True)
class Schema:
    """Everything that was created; mappings keep the order of creation."""

    types: Mapping[str, ObjectType] = field(default_factory=dict)
    functions: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    rules: Mapping[str, CreateRule] = field(default_factory=dict)

    # --- growing

    def with_statement(self, statement: SchemaStatement) -> Schema:
        """The schema with one more type, function or rule; raises if that does not fit."""
        match statement:
            case CreateType():
                return self._with_type(statement)
            case CreateFunction():
                return self._with_function(statement)
            case CreateRule():
                return self._with_rule(statement)

    def _with_type(self, statement: CreateType) -> Schema:
        self._check_free(statement.name, statement.span)
        unknown = [name for name in statement.supertypes if name not in self.types]
        raise_if_any(self._unknown_type(name, statement.span) for name in unknown)
        made = ObjectType(statement.name, statement.supertypes, statement.span)
        return replace(self, types={**self.types, made.name: made})

    def _with_function(self, statement: CreateFunction) -> Schema:
        self._check_types((*statement.parameters, statement.result))
        selected = statement.body.variables if isinstance(statement.body, Select) else ()
        check_different_names((*statement.parameters, *selected))
        made = Function(
            statement.name,
            statement.parameters,
            statement.result.type,
            statement.is_bag,
            statement.body,
            statement.span,
        )
        known = self.functions.get(made.name, ())
        if not known:
            self._check_free(made.name, statement.span)
        if any(each.types == made.types for each in known):
            raise name_taken(made.signature, "a function", statement.span)
        return replace(self, functions={**self.functions, made.name: (*known, made)})

    def _with_rule(self, statement: CreateRule) -> Schema:
        self._check_types((*statement.parameters, *statement.variables))
        check_different_names((*statement.parameters, *statement.variables))
        self._check_free(statement.name, statement.span)
        return replace(self, rules={**self.rules, statement.name: statement})

    def _check_types(self, named: Iterable[TypedName]) -> None:
        raise_if_any(
            self._unknown_type(each.type, each.span)
            for each in named
            if not self.is_type(each.type)
        )

    def _unknown_type(self, name: str, span: Span) -> Diagnostic:
        known = [*self.types, *LITERAL_TYPES]
        return catalogue.UNKNOWN_TYPE.at(span, name=name, hint=did_you_mean(name, known))

    def _check_free(self, name: str, span: Span) -> None:
        """Types, functions and rules share one space of names, as relations do."""
        for kind, names in (
            ("a type", (*self.types, *LITERAL_TYPES)),
            ("a function", self.functions),
            ("a rule", self.rules),
            ("a built-in function", (*FUNCTIONS, *AGGREGATES)),
            ("a word of the rule language", RESERVED),
        ):
            if name in names:
                raise name_taken(name, kind, span)
        if name.startswith((HIDDEN_PREFIX, "sys_")):
            raise name_taken(name, "a name of the system", span)

    # --- types

    def is_type(self, name: str) -> bool:
        return name in self.types or name in LITERAL_TYPES

    def is_subtype(self, name: str, of: str) -> bool:
        """Whether every object of a type is of another one, too; a type is a subtype of itself."""
        return of in self.supertypes(name)

    def supertypes(self, name: str) -> frozenset[str]:
        """The type and all types above it."""
        found, waiting = {name}, [name]
        while waiting:
            known = self.types.get(waiting.pop())
            fresh = set(known.supertypes if known else ()) - found
            found |= fresh
            waiting += fresh
        return frozenset(found)

    def subtypes(self, name: str) -> tuple[str, ...]:
        """The type and all types below it, as they were created."""
        return tuple(each for each in self.types if self.is_subtype(each, name))

    def direct_subtypes(self, name: str) -> Iterator[str]:
        return (each for each, known in self.types.items() if name in known.supertypes)

    # --- functions

    def resolvents(self, name: str, arity: int | None = None) -> tuple[Function, ...]:
        found = self.functions.get(name, ())
        return tuple(each for each in found if arity is None or len(each.parameters) == arity)

    def covers(self, general: Function, special: Function) -> bool:
        """Whether all arguments of the special definition fit the general one."""
        return len(general.types) == len(special.types) and all(
            self.is_subtype(below, above)
            for below, above in zip(special.types, general.types, strict=True)
        )

    def stored(self) -> Iterator[Function]:
        for group in self.functions.values():
            yield from (each for each in group if each.body is None)


def name_taken(name: str, kind: str, span: Span) -> ProgramError:
    return ProgramError([errors.NAME_TAKEN.at(span, name=name, kind=kind)])


EMPTY = Schema()
