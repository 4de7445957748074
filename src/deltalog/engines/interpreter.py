"""Plans run in plain Python: what every step means, on any relations that can be walked.

The reference engine is this and nothing else. A faster engine uses it for what its kernels cannot
do, on its own relations.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from deltalog.engines.scalars import aggregate_value, comparison_holds, function_value
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
TICKS = 50_000
"""Rows looked at between two looks at the clock."""


class Walkable(Protocol):
    """A relation whose rows stand in the order they came, at positions that do not change."""

    @property
    def end(self) -> int:
        """The position the next row will get."""

    def __contains__(self, row: object) -> bool: ...

    def __iter__(self) -> Iterator[Row]: ...

    def add(self, row: Row) -> bool: ...

    def rank(self, row: Row) -> int:
        """When the row was added, comparable between relations of one engine."""

    def matching(self, columns: tuple[int, ...], key: Row, start: int, end: int) -> Iterable[Row]:
        """Rows between two positions that have these values in these columns."""


@dataclass
class RulesPart:
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
class DeletionPart:
    plan: RankedDeletion
    has_fired: bool = False

    def rewind(self) -> None:
        self.has_fired = False


Stored = TypeVar("Stored", bound=Walkable)


class Interpreter:
    """Runs plans on relations."""

    def __init__(self, relations: MutableMapping[str, Stored]) -> None:
        self.relations = relations
        self.rank_limit = 0
        self.has_passed_over = False
        self.ticks = 0
        self.checkpoint: Callable[[], None] | None = None

    def fire(self, plan: RulePlan, part: RulesPart, number: int) -> Iterable[Row]:
        """Yield what one rule derives from what it has not read yet.

        A head without columns has one row at most, so nothing is derived once that is there.
        """
        read = part.read[number]
        if plan.is_test and () in self.relations[plan.head]:
            return ()
        emitted: dict[Row, None] = {}
        if plan.initial is not None and not part.has_fired[number]:
            emitted.update(dict.fromkeys(self._run_once_if_constant(plan.initial, read)))
        for occurrence, variant in enumerate(plan.variants):
            if read[occurrence] < self.relations[plan.occurrences[occurrence]].end:
                emitted.update(dict.fromkeys(self._run_once_if_constant(variant, read)))
        part.has_fired[number] = True
        part.read[number] = [self.relations[name].end for name in plan.occurrences]
        if plan.aggregation is None:
            return emitted
        return [
            row for group in emitted for row in self._rows_of_group(plan.aggregation, group, read)
        ]

    def delete(self, part: DeletionPart) -> dict[str, int]:
        """Examine suspects in order of rank; see `plan/ranked_deletion.py`."""
        if part.has_fired:
            return {}
        part.has_fired = True
        plan = part.plan
        number_of = {name: number for number, name in enumerate(plan.predicates)}
        order = itertools.count()  # rows of equal rank are not compared: null has no place
        waiting = [
            (self.relations[name].rank(row), next(order), number, row)
            for number, name in enumerate(plan.predicates)
            for row in self.relations[plan.suspects[number]]
            if row in self.relations[name]
        ]
        heapq.heapify(waiting)
        seen = {(number, row) for *_, number, row in waiting}
        new: dict[str, int] = {}
        while waiting:
            rank, _, number, row = heapq.heappop(waiting)
            if self._is_supported(plan.support[number], row, rank):
                continue
            for made in (plan.deleted, plan.doubtful)[: 1 + self.has_passed_over]:
                self.relations[made[number]].add(row)
                new[made[number]] = new.get(made[number], 0) + 1
            for head, pipeline in plan.lost[number]:
                for derived in self._run_pipeline(pipeline, [], row):
                    entry = (number_of[head], derived)
                    if entry in seen or derived not in self.relations[head]:
                        continue
                    derived_rank = self.relations[head].rank(derived)
                    if derived_rank > rank:
                        seen.add(entry)
                        heapq.heappush(waiting, (derived_rank, next(order), *entry))
        return new

    def _is_supported(self, pipelines: tuple[Pipeline, ...], row: Row, rank: int) -> bool:
        self.rank_limit = rank
        self.has_passed_over = False
        return any(True for pipeline in pipelines for _ in self._run_pipeline(pipeline, [], row))

    def _rows_of_group(
        self, aggregation: Aggregation, group: Row, read: list[int]
    ) -> Iterator[Row]:
        bindings = list(dict.fromkeys(self._run_pipeline(aggregation.bindings, read, group)))
        if not bindings:
            return
        row: list[Value] = []
        for part in aggregation.head:
            if isinstance(part, Total):
                column = part.column
                values = [None if column is None else b[column] for b in bindings]
                total = aggregate_value(part.function, part.type, values)
                if total is None and any(value is not None for value in values):
                    return  # it has no value in its type, so the fact does not hold
                row.append(total)
            else:
                row.append(part.value if isinstance(part, Fixed) else group[part.index])
        yield tuple(row)

    def _run_once_if_constant(self, pipeline: Pipeline, read: list[int]) -> Iterator[Row]:
        """Yield what a pipeline emits; one row is enough where all are the same."""
        rows = self._run_pipeline(pipeline, read)
        is_single = not any(isinstance(value, Slot) for value in pipeline.output)
        return itertools.islice(rows, 1) if is_single else rows

    def _run_pipeline(self, pipeline: Pipeline, read: list[int], inputs: Row = ()) -> Iterator[Row]:
        slots: Slots = [*inputs, *([None] * (pipeline.slots - len(inputs)))]
        for _ in self._run_steps(pipeline, 0, slots, read):
            yield tuple(_value_of_operand(value, slots) for value in pipeline.output)

    def _run_steps(
        self, pipeline: Pipeline, number: int, slots: Slots, read: list[int]
    ) -> Iterator[None]:
        """Every way through the steps from `number` on; the slots hold the bindings."""
        if number == len(pipeline.steps):
            yield
            return
        step = pipeline.steps[number]
        match step:
            case Match():
                for row in self._matching_rows(step, slots, read):
                    self._count_tick()
                    for column, slot in step.bind:
                        slots[slot.index] = row[column]
                    if all(row[column] == slots[slot.index] for column, slot in step.same):
                        yield from self._run_steps(pipeline, number + 1, slots, read)
            case Absent():
                if not self._has_match(step, slots):
                    yield from self._run_steps(pipeline, number + 1, slots, read)
            case Test():
                if _test_holds(step, slots):
                    yield from self._run_steps(pipeline, number + 1, slots, read)
            case Assign():
                has_value, slots[step.slot.index] = _evaluate_operand(step.value, slots)
                if has_value:
                    yield from self._run_steps(pipeline, number + 1, slots, read)

    def _count_tick(self) -> None:
        """Now and then, see whether a limit has been reached in the middle of a round."""
        self.ticks += 1
        if self.ticks % TICKS == 0 and self.checkpoint is not None:
            self.checkpoint()

    def _matching_rows(self, step: Match, slots: Slots, read: list[int]) -> Iterable[Row]:
        columns = tuple(column for column, _ in step.key)
        key = tuple(_value_of_operand(value, slots) for _, value in step.key)
        if isinstance(step.relation, Overlay):
            kept: Iterable[Row] = ()
            if step.window is not Window.NEW:
                kept = self._rows_not_overdeleted(step.relation, columns, key)
            if step.is_ranked:
                kept = self._rows_below_rank_limit(step, kept)
            if step.relation.plus is None:
                return kept
            plus = self.relations[step.relation.plus]
            return [*kept, *_in_window(plus, step, columns, key, read)]
        return _in_window(self.relations[step.relation], step, columns, key, read)

    def _rows_not_overdeleted(
        self, overlay: Overlay, columns: tuple[int, ...], key: Row
    ) -> list[Row]:
        """Yield the rows that an overlay has of its stored relation."""
        stored, minus = self.relations[overlay.stored], self.relations[overlay.minus]
        return [row for row in stored.matching(columns, key, 0, stored.end) if row not in minus]

    def _rows_below_rank_limit(self, step: Match, rows: Iterable[Row]) -> Iterable[Row]:
        """Of the rows of a ranked match, those older than the fact that is examined."""
        assert isinstance(step.relation, Overlay)
        stored = self.relations[step.relation.stored]
        rows = list(rows)
        older = [row for row in rows if stored.rank(row) < self.rank_limit]
        self.has_passed_over |= len(older) < len(rows)
        return older

    def _has_match(self, step: Absent, slots: Slots) -> bool:
        as_match = Match(step.relation, step.key)
        return bool(self._matching_rows(as_match, slots, []))


def _in_window(
    relation: Walkable, step: Match, columns: tuple[int, ...], key: Row, read: list[int]
) -> Iterable[Row]:
    start, end = 0, relation.end
    if step.window is Window.NEW:
        start = read[step.occurrence]
    elif step.window is Window.OLD:
        end = read[step.occurrence]
    return relation.matching(columns, key, start, end)


def _value_of_operand(value: Slot | Fixed, slots: Slots) -> Value:
    return value.value if isinstance(value, Fixed) else slots[value.index]


def _evaluate_operand(operand: Operand, slots: Slots) -> tuple[bool, Value]:
    """Whether the operand has a value, and which; null is a value, what has none is not."""
    if not isinstance(operand, Compute):
        return True, _value_of_operand(operand, slots)
    result = function_value(
        operand.function,
        operand.type,
        [_evaluate_operand(inner, slots)[1] for inner in operand.operands],
    )
    return result is not None, result


def _test_holds(step: Test, slots: Slots) -> bool:
    has_left, left = _evaluate_operand(step.left, slots)
    has_right, right = _evaluate_operand(step.right, slots)
    return has_left and has_right and comparison_holds(step.operator, left, right)
