"""Safety: every variable that is used has a value, so that every answer is finite.

p(X, Y) :- q(X).              Y in the head is bound by nothing
p(X) :- q(X), not r(X, Y).    Y in `not` is bound by nothing: write `_`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltalog.analysis.binding import bound_variables, elements_not_in_all
from deltalog.analysis.rule_types import BRANCHES_MAX
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
    Query,
    Rule,
    Variable,
)
from deltalog.language.walk import answer_names, literals_of, variable_names, variables_of
from deltalog.source import Span

LITERALS_MAX = 250


def check_query_safety(query: Query) -> Iterator[Diagnostic]:
    """A query answers its named variables, so they need a value in every branch."""
    yield from check_body(query.body, {*answer_names(query)})
    yield from _check_size(query.body, query.span)


def _check_size(body: tuple[Literal, ...], span: Span | None) -> Iterator[Diagnostic]:
    if _count_combinations(body) > BRANCHES_MAX:
        hint = "move some of them to separate views"
        yield catalogue.TOO_MANY_BRANCHES.at(span, branches_max=BRANCHES_MAX, hint=hint)
    if sum(1 for _ in literals_of(body)) > LITERALS_MAX:
        yield catalogue.TOO_MANY_LITERALS.at(span, literals_max=LITERALS_MAX)


def check_safety(program: Program) -> Iterator[Diagnostic]:
    for rule in program.rules:
        yield from _check_rule(rule)
    for query in program.queries:
        yield from check_query_safety(query)


def _count_combinations(body: tuple[Literal, ...]) -> int:
    """How many bodies remain once every disjunction is replaced by one of its branches."""
    product = 1
    for literal in body:
        if isinstance(literal, Disjunction):
            product *= sum(_count_combinations(branch) for branch in literal.branches)
    return product


def _check_rule(rule: Rule) -> Iterator[Diagnostic]:
    yield from _check_size(rule.body, rule.head.span)
    bound = bound_variables(rule.body)
    partly = _partly_bound(rule.body)
    for variable in _first_of_each(variables_of(rule.head)):
        if variable.is_wildcard:
            yield catalogue.WILDCARD_VALUE.at(variable.span, hint="give it a name and a value")
        elif variable.name in bound:
            continue
        elif not rule.body:
            yield catalogue.FACT_WITH_VARIABLE.at(
                variable.span, name=variable.name, hint=_hint_to_quote(variable.name)
            )
        elif variable.name not in partly:
            yield catalogue.UNBOUND_HEAD.at(variable.span, name=variable.name)
    yield from check_body(rule.body, set(variable_names(rule.head)))


def _hint_to_quote(name: str) -> str:
    return f'names that begin with a capital are variables; text is quoted: "{name}"'


def check_body(body: tuple[Literal, ...], used_outside: Iterable[str] = ()) -> Iterator[Diagnostic]:
    """Everything a body tests has a value."""
    yield from _check_level(body, set(), set(used_outside))


def _check_level(
    body: tuple[Literal, ...], given: set[str], outside: set[str]
) -> Iterator[Diagnostic]:
    bound = bound_variables(body, given)
    for literal in body:
        match literal:
            case Atom(arguments=arguments):
                for term in arguments:
                    if isinstance(term, Operation):
                        yield from _check_bound(term, bound, catalogue.UNBOUND_EXPRESSION)
            case Negation(atom=atom):
                yield from _check_negated_atom(atom, bound)
            case Comparison():
                yield from _check_bound(literal, bound, catalogue.UNBOUND_EXPRESSION)
            case Disjunction(branches=branches):
                others = (other for other in body if other is not literal)
                elsewhere = outside | set(variable_names(*others))
                yield from _check_branches(literal, bound, elsewhere)
                for branch in branches:
                    yield from _check_level(branch, bound, elsewhere)


def _check_negated_atom(atom: Atom, bound: set[str]) -> Iterator[Diagnostic]:
    for term in atom.arguments:
        if isinstance(term, Variable):
            if not term.is_wildcard and term.name not in bound:
                yield catalogue.UNBOUND_NEGATION.at(
                    term.span, name=term.name, hint="write `_` for any value"
                )
        else:
            yield from _check_bound(term, bound, catalogue.UNBOUND_NEGATION)


def _check_bound(node: object, bound: set[str], entry: catalogue.Entry) -> Iterator[Diagnostic]:
    for variable in _first_of_each(variables_of(node)):  # type: ignore[arg-type]
        if variable.is_wildcard:
            yield catalogue.WILDCARD_VALUE.at(variable.span, hint="give it a name and a value")
        elif variable.name not in bound:
            yield entry.at(variable.span, name=variable.name)


def _check_branches(
    disjunction: Disjunction, bound: set[str], elsewhere: set[str]
) -> Iterator[Diagnostic]:
    """A variable used outside must be bound by every branch, or by something outside."""
    per_branch = [bound_variables(branch) for branch in disjunction.branches]
    partly = elements_not_in_all(per_branch)
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
