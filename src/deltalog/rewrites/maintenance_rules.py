"""Maintenance rules: estimate deletions, rederive, insert, net out, as one stratified program.

    path(X, Y) :- edge(X, Z), path(Z, Y).
    →  path__overdeleted(X, Y) :- edge__minus(X, Z), path(Z, Y).                         (D)
       path__overdeleted(X, Y) :- path__overdeleted(Z, Y), edge(X, Z).                           (D)
       path__red(X, Y) :- path__overdeleted(X, Y), edge__new(X, Z), path__new(Z, Y).      (R)
       path__ins(X, Y) :- edge__plus(X, Z), path__new(Z, Y), not path__kept(X, Y).  (I)
       path__ins(X, Y) :- path__ins(Z, Y), edge__new(X, Z), not path__kept(X, Y).   (I)
       path__plus(X, Y) :- path__ins(X, Y), not path(X, Y).                      (E1)
       path__minus(X, Y) :- path__overdeleted(X, Y), not path__ins(X, Y), not path__red(X, Y).  (E2)

Before: the rules of one strongly connected component in desugared form; below it everything has its
exact change in `__plus` and `__minus` (Staudt & Jarke 1996, Algorithm 1; with negation, section
4.2: the change of a negated literal goes the other way, and every other literal of (I) is in the
new state). After: the exact change of the component's predicates (Theorem 1).

Two departures from the paper, both of which only make relations smaller. (I) does not derive what
is kept anyway: a fact that did not go needs no propagation, so an edge inserted into a large
strongly connected graph costs what it adds. And `p__new` is not computed but read: rules (N1) to
(N3) are the overlay of the stored relation without `__overdeleted` and with `__add`, the union of
`__red` and `__ins`. For a predicate that is not stored `rederive_on_demand.py` has them as rules.

A component that does not use itself needs no state in between: (I) and (E1) are one rule,
`p__plus(X) :- Δ, not p(X).`, and in (E2) what (R) finds includes what was inserted. Where a fact
has one derivation at most, the propagation rules are exact without any test. Elsewhere a deletion
spends most of its time on (R), see `factor_rederivation.py`.

For a recursive component the estimate (D) can be far too large; `plan/ranked_deletion.py` stops it
early where the predicates are stored. It then needs only `suspect_rules`, the part of (D) that
starts below the component, and tells which deletions (R) must look at: see `doubtful_rules`. Since
(R) then follows what returned in the same way as (I) follows what came in, both are one relation:

    path__add(X, Y) :- path__doubtful(X, Y), edge__new(X, Z), path__kept(Z, Y).
    path__add(X, Y) :- path__add(Z, Y), edge__new(X, Z), not path__kept(X, Y).
    path__plus(X, Y) :- path__add(X, Y), not path__overdeleted(X, Y).
    path__minus(X, Y) :- path__overdeleted(X, Y), not path__add(X, Y).

Nothing in `path__add` was kept, so what of it was there before is in `path__overdeleted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from deltalog.language.ast import Atom, Literal, Negation, Rule
from deltalog.rewrites import names
from deltalog.rewrites.propagation_rules import is_injective, propagation_rules
from deltalog.rewrites.states import (
    Rename,
    changing_literals,
    in_state,
    transition_literals,
    unchanged_name,
)
from deltalog.source import Origin


def maintenance_rules(
    rules: Iterable[Rule], component: Set[str], is_ranked: bool = False
) -> tuple[Rule, ...]:
    """Algorithm 1 for the rules of one component; if `is_ranked`, (D) is left to the engine."""
    rules = tuple(rules)
    if not uses_itself(rules, component):
        return tuple(_direct_rules(rules, component))
    if is_ranked:
        return tuple(_ranked_rules(rules, component))
    return (
        *(made for rule in rules for made in deletion_rules(rule, component)),
        *(made for rule in rules for made in rederivation_rules(rule, component)),
        *(made for rule in rules for made in insertion_rules(rule, component)),
        *net_rules(rules),
    )


def _ranked_rules(rules: tuple[Rule, ...], component: Set[str]) -> Iterator[Rule]:
    """After a ranked deletion: what returns and what comes is one relation."""
    for rule in rules:
        yield from suspect_rules(rule, component)
    for rule in rules:
        yield from doubtful_rules(rule, component)
        yield from insertion_rules(rule, component, names.returned_name)
    for predicate, arity in _head_arities(rules).items():
        row = names.row_variables(arity)
        origin = Origin.made_by("maintenance_rules", *(r.origin for r in rules))
        add, lost = (
            Atom(names.returned_name(predicate), row),
            Atom(names.overdeleted_name(predicate), row),
        )
        yield Rule(Atom(names.plus_name(predicate), row), (add, Negation(lost)), origin, leads=True)
        yield Rule(
            Atom(names.minus_name(predicate), row), (lost, Negation(add)), origin, leads=True
        )


def _direct_rules(rules: tuple[Rule, ...], component: Set[str]) -> Iterator[Rule]:
    """A component that does not use itself: nothing reads what comes before the change is exact."""
    if len(rules) == 1 and is_injective(rules[0]):
        for made in propagation_rules(rules):  # a fact has one derivation, which came or went
            yield replace(made, origin=Origin.made_by("maintenance_rules", rules[0].origin))
        return
    for rule in rules:
        yield from deletion_rules(rule, component)
        yield from rederivation_rules(rule, component)
        head = Atom(names.plus_name(rule.head.predicate), rule.head.arguments)
        for made in insertion_rules(rule, component):
            yield replace(made, head=head, body=(*made.body[:-1], Negation(rule.head)))
    for predicate, arity in _head_arities(rules).items():
        row = names.row_variables(arity)
        lost, red = (
            Atom(names.overdeleted_name(predicate), row),
            Atom(names.rederived_name(predicate), row),
        )
        origin = Origin.made_by("maintenance_rules", *(r.origin for r in rules))
        yield Rule(
            Atom(names.minus_name(predicate), row), (lost, Negation(red)), origin, leads=True
        )


def _rename_by_component(component: Set[str], inside: Rename, outside: Rename) -> Rename:
    return lambda name: inside(name) if name in component else outside(name)


def deletion_rules(
    rule: Rule, component: Set[str], positions: Set[int] | None = None
) -> Iterator[Rule]:
    """(D): the head lost a derivation, because one literal no longer holds."""
    head = Atom(names.overdeleted_name(rule.head.predicate), rule.head.arguments)
    lost = _rename_by_component(component, names.overdeleted_name, names.minus_name)
    for position, _, _ in changing_literals(rule):
        if positions is not None and position not in positions:
            continue
        delta = transition_literals(rule, position, False, unchanged_name, names.plus_name, lost)
        yield _make_rule(rule, head, (*delta, *_other_literals(rule, position, unchanged_name)))


def suspect_rules(rule: Rule, component: Set[str]) -> Iterator[Rule]:
    """The part of (D) that starts below the component, as suspicions."""
    below = {
        position for position, atom, _ in changing_literals(rule) if atom.predicate not in component
    }
    for made in deletion_rules(rule, component, below):
        head = replace(made.head, predicate=names.suspect_name(rule.head.predicate))
        yield replace(made, head=head)


def rederivation_rules(rule: Rule, component: Set[str]) -> Iterator[Rule]:
    """(R): a fact estimated to go has another derivation in the new state.

    What lies below comes first: `path__new(X, Y), edge__new(Y, Z)` for given X and Z walks all that
    X reaches, the other way round it tests a path for each edge to Z.
    """
    estimate = Atom(names.overdeleted_name(rule.head.predicate), rule.head.arguments)
    head = Atom(names.rederived_name(rule.head.predicate), rule.head.arguments)
    literals = sorted(rule.body, key=lambda literal: _is_inside(literal, component))
    body = (estimate, *(in_state(literal, names.new_name) for literal in literals))
    yield _make_rule(rule, head, body)


def doubtful_rules(rule: Rule, component: Set[str]) -> Iterator[Rule]:
    """(R) after a ranked deletion: what is doubtful may have a derivation from kept facts.

    A deleted fact that has one was examined while these stood, so one of them had too high a rank:
    the fact is doubtful. Any other derivation uses a fact that returned, which is what (I) does. A
    rule without component literals derives nothing: it would have been support.
    """
    if any(_is_inside(literal, component) for literal in rule.body):
        head = Atom(names.returned_name(rule.head.predicate), rule.head.arguments)
        doubtful = Atom(names.doubtful_name(rule.head.predicate), rule.head.arguments)
        below_first = sorted(rule.body, key=lambda literal: _is_inside(literal, component))
        state = _rename_by_component(component, names.kept_name, names.new_name)
        yield _make_rule(rule, head, (doubtful, *(in_state(x, state) for x in below_first)))


def uses_itself(rules: Iterable[Rule], component: Set[str]) -> bool:
    """Whether some rule of the component reads the component."""
    return any(_is_inside(literal, component) for rule in rules for literal in rule.body)


def _is_inside(literal: Literal, component: Set[str]) -> bool:
    return isinstance(literal, Atom) and literal.predicate in component


def insertion_rules(
    rule: Rule, component: Set[str], comes: Rename = names.inserted_name
) -> Iterator[Rule]:
    """(I): the head gained a derivation, because one literal now holds."""
    head = Atom(comes(rule.head.predicate), rule.head.arguments)
    kept = Negation(Atom(names.kept_name(rule.head.predicate), rule.head.arguments))
    gained = _rename_by_component(component, comes, names.plus_name)
    for position, _, _ in changing_literals(rule):
        delta = transition_literals(rule, position, True, names.new_name, gained, names.minus_name)
        yield _make_rule(
            rule, head, (*delta, *_other_literals(rule, position, names.new_name), kept)
        )


def net_rules(rules: tuple[Rule, ...]) -> Iterator[Rule]:
    """(E1), (E2), and the union of what joins the kept facts."""
    for predicate, arity in _head_arities(rules).items():
        row = names.row_variables(arity)
        ins, red = (
            Atom(names.inserted_name(predicate), row),
            Atom(names.rederived_name(predicate), row),
        )
        held, lost = Atom(predicate, row), Atom(names.overdeleted_name(predicate), row)
        origin = Origin.made_by("maintenance_rules", *(r.origin for r in rules))
        add = Atom(names.returned_name(predicate), row)
        yield Rule(add, (red,), origin, leads=True)
        yield Rule(add, (ins,), origin, leads=True)
        yield Rule(Atom(names.plus_name(predicate), row), (ins, Negation(held)), origin, leads=True)
        minus = Atom(names.minus_name(predicate), row)
        yield Rule(minus, (lost, Negation(ins), Negation(red)), origin, leads=True)


def _head_arities(rules: tuple[Rule, ...]) -> dict[str, int]:
    return {rule.head.predicate: len(rule.head.arguments) for rule in rules}


def _other_literals(rule: Rule, position: int, state: Rename) -> Iterator[Literal]:
    return (in_state(x, state) for i, x in enumerate(rule.body) if i != position)


def _make_rule(rule: Rule, head: Atom, body: tuple[Literal, ...]) -> Rule:
    return Rule(head, body, Origin.made_by("maintenance_rules", rule.origin), leads=True)
