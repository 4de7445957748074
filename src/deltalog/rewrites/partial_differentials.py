"""Partial differentials: the change of a view per influent, on the arcs of a propagation network.

    p(X, Z) :- q(X, Y), r(Y, Z).
    →  p__by1_1__plus(X, Z) :- q__plus(X, Y), r__new(Y, Z).           Δp/Δ+q
       p__by1_2__plus(X, Z) :- r__plus(Y, Z), q__new(X, Y).           Δp/Δ+r
       p__by1_1__minus(X, Z) :- q__minus(X, Y), r(Y, Z).              Δp/Δ-q, in the old state
       p__by1_2__minus(X, Z) :- r__minus(Y, Z), q(X, Y).              Δp/Δ-r
       p__inserted(X, Z) :- p__by1_1__plus(X, Z).   …                     accumulated in the node
       p__plus(X, Z) :- p__inserted(X, Z), not p(X, Z).                   strict
       p__minus(X, Z) :- p__deleted(X, Z), not p__new(X, Z).

Before: rules of a non-recursive view in desugared form. After: its change (Risch & Sköld 1999,
section 1.5 and Table 1). Positive differentials are evaluated in the new state, negative ones in
the old. *Strict*: what held before is not reported as an insertion, what still holds not as a
deletion, so the change is exact. *Nervous*: the differentials are only combined by delta-union,
which is cheaper and may report what another derivation makes untrue:

       p__plus(X, Z) :- p__inserted(X, Z), not p__deleted(X, Z).
       p__minus(X, Z) :- p__deleted(X, Z), not p__inserted(X, Z).

Delta-union cancels an insertion against a deletion of the same fact. It loses nothing as long as
insertions hold in the new state and deletions held in the old one; so the changes of negated
influents must be exact. `rewrites/strategies.py` decides which views are nervous.

A network is *bushy* when intermediate views are nodes of their own, shared by all that use them,
and *flat* when they are expanded into the conditions first (`unfold`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from deltalog.analysis.binding import evaluation_order
from deltalog.language.ast import Atom, Literal, Negation, Rule
from deltalog.rewrites import names
from deltalog.rewrites.states import (
    Rename,
    changing_literals,
    in_state,
    transition_literals,
    unchanged_name,
)
from deltalog.source import Origin


@dataclass(frozen=True)
class Differential:
    """One arc of the network: the change of `affected` caused by one influent literal."""

    affected: str
    influent: str
    sign: str
    rule: Rule

    @property
    def name(self) -> str:
        return self.rule.head.predicate


def differentials_of(rules: Iterable[Rule]) -> Iterator[Differential]:
    """Every partial differential of every rule, positive and negative."""
    numbers: dict[str, int] = {}
    for rule in rules:
        name = rule.head.predicate
        numbers[name] = number = numbers.get(name, 0) + 1
        for position, atom, is_positive in changing_literals(rule):
            for truth, state in ((True, names.new_name), (False, unchanged_name)):
                made = _partial_differential(rule, number, position, truth, state)
                sign = "+" if truth == is_positive else "-"
                yield Differential(name, atom.predicate, sign, made)


def _partial_differential(
    rule: Rule, number: int, position: int, truth: bool, state: Rename
) -> Rule:
    change = names.plus_name if truth else names.minus_name
    name = change(names.differential_name(rule.head.predicate, number, position + 1))
    delta = transition_literals(rule, position, truth, state)
    rest = (in_state(x, state) for i, x in enumerate(rule.body) if i != position)
    body: tuple[Literal, ...] = (*delta, *rest)
    assert isinstance(body[0], Atom)
    ordered = evaluation_order(body, frozenset(), body[0])
    origin = Origin.made_by("partial_differentials", rule.origin)
    return Rule(Atom(name, rule.head.arguments), ordered, origin, leads=True)


def partial_differentials(rules: Iterable[Rule], is_strict: bool = True) -> tuple[Rule, ...]:
    """The differentials, and the nodes that accumulate them."""
    rules = tuple(rules)
    arcs = tuple(differentials_of(rules))
    made = [arc.rule for arc in arcs]
    for arc in arcs:
        head = arc.rule.head
        is_gain = head.predicate.endswith("__plus")
        node = (
            names.inserted_candidates_name(arc.affected)
            if is_gain
            else names.deleted_candidates_name(arc.affected)
        )
        made.append(Rule(Atom(node, head.arguments), (head,), arc.rule.origin, leads=True))
    heads = {rule.head.predicate: len(rule.head.arguments) for rule in rules}
    for predicate, arity in heads.items():
        made += _rules_of_node(predicate, arity, is_strict)
    return tuple(dict.fromkeys(made))


def _rules_of_node(predicate: str, arity: int, is_strict: bool) -> Iterator[Rule]:
    row = names.row_variables(arity)
    gain, loss = (
        Atom(names.inserted_candidates_name(predicate), row),
        Atom(names.deleted_candidates_name(predicate), row),
    )
    origin = Origin.made_by("partial_differentials")
    held, holds = Atom(predicate, row), Atom(names.new_name(predicate), row)
    against = (held, holds) if is_strict else (loss, gain)
    plus, minus = Atom(names.plus_name(predicate), row), Atom(names.minus_name(predicate), row)
    yield Rule(plus, (gain, Negation(against[0])), origin, leads=True)
    yield Rule(minus, (loss, Negation(against[1])), origin, leads=True)
