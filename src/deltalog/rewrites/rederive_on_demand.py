"""Rederivation on demand (RoD): maintenance rules for a view that only its client has.

    path__overdeleted(X, Y) :- edge__minus(X, Z), path(Z, Y).
    →  path__bf__magic(Z) :- edge__minus(X, Z).                          asks for the old state
       path__overdeleted(X, Y) :- edge__minus(X, Z), path(Z, Y).
       path(X, Y) :- path__bf__magic(X), edge(X, Y).                     query rules
       path__kept(X, Y) :- path(X, Y), not path__overdeleted(X, Y).      (N1), on what was asked
       …

Before: the maintenance rules of one component, not stored; below it everything has its exact
change. After: the exact change of the component (Staudt & Jarke 1996, Algorithm 2). The changes
play the part of magic facts: they bind the other literals, and whatever of the old state these need
is rederived. A literal in the new state asks for the old one; (N1) turns the answers that stay into
the new state, (N2) and (N3) add what is rederived and what is inserted.

Evaluation (Algorithm 3) must not let a fact into the new state before it can have entered
`__overdeleted`. Under the soft consequence operator it cannot: `__overdeleted` and the query rules
that feed it belong to a lower stratum than every rule that reads `not path__overdeleted`, and
questions asked from above are answered below before anything above goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from deltalog.language.ast import Atom, Negation, Rule
from deltalog.rewrites import names
from deltalog.rewrites.forms import OnDemand
from deltalog.rewrites.maintenance_rules import uses_itself
from deltalog.rewrites.transition_rules import direct_transition
from deltalog.source import Origin


def rederive_on_demand(
    maintained: Iterable[Rule], rules: Iterable[Rule], component: Set[str]
) -> OnDemand:
    """Algorithm 2 for one component: its maintenance rules, and what these read of its states."""
    rules = tuple(rules)
    answered = tuple(_new_state_rules(rules)) if uses_itself(rules, component) else ()
    return OnDemand(
        (*maintained, *answered),
        frozenset(rule.head.predicate for rule in answered),
        {state(name): name for name in component for state in (names.new_name, names.kept_name)},
    )


def _new_state_rules(rules: Iterable[Rule]) -> Iterator[Rule]:
    """(N1) to (N3), and what is kept."""
    origin = Origin.made_by("rederive_on_demand")
    for predicate, arity in {r.head.predicate: len(r.head.arguments) for r in rules}.items():
        row = names.row_variables(arity)
        standing = (Atom(predicate, row), Negation(Atom(names.overdeleted_name(predicate), row)))
        yield Rule(Atom(names.kept_name(predicate), row), standing, origin)
        new = Atom(names.new_name(predicate), row)
        yield Rule(new, (Atom(names.kept_name(predicate), row),), origin)
        yield Rule(new, (Atom(names.returned_name(predicate), row),), origin)


def new_state_on_demand(predicate: str, arity: int) -> OnDemand:
    """The new state of such a view for what stands above it, once its change is complete."""
    rules = direct_transition(predicate, arity)
    return OnDemand(
        rules, frozenset({names.new_name(predicate)}), {names.new_name(predicate): predicate}
    )
