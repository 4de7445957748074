"""Joins of three and more in a recursive rule, split into joins of two with the middle forgotten.

    pt(V, O) :- load(V, P), pt(P, Q), pt(Q, O).
    →  pt__join1(V, Q) :- load(V, P), pt(P, Q).
       pt(V, O) :- pt__join1(V, Q), pt(Q, O).

A new pt(Q, O) meets every pt(P, Q), and only then load(V, P), although P is of no interest to it.
With the pairs (V, Q) stored it meets each of them once, however many P lie between them.

Before: the rules of one strongly connected component in desugared form. A rule is split while its
body has at least three positive atoms, two of them of the component, and a variable that

- is not in the head and occurs in exactly two literals, both positive atoms, one of them at least
  of the component. A comparison or a negation that uses it leaves the rule alone;
- leaves a helper with no more columns than the larger of the two atoms. The helper's columns are
  the variables of the two that the head or the rest of the body still needs.

If there are several, first one between an atom of the component and one below it, then one that
leaves fewer columns, then as written.

After: rules for the same predicates and for helpers, whose names begin with that of the head.

Correct because `exists` moves inwards past what does not use its variable: with Y in neither the
head nor the rest, the body A(X, Y), B(Y, Z), rest holds for the same heads as (exists Y: A(X, Y),
B(Y, Z)), rest. The helper is that inner part under a name. Relations are sets, so it does not
matter that it forgets how many Y there were, and naming a positive part of a body changes no least
fixpoint. The helper reads the component and is read by it, both positively: so it belongs to the
component, and the strata stay as they are. Negations stay where they were.

A helper is stored where its component is, and has ranks like any other predicate of it
(`plan/ranked_deletion.py`). Two atoms both below the component are left alone: their join does not
grow while the component does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from deltalog.language.ast import Atom, Literal, Rule, Variable
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.source import Origin


def split_joins(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules of a component, helpers before the rules that use them."""
    rules = tuple(rules)
    component = {rule.head.predicate for rule in rules}
    counts = dict.fromkeys(component, 0)
    made: list[Rule] = []
    for rule in rules:
        while (pair := _choose_pair(rule, component)) is not None:
            predicate = rule.head.predicate
            counts[predicate] += 1
            helper = Atom(names.join_name(predicate, counts[predicate]), pair.kept)
            component.add(helper.predicate)
            origin = Origin.made_by("split_joins", rule.origin)
            made.append(Rule(helper, pair.atoms, origin))
            rule = Rule(rule.head, pair.joined(rule.body, helper), origin, rule.leads)
        made.append(rule)
    return tuple(made) if len(made) > len(rules) else rules


@dataclass(frozen=True)
class _Pair:
    """Two atoms of a body by their places, and the variables of theirs that are needed outside."""

    places: tuple[int, int]
    atoms: tuple[Atom, Atom]
    kept: tuple[Variable, ...]

    @property
    def is_narrow(self) -> bool:
        """Whether the helper has no more columns than the larger atom."""
        return len(self.kept) <= max(len(atom.arguments) for atom in self.atoms)

    def joined(self, body: tuple[Literal, ...], helper: Atom) -> tuple[Literal, ...]:
        """The body with the helper in the place of the first atom, and without the second."""
        first, second = self.places
        return (*body[:first], helper, *body[first + 1 : second], *body[second + 1 :])


def _choose_pair(rule: Rule, component: Set[str]) -> _Pair | None:
    """The two atoms to join first, or None if the rule stays as it is."""

    def is_inside(atom: Atom) -> bool:
        return atom.predicate in component

    positive = [literal for literal in rule.body if isinstance(literal, Atom)]
    if len(positive) < 3 or sum(map(is_inside, positive)) < 2:
        return None
    found = [
        (all(map(is_inside, pair.atoms)), len(pair.kept), number, pair)
        for number, pair in enumerate(_joinable_pairs(rule))
        if any(map(is_inside, pair.atoms)) and pair.is_narrow
    ]
    return min(found)[-1] if found else None


def _joinable_pairs(rule: Rule) -> Iterator[_Pair]:
    """Every two atoms that share a variable with each other and with nothing else."""
    used = [variable_names(literal) for literal in rule.body]
    for name in variable_names(*rule.body):
        if name in variable_names(rule.head):
            continue
        places = [place for place, known in enumerate(used) if name in known]
        if len(places) != 2:
            continue
        first, second = (rule.body[place] for place in places)
        if isinstance(first, Atom) and isinstance(second, Atom):
            rest = (x for place, x in enumerate(rule.body) if place not in places)
            needed = variable_names(rule.head, *rest)
            kept = (Variable(n) for n in variable_names(first, second) if n in needed)
            yield _Pair((places[0], places[1]), (first, second), tuple(kept))
