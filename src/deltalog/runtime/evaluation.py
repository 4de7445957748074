"""Evaluation from scratch: every stored view from the base relations.

Done once when a database is opened. It is also what `audit` compares with, on an engine of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from deltalog.analysis.columns import Relation
from deltalog.analysis.relevance import needed_rules
from deltalog.analysis.stratification import component_partition
from deltalog.engines.base import Engine
from deltalog.engines.extensions import is_twinned, takes_frames
from deltalog.language.ast import Row
from deltalog.runtime.checked_rows import forbidden_rows
from deltalog.runtime.fixpoint import Statistics, Watch, install_stages, run_fixpoint
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model


def create_relations(engine: Engine, relations: Mapping[str, Relation]) -> None:
    for name, relation in relations.items():
        engine.create(name, tuple(type_ or "int" for type_ in relation.types))


def evaluate_views(
    engine: Engine, model: Model, limits: Limits, watch: Watch | None = None
) -> Statistics:
    """Compute every stored view; virtual ones that they use exist only meanwhile."""
    return rebuild_views(engine, model, frozenset(model.stored_views()), limits, watch)


def rebuild_views(
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
    create_relations(engine, {name: model.relations[name] for name in transient})
    try:
        return run_fixpoint(
            engine, install_stages(engine, component_partition(rules)), limits, watch=watch
        )
    finally:
        for name in transient:
            engine.drop(name)


@dataclass(frozen=True)
class Difference:
    """A view that is not what recomputation says: facts it lacks, and facts it has in excess.

    Or a base relation with facts that its declaration forbids, which are all in `excess`.
    """

    view: str
    missing: frozenset[Row]
    excess: frozenset[Row]


def compare_views(
    engine: Engine,
    model: Model,
    virtual: Callable[[str], set[Row]],
    made: Engine,
    limits: Limits,
    watch: Watch | None = None,
) -> Iterator[Difference]:
    """Views that are not what plain evaluation of all rules makes of the base facts.

    Before them come base relations with facts under one key, or with null where it may not be.
    It is done on the engine `made`, which has no relations; `virtual` reads a view that is not
    stored. A view without difference is left out.
    """
    create_relations(made, model.relations)
    for name in sorted(model.stored):
        if model.relations[name].kind == "base":
            forbidden = _forbidden_facts(engine, model.relations[name])
            if forbidden:
                yield Difference(name, frozenset(), forbidden)
            _copy_relation(engine, made, name)
    run_fixpoint(made, install_stages(made, component_partition(model.rules)), limits, watch=watch)
    for name in model.views:
        if name in model.stored:
            missing, excess = _compare_relation(engine, made, name)
        else:
            expected, found = set(made.rows(name)), virtual(name)
            missing, excess = frozenset(expected - found), frozenset(found - expected)
        if missing or excess:
            yield Difference(name, missing, excess)


def _forbidden_facts(engine: Engine, relation: Relation) -> frozenset[Row]:
    """Facts of a base relation that share a key, or have null in a column that may not be null."""
    if takes_frames(engine):  # Spark: the facts would all come to the driver
        return frozenset()
    return forbidden_rows(relation, engine.copied(relation.name))


def _copy_relation(source: Engine, target: Engine, relation: str) -> None:
    if _are_twins(source, target):
        target.copy_from(relation, source)  # type: ignore[attr-defined]
    else:
        target.insert(relation, source.copied(relation))


def _compare_relation(
    engine: Engine, made: Engine, relation: str
) -> tuple[frozenset[Row], frozenset[Row]]:
    """Rows that the relation should have and has not; rows that it has and should not have."""
    if not _are_twins(engine, made):
        found, expected = set(engine.rows(relation)), set(made.rows(relation))
        return frozenset(expected - found), frozenset(found - expected)
    missing = made.beyond(relation, engine)  # type: ignore[attr-defined]
    if not missing and made.size(relation) == engine.size(relation):
        return frozenset(), frozenset()
    return frozenset(missing), frozenset(engine.beyond(relation, made))  # type: ignore[attr-defined]


def _are_twins(one: Engine, other: Engine) -> bool:
    return is_twinned(one) and type(one) is type(other)
