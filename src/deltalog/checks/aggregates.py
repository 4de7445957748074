"""Aggregates stand in heads, with the right arguments, over bodies whose branches agree."""

from __future__ import annotations

from collections.abc import Iterator, Set

from deltalog.analysis.binding import bound_variables, elements_not_in_all
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.language.ast import (
    AGGREGATES,
    ActiveRule,
    Aggregate,
    Disjunction,
    Literal,
    Program,
    Rule,
    Variable,
)
from deltalog.language.functions import FUNCTIONS
from deltalog.language.walk import operations_of


def check_aggregates(program: Program) -> Iterator[Diagnostic]:
    for rule in program.rules:
        for term in rule.head.arguments:
            if isinstance(term, Aggregate):
                yield from _check_arguments(term, rule)
        for node in (*rule.head.arguments, *rule.body):
            yield from _misplaced_aggregates(node)
        if rule.is_aggregate:
            yield from _check_branches(rule.body)
    for query in program.queries:
        for literal in query.body:
            yield from _misplaced_aggregates(literal)
    for active_rule in program.active_rules:
        for literal in _literals_of(active_rule):
            yield from _misplaced_aggregates(literal)


def _literals_of(rule: ActiveRule) -> Iterator[Literal]:
    """The literals of its event, condition and actions."""
    if rule.event is not None:
        yield rule.event.atom
    yield from rule.condition
    for action in (*rule.actions, *rule.otherwise):
        if action.atom is not None:
            yield action.atom
        yield from action.where


def _check_arguments(term: Aggregate, rule: Rule) -> Iterator[Diagnostic]:
    if not rule.body:
        yield catalogue.AGGREGATE_FACT.at(term.span, name=term.function)
    if term.function == "count" and term.argument is not None:
        yield catalogue.AGGREGATE_ARITY.at(
            term.span,
            name="count",
            wanted="no arguments",
            given=1,
            hint="`count()` counts the distinct bindings of all body variables; "
            "to count distinct values, aggregate over a view that has only those",
        )
    if term.function != "count" and term.argument is None:
        yield catalogue.AGGREGATE_ARITY.at(
            term.span, name=term.function, wanted="one argument", given="none"
        )


def _misplaced_aggregates(node: object) -> Iterator[Diagnostic]:
    for operation in operations_of(node):  # type: ignore[arg-type]
        if operation.function in AGGREGATES and operation.function not in FUNCTIONS:
            yield catalogue.AGGREGATE_PLACE.at(
                operation.span,
                name=operation.function,
                hint="define a separate view for the aggregate and use that",
            )


def _check_branches(
    body: tuple[Literal, ...], given: Set[str] = frozenset()
) -> Iterator[Diagnostic]:
    """Every branch binds the same variables, apart from those bound outside it anyway."""
    for disjunction in body:
        if not isinstance(disjunction, Disjunction):
            continue
        others = (literal for literal in body if literal is not disjunction)
        outside = bound_variables(others, given)
        per_branch = [bound_variables(branch, outside) for branch in disjunction.branches]
        for name in sorted(elements_not_in_all(per_branch)):
            shown = "_" if Variable(name).is_wildcard else name
            yield catalogue.AGGREGATE_BRANCHES.at(disjunction.span, name=shown)
        for branch in disjunction.branches:
            yield from _check_branches(branch, outside)
