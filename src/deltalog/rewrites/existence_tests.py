"""Parts of a body that only have to exist, each under a name without columns.

    a(X) :- b(X), c(Y), d(Y), not e(Y).
    →  a__exists1 :- c(Y), d(Y), not e(Y).
       a(X) :- b(X), a__exists1.

The rule asks whether c and d meet at all, and without the name it would ask again for every X, or
build the product of b with every pair. The name has one row or none: its evaluation ends at the
first derivation, and its change is "became non-empty" or "became empty".

Before: rules in desugared form. Literals are connected if they share a variable, and connected
literals form a *group*. A group becomes a helper if it has a positive atom and shares no variable
with the head. Left as they are:

- rules with an aggregate, which ranges over the bindings of all variables (decision 0002);
- literals without variables, and groups without a positive atom, such as `not e(_)` or `V = 3`:
  they are tests already;
- the only group of a rule whose head has no variable: the rule itself is such a test.

After: rules for the same predicates and for helpers without columns, whose names begin with that of
the head; equal groups of a predicate share one.

Correct because `exists` moves inwards past what does not use its variables: b(X), (exists Y: c(Y),
d(Y)) holds for the same X as exists Y: b(X), c(Y), d(Y). The helper is the inner part under a name.
It is read positively and reads, in the same way, what the rule has read before: so strata and
components stay as they are, but for the helper itself. A group is safe alone, since what binds a
variable is connected to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.language.ast import Atom, Literal, Rule
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.source import Origin

Body = tuple[Literal, ...]
Places = tuple[int, ...]


def existence_tests(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules with a helper for every such group, helpers before the rules that use them."""
    rules = tuple(rules)
    helpers: dict[str, dict[Body, Atom]] = {}
    made: list[Rule] = []
    for rule in rules:
        origin = Origin.made_by("existence_tests", rule.origin)
        known = helpers.setdefault(rule.head.predicate, {})
        replaced: dict[int, Atom | None] = {}
        for places in _groups_to_test(rule):
            group = tuple(rule.body[place] for place in places)
            if group not in known:
                known[group] = Atom(names.existence_name(rule.head.predicate, len(known) + 1))
                made.append(Rule(known[group], group, origin))
            replaced |= {**dict.fromkeys(places), places[0]: known[group]}
        if replaced:
            body = (replaced.get(place, literal) for place, literal in enumerate(rule.body))
            kept = tuple(literal for literal in body if literal is not None)
            rule = Rule(rule.head, kept, origin, rule.leads)
        made.append(rule)
    return tuple(made) if any(helpers.values()) else rules


def _groups_to_test(rule: Rule) -> list[Places]:
    """The groups of a rule that only have to exist."""
    if rule.is_aggregate:
        return []
    groups = [
        places for places in _connected_groups(rule.body) if _is_enumerated(rule.body, places)
    ]
    if len(groups) == 1:
        return []
    shown = set(variable_names(rule.head))
    return [places for places in groups if not shown & _names_in_group(rule.body, places)]


def _connected_groups(body: Body) -> list[Places]:
    """The literals that have variables by their places, connected ones together, as written."""
    groups: list[tuple[set[str], set[int]]] = []
    for place, literal in enumerate(body):
        used, places = set(variable_names(literal)), {place}
        if used:
            apart = [group for group in groups if not group[0] & used]
            joined = [group for group in groups if group[0] & used]
            used.update(*(others for others, _ in joined))
            places.update(*(found for _, found in joined))
            groups = [*apart, (used, places)]
    return sorted(tuple(sorted(places)) for _, places in groups)


def _names_in_group(body: Body, places: Places) -> set[str]:
    return set(variable_names(*(body[place] for place in places)))


def _is_enumerated(body: Body, places: Places) -> bool:
    return any(isinstance(body[place], Atom) for place in places)
