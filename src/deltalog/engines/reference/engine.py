"""The meaning of the language: Python lists and dictionaries, slow and obvious.

Every other engine and every strategy must give what this one gives.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from deltalog.engines.base import Part
from deltalog.engines.reference.relation import Relation
from deltalog.engines.scalars import aggregate, compute, holds
from deltalog.language.ast import Row, Value
from deltalog.plan.nodes import (
    Absent,
    Aggregation,
    Assign,
    Compute,
    Fixed,
    Match,
    Operand,
    Overlay,
    Pipeline,
    RankedDeletion,
    RulePlan,
    Slot,
    Test,
    Total,
    Window,
)

Slots = list[Value]


@dataclass
class ReferencePart:
    """Plans, and per plan and occurrence the position up to which it has been read."""

    plans: tuple[RulePlan, ...]
    read: list[list[int]] = field(default_factory=list)
    has_fired: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rewind()

    def rewind(self) -> None:
        self.read = [[0] * len(plan.occurrences) for plan in self.plans]
        self.has_fired = [False] * len(self.plans)


@dataclass
class ReferenceDeletion:
    plan: RankedDeletion
    has_fired: bool = False

    def rewind(self) -> None:
        self.has_fired = False


class ReferenceEngine:
    name = "reference"

    def __init__(self) -> None:
        self.relations: dict[str, Relation] = {}
        self.clock = itertools.count()
        self.rank_limit = 0

    # --- relations

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        self.relations.setdefault(relation, Relation(self.clock))

    def drop(self, relation: str) -> None:
        self.relations.pop(relation, None)

    def clear(self, relation: str) -> None:
        self.relations[relation].clear()

    def size(self, relation: str) -> int:
        return len(self.relations[relation])

    def rows(self, relation: str) -> Iterator[Row]:
        return iter(self.relations[relation])

    def contains(self, relation: str, row: Row) -> bool:
        return row in self.relations[relation].position

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        store = self.relations[relation]
        return sum(store.add(row) for row in rows)

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        store = self.relations[relation]
        return sum(store.remove(row) for row in rows)

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        store = self.relations[relation]
        columns = tuple(sorted(key))
        values: Row = tuple(key[column] for column in columns)  # type: ignore[misc]
        return iter(store.matching(columns, values, 0, store.end))

    def history(self, relations: Sequence[str]) -> Iterator[tuple[str, Row]]:
        stamped = [
            (self.relations[name].rank(row), name, row)
            for name in relations
            for row in self.rows(name)
        ]
        return ((name, row) for _, name, row in sorted(stamped, key=lambda entry: entry[0]))

    # --- rounds

    def prepare(self, plans: tuple[RulePlan, ...]) -> ReferencePart:
        return ReferencePart(plans)

    def prepare_deletion(self, plan: RankedDeletion) -> ReferenceDeletion:
        return ReferenceDeletion(plan)

    def run_round(self, part: Part) -> dict[str, int]:
        if isinstance(part, ReferenceDeletion):
            return self._delete(part)
        assert isinstance(part, ReferencePart)
        derived = [
            (plan.head, row)
            for number, plan in enumerate(part.plans)
            for row in self._fire(plan, part, number)
        ]
        new: dict[str, int] = {}
        for head, row in derived:
            if self.relations[head].add(row):
                new[head] = new.get(head, 0) + 1
        return new

    def _fire(self, plan: RulePlan, part: ReferencePart, number: int) -> Iterable[Row]:
        """What one rule derives from what it has not read yet."""
        read = part.read[number]
        emitted: dict[Row, None] = {}
        if plan.initial is not None and not part.has_fired[number]:
            emitted.update(dict.fromkeys(self._run(plan.initial, read)))
        for occurrence, variant in enumerate(plan.variants):
            if read[occurrence] < self.relations[plan.occurrences[occurrence]].end:
                emitted.update(dict.fromkeys(self._run(variant, read)))
        part.has_fired[number] = True
        part.read[number] = [self.relations[name].end for name in plan.occurrences]
        if plan.aggregation is None:
            return emitted
        return [row for group in emitted for row in self._aggregated(plan.aggregation, group, read)]

    def _delete(self, part: ReferenceDeletion) -> dict[str, int]:
        """Examine suspects in order of rank; see `plan/ranked_deletion.py`."""
        if part.has_fired:
            return {}
        part.has_fired = True
        plan = part.plan
        number_of = {name: number for number, name in enumerate(plan.predicates)}
        waiting = [
            (self.relations[name].rank(row), number, row)
            for number, name in enumerate(plan.predicates)
            for row in self.rows(plan.suspects[number])
            if self.contains(name, row)
        ]
        heapq.heapify(waiting)
        seen = {(number, row) for _, number, row in waiting}
        new: dict[str, int] = {}
        while waiting:
            rank, number, row = heapq.heappop(waiting)
            if self._is_supported(plan.support[number], row, rank):
                continue
            self.relations[plan.deleted[number]].add(row)
            new[plan.deleted[number]] = new.get(plan.deleted[number], 0) + 1
            for head, pipeline in plan.lost[number]:
                for derived in self._run(pipeline, [], row):
                    entry = (number_of[head], derived)
                    if entry in seen or not self.contains(head, derived):
                        continue
                    derived_rank = self.relations[head].rank(derived)
                    if derived_rank > rank:
                        seen.add(entry)
                        heapq.heappush(waiting, (derived_rank, *entry))
        return new

    def _is_supported(self, pipelines: tuple[Pipeline, ...], row: Row, rank: int) -> bool:
        self.rank_limit = rank
        return any(True for pipeline in pipelines for _ in self._run(pipeline, [], row))

    def _aggregated(self, aggregation: Aggregation, group: Row, read: list[int]) -> Iterator[Row]:
        bindings = list(dict.fromkeys(self._run(aggregation.bindings, read, group)))
        if not bindings:
            return
        row: list[Value] = []
        for part in aggregation.head:
            if isinstance(part, Total):
                column = part.column
                values = [None if column is None else b[column] for b in bindings]
                total = aggregate(part.function, part.type, values)
                if total is None and any(value is not None for value in values):
                    return  # it has no value in its type, so the fact does not hold
                row.append(total)
            else:
                row.append(part.value if isinstance(part, Fixed) else group[part.index])
        yield tuple(row)

    def _run(self, pipeline: Pipeline, read: list[int], given: Row = ()) -> Iterator[Row]:
        slots: Slots = [*given, *([None] * (pipeline.slots - len(given)))]
        for _ in self._steps(pipeline, 0, slots, read):
            yield tuple(_plain(value, slots) for value in pipeline.output)

    def _steps(
        self, pipeline: Pipeline, number: int, slots: Slots, read: list[int]
    ) -> Iterator[None]:
        """Every way through the steps from `number` on; the slots hold the bindings."""
        if number == len(pipeline.steps):
            yield
            return
        step = pipeline.steps[number]
        match step:
            case Match():
                for row in self._matches(step, slots, read):
                    for column, slot in step.bind:
                        slots[slot.index] = row[column]
                    if all(row[column] == slots[slot.index] for column, slot in step.same):
                        yield from self._steps(pipeline, number + 1, slots, read)
            case Absent():
                if not self._exists(step, slots):
                    yield from self._steps(pipeline, number + 1, slots, read)
            case Test():
                if _test(step, slots):
                    yield from self._steps(pipeline, number + 1, slots, read)
            case Assign():
                has_value, slots[step.slot.index] = _evaluated(step.value, slots)
                if has_value:
                    yield from self._steps(pipeline, number + 1, slots, read)

    def _matches(self, step: Match, slots: Slots, read: list[int]) -> Iterable[Row]:
        columns = tuple(column for column, _ in step.key)
        key = tuple(_plain(value, slots) for _, value in step.key)
        if isinstance(step.relation, Overlay):
            kept: Iterable[Row] = ()
            if step.window is not Window.NEW:
                kept = self._kept(step.relation, columns, key)
            if step.is_ranked:
                kept = self._older(step, kept)
            if step.relation.plus is None:
                return kept
            plus = self.relations[step.relation.plus]
            return [*kept, *_in_window(plus, step, columns, key, read)]
        return _in_window(self.relations[step.relation], step, columns, key, read)

    def _kept(self, overlay: Overlay, columns: tuple[int, ...], key: Row) -> list[Row]:
        """What an overlay has of its stored relation."""
        stored, minus = self.relations[overlay.stored], self.relations[overlay.minus].position
        return [row for row in stored.matching(columns, key, 0, stored.end) if row not in minus]

    def _older(self, step: Match, rows: Iterable[Row]) -> Iterable[Row]:
        """Of the rows of a ranked match, those older than the fact that is examined."""
        assert isinstance(step.relation, Overlay)
        stored = self.relations[step.relation.stored]
        return [row for row in rows if stored.rank(row) < self.rank_limit]

    def _exists(self, step: Absent, slots: Slots) -> bool:
        as_match = Match(step.relation, step.key)
        return bool(self._matches(as_match, slots, []))


def _in_window(
    relation: Relation, step: Match, columns: tuple[int, ...], key: Row, read: list[int]
) -> Iterable[Row]:
    start, end = 0, relation.end
    if step.window is Window.NEW:
        start = read[step.occurrence]
    elif step.window is Window.OLD:
        end = read[step.occurrence]
    return relation.matching(columns, key, start, end)


def _plain(value: Slot | Fixed, slots: Slots) -> Value:
    return value.value if isinstance(value, Fixed) else slots[value.index]


def _evaluated(operand: Operand, slots: Slots) -> tuple[bool, Value]:
    """Whether the operand has a value, and which; null is a value, what has none is not."""
    if not isinstance(operand, Compute):
        return True, _plain(operand, slots)
    result = compute(
        operand.function,
        operand.type,
        [_evaluated(inner, slots)[1] for inner in operand.operands],
    )
    return result is not None, result


def _test(step: Test, slots: Slots) -> bool:
    has_left, left = _evaluated(step.left, slots)
    has_right, right = _evaluated(step.right, slots)
    return has_left and has_right and holds(step.operator, left, right)
