"""Both states of views that are not stored, as rules that are run for what somebody asks.

    path(X, Y) :- edge(X, Z), path(Z, Y).
    →  path(X, Y) :- edge(X, Z), path(Z, Y).                        asked for the old state
       path__new(X, Y) :- edge__new(X, Z), path__new(Z, Y).         asked for the new state

The new state of a view that is rederived on demand is made of answers about its old state instead
(`rederive_on_demand.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from deltalog.language.ast import Rule
from deltalog.rewrites import names
from deltalog.rewrites.forms import OnDemand, VirtualStates
from deltalog.rewrites.rederive_on_demand import new_state_on_demand
from deltalog.rewrites.strategies import Choice
from deltalog.rewrites.transition_rules import transition_rules


def virtual_states(choices: Iterable[Choice], stored: Set[str]) -> VirtualStates:
    """How the states of the components that are not stored as a whole are computed."""
    rules: dict[str, list[Rule]] = {}
    on_demand: dict[str, OnDemand] = {}
    for choice in choices:
        if choice.members <= stored:
            continue
        askable = [rule for rule in choice.rules if rule.head.predicate not in stored]
        if choice.strategy == "demand" and not choice.is_aggregate:
            for rule in choice.rules:
                name, arity = rule.head.predicate, len(rule.head.arguments)
                on_demand[names.new_name(name)] = new_state_on_demand(name, arity)
        else:
            askable += transition_rules(choice.rules, {})
        for rule in askable:
            rules.setdefault(rule.head.predicate, []).append(rule)
    return VirtualStates({name: tuple(own) for name, own in rules.items()}, on_demand)
