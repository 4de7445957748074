"""The Spark engine: relations live where their size says, and rounds run where their input is.

Small relations, and what a transaction derives from them, stay on the driver: rules over them cost
no Spark job. Large ones are frames on the cluster (`storage.py`). In a round, each rule goes one of
two ways:

- *driver*: what is new is small, and the cluster is only probed (`probing.py`): the keys that all
  rules of the round need next are fetched together, one job for each step deep they go;
- *cluster*: it reads something large from end to end, so it becomes a DataFrame (`frames.py`). What
  it derives is compared with what is known and kept as a new frame, its lineage cut, or brought to
  the driver if it is small.

Two shortcuts run all rounds of a part at once, with an engine of one process: on the driver if all
it reads is there, in tasks if it has a pivot (`whole_parts.py`).

A round derives first and adds at the end, whichever way its rules went. Ranks: rows added by the
driver get one each, rows of a frame share that of their round. Both are above the ranks of the
facts they were derived from, which is all that deletion by rank needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.base import AbortedError, Capabilities, Part
from deltalog.engines.interpreter import RulesPart
from deltalog.engines.spark.columns import RANK, name_of, rows_in
from deltalog.engines.spark.frames import Frames, relation_frame, rows_without
from deltalog.engines.spark.local_fixpoint import (
    MakeEngine,
)
from deltalog.engines.spark.lookahead import Lookup, deletion_lookups, next_lookups
from deltalog.engines.spark.parts import SparkDeletion, SparkPart
from deltalog.engines.spark.probes import look_at_columns
from deltalog.engines.spark.probing import ProbingInterpreter
from deltalog.engines.spark.relation import SparkRelation
from deltalog.engines.spark.session import active_or_new_session
from deltalog.engines.spark.settings import Settings
from deltalog.engines.spark.storage import PROBES_MAX
from deltalog.engines.spark.whole_parts import WholeParts
from deltalog.engines.stepped_sequence import SteppedSequence
from deltalog.engines.stepped_wave import SteppedWave
from deltalog.language.ast import Row, Value
from deltalog.plan.nodes import Match, RankedDeletion, RulePlan
from deltalog.plan.pivots import pivot_of

JOBS_MIN, FACTS_PER_JOB = 10, 150_000
"""Cost of a deletion before it is aborted, in jobs that fetch what it looks up: while one of them
runs, tasks derive `FACTS_PER_JOB` facts."""


@dataclass
class Round:
    """Results of a round: rows derived on the driver, and the rules that go to the cluster."""

    derived: list[tuple[str, Row]] = field(default_factory=list)
    to_cluster: list[int] = field(default_factory=list)


class SparkEngine(WholeParts):
    """`local` makes the engine that tasks run, and the driver where much is derived from little."""

    name = "spark"
    capabilities = Capabilities(
        fact_bytes=1,  # large relations are elsewhere
        has_samples=False,  # one would take a job
        has_twins=True,
        prefetches=True,
        takes_frames=True,
    )

    def __init__(
        self,
        local: MakeEngine,
        spark: SparkSession | None = None,
        settings: Settings | None = None,
    ) -> None:
        spark = spark or active_or_new_session()
        super().__init__(spark, settings or Settings.of(spark))
        self.local = local
        self.interpreter = ProbingInterpreter(self.relations, self.needs)

    def fresh(self) -> SparkEngine:
        return SparkEngine(self.local, self.spark, self.settings)

    def twin(self) -> SparkEngine:
        return self.fresh()

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        self.interpreter.checkpoint = checkpoint

    def prepare(self, plans: tuple[RulePlan, ...]) -> RulesPart:
        self._tidy_grown()
        self._expect_lookups(next_lookups(plans))
        return SparkPart(plans, pivot=pivot_of(plans))

    def prepare_deletion(self, plan: RankedDeletion) -> SparkDeletion:
        self._expect_lookups(deletion_lookups(plan))
        return SparkDeletion(plan)

    def values(self, relation: str, column: int) -> set[Value]:
        store = self.relations[relation]
        if not store.has_frames():
            return {row[column] for row in self.rows(relation)}
        self.jobs["values"] += 1
        found = relation_frame(self.spark, store).select(name_of(column)).distinct().toArrow()
        rows = rows_in(found.columns, (store.types[column],), found.num_rows)
        return {value for (value,) in rows}

    def _expect_lookups(self, found: Iterable[tuple[str, Lookup]]) -> None:
        for name, lookup in found:
            self.lookups.setdefault(name, set()).add(lookup)

    def wave(self, stations: int) -> SteppedWave:
        return SteppedWave(self, stations)

    def sequence(self, parts: Collection[Part], is_soft: bool, may_abort: bool) -> SteppedSequence:
        for part in parts:
            if isinstance(part, SparkPart):
                part.is_soft = is_soft
            elif isinstance(part, SparkDeletion):
                part.may_abort = may_abort
        return SteppedSequence(self, parts, is_soft)

    def run_round(self, part: Part) -> dict[str, int]:
        if isinstance(part, SparkDeletion):
            return self._run_deletion(part)
        assert isinstance(part, SparkPart)
        if self._derives_nothing(part):
            return {}
        for shortcut in (self.driver_fixpoint, self.partition_round):
            at_once = shortcut(part)
            if at_once is not None:
                return at_once
        marks = [list(read) for read in part.read], list(part.has_fired)
        result = self._driver_round(part)
        frames = self._cluster_round(part, result.to_cluster, *marks)
        before = {plan.head: self.size(plan.head) for plan in part.plans}
        self._add_derived(result.derived)
        for head, data in frames.items():
            self._add_frame(self.relations[head], data)
        return {head: new for head in before if (new := self.size(head) - before[head])}

    def _derives_nothing(self, part: SparkPart) -> bool:
        """Whether no rule has anything new to read: most parts of a small change are so.

        Rules that have not fired count if they begin with something that is empty.
        """
        for plan, read, has_fired in zip(part.plans, part.read, part.has_fired, strict=True):
            initial = None if has_fired else plan.initial
            if initial is not None:
                first = initial.steps[0] if initial.steps else None
                if not isinstance(first, Match) or self.state_size(first.relation):
                    return False
            for name, position in zip(plan.occurrences, read, strict=True):
                if position < self.relations[name].end:
                    return False
        return True

    def _run_deletion(self, part: SparkDeletion) -> dict[str, int]:
        """Ranked deletion on the driver; it starts again whenever it learns more.

        If it may be, it is aborted when computing everything anew would have taken less time, and
        at once if it begins from more than the driver should hold.
        """

        def deletion() -> dict[str, int]:
            part.rewind()
            for name in (*part.plan.deleted, *part.plan.doubtful):
                self.relations[name].clear()
            return self.interpreter.delete(part)

        if part.has_fired or not any(self.size(name) for name in part.plan.suspects):
            part.has_fired = True
            return {}
        for name in part.plan.predicates:
            for piece in self.relations[name].frames:
                if not piece.spread:
                    self.jobs["statistics"] += 1
                    look_at_columns(piece, self.relations[name].types)

        def look_around() -> None:
            for name, *sides in zip(
                part.plan.predicates, part.plan.suspects, part.plan.deleted, strict=True
            ):
                rows = [r for side in sides for piece in self.relations[side].locals for r in piece]
                self.look_around(name, rows)

        if not part.may_abort:
            return self.asked(deletion, look_around)
        if any(self.relations[name].has_frames() for name in part.plan.suspects):
            raise AbortedError
        facts = sum(map(self.size, part.plan.predicates))
        return self.asked(deletion, look_around, JOBS_MIN + facts // FACTS_PER_JOB)

    def _driver_round(self, part: SparkPart) -> Round:
        result = Round()
        waiting: list[int] = []
        for number, plan in enumerate(part.plans):
            is_heavy = self._is_heavy(plan, part, number)
            (result.to_cluster if is_heavy else waiting).append(number)
        for _ in range(PROBES_MAX):
            waiting = self._fire_rules(part, waiting, result)
            if not waiting:
                return result
            if len(self.needs) > self.settings.probe_keys_max:
                self.needs.clear()
                result.to_cluster += waiting
                return result
            self.fetch(is_widened=True)
        raise AssertionError("a round does not come to an end")

    def _fire_rules(self, part: RulesPart, numbers: list[int], result: Round) -> list[int]:
        """Fire rules on what the driver knows; returns those that need more."""
        unfinished = []
        for number in numbers:
            plan = part.plans[number]
            read, has_fired = part.read[number], part.has_fired[number]
            before = self.needs.misses
            rows = [(plan.head, row) for row in self.interpreter.fire(plan, part, number)]
            if self.needs.misses > before:
                part.read[number], part.has_fired[number] = read, has_fired
                unfinished.append(number)
            else:
                result.derived += rows
        return unfinished

    def _is_heavy(self, plan: RulePlan, part: SparkPart, number: int) -> bool:
        """Whether the rule reads, from end to end, something that is on the cluster.

        Or much of anything, in a part that is known to derive more than the driver should hold.
        """
        read = part.read[number]
        active = [] if plan.initial is None or part.has_fired[number] else [plan.initial]
        active += [
            variant
            for occurrence, variant in enumerate(plan.variants)
            if read[occurrence] < self.relations[plan.occurrences[occurrence]].end
        ]
        if active and plan.aggregation is not None:
            active.append(plan.aggregation.bindings)
        if (
            part.is_large
            and active
            and self._count_unread(plan, read) > self.settings.literal_keys_max
        ):
            return True
        return any(self.scans(pipeline, read) for pipeline in active)

    def _count_unread(self, plan: RulePlan, read: list[int]) -> int:
        """How many rows are new for a rule; if nothing may grow, how many its first step reads."""
        if plan.occurrences:
            ends = (self.relations[name].end for name in plan.occurrences)
            return sum(end - start for start, end in zip(read, ends, strict=True))
        step = plan.initial.steps[0] if plan.initial and plan.initial.steps else None
        return self.state_size(step.relation) if isinstance(step, Match) else 0

    def _cluster_round(
        self, part: RulesPart, numbers: list[int], read: list[list[int]], has_fired: list[bool]
    ) -> dict[str, DataFrame]:
        """Return frames of what these rules derive, per head; computed when the round adds."""
        frames = Frames(self.spark, self.relations)
        found: dict[str, list[DataFrame]] = {}
        for number in numbers:
            plan = part.plans[number]
            derived = frames.derived(plan, read[number], has_fired[number])
            if derived is not None:
                found.setdefault(plan.head, []).append(derived)
            part.has_fired[number] = True
            part.read[number] = [self.relations[name].end for name in plan.occurrences]
        return {head: reduce(DataFrame.unionAll, parts) for head, parts in found.items()}

    def _add_derived(self, derived: list[tuple[str, Row]]) -> None:
        for name, row in derived:
            if self.relations[name].has_frames():
                self.needs.note(name, self.relations[name].all_columns, row)
        self.fetch()
        added: dict[str, list[Row]] = {}
        for name, row in derived:
            if self.relations[name].add(row):
                added.setdefault(name, []).append(row)
        for name, rows in added.items():
            self.look_ahead(name, rows)
        self.grown.update(added)

    def _add_frame(self, store: SparkRelation, data: DataFrame) -> None:
        """Add what is new in a frame: distinct, and not known."""
        if not store.types:
            self.jobs["round"] += 1
            if not data.isEmpty():
                store.add(())
            return
        new = data.distinct()
        if len(store):
            new = rows_without(new, relation_frame(self.spark, store), len(store.types))
        new, count = self.cut(new.withColumn(RANK, F.lit(next(self.clock))), "round")
        self.place(store, new, count)
