"""The fixpoint of rules by an engine of one process: in a task, or on the driver.

The Spark engine gets it as an argument (`MakeEngine`); only the protocol is known of it.
States that are not stored become relations of their own there.

    match edge - edge__minus     →     match edge__without__edge__minus__with__None
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from deltalog.engines.base import Engine
from deltalog.plan.nodes import Absent, Match, Overlay, Pipeline, RulePlan
from deltalog.plan.pivots import Reference

MakeEngine = Callable[[], Engine]
ROUNDS_MAX = 10_000_000
FOREVER = 2**62


def run_to_fixpoint(engine: Engine, plans: tuple[RulePlan, ...], facts_max: int = FOREVER) -> bool:
    """Run the rules until nothing is new; returns whether that took no more facts than allowed."""
    part = engine.prepare(plans)
    whole = engine.sequence((part,), is_soft=False, may_abort=False)
    rounds = facts = 0
    while rounds < ROUNDS_MAX:
        result = whole.run(rounds, ROUNDS_MAX, facts, facts_max, FOREVER)
        rounds, facts = result.productive, facts + result.facts
        if result.is_stopped or facts > facts_max:
            return False
        if result.is_done:
            return True
    raise AssertionError("a recursion does not come to an end")


def references_of_plans(plans: Iterable[RulePlan]) -> Iterator[Reference]:
    """Every relation and state that the rules read."""
    for plan in plans:
        for pipeline in plan.pipelines:
            for step in pipeline.steps:
                if isinstance(step, Match | Absent):
                    yield step.relation


def reference_name(reference: Reference) -> str:
    if not isinstance(reference, Overlay):
        return reference
    return f"{reference.stored}__without__{reference.minus}__with__{reference.plus}"


def localise_plan(plan: RulePlan) -> RulePlan:
    """The plan as such an engine knows it."""
    aggregation = plan.aggregation
    if aggregation is not None:
        aggregation = replace(aggregation, bindings=_localise_pipeline(aggregation.bindings))
    return replace(
        plan,
        variants=tuple(map(_localise_pipeline, plan.variants)),
        initial=None if plan.initial is None else _localise_pipeline(plan.initial),
        aggregation=aggregation,
    )


def _localise_pipeline(pipeline: Pipeline) -> Pipeline:
    steps = tuple(
        replace(step, relation=reference_name(step.relation))
        if isinstance(step, Match | Absent)
        else step
        for step in pipeline.steps
    )
    return replace(pipeline, steps=steps)
