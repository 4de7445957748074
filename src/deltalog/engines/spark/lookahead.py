"""Lookups that rules will make for a new row: they can be fetched before rules ask.

    match paid__plus -> $0=#0  |  match invoice where #0=$0 -> …        paid__plus: #0 → invoice[0]

A rule that starts from what changed looks something up with values of the changed row. If that is
known when the change is bound, what all rules need of all changes is fetched in one job, and not in
one for each part of the network.

A step may never be reached, since one before it finds nothing: then it was fetched in vain. So the
engine looks ahead only where a value has few rows (`Frame.narrow`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from deltalog.engines.spark.relation import Columns
from deltalog.plan.nodes import Absent, Match, Overlay, Pipeline, RankedDeletion, RulePlan, Slot

Lookup = tuple[Columns, str, Columns]
"""Columns of a new row, a relation, and its columns that will be looked up with their values."""


def next_lookups(plans: Iterable[RulePlan]) -> Iterator[tuple[str, Lookup]]:
    """Yield, per relation that a rule starts from, what is looked up next."""
    for plan in plans:
        for pipeline in plan.pipelines:
            first = pipeline.steps[0] if pipeline.steps else None
            if isinstance(first, Match) and not first.key and isinstance(first.relation, str):
                bound = {slot.index: column for column, slot in first.bind}
                for found in _looked_up(pipeline.steps[1:], bound):
                    yield first.relation, found


def deletion_lookups(plan: RankedDeletion) -> Iterator[tuple[str, Lookup]]:
    """Yield, for a fact of each predicate, what its deletion and its support look up."""
    for name, lost, support in zip(plan.predicates, plan.lost, plan.support, strict=True):
        pipelines: Collection[Pipeline] = (*(pipeline for _, pipeline in lost), *support)
        for pipeline in pipelines:
            bound = {column: column for column in range(pipeline.inputs)}
            for found in _looked_up(pipeline.steps, bound):
                yield name, found


def _looked_up(steps: Iterable[object], bound: dict[int, int]) -> Iterator[Lookup]:
    """Lookups all of whose values are known from the row."""
    for step in steps:
        if isinstance(step, Match | Absent):
            slots = [(column, value) for column, value in step.key if isinstance(value, Slot)]
            if slots and len(slots) == len(step.key) and all(s.index in bound for _, s in slots):
                ordered = sorted(slots, key=lambda entry: entry[0])
                target = (
                    step.relation.stored if isinstance(step.relation, Overlay) else step.relation
                )
                columns = tuple(bound[slot.index] for _, slot in ordered)
                yield columns, target, tuple(column for column, _ in ordered)
