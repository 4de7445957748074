"""Aggregates under update propagation: only the groups that a change touches are looked at again.

    payroll(D, sum(S)) :- works_in(E, D), salary(E, S).
    →  payroll__touched(D) :- works_in__plus(E, D), salary__new(E, S).      one for every literal
       payroll__touched(D) :- works_in__minus(E, D), salary(E, S).         and either direction
       payroll__now(D, sum(S)) :- payroll__touched(D), works_in__new(E, D), salary__new(E, S).
       payroll__plus(D, T) :- payroll__now(D, T), not payroll(D, T).
       payroll__minus(D, T) :- payroll__touched(D), payroll(D, T), not payroll__now(D, T).

Before: an aggregate rule in desugared form, alone for its head. After: the exact change of its
head. Correct because a group without an inserted or deleted binding has the rows it had, and of a
touched group the old rows are compared with the new ones. Every strategy uses these rules; they
differ only in how they provide the old and new states.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.language.ast import Aggregate, Atom, Negation, Rule, Term, Variable
from deltalog.language.walk import fresh_names, rule_names, variable_names
from deltalog.rewrites import names
from deltalog.rewrites.states import Rename, changing_literals, in_state, transition_literals
from deltalog.source import Origin


def aggregate_changes(rule: Rule, old: Rename, new: Rename) -> Iterator[Rule]:
    """The change of an aggregate view; `old` and `new` name the two states of its body."""
    origin = Origin.made_by("aggregate_changes", rule.origin)
    predicate = rule.head.predicate
    group = _group_variables(rule)
    touched = Atom(names.touched_name(predicate), group)
    for position, _, _ in changing_literals(rule):
        rest = [x for i, x in enumerate(rule.body) if i != position]
        for truth, state in ((True, new), (False, old)):
            delta = transition_literals(rule, position, truth, state)
            body = (*delta, *(in_state(literal, state) for literal in rest))
            yield Rule(touched, body, origin, leads=True)
    now = Atom(names.current_name(predicate), rule.head.arguments)
    new_body = tuple(in_state(literal, new) for literal in rule.body)
    yield Rule(now, (touched, *new_body), origin, leads=True)
    row = _head_row(rule)
    held = Atom(old(predicate), row)
    holds = Atom(names.current_name(predicate), row)
    yield Rule(Atom(names.plus_name(predicate), row), (holds, Negation(held)), origin, leads=True)
    touched_row = Atom(names.touched_name(predicate), group)
    yield Rule(
        Atom(names.minus_name(predicate), row),
        (touched_row, held, Negation(holds)),
        origin,
        leads=True,
    )


def _group_variables(rule: Rule) -> tuple[Variable, ...]:
    terms = (term for term in rule.head.arguments if not isinstance(term, Aggregate))
    return tuple(Variable(name) for name in variable_names(*terms))


def _head_row(rule: Rule) -> tuple[Term, ...]:
    """A row of the head: its group, and a fresh variable for every total."""
    fresh = (Variable(name) for name in fresh_names(set(rule_names(rule)), "T"))
    return tuple(
        next(fresh) if isinstance(term, Aggregate) else term for term in rule.head.arguments
    )
