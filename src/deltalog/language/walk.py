"""Walking and changing rule trees."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Query,
    Rule,
    Term,
    Variable,
)


def variables_of(node: Term | Literal) -> Iterator[Variable]:
    """Every occurrence of a variable, in the order written."""
    match node:
        case Variable():
            yield node
        case Constant():
            pass
        case Operation(arguments=arguments) | Atom(arguments=arguments):
            for argument in arguments:
                if isinstance(argument, Variable):
                    yield argument
                else:
                    yield from variables_of(argument)
        case Aggregate(argument=argument):
            if argument is not None:
                yield from variables_of(argument)
        case Negation(atom=atom):
            yield from variables_of(atom)
        case Comparison(left=left, right=right):
            yield from variables_of(left)
            yield from variables_of(right)
        case Disjunction(branches=branches):
            for branch in branches:
                for literal in branch:
                    yield from variables_of(literal)


def variable_names(*nodes: Term | Literal) -> tuple[str, ...]:
    """The distinct variable names in `nodes`, in order of first occurrence."""
    return tuple(dict.fromkeys([v.name for node in nodes for v in variables_of(node)]))


def answer_names(query: Query) -> tuple[str, ...]:
    """The variables whose bindings answer a query, in their order."""
    if query.outputs is not None:
        return query.outputs
    return tuple(name for name in variable_names(*query.body) if not Variable(name).is_wildcard)


def rule_names(rule: Rule) -> tuple[str, ...]:
    return variable_names(rule.head, *rule.body)


def literals_of(body: tuple[Literal, ...]) -> Iterator[Literal]:
    """Every literal, also those inside disjunctions."""
    for literal in body:
        if isinstance(literal, Disjunction):
            for branch in literal.branches:
                yield from literals_of(branch)
        else:
            yield literal


def atoms_of(body: tuple[Literal, ...]) -> Iterator[tuple[Atom, bool]]:
    """Every atom with whether it is positive."""
    for literal in body:
        if isinstance(literal, Atom):
            yield literal, True
        elif isinstance(literal, Negation):
            yield literal.atom, False
        elif isinstance(literal, Disjunction):
            for branch in literal.branches:
                yield from atoms_of(branch)


def operations_of(node: Term | Literal) -> Iterator[Operation]:
    """Every operation, outermost first."""
    match node:
        case Operation(arguments=arguments):
            yield node
            for argument in arguments:
                yield from operations_of(argument)
        case Atom(arguments=arguments):
            for term in arguments:
                if not isinstance(term, Variable):
                    yield from operations_of(term)
        case Aggregate(argument=argument):
            if argument is not None:
                yield from operations_of(argument)
        case Negation(atom=atom):
            yield from operations_of(atom)
        case Comparison(left=left, right=right):
            yield from operations_of(left)
            yield from operations_of(right)
        case Disjunction(branches=branches):
            for branch in branches:
                for literal in branch:
                    yield from operations_of(literal)
        case _:
            pass


Change = Callable[[Variable], Expression]


def substitute_expression(node: Expression, change: Change) -> Expression:
    match node:
        case Variable():
            return change(node)
        case Operation():
            return replace(
                node, arguments=tuple(substitute_expression(a, change) for a in node.arguments)
            )
        case _:
            return node


def substitute_term(node: Term, change: Change) -> Term:
    if isinstance(node, Aggregate):
        argument = node.argument
        return replace(
            node, argument=None if argument is None else substitute_expression(argument, change)
        )
    return substitute_expression(node, change)


def substitute_atom(atom: Atom, change: Change) -> Atom:
    return replace(atom, arguments=tuple(substitute_term(a, change) for a in atom.arguments))


def substitute_literal(literal: Literal, change: Change) -> Literal:
    """The literal with every variable replaced by what `change` says."""
    match literal:
        case Atom():
            return substitute_atom(literal, change)
        case Negation():
            return replace(literal, atom=substitute_atom(literal.atom, change))
        case Comparison():
            return replace(
                literal,
                left=substitute_expression(literal.left, change),
                right=substitute_expression(literal.right, change),
            )
        case Disjunction():
            return replace(
                literal,
                branches=tuple(
                    tuple(substitute_literal(inner, change) for inner in branch)
                    for branch in literal.branches
                ),
            )


def distribute_disjunctions(body: tuple[Literal, ...]) -> Iterator[tuple[Literal, ...]]:
    """Every choice of one branch from each disjunction."""
    choices = [
        [inner for branch in literal.branches for inner in distribute_disjunctions(branch)]
        if isinstance(literal, Disjunction)
        else [(literal,)]
        for literal in body
    ]
    for choice in itertools.product(*choices):
        yield tuple(itertools.chain.from_iterable(choice))


def fresh_names(taken: set[str], stem: str) -> Iterator[str]:
    """`V1`, `V2`, … without those already taken."""
    number = 0
    while True:
        number += 1
        name = f"{stem}{number}"
        if name not in taken:
            yield name
