"""Rederivation on demand (RoD): maintenance rules for a view that only its client has.

    path__del(X, Y) :- edge__minus(X, Z), path(Z, Y).
    →  path__bf__magic(Z) :- edge__minus(X, Z).                          asks for the old state
       path__del(X, Y) :- edge__minus(X, Z), path(Z, Y).
       path(X, Y) :- path__bf__magic(X), edge(X, Y).                     query rules
       path__kept(X, Y) :- path(X, Y), not path__del(X, Y).              (N1), on what was asked
       …

Before: the rules of one component, not stored; below it everything has its exact change. After:
the exact change of the component (Staudt & Jarke 1996, Algorithm 2). The changes play the part of
magic facts: they bind the other literals, and whatever of the old state these need is rederived. A
literal in the new state asks for the old one; (N1) turns the answers that stay into the new state,
(N2) and (N3) add what comes back and what comes in.

Evaluation (Algorithm 3) must not let a fact into the new state before it can have entered `__del`.
Under the soft consequence operator it cannot: `__del` and the query rules that feed it belong to a
lower stratum than every rule that reads `not path__del`, and questions asked from above are
answered below before anything above goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from deltalog.language.ast import Rule
from deltalog.rewrites import names
from deltalog.rewrites.maintenance_rules import (
    maintenance_rules,
    new_state_rules,
    uses_itself,
)
from deltalog.rewrites.transition_rules import direct_transition


@dataclass(frozen=True)
class OnDemand:
    """Rules whose questions are still to be rewritten, and how (`magic_sets.asked_rules`)."""

    rules: tuple[Rule, ...]
    silent: frozenset[str]
    asked_instead: Mapping[str, str]


def rederive_on_demand(rules: Iterable[Rule], component: Set[str]) -> OnDemand:
    """Algorithm 2 for one component."""
    rules = tuple(rules)
    answered = tuple(new_state_rules(rules)) if uses_itself(rules, component) else ()
    return OnDemand(
        (*maintenance_rules(rules, component), *answered),
        frozenset(rule.head.predicate for rule in answered),
        {state(name): name for name in component for state in (names.new, names.kept)},
    )


def new_state_on_demand(predicate: str, arity: int) -> OnDemand:
    """The new state of such a view for what stands above it, once its change is complete."""
    rules = direct_transition(predicate, arity)
    return OnDemand(rules, frozenset({names.new(predicate)}), {names.new(predicate): predicate})
