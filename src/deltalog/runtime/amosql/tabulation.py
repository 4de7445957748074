"""Values of deterministic foreign functions: computed by Python, kept in their tables.

A rule of the program computes those that a transaction makes missing. What a change of the schema
makes missing, and what only a query or an update wants, is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics.report import DataError
from deltalog.language.amosql.foreign import missing_name, tabulation_name, undefined_name
from deltalog.language.amosql.schema import Function
from deltalog.language.amosql.steps import foreign_name
from deltalog.language.amosql.translation import SchemaTranslator
from deltalog.language.ast import Atom, Negation, Query, Row, Rule, Variable

if TYPE_CHECKING:
    from deltalog.language.amosql.context import Translation
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.transaction import Transaction

ROUNDS_MAX = 1_000
"""How often values may make others wanted."""

Facts = dict[str, list[Row]]


def tabulated_facts(
    database: MemoryDatabase, predicate: str, function: Function, rows: Iterable[Row]
) -> Facts:
    """The facts that a function of Python adds to its tables for these arguments."""
    name = foreign_name(function)
    call: Any = database.registered(name)
    if call is None:
        hint = f'`@db.action("{name}")`, or `--actions FILE.py` on the command line'
        raise DataError([errors.FOREIGN_UNKNOWN.at(function.span, name=name, hint=hint)])
    found: Facts = {predicate: [], undefined_name(predicate): []}
    for row in rows:
        value = call(*row)
        if value is None:
            found[undefined_name(predicate)].append(row)
        else:
            found[predicate].append((*row, value))
    return found


def register_tabulations(database: MemoryDatabase, translator: SchemaTranslator) -> None:
    """Register what the rules call that compute missing values."""
    for predicate, function in translator.tabulated():

        def action(rows: list[Row], name: str = predicate, of: Function = function) -> Any:
            return {"insert": tabulated_facts(database, name, of, rows)}

        database.action(tabulation_name(predicate))(action)


def fill_tables(database: MemoryDatabase, translator: SchemaTranslator) -> None:
    """Compute the values that are missing since the schema has changed."""
    for _ in range(ROUNDS_MAX):
        facts: Facts = {}
        for predicate, function in translator.tabulated():
            view = missing_name(predicate)
            rows = database.facts(view) if view in database.relations else set()
            if rows:
                facts |= tabulated_facts(database, predicate, function, rows)
        if not facts:
            return
        database.apply(insert=facts)


def tabulate_wanted(
    database: MemoryDatabase,
    transaction: Transaction,
    translator: SchemaTranslator,
    translation: Translation,
    helpers: tuple[Rule, ...],
) -> None:
    """Compute what a query or an update wants, in its transaction."""
    heads = {rule.head.predicate for rule in helpers}
    wanted = {
        predicate: function
        for predicate, function in translator.tabulated()
        if translation.wanted_name(predicate) in heads
    }
    for _ in range(ROUNDS_MAX if wanted else 0):
        found = False
        for predicate, function in wanted.items():
            query = _missing_query(predicate, function, translation.wanted_name(predicate))
            rows = list(transaction._query_with_views(query, helpers))
            for relation, facts in tabulated_facts(database, predicate, function, rows).items():
                transaction.insert(relation, facts)
            found = found or bool(rows)
        if not found:
            return


def _missing_query(predicate: str, function: Function, view: str) -> Query:
    variables = tuple(Variable(f"V{place}") for place in range(len(function.types)))
    return Query(
        (
            Atom(view, variables),
            Negation(Atom(predicate, (*variables, Variable("_1")))),
            Negation(Atom(undefined_name(predicate), variables)),
        )
    )
