"""Safety: every variable that is used has a value, so that every answer is finite.

p(X, Y) :- q(X).              Y in the head is bound by nothing
p(X) :- q(X), not r(X, Y).    Y in `not` is bound by nothing: write `_`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltalog.analysis.binding import bound_variables, uneven
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.language.ast import (
    Atom,
    Comparison,
    Disjunction,
    Literal,
    Negation,
    Operation,
    Program,
    Rule,
    Variable,
)
from deltalog.language.walk import names, variables

BRANCHES_MAX = 1_000


def check_safety(program: Program) -> Iterator[Diagnostic]:
    for rule in program.rules:
        yield from _rule(rule)
    for query in program.queries:
        yield from check_body(query.body)


def _combinations(body: tuple[Literal, ...]) -> int:
    """How many bodies remain once every disjunction is replaced by one of its branches."""
    product = 1
    for literal in body:
        if isinstance(literal, Disjunction):
            product *= sum(_combinations(branch) for branch in literal.branches)
    return product


def _rule(rule: Rule) -> Iterator[Diagnostic]:
    if _combinations(rule.body) > BRANCHES_MAX:
        yield catalogue.TOO_MANY_BRANCHES.at(
            rule.head.span, branches_max=BRANCHES_MAX, hint="give some of them names of their own"
        )
    bound = bound_variables(rule.body)
    partly = _partly_bound(rule.body)
    for variable in _first_of_each(variables(rule.head)):
        if variable.is_wildcard:
            yield catalogue.WILDCARD_VALUE.at(variable.span, hint="give it a name and a value")
        elif variable.name in bound:
            continue
        elif not rule.body:
            yield catalogue.FACT_WITH_VARIABLE.at(
                variable.span, name=variable.name, hint=_quoted(variable.name)
            )
        elif variable.name not in partly:
            yield catalogue.UNBOUND_HEAD.at(variable.span, name=variable.name)
    yield from check_body(rule.body, set(names(rule.head)))


def _quoted(name: str) -> str:
    return f'names that begin with a capital are variables; text is quoted: "{name}"'


def check_body(body: tuple[Literal, ...], used_outside: Iterable[str] = ()) -> Iterator[Diagnostic]:
    """Everything a body tests has a value."""
    yield from _level(body, set(), set(used_outside))


def _level(body: tuple[Literal, ...], given: set[str], outside: set[str]) -> Iterator[Diagnostic]:
    bound = bound_variables(body, given)
    for literal in body:
        elsewhere = outside | set(names(*(other for other in body if other is not literal)))
        match literal:
            case Atom(arguments=arguments):
                for term in arguments:
                    if isinstance(term, Operation):
                        yield from _valued(term, bound, catalogue.UNBOUND_EXPRESSION)
            case Negation(atom=atom):
                yield from _negated(atom, bound)
            case Comparison():
                yield from _valued(literal, bound, catalogue.UNBOUND_EXPRESSION)
            case Disjunction(branches=branches):
                yield from _branches(literal, bound, elsewhere)
                for branch in branches:
                    yield from _level(branch, bound, elsewhere)


def _negated(atom: Atom, bound: set[str]) -> Iterator[Diagnostic]:
    for term in atom.arguments:
        if isinstance(term, Variable):
            if not term.is_wildcard and term.name not in bound:
                yield catalogue.UNBOUND_NEGATION.at(
                    term.span, name=term.name, hint="write `_` for “no matter what”"
                )
        else:
            yield from _valued(term, bound, catalogue.UNBOUND_NEGATION)


def _valued(node: object, bound: set[str], entry: catalogue.Entry) -> Iterator[Diagnostic]:
    for variable in _first_of_each(variables(node)):  # type: ignore[arg-type]
        if variable.is_wildcard:
            yield catalogue.WILDCARD_VALUE.at(variable.span, hint="give it a name and a value")
        elif variable.name not in bound:
            yield entry.at(variable.span, name=variable.name)


def _branches(
    disjunction: Disjunction, bound: set[str], elsewhere: set[str]
) -> Iterator[Diagnostic]:
    """A variable used outside must be bound by every branch, or by something outside."""
    per_branch = [bound_variables(branch) for branch in disjunction.branches]
    partly = uneven(per_branch)
    for name in sorted((partly & elsewhere) - bound):
        yield catalogue.BRANCH_UNBOUND.at(disjunction.span, name=name)


def _partly_bound(body: tuple[Literal, ...]) -> set[str]:
    return {
        name
        for literal in body
        if isinstance(literal, Disjunction)
        for branch in literal.branches
        for name in bound_variables(branch)
    }


def _first_of_each(occurrences: Iterable[Variable]) -> list[Variable]:
    first: dict[str, Variable] = {}
    for variable in occurrences:
        first.setdefault(variable.name, variable)
    return list(first.values())
