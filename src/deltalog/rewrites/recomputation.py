"""Recomputation as rules: the new state from the new states below, and the difference to the old.

    path(X, Y) :- edge(X, Z), path(Z, Y).
    →  path__new(X, Y) :- edge__new(X, Z), path__new(Z, Y).
       path__plus(X, Y) :- path__new(X, Y), not path(X, Y).
       path__minus(X, Y) :- path(X, Y), not path__new(X, Y).

The yardstick for everything else, and the right choice when most of a view changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.language.ast import Atom, Negation, Rule
from deltalog.rewrites import names
from deltalog.rewrites.states import rule_in_state
from deltalog.source import Origin


def recomputation(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    rules = tuple(rules)
    made = [rule_in_state(rule, names.new, "recomputation") for rule in rules]
    for predicate, arity in {r.head.predicate: len(r.head.arguments) for r in rules}.items():
        row = names.row(arity)
        held, holds = Atom(predicate, row), Atom(names.new(predicate), row)
        origin = Origin.made_by("recomputation")
        made.append(Rule(Atom(names.plus(predicate), row), (holds, Negation(held)), origin))
        made.append(Rule(Atom(names.minus(predicate), row), (held, Negation(holds)), origin))
    return tuple(made)
