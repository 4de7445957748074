"""Propagation rules: the exact change of every view, one body literal at a time.

    path(X, Y) :- edge(X, Z), path(Z, Y).
    →  path__plus(X, Y) :- edge__plus(X, Z), path__new(Z, Y), not path(X, Y).
       path__plus(X, Y) :- path__plus(Z, Y), edge__new(X, Z), not path(X, Y).
       path__minus(X, Y) :- edge__minus(X, Z), path(Z, Y), not path__new(X, Y).
       path__minus(X, Y) :- path__minus(Z, Y), edge(X, Z), not path__new(X, Y).

Before: stratified rules in desugared form. After: `__plus` and `__minus` of every head, given those
of the base relations and both states of everything (Behrend & Manthey 2004, Def. 7 and Prop. 2).
The last literal is the *effectiveness test*: the fact must not hold in the other state by another
derivation. It is left out where no second derivation can exist: the predicate has one rule (no
union) whose head has every body variable (no projection). Then the changed literal is part of the
only derivation there is.

Without `is_strict` it is left out everywhere. Then the heads are *potential* changes: insertions
that hold in the new state and deletions that held in the old one, among them all exact ones. For a
rule without the test derives what it derives with it, and more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltalog.analysis.binding import evaluation_order
from deltalog.language.ast import Atom, Literal, Negation, Rule, Variable
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.rewrites.aggregate_changes import aggregate_changes
from deltalog.rewrites.states import (
    Rename,
    changing_literals,
    in_state,
    transition_literals,
    unchanged_name,
)
from deltalog.source import Origin


def propagation_rules(rules: Iterable[Rule], is_strict: bool = True) -> tuple[Rule, ...]:
    """Def. 7 for every rule, aggregates included; potential changes unless it `is_strict`."""
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    return tuple(
        made
        for head_rules in by_head.values()
        for rule in head_rules
        for made in _propagate_rule(rule, len(head_rules) == 1, is_strict)
    )


def _propagate_rule(rule: Rule, is_alone: bool, is_strict: bool) -> Iterator[Rule]:
    if rule.is_aggregate:
        yield from aggregate_changes(rule, unchanged_name, names.new_name)
        return
    needs_test = is_strict and not (is_alone and is_injective(rule))
    for position, _, _ in changing_literals(rule):
        yield _propagation_rule(rule, position, True, names.new_name, unchanged_name, needs_test)
        yield _propagation_rule(rule, position, False, unchanged_name, names.new_name, needs_test)


def _propagation_rule(
    rule: Rule, position: int, truth: bool, here: Rename, there: Rename, needs_test: bool
) -> Rule:
    """One propagation rule: the derivability test in state `here`, effective against `there`."""
    delta = transition_literals(rule, position, truth, here)
    rest = (in_state(x, here) for i, x in enumerate(rule.body) if i != position)
    change = names.plus_name if truth else names.minus_name
    body: tuple[Literal, ...] = (*delta, *rest)
    assert isinstance(body[0], Atom)
    ordered = evaluation_order(body, frozenset(), body[0])
    if needs_test:
        ordered = (*ordered, Negation(Atom(there(rule.head.predicate), rule.head.arguments)))
    head = Atom(change(rule.head.predicate), rule.head.arguments, rule.head.span)
    return Rule(head, ordered, Origin.made_by("propagation_rules", rule.origin), leads=True)


def is_injective(rule: Rule) -> bool:
    """Whether a head fact tells the whole body binding, so that it has one derivation at most."""
    bound = (x for x in rule.body if not isinstance(x, Negation))
    head = {term.name for term in rule.head.arguments if isinstance(term, Variable)}
    return set(variable_names(*bound)) <= head
