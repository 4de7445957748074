"""View-update rules: requests for a view become requests for what its rules read.

    p(X) :- q1(X).   p(X) :- q2(X).   q1(X) :- r(X), s(X).
    →  q1__request_plus(X) ; q2__request_plus(X) :- p__request_plus(X).       union
       q1__request_minus(X) :- p__request_minus(X), q1(X).
       r__request_plus(X) :- q1__request_plus(X), not r(X).                   join
       r__request_minus(X) ; s__request_minus(X) :- q1__request_minus(X).

Before: rules in algebra format (`normalize`), without aggregates. After: two sets of disjunctive
rules. The first is R∇ (Behrend & Manthey 2007, Def. 9): what a request asks for, operator by
operator, in the current state. A variable that a projection has dropped occurs only in the head of
the rule for insertions: it stands for some value of its column, or for a new one. The second is
Rτ∇ (Def. 10): contradicting requests are false, requests for base facts become changes, a change
that breaks what a request relied on becomes a request itself, and so does a violated constraint.
A denial is requested not to hold, which is the paper's constraint `ic :- not denial`.

Every minimal realization contains a base change that is requested here (Theorem 1), and what it
lacks is requested by the second set (Theorem 2). A selection is part of the operator that it stands
with: where it fails, nothing is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from deltalog.language.ast import (
    Atom,
    Comparison,
    Constant,
    DisjunctiveRule,
    Literal,
    Negation,
    Row,
    Rule,
)
from deltalog.language.values import type_of
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.source import Origin

Requests = tuple[DisjunctiveRule, ...]


def view_update_rules(
    rules: Iterable[Rule],
    base: Mapping[str, int],
    denied: Mapping[str, int],
    required: Iterable[tuple[str, Row]],
) -> tuple[Requests, Requests]:
    """R∇ and Rτ∇; `base` and `denied` have arities, `required` are facts that must hold."""
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    requests = tuple(
        made
        for own in by_head.values()
        for made in (_requests_of_union(own) if len(own) > 1 else _requests_of_operator(own[0]))
    )
    arities = {**{name: len(own[0].head.arguments) for name, own in by_head.items()}, **base}
    return requests, tuple(_transition_rules(requests, arities, base, denied, required))


# --- R∇, Def. 9


def _requests_of_union(own: list[Rule]) -> Iterator[DisjunctiveRule]:
    """Point 3: one side suffices to insert, both must go to delete."""
    origins = [rule.origin for rule in own]
    head, sides = own[0].head, [rule.body[0] for rule in own]
    yield _make_rule(
        (_request_for_literal(side, True) for side in sides), (_request_atom(head, True),), *origins
    )
    for rule, side in zip(own, sides, strict=True):
        body = (_request_atom(head, False), side)
        yield _make_rule([_request_for_literal(side, False)], body, rule.origin)


def _requests_of_operator(rule: Rule) -> Iterator[DisjunctiveRule]:
    tests = tuple(each for each in rule.body if isinstance(each, Comparison))
    operands = [each for each in rule.body if not isinstance(each, Comparison)]
    plus, minus = _request_atom(rule.head, True), _request_atom(rule.head, False)
    if len(operands) == 1:
        (only,) = operands
        yield _make_rule([_request_for_literal(only, True)], (plus, *tests), rule.origin)
        is_projection = not set(variable_names(only)) <= set(variable_names(rule.head))
        state = (only,) if is_projection else ()
        yield _make_rule([_request_for_literal(only, False)], (minus, *state, *tests), rule.origin)
    elif operands:
        for each in operands:
            body = (plus, *tests, _opposite_literal(each))
            yield _make_rule([_request_for_literal(each, True)], body, rule.origin)
        yield _make_rule(
            (_request_for_literal(each, False) for each in operands), (minus, *tests), rule.origin
        )


def _request_atom(atom: Atom, shall_hold: bool) -> Atom:
    name = names.request_plus_name if shall_hold else names.request_minus_name
    return Atom(name(atom.predicate), atom.arguments)


def _request_for_literal(literal: Literal, shall_hold: bool) -> Atom:
    """The request by which a literal becomes true, or false."""
    if isinstance(literal, Negation):
        return _request_atom(literal.atom, not shall_hold)
    assert isinstance(literal, Atom)
    return _request_atom(literal, shall_hold)


def _opposite_literal(literal: Literal) -> Literal:
    if isinstance(literal, Negation):
        return literal.atom
    assert isinstance(literal, Atom)
    return Negation(literal)


def _make_rule(
    heads: Iterable[Atom], body: tuple[Literal, ...], *origins: Origin
) -> DisjunctiveRule:
    return DisjunctiveRule(tuple(heads), body, Origin.made_by("view_update_rules", *origins))


# --- Rτ∇, Def. 10


def _transition_rules(
    requests: Requests,
    arities: Mapping[str, int],
    base: Mapping[str, int],
    denied: Mapping[str, int],
    required: Iterable[tuple[str, Row]],
) -> Iterator[DisjunctiveRule]:
    for name, arity in arities.items():
        atom = Atom(name, names.row_variables(arity))
        yield _make_rule((), (_request_atom(atom, True), _request_atom(atom, False)))
    for name, row in required:
        atom = Atom(name, tuple(Constant(value, type_of(value) or "null") for value in row))
        yield _make_rule([_request_atom(atom, True)], (_change_atom(atom, False),))
    for name, arity in denied.items():
        atom = Atom(name, names.row_variables(arity))
        yield _make_rule([_request_atom(atom, False)], (_change_atom(atom, True),))
    for rule in requests:
        yield from _compensating_rules(rule)
    for name, arity in base.items():
        atom = Atom(name, names.row_variables(arity))
        for is_inserted in (True, False):
            state = Negation(atom) if is_inserted else atom
            yield _make_rule(
                [_change_atom(atom, is_inserted)], (_request_atom(atom, is_inserted), state)
            )


def _compensating_rules(rule: DisjunctiveRule) -> Iterator[DisjunctiveRule]:
    """Point 3: a state literal of a request rule that a change turns is requested as well."""
    for literal in rule.body:
        if len(rule.heads) == 1 and _is_state(literal):
            atom = literal.atom if isinstance(literal, Negation) else literal
            assert isinstance(atom, Atom)
            change = _change_atom(atom, isinstance(literal, Atom))
            tests = (each for each in rule.body if isinstance(each, Comparison))
            body = (rule.body[0], change, *tests, _opposite_literal(literal))
            yield _make_rule(rule.heads, body, rule.origin)


def _is_state(literal: Literal) -> bool:
    match literal:
        case Negation():
            return True
        case Atom(predicate=predicate):
            return names.as_request(predicate) is None
        case _:
            return False


def _change_atom(atom: Atom, is_inserted: bool) -> Atom:
    name: Callable[[str], str] = names.plus_name if is_inserted else names.minus_name
    return Atom(name(atom.predicate), atom.arguments)
