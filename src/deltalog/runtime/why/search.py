"""Search proofs of least height, backwards from facts, level by level.

    level 1   instances that derive the goal
    level 2   instances that derive their premises, and so on

A proof of height h uses only facts that are less than h levels away from its goal. So once the
facts of h levels have all their instances, every proof of height up to h is among them, and a goal
that has one of height h or less has its least. Heights are a least fixpoint over the instances
found (base facts: 0; an instance: one more than its highest premise), kept up to date as instances
come. No fact is a premise of itself, since a premise is always lower.

Each level costs a query for each rule (`state.py`). The search ends with the goals, so it never
looks at more than the part of the database that lies that near.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from deltalog.runtime.derivation import Fact
from deltalog.runtime.why.clauses import Clauses
from deltalog.runtime.why.instances import Instance, rule_instances
from deltalog.runtime.why.state import AskedState

FACTS_MAX = 200_000
"""Facts whose derivations are looked for before a search ends without a result."""
INSTANCES_MAX = 1_000_000


@dataclass
class ProofSearch:
    """Instances found so far, and for each fact the lowest of its proofs among them."""

    state: AskedState
    clauses: Clauses
    facts_max: int = FACTS_MAX
    heights: dict[Fact, int] = field(default_factory=dict)
    chosen: dict[Fact, Instance] = field(default_factory=dict)
    found: dict[Fact, list[Instance]] = field(default_factory=dict)
    _using: dict[Fact, list[tuple[Fact, Instance]]] = field(default_factory=dict)
    _count: int = 0

    def least(self, goals: Collection[Fact]) -> bool:
        """Find a proof of least height for each of the goals, which hold.

        False if the bounds are reached before.
        """
        level, frontier = 0, self._new_view_facts(goals)
        while any(self.heights.get(goal, level + 1) > level for goal in goals):
            if not frontier:  # every instance is known, however high
                return all(goal in self.heights for goal in goals)
            if self.is_exhausted:
                return False
            frontier = self._expand_frontier(frontier)
            level += 1
        return True

    def every(self, goals: Collection[Fact]) -> bool:
        """Find all instances that take part in any derivation of the goals."""
        frontier = self._new_view_facts(goals)
        while frontier and not self.is_exhausted:
            frontier = self._expand_frontier(frontier)
        return not frontier

    @property
    def is_exhausted(self) -> bool:
        return len(self.found) >= self.facts_max or self._count >= INSTANCES_MAX

    def _new_view_facts(self, facts: Iterable[Fact]) -> list[Fact]:
        """Those of the facts that rules derive, if they are new; others have height 0."""
        fresh: dict[Fact, None] = {}
        for fact in facts:
            if fact[0] not in self.clauses:
                self.heights[fact] = 0
            elif fact not in self.found:
                fresh[fact] = None
        return list(fresh)

    def _expand_frontier(self, frontier: list[Fact]) -> list[Fact]:
        """Find the instances of all these facts; returns their premises that are new."""
        for fact in frontier:
            self.found[fact] = []
        next_: dict[Fact, None] = {}
        for fact, instance in rule_instances(self.state, self.clauses, frontier):
            self.found[fact].append(instance)
            self._count += 1
            next_.update(dict.fromkeys(self._new_view_facts(instance.facts)))
            for premise in set(instance.facts):
                self._using.setdefault(premise, []).append((fact, instance))
            self._lower_heights(fact, instance)
        return [fact for fact in next_ if fact not in self.found]

    def _lower_heights(self, fact: Fact, instance: Instance) -> None:
        """Lower the heights of a fact, and of those above it, by what an instance allows."""
        pending = deque([(fact, instance)])
        while pending:
            fact, instance = pending.popleft()
            height = self._instance_height(instance)
            if height is None or self.heights.get(fact, height + 1) <= height:
                continue
            self.heights[fact], self.chosen[fact] = height, instance
            pending.extend(self._using.get(fact, ()))

    def _instance_height(self, instance: Instance) -> int | None:
        highest = 0
        for fact in instance.facts:
            height = self.heights.get(fact)
            if height is None:
                return None
            highest = max(highest, height)
        return highest + 1

    def needed(self, goals: Iterable[Fact]) -> Iterator[Fact]:
        """Yield the goals and every fact that their chosen proofs use, lower ones first."""
        seen: dict[Fact, None] = dict.fromkeys(goals)
        pending = list(seen)
        while pending:
            instance = self.chosen.get(pending.pop())
            for fact in () if instance is None else instance.facts:
                if fact not in seen:
                    seen[fact] = None
                    pending.append(fact)
        yield from sorted(seen, key=lambda fact: self.heights[fact])
