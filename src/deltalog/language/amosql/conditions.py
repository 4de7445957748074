"""Conditions taken apart, and literals looked at, before and after their translation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltalog.language.amosql.tree import Arithmetic, Call, Compared, Connected, Expression, Select
from deltalog.language.ast import (
    AGGREGATES,
    Atom,
    Comparison,
    Constant,
    Disjunction,
    Literal,
    Variable,
)
from deltalog.language.walk import variable_names
from deltalog.source import Span

OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def conjuncts_of(condition: Expression | None) -> list[Expression]:
    """The parts of a condition that must all hold; those that read other literals last."""
    if condition is None:
        return []
    return sorted(operands_of("and", (condition,)), key=needs_others)


def operands_of(connective: str, operands: Iterable[Expression]) -> Iterable[Expression]:
    """The operands of one connective, however they are nested."""
    for operand in operands:
        match operand:
            case Connected(connective=found, operands=inner) if found == connective:
                yield from operands_of(connective, inner)
            case _:
                yield operand


def called_names(expression: Expression) -> Iterator[str]:
    """The functions that an expression calls, in it and in what it aggregates."""
    match expression:
        case Call(function=function, arguments=arguments):
            yield function
            for argument in arguments:
                yield from called_names(argument)
        case Connected(operands=operands) | Arithmetic(operands=operands):
            for operand in operands:
                yield from called_names(operand)
        case Compared(left=left, right=right):
            yield from called_names(left)
            yield from called_names(right)
        case Select(values=values, condition=condition):
            for value in (*values, *([] if condition is None else [condition])):
                yield from called_names(value)
        case _:
            return


def needs_others(condition: Expression) -> bool:
    """Whether other literals should be there first: a view beside the rule may read them."""
    match condition:
        case Connected(connective="not"):
            return True
        case Connected(operands=operands) | Arithmetic(operands=operands):
            return any(map(needs_others, operands))
        case Compared(left=left, right=right):
            return needs_others(left) or needs_others(right)
        case Call(function=function, arguments=arguments):
            return function in AGGREGATES or any(map(needs_others, arguments))
        case _:
            return False


def true_comparison(span: Span) -> Comparison:
    return Comparison("=", Constant(1, "int"), Constant(1, "int"), None, span)


def false_comparison(span: Span) -> Comparison:
    return Comparison("=", Constant(1, "int"), Constant(2, "int"), None, span)


def bound_names(literals: Iterable[Literal]) -> set[str]:
    """Variables to which a body gives values."""
    found: set[str] = set()
    waiting = list(literals)
    grows = True
    while grows:
        before = len(found)
        for literal in waiting:
            found |= _bound_by(literal, found)
        grows = len(found) > before
    return found


def _bound_by(literal: Literal, bound: set[str]) -> set[str]:
    match literal:
        case Atom(arguments=arguments):
            return {term.name for term in arguments if isinstance(term, Variable)}
        case Comparison(operator="=", left=left, right=right):
            return {
                one.name
                for one, other in ((left, right), (right, left))
                if isinstance(one, Variable) and set(variable_names(other)) <= bound
            }
        case Disjunction(branches=branches):
            return set.intersection(*(bound_names(branch) | bound for branch in branches))
    return set()
