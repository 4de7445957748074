"""Pivots: argument positions that a recursive component passes through unchanged.

    path(X, Z) :- path(X, Y), edge(Y, Z).        pivot: the first column of path

Every recursive rule has, at the pivot of its head, the very variable that stands at the pivot of
each recursive atom in its body. So a derivation, followed down through recursive atoms, has one
pivot value throughout: facts with different pivots never meet. Whoever puts facts apart by the
value of their pivot can run the fixpoint of each share by itself, and the union of the results is
the fixpoint of the whole.

Other relations of recursive rules: if the pivot variable stands in one of their columns, in every
use, a share needs only its own part of them (`shared`); otherwise all of them (`copied`).

Taken from plans and not from rules, because it is an engine that asks. It does not apply if a
recursive rule reads through an overlay what grows, has an aggregate, or reads relations that grow
outside the component. One column per predicate is looked for: more would make smaller shares, and
those are small enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product, takewhile

from deltalog.plan.nodes import Absent, Match, Overlay, Pipeline, RulePlan, Slot

Reference = str | Overlay
CHOICES_MAX = 1_000
"""Combinations of columns that are tried for a component of several predicates."""


@dataclass(frozen=True)
class Pivot:
    """The pivot column of each predicate, and how the relations beside them are needed."""

    columns: Mapping[str, int]
    shared: Mapping[Reference, int]
    copied: tuple[Reference, ...]
    exits: tuple[RulePlan, ...]
    recursive: tuple[RulePlan, ...]


def pivot_of(plans: Sequence[RulePlan]) -> Pivot | None:
    """A pivot of the component that these plans define, if there is one."""
    heads = dict.fromkeys(plan.head for plan in plans)
    recursive = tuple(plan for plan in plans if plan.variants)
    exits = tuple(plan for plan in plans if not plan.variants)
    if not recursive or not all(_is_suitable(plan, heads) for plan in recursive):
        return None
    arity = {plan.head: len(_body_pipeline(plan).output) for plan in recursive}
    for plan in exits:
        arity.setdefault(plan.head, len(plan.pipelines[0].output) if plan.pipelines else 0)
    choices = product(*(range(arity[head]) for head in heads))
    for _, choice in takewhile(lambda entry: entry[0] < CHOICES_MAX, enumerate(choices)):
        columns = dict(zip(heads, choice, strict=True))
        if all(_carries_pivot(plan, columns) for plan in recursive):
            shared, copied = _relations_beside(recursive, columns)
            return Pivot(columns, shared, copied, exits, recursive)
    return None


def _is_suitable(plan: RulePlan, heads: Mapping[str, None]) -> bool:
    return (
        plan.aggregation is None
        and plan.initial is None
        and all(n in heads for n in plan.occurrences)
    )


def _body_pipeline(plan: RulePlan) -> Pipeline:
    """Every variant has all steps of the rule; they differ in order and windows."""
    return plan.variants[0]


def _slot_in_column(step: Match | Absent, column: int) -> Slot | None:
    """The slot that stands in a column."""
    own = (*step.bind, *step.same) if isinstance(step, Match) else ()
    for number, value in (*step.key, *own):
        if number == column:
            return value if isinstance(value, Slot) else None
    return None


def _carries_pivot(plan: RulePlan, columns: Mapping[str, int]) -> bool:
    body = _body_pipeline(plan)
    carried = body.output[columns[plan.head]]
    return isinstance(carried, Slot) and all(
        _slot_in_column(step, columns[step.relation]) == carried
        for step in body.steps
        if isinstance(step, Match) and isinstance(step.relation, str) and step.relation in columns
    )


def _relations_beside(
    plans: Sequence[RulePlan], columns: Mapping[str, int]
) -> tuple[dict[Reference, int], tuple[Reference, ...]]:
    """Relations of the rules beside the component: shared by a column, or copied."""
    places: dict[Reference, set[int]] = {}
    for plan in plans:
        body = _body_pipeline(plan)
        carried = body.output[columns[plan.head]]
        for step in body.steps:
            if not isinstance(step, Match | Absent) or step.relation in columns:
                continue
            slots = (*step.key, *(step.bind if isinstance(step, Match) else ()))
            at = {column for column, value in slots if value == carried}
            places[step.relation] = places.get(step.relation, at) & at
    shared = {name: min(at) for name, at in places.items() if at}
    return shared, tuple(name for name in places if name not in shared)
