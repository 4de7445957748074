"""Explanations: how a program is understood and what becomes of it.

Everything here is data (frozen records and rule tuples); text, JSON and graphs are made
of it elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from deltalog.analysis.dependencies import Kind
from deltalog.analysis.stratification import Partition, component_partition
from deltalog.checks.program import CheckedProgram
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import DisjunctiveRule, Query, Rule
from deltalog.plan.nodes import RulePlan
from deltalog.rewrites.pipeline import (
    EVALUATE,
    EVERY_PASS,
    PREPARE,
    QUERY,
    UPDATE_PASSES,
    VIEW_UPDATE_RULES,
    Pass,
    apply_passes,
    maintenance_passes,
)
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fixpoint import lower_stages
from deltalog.runtime.model import chosen_form, written_form
from deltalog.runtime.queries import prepare_query
from deltalog.runtime.realize import request_form


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
    partition: Sequence[Sequence[Rule | DisjunctiveRule]]
    plans: tuple[tuple[RulePlan, ...], ...]


def explain(
    database: MemoryDatabase,
    query: Query | None = None,
    after: str | None = None,
    without: Collection[str] = (),
) -> Explanation:
    """Explain the program, or one query to it, as it is run; `after` stops behind that pass.

    After a pass that serves update propagation there are no plans: its rules are on their way.
    """
    for name in (*([after] if after else ()), *without):
        _known_pass(name)
    for name in without:
        if not EVERY_PASS[name].is_optional:
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="optional pass", name=name)])
    checked = database.model.checked
    known = dependency_arcs(checked), predicates_by_stratum(checked)
    if query is None and after == VIEW_UPDATE_RULES.name:
        form = request_form(database)
        return Explanation(*known, tuple(filter(None, (form.requests, form.transitions))), ())
    if query is None and after in UPDATE_PASSES:
        return Explanation(*known, rules_after(database, str(after)), ())
    partition = _shown_partition(database, query, after, without)
    plans, _ = lower_stages(partition)
    return Explanation(*known, partition, tuple(plan for plan in plans if isinstance(plan, tuple)))


def _shown_partition(
    database: MemoryDatabase, query: Query | None, after: str | None, without: Collection[str]
) -> Partition:
    model = database.model
    if query is None:
        if after is not None and after not in _pass_names(EVALUATE):
            raise DataError([_not_run(after, "there is no query")])
        form = written_form(model.checked, model.options)
        return component_partition(apply_passes(EVALUATE, form, after).rules)
    if after is not None and after not in _pass_names(QUERY):
        raise DataError([_not_run(after, "it is not a pass of queries")])
    return prepare_query(model, query, not without, last=after).partition


def rules_after(database: MemoryDatabase, name: str) -> Partition:
    """The rules after a pass of update propagation, for each component that runs it."""
    found = (
        _program_after(database, name)
        if name in _pass_names(PREPARE)
        else _components_after(database, name)
    )
    if not found:
        reasons = (
            f"`{choice.predicates[0]}` runs `{choice.strategy}`, {choice.reason}"
            for choice in database.model.choices
        )
        raise DataError([_not_run(name, "; ".join(reasons))])
    return found


def _program_after(database: MemoryDatabase, name: str) -> Partition:
    """Every component as it is after a pass of the program; nothing if that changes nothing."""
    form = chosen_form(database.model.checked, database.model.options)
    for each in PREPARE:
        before, form = form, each.apply(form)
        if each.name == name:
            return () if form is before else tuple(choice.rules for choice in form.choices)
    return ()


def _components_after(database: MemoryDatabase, name: str) -> Partition:
    propagation = database.propagation
    forms = (
        propagation.compiler.form(node.choice, node.samples, name)
        for node in propagation.nodes
        if name in _pass_names(maintenance_passes(node.choice))
    )
    return tuple((*form.rules, *form.askable) for form in forms)


def _not_run(name: str, reason: str) -> Diagnostic:
    hint = f"it runs for {EVERY_PASS[name].runs_for}"
    return catalogue.PASS_NOT_RUN.at(None, name=name, reason=reason, hint=hint)


def _pass_names(passes: Collection[Pass[Any]]) -> list[str]:
    return [each.name for each in passes]


def _known_pass(name: str) -> None:
    if name not in EVERY_PASS:
        hint = did_you_mean(name, EVERY_PASS) or f"the passes are {', '.join(EVERY_PASS)}"
        raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="pass", name=name, hint=hint)])


def dependency_arcs(checked: CheckedProgram) -> tuple[Arc, ...]:
    arcs = checked.stratification.dependencies.arcs
    return tuple(dict.fromkeys(Arc(arc.head, arc.body, arc.kind) for arc in arcs))


def predicates_by_stratum(checked: CheckedProgram) -> tuple[tuple[str, ...], ...]:
    """Predicates by stratum, base relations first."""
    levels: dict[int, list[str]] = {0: []}
    for name in sorted(checked.relations):
        levels.setdefault(checked.stratification.stratum_of.get(name, 0), []).append(name)
    return tuple(tuple(levels[number]) for number in sorted(levels))
