"""Literals in another state: the smallest tools of update propagation.

    not path(X, _)   →   not path__new(X, _)         the same question after the transaction
    edge(X, Y)       →   edge__plus(X, Y)            it became true
    not edge(X, Y)   →   edge__minus(X, Y)           it became true
    not edge(X, _)   →   edge__minus(X, V1), not edge__new(X, _)

A negated atom with wildcards becomes true when its last match goes: a deleted match alone does not
show that, so the literal itself is asked again in the state it must hold in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from deltalog.language.ast import Atom, Literal, Negation, Rule, Variable
from deltalog.language.walk import fresh_names, rule_names
from deltalog.rewrites import names
from deltalog.source import Origin

Rename = Callable[[str], str]


def in_state(literal: Literal, rename: Rename) -> Literal:
    """The literal with its predicate renamed; comparisons have no state."""
    match literal:
        case Atom():
            return atom_in_state(literal, rename)
        case Negation():
            return Negation(atom_in_state(literal.atom, rename), literal.span)
        case _:
            return literal


def atom_in_state(atom: Atom, rename: Rename) -> Atom:
    return Atom(rename(atom.predicate), atom.arguments, atom.span)


def rule_in_state(rule: Rule, rename: Rename, rewrite: str) -> Rule:
    """The rule with every predicate renamed: it defines the other state of its head."""
    head = atom_in_state(rule.head, rename)
    body = tuple(in_state(literal, rename) for literal in rule.body)
    return Rule(head, body, Origin.made_by(rewrite, rule.origin), rule.leads)


def rename_predicates(rule: Rule, new_names: Mapping[str, str]) -> Rule:
    """The rule with some of its predicates renamed."""

    def rename(name: str) -> str:
        return new_names.get(name, name)

    body = tuple(in_state(literal, rename) for literal in rule.body)
    return Rule(atom_in_state(rule.head, rename), body, rule.origin, rule.leads)


def unchanged_name(predicate: str) -> str:
    """The name of the stored state."""
    return predicate


def changing_literals(rule: Rule) -> Iterator[tuple[int, Atom, bool]]:
    """Every body literal that can change: its position, its atom, and whether it is positive."""
    for position, literal in enumerate(rule.body):
        if isinstance(literal, Atom):
            yield position, literal, True
        elif isinstance(literal, Negation):
            yield position, literal.atom, False


def transition_literals(
    rule: Rule, position: int, truth: bool, after: Rename, plus: Rename = names.plus_name,
    minus: Rename = names.minus_name,
) -> tuple[Literal, ...]:  # fmt: skip
    """Literals that hold where the body literal becomes true (or false).

    `after` names the state in which the literal has that value: the new one when it becomes true,
    the old one when it becomes false (it held before).
    """
    literal = rule.body[position]
    atom = literal.atom if isinstance(literal, Negation) else literal
    assert isinstance(atom, Atom)
    change = plus if truth == isinstance(literal, Atom) else minus
    has_wildcard = isinstance(literal, Negation) and any(
        isinstance(term, Variable) and term.is_wildcard for term in atom.arguments
    )
    if not has_wildcard:
        return (atom_in_state(atom, change),)
    fresh = (Variable(name) for name in fresh_names(set(rule_names(rule)), "V"))
    named = tuple(
        next(fresh) if isinstance(term, Variable) and term.is_wildcard else term
        for term in atom.arguments
    )
    delta = Atom(change(atom.predicate), named, atom.span)
    return (delta, in_state(literal, after))
