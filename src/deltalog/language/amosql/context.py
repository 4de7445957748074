"""The state that the bodies of one rule, query or update share while they are translated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics.entry import Entry
from deltalog.diagnostics.report import ProgramError
from deltalog.language.amosql.foreign import wanted_name
from deltalog.language.amosql.naming import VariableNames
from deltalog.language.amosql.schema import Function, Schema
from deltalog.language.amosql.tree import Expression, ObjectName, Select
from deltalog.language.ast import Expression as Term
from deltalog.language.ast import Operation, Rule, Variable
from deltalog.source import Span


@dataclass(frozen=True)
class Typed:
    """A term and its type; None is an object of which no type is known."""

    term: Term
    type: str | None


def widened_term(value: Typed, column: str) -> Term:
    """The term as a value of a column: an int widens to float or decimal."""
    if value.type != "integer" or column in ("int", "str"):
        return value.term
    return Operation(column, (value.term,), None, value.term.span)


ObjectFinder = Callable[[ObjectName], Typed]


@dataclass
class Translation:
    """One rule, query or update that is being translated: what its bodies share.

    `helpers` are the rules of views that it needs beside it, named after `owner`.
    """

    schema: Schema
    owner: str
    find_object: ObjectFinder
    is_inlined: Callable[[Function], bool]
    names: VariableNames = field(default_factory=VariableNames)
    helpers: list[Rule] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    is_schema: bool = False
    """Whether it is part of the schema, and not a query or an update."""

    def wanted_name(self, predicate: str) -> str:
        """The view of the arguments for which a foreign function is wanted here."""
        found = wanted_name(predicate)
        return found if self.is_schema else f"{self.owner}_{found}"

    def helper_name(self, kind: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"{self.owner}_{kind}{self.counts[kind]}"

    def fresh(self, name: str, span: Span | None = None) -> Variable:
        return Variable(self.names.fresh(name), span)


def problem_at(entry: Entry, span: Span, **words: object) -> ProgramError:
    return ProgramError([entry.at(span, **words)])  # type: ignore[arg-type]


def only_value(select: Select) -> Expression:
    if len(select.values) != 1:
        raise problem_at(errors.ONE_VALUE, select.span)
    return select.values[0]
