"""Which variables have a value, and in what order literals can be evaluated.

A positive atom binds its variables; `X = e` binds X once every variable in e is bound; everything
else only tests. A disjunction binds what every branch binds. `evaluation_order` is the sideways
information passing strategy used for plans and for Magic Sets alike: start from what is bound, do
every test as soon as it can be done, and go on with the atom that has most of its arguments bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from deltalog.language.ast import (
    Atom,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Term,
    Variable,
)
from deltalog.language.walk import names


def bound_variables(body: Iterable[Literal], given: Set[str] = frozenset()) -> set[str]:
    """Variables that have a value once the whole body has been evaluated."""
    body = tuple(body)
    bound = set(given)
    while True:
        more = set().union(*(binds(literal, bound) for literal in body)) - bound
        if not more:
            return bound
        bound |= more


def binds(literal: Literal, bound: Set[str]) -> set[str]:
    """Variables this literal gives a value to, when those in `bound` have one."""
    match literal:
        case Atom(arguments=arguments):
            return {term.name for term in arguments if isinstance(term, Variable)}
        case Comparison(operator="=", left=left, right=right):
            return _assigned(left, right, bound) | _assigned(right, left, bound)
        case Disjunction(branches=branches):
            sets = [bound_variables(branch, bound) for branch in branches]
            return sets[0].intersection(*sets)
        case _:
            return set()


def _assigned(target: Expression, value: Expression, bound: Set[str]) -> set[str]:
    if isinstance(target, Variable) and set(names(value)) <= bound:
        return {target.name}
    return set()


def uneven(sets: list[set[str]]) -> set[str]:
    """What is in some of the sets but not in all."""
    return sets[0].union(*sets) - sets[0].intersection(*sets)


def needs(literal: Literal) -> set[str]:
    """Variables that must be bound before the literal can be evaluated; `_` in `not` is not one."""
    match literal:
        case Atom(arguments=arguments):
            return {n for term in arguments if isinstance(term, Operation) for n in names(term)}
        case Negation(atom=atom):
            return {
                n
                for term in atom.arguments
                if not (isinstance(term, Variable) and term.is_wildcard)
                for n in names(term)
            }
        case Comparison():
            return set(names(literal))
        case Disjunction():
            return set()


def is_ready(literal: Literal, bound: Set[str]) -> bool:
    """Whether a literal that is not an atom can be evaluated now."""
    if isinstance(literal, Comparison):
        return needs(literal) <= bound | binds(literal, bound)
    return needs(literal) <= bound


def bound_arguments(arguments: Iterable[Term], bound: Set[str]) -> int:
    return sum(
        isinstance(term, Constant) or (isinstance(term, Variable) and term.name in bound)
        for term in arguments
    )


def evaluation_order(
    body: tuple[Literal, ...], bound: Set[str] = frozenset(), first: Atom | None = None
) -> tuple[Literal, ...]:
    """The body in the order to evaluate it, `first` (one of its atoms) at the front."""
    remaining = list(body)
    known = set(bound)
    ordered: list[Literal] = []

    def take(literal: Literal) -> None:
        position = next(i for i, other in enumerate(remaining) if other is literal)
        del remaining[position]
        ordered.append(literal)
        known.update(binds(literal, known))

    if first is not None:
        take(first)
    while remaining:
        ready = [x for x in remaining if not isinstance(x, Atom) and is_ready(x, known)]
        if ready:
            take(ready[0])
            continue
        atoms = [x for x in remaining if isinstance(x, Atom) and needs(x) <= known]
        if not atoms:  # an unsafe body; the safety check reports it
            ordered += remaining
            break
        take(max(atoms, key=lambda atom: _preference(atom, known)))
    return tuple(ordered)


def _preference(atom: Atom, known: Set[str]) -> tuple[bool, int]:
    """A pure test first, then most bound arguments; ties as written."""
    bound = bound_arguments(atom.arguments, known)
    return (bound == len(atom.arguments), bound)
