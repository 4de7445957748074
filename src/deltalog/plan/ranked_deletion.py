"""Deleting from a recursive component only what has lost its support.

Plain delete-and-rederive takes away every fact that lost *a* derivation, and in a cyclic graph that
is nearly everything. But the order in which facts were first derived is a well-founded rank: a
fact was derived from facts that were there before it. So

    a fact that still has a derivation from standing facts of lower rank needs no deletion at all.

Algorithm. *Suspects* are the facts that lost a derivation to a change below the component. Take the
suspect of lowest rank. If some rule derives it in the new state from standing facts of the
component that all have lower rank, it stays. Otherwise it is deleted, and every fact of higher rank
that some rule derived from it (in the old state) becomes a suspect.

Invariant: every stored fact has a *witness*, a derivation all of whose component facts have lower
rank. Initial evaluation and maintenance append facts after what they were derived from, so it holds
before the first transaction.

Proof that what stays is derivable. By induction on the rank of a standing fact f. Its witness
either survives, then its component facts stand and are derivable by induction; or it lost a
literal. If that literal lies below the component, f was an initial suspect; if it is a component
fact, that fact was deleted, has lower rank than f, and made f a suspect. A suspect that stands was
examined after all suspects of lower rank, found a derivation from facts that stood then, and stand
now, because suspects are taken in order of rank. So it has a witness in the new state.

What was deleted may still be derivable from facts of higher rank; the rules (R) of
`rewrites/maintenance_rules.py` find that out. They need to look only at *doubtful* facts, in whose
examination a fact of the component was passed over because of its rank: where none was, there was
no derivation from standing facts of any rank, and facts only go. Rederived and inserted facts are
appended in the order of their derivation, which restores the invariant.

Needed: the component's predicates are stored, and everything below it is stored too or read through
an overlay, because the examination cannot stop to ask. This is the second road from rules to plans
besides `lower.py`, for a whole component at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass

from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Literal,
    Negation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import rule_names
from deltalog.plan.lower import Lowering, Overlays
from deltalog.plan.nodes import Pipeline, RankedDeletion


@dataclass(frozen=True)
class RankedComponent:
    """A recursive component as rules, with the names of what is made from its predicates."""

    rules: tuple[Rule, ...]
    predicates: tuple[str, ...]
    suspect: Callable[[str], str]
    deleted: Callable[[str], str]
    doubtful: Callable[[str], str]
    kept: Callable[[str], str]
    new: Callable[[str], str]

    def of(self, predicate: str) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.head.predicate == predicate)


def lower_ranked_deletion(component: RankedComponent, overlays: Overlays) -> RankedDeletion:
    members = frozenset(component.predicates)
    ranked = Lowering(overlays, frozenset(component.kept(name) for name in members))
    plain = Lowering(overlays)
    return RankedDeletion(
        component.predicates,
        tuple(component.suspect(name) for name in component.predicates),
        tuple(component.deleted(name) for name in component.predicates),
        tuple(component.doubtful(name) for name in component.predicates),
        tuple(tuple(_lost_heads(component.rules, name, plain)) for name in component.predicates),
        tuple(
            tuple(
                _support_pipeline(rule, component, members, ranked) for rule in component.of(name)
            )
            for name in component.predicates
        ),
    )


def _lost_heads(
    rules: Iterable[Rule], predicate: str, lowering: Lowering
) -> Iterator[tuple[str, Pipeline]]:
    """For every place where a rule uses the predicate: the heads derived from a fact."""
    for rule in rules:
        for position, literal in enumerate(rule.body):
            if isinstance(literal, Atom) and literal.predicate == predicate:
                inputs, tests = _input_columns(literal.arguments, rule)
                rest = tuple(x for i, x in enumerate(rule.body) if i != position)
                body = (*tests, *rest)
                pipeline = lowering.pipeline(body, rule.head.arguments, inputs=inputs)
                yield rule.head.predicate, pipeline


def _support_pipeline(
    rule: Rule, component: RankedComponent, members: Set[str], lowering: Lowering
) -> Pipeline:
    """Whether the rule derives a fact in the new state from standing facts of lower rank."""
    inputs, tests = _input_columns(rule.head.arguments, rule)

    def supported(literal: Literal) -> Literal:
        match literal:
            case Atom(predicate=name):
                state = component.kept if name in members else component.new
                return Atom(state(name), literal.arguments)
            case Negation(atom=atom):
                return Negation(Atom(component.new(atom.predicate), atom.arguments))
            case _:
                return literal

    body = (*tests, *(supported(literal) for literal in rule.body))
    return lowering.pipeline(body, (), inputs=inputs)


def _input_columns(
    arguments: tuple[Term, ...], rule: Rule
) -> tuple[tuple[str, ...], list[Literal]]:
    """Names for the columns of a fact that matches the arguments, and tests that it does."""
    taken = set(rule_names(rule))
    inputs: list[str] = []
    tests: list[Literal] = []
    for column, term in enumerate(arguments):
        if isinstance(term, Variable) and term.name not in inputs:
            inputs.append(term.name)
            continue
        name = f"G{column}"
        while name in taken:
            name += "_"
        inputs.append(name)
        assert not isinstance(term, Aggregate), "a recursive rule has no aggregate in its head"
        tests.append(Comparison("=", Variable(name), term, "any"))
    return tuple(inputs), tests
