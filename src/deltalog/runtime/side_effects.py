"""Side effects of view updates: estimated to order a search, and counted to rank its answers.

    to delete can(ann, plan):   -member(ann, lab)      takes away what ann can see by the lab
                                -grant(lab, docs)      takes it away from everybody in the lab

A view fact is an effect of base facts of every relation below it. So a base fact has, on average,
as many effects as the views above its relation have facts for each of its own. That is little to
know, and is known without propagating anything: what is searched first is what promises few of
them. The exact count is that of the induced change, and is computed for answers only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from deltalog.language.ast import Rule
from deltalog.language.walk import atoms_of
from deltalog.runtime.realization import Budget, Realization, Wish

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Request = tuple[bool, str]
"""Insertions into a relation, or deletions from it."""


class Estimates:
    """Estimated effects of base changes, and the least that a request for a view can have."""

    def __init__(self, database: MemoryDatabase, rules: Mapping[str, tuple[Rule, ...]]) -> None:
        self._least: dict[Request, float] = {}
        for name, effects in _facts_above(database, rules).items():
            self._least[True, name] = self._least[False, name] = effects
        self._lower_estimates(rules)

    def _lower_estimates(self, rules: Mapping[str, tuple[Rule, ...]]) -> None:
        """Follow requests down to base relations, until none becomes less."""
        is_lower = True
        while is_lower:
            is_lower = False
            for view, own in rules.items():
                for atom, is_positive in (found for rule in own for found in atoms_of(rule.body)):
                    for holds in (True, False):
                        below = self._least.get((holds == is_positive, atom.predicate))
                        if below is not None and below < self.of(holds, view):
                            self._least[holds, view] = below
                            is_lower = True

    def of(self, holds: bool, relation: str) -> float:
        return self._least.get((holds, relation), float("inf"))

    def of_change(self, change: Iterable[Wish]) -> float:
        return sum(self.of(wish.holds, wish.relation) for wish in change)


def _facts_above(
    database: MemoryDatabase, rules: Mapping[str, tuple[Rule, ...]]
) -> Mapping[str, float]:
    """Facts of the stored views above every base relation, for each fact of it."""
    size, stored = database.engine.size, database.model.as_written.stored
    found = {name: 0.0 for name, each in database.relations.items() if each.kind == "base"}
    for view in rules:
        if view in stored:
            facts = size(view)
            for name in _relations_below(view, rules):
                if name in found:
                    found[name] += facts
    return {name: facts / max(1, size(name)) for name, facts in found.items()}


def _relations_below(view: str, rules: Mapping[str, tuple[Rule, ...]]) -> set[str]:
    seen: set[str] = set()
    waiting = [view]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            bodies = (rule.body for rule in rules.get(name, ()))
            waiting += [atom.predicate for body in bodies for atom, _ in atoms_of(body)]
    return seen


def by_side_effects(
    answers: Iterator[Realization | None], budget: Budget, skip: Callable[[str], None]
) -> Iterator[Realization]:
    """Sort answers that cost the same, those with the fewest side effects first.

    None among the answers says that what follows costs more. Side effects that the budget leaves
    no time to count are behind all others.
    """
    ends = time.monotonic() + budget.seconds
    shown = 0
    for level in _cost_levels(answers):
        for answer in _sort_by_effects(level, ends, skip):
            if budget.answers is not None and shown >= budget.answers:
                return skip(f"the budget of {budget.answers} answers is spent")
            yield answer
            shown += 1
    return None


def _cost_levels(answers: Iterator[Realization | None]) -> Iterator[list[Realization]]:
    held: list[Realization] = []
    for answer in answers:
        if answer is not None:
            held.append(answer)
        elif held:
            yield held
            held = []
    yield held


def _sort_by_effects(
    held: list[Realization], ends: float, skip: Callable[[str], None]
) -> Iterator[Realization]:
    counted: list[Realization] = []
    for answer in held:
        if time.monotonic() > ends:
            break
        assert answer.side_effect_count >= 0
        counted.append(answer)
    rest = held[len(counted) :]
    if rest:
        skip(f"there was no time to count the side effects of {len(rest)} realizations")
    yield from sorted(counted, key=lambda each: each.side_effect_count)
    yield from rest
