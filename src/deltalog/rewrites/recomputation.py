"""Recomputation as rules: the new state from the new states below, and the difference to the old.

    path(X, Y) :- edge(X, Z), path(Z, Y).
    →  path__derivable(X, Y) :- edge__new(X, Z), path__derivable(Z, Y).
       path__plus(X, Y) :- path__derivable(X, Y), not path(X, Y).
       path__minus(X, Y) :- path(X, Y), not path__derivable(X, Y).

While it is being computed, the new state has a name of its own: `path__new` is the stored state
with a change that is complete.

The yardstick for everything else, and the right choice when most of a view changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.language.ast import Atom, Negation, Rule
from deltalog.rewrites import names
from deltalog.rewrites.states import rule_in_state
from deltalog.source import Origin


def recomputation(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The change of one component, which is stored."""
    rules = tuple(rules)
    own = {rule.head.predicate for rule in rules}

    def new(name: str) -> str:
        return names.derivable_name(name) if name in own else names.new_name(name)

    made = [rule_in_state(rule, new, "recomputation") for rule in rules]
    for predicate, arity in {r.head.predicate: len(r.head.arguments) for r in rules}.items():
        row = names.row_variables(arity)
        held, holds = Atom(predicate, row), Atom(new(predicate), row)
        origin = Origin.made_by("recomputation")
        made.append(Rule(Atom(names.plus_name(predicate), row), (holds, Negation(held)), origin))
        made.append(Rule(Atom(names.minus_name(predicate), row), (held, Negation(holds)), origin))
    return tuple(made)
