"""Transition rules: the new state of every predicate, from the old base facts and their changes.

    path(X, Y) :- edge(X, Z), path(Z, Y).
    →  path__new(X, Y) :- edge__new(X, Z), path__new(Z, Y).
       edge__new(X, Y) :- edge(X, Y), not edge__minus(X, Y).
       edge__new(X, Y) :- edge__plus(X, Y).

Before: a stratified program and the net change of its base relations in `__plus` and `__minus`.
After: `__new` predicates that hold exactly what holds once the change is applied. Correct because
the indirect rules are a copy of the program and the direct ones say what the new base facts are
(Behrend & Manthey 2004, Def. 6 and Prop. 1). They are *naive*: every new fact goes back to the base
changes, never to derived ones, which is what keeps the augmented program stratified.

For relations that are stored the direct rules are not run: they are read as an overlay
(`plan/nodes.py`), so that no state is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltalog.language.ast import Atom, Negation, Rule
from deltalog.rewrites import names
from deltalog.rewrites.states import rule_in_state
from deltalog.source import Origin


def transition_rules(rules: Iterable[Rule], base: Mapping[str, int]) -> tuple[Rule, ...]:
    """Def. 6; `base` gives the arity of each extensional predicate."""
    direct = [rule for name, arity in base.items() for rule in direct_transition(name, arity)]
    indirect = [rule_in_state(rule, names.new_name, "transition_rules") for rule in rules]
    return (*indirect, *direct)


def direct_transition(predicate: str, arity: int) -> tuple[Rule, Rule]:
    """The new state of a predicate from its old state and its complete change."""
    variables = names.row_variables(arity)
    head = Atom(names.new_name(predicate), variables)
    origin = Origin.made_by("transition_rules")
    return (
        Rule(
            head,
            (Atom(predicate, variables), Negation(Atom(names.minus_name(predicate), variables))),
            origin,
        ),
        Rule(head, (Atom(names.plus_name(predicate), variables),), origin),
    )
