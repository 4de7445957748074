"""Ordered partitions of rules: what must be complete before what.

*Strict*: every predicate has a stratum; a positive dependency does not go up, a negative or
aggregate one goes strictly down. Evaluation refines the strata to one part per strongly connected
component, which is the same order with smaller fixpoints.

*Soft* (Behrend & Manthey 2004, section 2): a partition of rules, not of predicates, for programs
made by Magic Sets, which need not be stratifiable. `m_q` asks for `q`, so rules for `q` *and* rules
that ask for `q` belong to the stratum `q` has in the program before the rewriting. Why it is right:
a rule with `not q(t)` in stratum i stands above every rule of `q` and every rule that asks for `q`.
The soft consequence operator fires it only when nothing below yields anything new, so the question
for `t` has been asked (its rule has the same body up to `not q(t)`) and answered completely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from deltalog.analysis.dependencies import Dependencies, Dependency, dependencies_of
from deltalog.language.ast import Rule

Partition = tuple[tuple[Rule, ...], ...]


@dataclass(frozen=True)
class Stratification:
    """The stratum of each predicate, counted from 0 (base), or the cycles that prevent one."""

    dependencies: Dependencies
    cycles: tuple[tuple[Dependency, ...], ...]

    @property
    def is_stratified(self) -> bool:
        return not self.cycles

    @cached_property
    def stratum_of(self) -> Mapping[str, int]:
        """0 for what no rule defines; the lowest possible stratum for everything else."""
        below: dict[str, list[Dependency]] = {}
        for arc in self.dependencies.arcs:
            below.setdefault(arc.head, []).append(arc)
        strata: dict[str, int] = {}
        for component in self.dependencies.components:
            arcs = [arc for name in component for arc in below.get(name, ())]
            outside = [arc for arc in arcs if arc.body not in component]
            floor = 1 if any(name in below or len(component) > 1 for name in component) else 0
            level = max((strata[a.body] + a.is_strict for a in outside), default=0)
            strata.update(dict.fromkeys(component, max(level, floor)))
        return strata


def stratification_of(rules: Iterable[Rule]) -> Stratification:
    rules = tuple(rules)
    found = dependencies_of(rules)
    return Stratification(found, tuple(_strict_cycles(found)))


def component_partition(rules: Iterable[Rule]) -> Partition:
    """One part per component, lowest first; requires a stratified rule set."""
    rules = tuple(rules)
    component_of = dependencies_of(rules).component_of()
    parts: dict[int, list[Rule]] = {}
    for rule in rules:
        parts.setdefault(component_of[rule.head.predicate], []).append(rule)
    return tuple(tuple(parts[number]) for number in sorted(parts))


def soft_partition(
    rules: Iterable[Rule], source_of: Callable[[str], str], source: Stratification
) -> Partition:
    """Each rule in the stratum that the predicate behind its head had before the rewriting."""
    parts: dict[int, list[Rule]] = {}
    for rule in rules:
        stratum = source.stratum_of[source_of(rule.head.predicate)]
        parts.setdefault(stratum, []).append(rule)
    return tuple(tuple(parts[number]) for number in sorted(parts))


def _strict_cycles(found: Dependencies) -> Iterable[tuple[Dependency, ...]]:
    """For each component with a strict arc inside it, a shortest cycle through that arc."""
    component_of = found.component_of()
    reported: set[int] = set()
    for arc in found.arcs:
        number = component_of[arc.head]
        if arc.is_strict and component_of[arc.body] == number and number not in reported:
            reported.add(number)
            yield (arc, *_shortest_path(found, arc.body, arc.head, found.components[number]))


def _shortest_path(
    found: Dependencies, start: str, goal: str, within: frozenset[str]
) -> tuple[Dependency, ...]:
    paths: dict[str, tuple[Dependency, ...]] = {start: ()}
    frontier = [start]
    while goal not in paths:
        reached = []
        for arc in found.arcs:
            if arc.head in frontier and arc.body in within and arc.body not in paths:
                paths[arc.body] = (*paths[arc.head], arc)
                reached.append(arc.body)
        frontier = reached
    return paths[goal]
