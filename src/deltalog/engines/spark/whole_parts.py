"""Parts that run to their fixpoint at once, by an engine of one process.

On the driver if all that they read is there, in tasks if their recursion has a pivot.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import RANK, name_of, shared_names
from deltalog.engines.spark.frames import Frames, relation_frame
from deltalog.engines.spark.local_fixpoint import (
    MakeEngine,
    localise_plan,
    reference_name,
    references_of_plans,
    run_to_fixpoint,
)
from deltalog.engines.spark.partitions import SOURCE, Source, run_partitions
from deltalog.engines.spark.parts import SparkPart
from deltalog.engines.spark.probes import count_columns, spread_of
from deltalog.engines.spark.storage import Storage
from deltalog.language.ast import Row
from deltalog.plan.nodes import Absent, Match, Overlay, Pipeline, Window
from deltalog.plan.pivots import Pivot, Reference

COPIED_SHARE = 4
"""Rows that an engine of this process may be sent for each one that is read from end to end."""


class WholeParts(Storage):
    """`local` makes the engine of one process."""

    local: MakeEngine

    def driver_fixpoint(self, part: SparkPart) -> dict[str, int] | None:
        """The whole fixpoint of a part by an engine of this process, if all it reads is here.

        Aborted when it derives more than the driver should hold: the part is large then.
        """
        if part.is_soft or any(part.has_fired) or not self._is_worth_copying(part):
            return None
        heads = tuple(dict.fromkeys(plan.head for plan in part.plans))
        engine = self.local()
        for name in heads:
            engine.create(name, self.relations[name].types)
            engine.insert(name, self.rows(name))
        for each in dict.fromkeys(references_of_plans(part.plans)):
            if each not in heads:
                name = each.stored if isinstance(each, Overlay) else each
                engine.create(reference_name(each), self.relations[name].types)
                engine.insert(reference_name(each), self._local_rows(each))
        if not run_to_fixpoint(
            engine, tuple(map(localise_plan, part.plans)), self.settings.driver_rows_max
        ):
            part.is_large = True
            return None
        before = {name: self.size(name) for name in heads}
        for name, row in engine.history(heads):
            self.relations[name].add(row)
        return self._finish_part(part, before)

    def _is_worth_copying(self, part: SparkPart) -> bool:
        """Whether much is read from end to end, compared with what must be copied."""
        scanned = sum(
            self.state_size(pipeline.steps[0].relation)
            for plan in part.plans
            for pipeline in plan.pipelines[:1]
            if pipeline.steps and isinstance(pipeline.steps[0], Match) and not pipeline.inputs
        )
        if scanned < self.settings.scanned_rows_min:  # a small change: nothing more is looked at
            return False
        read = set(references_of_plans(part.plans))
        grows = {name for plan in part.plans for name in (plan.head, *plan.occurrences)}
        parts = {name for each in read for name in _relations_of_state(each)}
        if any(isinstance(each, Overlay) and each.plus in grows for each in read):
            return False
        if any(self.relations[name].has_frames() for name in parts | grows):
            return False
        return sum(map(self.state_size, read | grows)) <= COPIED_SHARE * scanned

    def _local_rows(self, reference: Reference) -> Iterator[Row]:
        """The rows of a state all of which is on the driver."""
        if not isinstance(reference, Overlay):
            yield from self.rows(reference)
            return
        minus = self.relations[reference.minus]
        yield from (row for row in self.rows(reference.stored) if row not in minus)
        yield from () if reference.plus is None else self.rows(reference.plus)

    def _finish_part(self, part: SparkPart, before: dict[str, int]) -> dict[str, int]:
        """A part has read everything; returns what is new."""
        part.has_fired = [True] * len(part.plans)
        part.read = [[self.relations[n].end for n in plan.occurrences] for plan in part.plans]
        self.grown.update(before)
        return {name: new for name, size in before.items() if (new := self.size(name) - size)}

    def partition_round(self, part: SparkPart) -> dict[str, int] | None:
        """The whole fixpoint of a part in one job, if it has a pivot and begins on the cluster.

        In a soft partition parts below may have to run between its rounds, so it does not apply.
        """
        found = part.pivot
        if found is None or part.is_soft or any(part.has_fired):
            return None
        heads = {name: self.relations[name] for name in found.columns}
        if any(len(store) for store in heads.values()) or not self._is_worth_it(part, found):
            return None
        sources = self._sources_of_pivot(found)
        plans = tuple(map(localise_plan, found.recursive))
        types = {name: store.types for name, store in heads.items()}
        partitions = self._count_partitions()
        self.jobs["partitions"] += 1
        result = run_partitions(
            self.spark, sources, types, plans, partitions, self.clock.now, self.local
        )
        result = result.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        columns = result.columns[2:]
        found_rows = result.groupBy(SOURCE).agg(*count_columns(columns)).collect()
        counts = {row[0]: row[1:] for row in found_rows}
        self.clock.skip(sum(count[0] for count in counts.values()))
        for number, store in enumerate(heads.values()):
            names = shared_names(store.types)
            own = [F.col(n).alias(name_of(i)) for i, n in enumerate(names)]
            data = result.where(F.col(SOURCE) == number).select(*own, F.col(RANK))
            count, *values = counts.get(number, (0, *(0 for _ in columns)))
            spread = spread_of([count, *(values[columns.index(name)] for name in names)])
            self.place(store, data, count, result, spread)
        return self._finish_part(part, dict.fromkeys(heads, 0))

    def _is_worth_it(self, part: SparkPart, found: Pivot) -> bool:
        """Whether it starts from something large, and what every task gets is not too much.

        A recursion that starts from a small change is cheaper by probes.
        """
        copied = sum(self.state_size(each) for each in found.copied)
        starts_large = part.is_large or any(
            self.scans(pipeline, []) for plan in found.exits for pipeline in plan.pipelines
        )
        return starts_large and copied <= self.settings.shipped_rows_max

    def state_size(self, reference: Reference) -> int:
        if not isinstance(reference, Overlay):
            return self.size(reference)
        plus = 0 if reference.plus is None else self.size(reference.plus)
        return self.size(reference.stored) + plus

    def _sources_of_pivot(self, found: Pivot) -> list[Source]:
        """Relations that tasks read: facts of rules that are not recursive, and other inputs."""
        frames = Frames(self.spark, self.relations)
        sources = []
        for name, column in found.columns.items():
            types = self.relations[name].types
            seeds = [frames.derived(plan, [], False) for plan in found.exits if plan.head == name]
            known = [data for data in seeds if data is not None]
            data = reduce(
                DataFrame.unionAll, known, relation_frame(self.spark, self.relations[name])
            )
            sources.append(Source(name, types, data.distinct(), column))
        for each in (*found.shared, *found.copied):
            data = frames.read(Match(each), [])
            types = frames.types(each)
            sources.append(Source(reference_name(each), types, data, found.shared.get(each)))
        return sources

    def _count_partitions(self) -> int:
        partitions = self.settings.partitions
        return partitions or int(self.spark.conf.get("spark.sql.shuffle.partitions") or "2")

    def scans(self, pipeline: Pipeline, read: list[int]) -> bool:
        return any(
            isinstance(step, Match | Absent) and not step.key and self._has_frames(step, read)
            for step in pipeline.steps
        )

    def _has_frames(self, step: Match | Absent, read: list[int]) -> bool:
        window = step.window if isinstance(step, Match) else Window.ALL
        names = [step.relation] if isinstance(step.relation, str) else []
        if isinstance(step.relation, Overlay):
            if window is not Window.NEW and self.relations[step.relation.stored].has_frames():
                return True
            names = [] if step.relation.plus is None else [step.relation.plus]
        for name in names:
            relation = self.relations[name]
            occurrence = step.occurrence if isinstance(step, Match) else 0
            start = read[occurrence] if window is Window.NEW else 0
            end = read[occurrence] if window is Window.OLD else relation.end
            if relation.has_frames(start, end):
                return True
        return False


def _relations_of_state(reference: Reference) -> tuple[str, ...]:
    """The relations that a state is made of."""
    if not isinstance(reference, Overlay):
        return (reference,)
    plus = () if reference.plus is None else (reference.plus,)
    return (reference.stored, reference.minus, *plus)
