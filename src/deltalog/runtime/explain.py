"""Explanations: how a program is understood and what becomes of it.

Everything here is data (frozen records and rule tuples); text, JSON and graphs are made
of it elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from deltalog.analysis.dependencies import Kind
from deltalog.analysis.relevance import needed_rules
from deltalog.analysis.stratification import Partition, component_partition
from deltalog.checks.program import CheckedProgram
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Query
from deltalog.plan.nodes import RulePlan
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar, desugar_query
from deltalog.rewrites.pipeline import EVALUATE, PASSES, QUERY
from deltalog.runtime.database import Database
from deltalog.runtime.fixpoint import lowered
from deltalog.runtime.queries import prepare_query


@dataclass(frozen=True)
class Arc:
    """`head` depends on `body`: positively, negatively or through an aggregate."""

    head: str
    body: str
    kind: Kind


@dataclass(frozen=True)
class Explanation:
    """The dependency graph, the strata, and the rules in the parts in which they run."""

    arcs: tuple[Arc, ...]
    strata: tuple[tuple[str, ...], ...]
    partition: Partition
    plans: tuple[tuple[RulePlan, ...], ...]


def explain(
    database: Database,
    query: Query | None = None,
    after: str | None = None,
    without: Collection[str] = (),
) -> Explanation:
    """What the program, or one query to it, becomes; `after` stops behind that pass."""
    for name in (*([after] if after else ()), *without):
        _known_pass(name)
    for name in without:
        if not PASSES[name].is_optional:
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="optional pass", name=name)])
    last = after or (EVALUATE if query is None else QUERY)[-1].name
    partition = _partition(database, query, last, without)
    plans, _ = lowered(partition)
    return Explanation(
        dependency_arcs(database.model.checked),
        strata(database.model.checked),
        partition,
        tuple(plan for plan in plans if isinstance(plan, tuple)),
    )


def _partition(
    database: Database, query: Query | None, last: str, without: Collection[str]
) -> Partition:
    if last == "desugar":
        return _desugared(database.model.checked, query)
    if query is None:
        return component_partition(database.model.rules)
    is_magic = last == "magic_sets" and "magic_sets" not in without
    return prepare_query(database.model, query, is_magic).partition


def _desugared(checked: CheckedProgram, query: Query | None) -> Partition:
    """The rules, or those that the query needs, before any other pass."""
    rules = desugar(checked.program, checked.relations).rules
    if query is not None:
        asked = desugar_query(query, checked.relations)
        rules = needed_rules((*rules, *asked), {names.ANSWER}, frozenset())
    return component_partition(rules)


def _known_pass(name: str) -> None:
    if name not in PASSES:
        hint = did_you_mean(name, PASSES) or f"the passes are {', '.join(PASSES)}"
        raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="pass", name=name, hint=hint)])


def dependency_arcs(checked: CheckedProgram) -> tuple[Arc, ...]:
    arcs = checked.stratification.dependencies.arcs
    return tuple(dict.fromkeys(Arc(arc.head, arc.body, arc.kind) for arc in arcs))


def strata(checked: CheckedProgram) -> tuple[tuple[str, ...], ...]:
    """Predicates by stratum, base relations first."""
    levels: dict[int, list[str]] = {0: []}
    for name in sorted(checked.relations):
        levels.setdefault(checked.stratification.stratum_of.get(name, 0), []).append(name)
    return tuple(tuple(levels[number]) for number in sorted(levels))
