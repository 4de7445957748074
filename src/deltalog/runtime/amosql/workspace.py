"""The state that statements of AMOSQL read and change: a transaction, and the names of its objects.

Everything a statement does goes through one transaction, so it sees what earlier statements of the
transaction have done, and nobody else does before it commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics.report import DataError
from deltalog.language.amosql.bodies import Body
from deltalog.language.amosql.conditions import bound_names
from deltalog.language.amosql.context import Typed
from deltalog.language.amosql.schema import Schema
from deltalog.language.amosql.translation import SchemaTranslator
from deltalog.language.amosql.tree import ObjectName
from deltalog.language.ast import (
    Atom,
    Comparison,
    Constant,
    Disjunction,
    Literal,
    Query,
    Row,
    Rule,
    Value,
    Variable,
)
from deltalog.language.ast import Expression as Term
from deltalog.language.narrowing import numbered_rule
from deltalog.language.values import print_value, sort_key
from deltalog.language.walk import variable_names
from deltalog.runtime.amosql.tabulation import tabulate_wanted
from deltalog.runtime.rows import Rows
from deltalog.runtime.transaction import Transaction
from deltalog.source import Span

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

QUERY = "query"


@dataclass
class Workspace:
    """One transaction of a database, with the schema, and the variables of the session."""

    database: MemoryDatabase
    translator: SchemaTranslator
    transaction: Transaction
    variables: dict[str, Typed] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return self.translator.schema

    def body(self) -> Body:
        """An empty body for conditions and values of one statement."""
        return Body(self.translator.translation(QUERY, self.find_object))

    # --- reading

    def ask(self, body: Body, terms: Sequence[Term]) -> list[Row]:
        """The values of terms for all bindings of a body: a bag, in order."""
        literals = body.complete()
        shown: list[Term] = []
        equations: list[Literal] = []
        for term in terms:
            if not isinstance(term, Variable | Constant):
                variable = body.translation.fresh("result")
                equations.append(Comparison("=", variable, term, None, term.span))
                term = variable
            shown.append(term)
        if not literals and not equations:
            return [tuple(_constant_value(term) for term in shown)]
        answered = numbered_rule(Rule(Atom(QUERY), (*literals, *equations)))
        helpers = tuple(map(numbered_rule, body.translation.helpers))
        query = Query(answered.body)
        if any(isinstance(literal, Disjunction) for literal in answered.body):
            head = Atom(QUERY, _shared_variables(body, answered.body, shown))
            query, helpers = Query((head,)), (*helpers, replace(answered, head=head))
        tabulate_wanted(self.database, self.transaction, self.translator, body.translation, helpers)
        if helpers:
            rows = self.transaction._query_with_views(query, helpers)
        else:
            rows = self.transaction.query(query)
        return sorted(_project_rows(rows, shown), key=sort_key)

    def matching(self, relation: str, arguments: Sequence[Value], arity: int) -> list[Row]:
        """The facts of a relation that begin with these values."""
        known = tuple(map(as_constant, arguments))
        free = tuple(Variable(f"V{place}") for place in range(arity - len(known)))
        rows = self.transaction.query(Query((Atom(relation, (*known, *free)),)))
        return [(*arguments, *row) for row in rows]

    # --- objects

    def find_object(self, name: ObjectName) -> Typed:
        """The value of a variable of the session, or else the object of that name."""
        if name.name in self.variables:
            return self.variables[name.name]
        if not self.types_of(name.name):
            raise DataError([errors.UNKNOWN_OBJECT.at(name.span, name=name.name)])
        return Typed(Constant(name.name, "str", name.span), None)

    def types_of(self, object_: str) -> frozenset[str]:
        """All types that an object has."""
        return frozenset(name for name in self.schema.types if self.is_of(object_, name))

    def is_of(self, object_: str, type_: str) -> bool:
        query = Query((Atom(type_, (Constant(object_, "str"),)),))
        return len(self.transaction.query(query)) > 0

    def check_object(self, value: Value, type_: str, span: Span | None) -> None:
        """Raise unless an object is of a type."""
        assert isinstance(value, str)
        if not self.is_of(value, type_):
            shown = print_value(value, "str")
            raise DataError([errors.OBJECT_MISFIT.at(span, value=shown, type=type_)])


def _shared_variables(
    body: Body, literals: tuple[Literal, ...], terms: list[Term]
) -> tuple[Variable, ...]:
    """The variables of a query but for those that only a branch of a disjunction has."""
    plain = (literal for literal in literals if not isinstance(literal, Disjunction))
    found = dict.fromkeys((*variable_names(*plain, *terms), *body.declared_types()))
    bound = bound_names(literals)
    return tuple(Variable(name) for name in found if name in bound and name[0] != "_")


def as_constant(value: Value) -> Constant:
    """A value as a constant: its type follows from it.

    >>> as_constant(3)
    Constant(value=3, type='int')
    """
    kinds = {bool: "bool", int: "int", float: "float", str: "str"}
    name = type(value).__name__.lower()
    types = {"datetime": "timestamp", "date": "date", "decimal": "decimal"}
    return Constant(value, kinds.get(type(value)) or types[name])


def _constant_value(term: Term) -> Value:
    assert isinstance(term, Constant)
    return term.value


def _project_rows(rows: Rows, terms: Iterable[Term]) -> Iterable[Row]:
    places = {name: place for place, name in enumerate(rows.names)}
    chosen = list(terms)
    for row in rows:
        yield tuple(
            row[places[term.name]] if isinstance(term, Variable) else _constant_value(term)
            for term in chosen
        )
