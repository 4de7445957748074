"""Which variables have a value, and in what order literals can be evaluated.

A positive atom binds its variables; `X = e` binds X once every variable in e is bound; everything
else only tests. A disjunction binds what every branch binds. `evaluation_order` is the sideways
information passing strategy used for plans and for Magic Sets alike: start from what is bound, do
every test as soon as it can be done, and go on with the atom that has most of its arguments bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TypeAlias

from deltalog.language.ast import (
    Atom,
    Comparison,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Term,
    Variable,
)
from deltalog.language.walk import variable_names

Fanout: TypeAlias = Callable[[str, tuple[int, ...]], float]
"""About how many rows of a predicate have the same values in some columns."""


def bound_variables(body: Iterable[Literal], given: Set[str] = frozenset()) -> set[str]:
    """Variables that have a value once the whole body has been evaluated."""
    bound = set(given)
    others: list[Literal] = []  # what they bind depends on what is bound
    for literal in body:
        if isinstance(literal, Atom):
            bound |= variables_bound_by(literal, bound)
        elif not isinstance(literal, Negation):
            others.append(literal)
    while True:
        more = set().union(*(variables_bound_by(literal, bound) for literal in others)) - bound
        if not more:
            return bound
        bound |= more


def variables_bound_by(literal: Literal, bound: Set[str]) -> set[str]:
    """Variables this literal gives a value to, when those in `bound` have one."""
    match literal:
        case Atom(arguments=arguments):
            return {term.name for term in arguments if isinstance(term, Variable)}
        case Comparison(operator="=", left=left, right=right):
            return _assigned_names(left, right, bound) | _assigned_names(right, left, bound)
        case Disjunction(branches=branches):
            sets = [bound_variables(branch, bound) for branch in branches]
            return sets[0].intersection(*sets)
        case _:
            return set()


def _assigned_names(target: Expression, value: Expression, bound: Set[str]) -> set[str]:
    if isinstance(target, Variable) and set(variable_names(value)) <= bound:
        return {target.name}
    return set()


def elements_not_in_all(sets: list[set[str]]) -> set[str]:
    """Elements of some of the sets but not of all."""
    return sets[0].union(*sets) - sets[0].intersection(*sets)


def variables_needed_by(literal: Literal) -> set[str]:
    """Variables that must be bound before the literal can be evaluated; `_` in `not` is not one."""
    match literal:
        case Atom(arguments=arguments):
            return {
                n for term in arguments if isinstance(term, Operation) for n in variable_names(term)
            }
        case Negation(atom=atom):
            return set(variable_names(*(term for term in atom.arguments if not _is_wildcard(term))))
        case Comparison():
            return set(variable_names(literal))
        case Disjunction():
            return set()


def _is_wildcard(term: Term) -> bool:
    return isinstance(term, Variable) and term.is_wildcard


def written_order(body: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """The body as it is written, but for tests, which wait until they can be done."""
    bound: set[str] = set()
    ordered: list[Literal] = []
    waiting = list(body)
    while waiting:
        ready = (
            each
            for each in waiting
            if variables_needed_by(each) - variables_bound_by(each, bound) <= bound
        )
        literal = next(ready, waiting[0])
        waiting.remove(literal)
        ordered.append(literal)
        bound |= variables_bound_by(literal, bound)
    return tuple(ordered)


def evaluation_order(
    body: tuple[Literal, ...],
    bound: Set[str] = frozenset(),
    first: Atom | None = None,
    large: Set[str] = frozenset(),
    fanout: Fanout | None = None,
) -> tuple[Literal, ...]:
    """The body in the order to evaluate it, `first` (one of its atoms) at the front.

    Every test as soon as it can be done; among atoms a pure test first, then the one with most
    bound arguments; of equals those of predicates that are not `large`, then the one with fewest
    rows for what is bound; ties as written.
    """
    known: set[str] = set()
    ordered: list[Literal] = []
    tests = [
        (literal, variables_needed_by(literal)) for literal in body if not isinstance(literal, Atom)
    ]
    atoms = [
        _Candidate(atom, atom.predicate in large)
        for atom in body
        if isinstance(atom, Atom) and atom is not first
    ]
    using: dict[str, list[_Candidate]] = {}
    for candidate in atoms:
        for name in candidate.names:
            using.setdefault(name, []).append(candidate)

    def learn(names: Iterable[str]) -> None:
        for name in names:
            if name not in known:
                known.add(name)
                for candidate in using.get(name, ()):
                    candidate.bound += 1

    learn(bound)
    if first is not None:
        ordered.append(first)
        learn(variables_bound_by(first, known))
    while tests or atoms:
        ready = next(
            (i for i, (x, needed) in enumerate(tests) if _is_ready(x, needed, known)), None
        )
        if ready is not None:
            literal, _ = tests.pop(ready)
            ordered.append(literal)
            learn(variables_bound_by(literal, known))
            continue
        usable = [candidate for candidate in atoms if candidate.needed <= known]
        if not usable:  # an unsafe body; the safety check reports it
            return (*ordered, *(x for x, _ in tests), *(c.atom for c in atoms))
        best = _choose_candidate(usable, known, fanout)
        atoms.remove(best)
        ordered.append(best.atom)
        learn(best.names)
    return tuple(ordered)


def _choose_candidate(
    usable: list[_Candidate], known: set[str], fanout: Fanout | None
) -> _Candidate:
    preferred = max(candidate.preference() for candidate in usable)
    equals = [candidate for candidate in usable if candidate.preference() == preferred]
    if fanout is None or len(equals) == 1:
        return equals[0]
    return min(equals, key=lambda c: fanout(c.atom.predicate, bound_columns(c.atom, known)))


def bound_columns(atom: Atom, known: Set[str]) -> tuple[int, ...]:
    """The columns of an atom that have a value when some variables have one."""
    return tuple(
        column
        for column, term in enumerate(atom.arguments)
        if not isinstance(term, Variable) or term.name in known
    )


class _Candidate:
    """An atom that waits for its turn, with the number of its arguments that are bound."""

    def __init__(self, atom: Atom, is_large: bool) -> None:
        self.atom = atom
        self.is_large = is_large
        self.needed = variables_needed_by(atom)
        self.names = [term.name for term in atom.arguments if isinstance(term, Variable)]
        self.bound = len(atom.arguments) - len(self.names)

    def preference(self) -> tuple[bool, int, bool]:
        return (self.bound == len(self.atom.arguments), self.bound, not self.is_large)


def _is_ready(literal: Literal, needed: set[str], known: set[str]) -> bool:
    """Whether a literal that is not an atom can be evaluated now; `=` may bind what it lacks."""
    lacking = needed - known
    if not lacking:
        return True
    is_equation = isinstance(literal, Comparison) and literal.operator == "="
    return is_equation and len(lacking) == 1 and lacking <= variables_bound_by(literal, known)
