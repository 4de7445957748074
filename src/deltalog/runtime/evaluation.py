"""Evaluation from scratch: every stored view from the base relations.

Done once when a database is opened. It is also what `audit` compares with, on an engine of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deltalog.analysis.columns import Relation
from deltalog.analysis.relevance import needed_rules
from deltalog.analysis.stratification import component_partition
from deltalog.engines.base import Engine
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.language.ast import Row
from deltalog.runtime.fixpoint import Statistics, Watch, install, run
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model


def create(engine: Engine, relations: Mapping[str, Relation]) -> None:
    for name, relation in relations.items():
        engine.create(name, tuple(type_ or "int" for type_ in relation.types))


def evaluate(
    engine: Engine, model: Model, limits: Limits, watch: Watch | None = None
) -> Statistics:
    """Compute every stored view; virtual ones that they use exist only meanwhile."""
    return rebuild(engine, model, frozenset(model.stored_views()), limits, watch)


def rebuild(
    engine: Engine,
    model: Model,
    views: frozenset[str],
    limits: Limits,
    watch: Watch | None = None,
) -> Statistics:
    """Compute some stored views anew from the other stored relations."""
    rules = needed_rules(model.rules, views, model.stored - views)
    transient = {rule.head.predicate for rule in rules} - model.stored
    for name in views:
        engine.clear(name)
    create(engine, {name: model.relations[name] for name in transient})
    try:
        return run(engine, install(engine, component_partition(rules)), limits, watch=watch)
    finally:
        for name in transient:
            engine.drop(name)


@dataclass(frozen=True)
class Difference:
    """A view that is not what recomputation says: facts it lacks, and facts it has in excess."""

    view: str
    missing: frozenset[Row]
    excess: frozenset[Row]


def recomputed(
    model: Model, base: Mapping[str, Iterable[Row]], limits: Limits, watch: Watch | None = None
) -> dict[str, set[Row]]:
    """Every view, virtual ones too, by plain evaluation on the reference engine."""
    engine = ReferenceEngine()
    create(engine, model.relations)
    for name, rows in base.items():
        engine.insert(name, rows)
    run(engine, install(engine, component_partition(model.rules)), limits, watch=watch)
    return {name: set(engine.rows(name)) for name in model.views}
