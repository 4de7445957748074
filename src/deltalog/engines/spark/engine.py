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
it reads is there, in tasks if it has a pivot (`partitions.py`).

A round derives first and adds at the end, whichever way its rules went. Ranks: rows added by the
driver get one each, rows of a frame share that of their round. Both are above the ranks of the
facts they were derived from, which is all that deletion by rank needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.base import Capabilities, GivenUpError, Part
from deltalog.engines.interpreter import DeletionPart, RulesPart
from deltalog.engines.spark.alone import (
    MakeEngine,
    fixpoint,
    localised,
    reference_name,
    references,
)
from deltalog.engines.spark.columns import RANK, name_of
from deltalog.engines.spark.follows import Follow, follows, follows_deletion
from deltalog.engines.spark.frames import Frames, contents, without
from deltalog.engines.spark.partitions import SOURCE, Source, run_partitions, shared_names
from deltalog.engines.spark.probes import counted, look_at_columns, spread_of
from deltalog.engines.spark.probing import ProbingInterpreter
from deltalog.engines.spark.relation import SparkRelation
from deltalog.engines.spark.session import session
from deltalog.engines.spark.settings import Settings
from deltalog.engines.spark.storage import PROBES_MAX, Storage
from deltalog.engines.stepped_sequence import SteppedSequence
from deltalog.engines.stepped_wave import SteppedWave
from deltalog.language.ast import Row
from deltalog.plan.nodes import Absent, Match, Overlay, Pipeline, RankedDeletion, RulePlan, Window
from deltalog.plan.pivots import Pivot, Reference, pivot

JOBS_MIN, FACTS_PER_JOB = 10, 150_000
"""What a deletion may cost before it is given up, in jobs that fetch what it asks for: while one of
them runs, tasks derive so many facts."""
COPIED_SHARE = 4
"""How many rows an engine of this process may be given for each that is read from end to end."""


@dataclass
class Round:
    """What the rules of a round gave: rows of the driver, and the rules that go to the cluster."""

    derived: list[tuple[str, Row]] = field(default_factory=list)
    to_cluster: list[int] = field(default_factory=list)


@dataclass
class SparkPart(RulesPart):
    """Rules, and the pivot of their recursion if they have one.

    If they are `is_soft`, parts below may have to run between two rounds. Once they were found to
    derive more than the driver should hold, they are `is_large` until the next run.
    """

    pivot: Pivot | None = None
    is_soft: bool = False
    is_large: bool = False

    def rewind(self) -> None:
        super().rewind()
        self.is_large = False


@dataclass
class SparkDeletion(DeletionPart):
    """If it `is_impatient` it may be given up."""

    is_impatient: bool = False


class SparkEngine(Storage):
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
        spark = spark or session()
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
        self._tidy()
        self._follow(follows(plans))
        return SparkPart(plans, pivot=pivot(plans))

    def prepare_deletion(self, plan: RankedDeletion) -> SparkDeletion:
        self._follow(follows_deletion(plan))
        return SparkDeletion(plan)

    def _follow(self, found: Iterable[tuple[str, Follow]]) -> None:
        for name, follow in found:
            self.follows.setdefault(name, set()).add(follow)

    def wave(self, stations: int) -> SteppedWave:
        return SteppedWave(self, stations)

    def sequence(
        self, parts: Collection[Part], is_soft: bool, is_impatient: bool
    ) -> SteppedSequence:
        for part in parts:
            if isinstance(part, SparkPart):
                part.is_soft = is_soft
            elif isinstance(part, SparkDeletion):
                part.is_impatient = is_impatient
        return SteppedSequence(self, parts, is_soft)

    def run_round(self, part: Part) -> dict[str, int]:
        if isinstance(part, SparkDeletion):
            return self._delete(part)
        assert isinstance(part, SparkPart)
        for way in (self._driver_fixpoint, self._partition_round):
            alone = way(part)
            if alone is not None:
                return alone
        marks = [list(read) for read in part.read], list(part.has_fired)
        result = self._driver_round(part)
        frames = self._cluster_round(part, result.to_cluster, *marks)
        before = {plan.head: self.size(plan.head) for plan in part.plans}
        self._add(result.derived)
        for head, data in frames.items():
            self._add_frame(self.relations[head], data)
        return {head: new for head in before if (new := self.size(head) - before[head])}

    # --- to the end at once

    def _driver_fixpoint(self, part: SparkPart) -> dict[str, int] | None:
        """The whole fixpoint of a part by an engine of this process, if all it reads is here.

        Given up when it derives more than the driver should hold: the part is large then.
        """
        if part.is_soft or any(part.has_fired) or not self._is_worth_copying(part):
            return None
        heads = tuple(dict.fromkeys(plan.head for plan in part.plans))
        engine = self.local()
        for name in heads:
            engine.create(name, self.relations[name].types)
            engine.insert(name, self.rows(name))
        for each in dict.fromkeys(references(part.plans)):
            if each not in heads:
                name = each.stored if isinstance(each, Overlay) else each
                engine.create(reference_name(each), self.relations[name].types)
                engine.insert(reference_name(each), self._local_rows(each))
        if not fixpoint(engine, tuple(map(localised, part.plans)), self.settings.driver_rows_max):
            part.is_large = True
            return None
        before = {name: self.size(name) for name in heads}
        for name, row in engine.history(heads):
            self.relations[name].add(row)
        return self._finished(part, before)

    def _is_worth_copying(self, part: SparkPart) -> bool:
        """Whether much is read from end to end, compared with what must be copied."""
        read = set(references(part.plans))
        grows = {name for plan in part.plans for name in (plan.head, *plan.occurrences)}
        parts = {name for each in read for name in _parts(each)}
        if any(isinstance(each, Overlay) and each.plus in grows for each in read):
            return False
        if any(self.relations[name].has_frames() for name in parts | grows):
            return False
        scanned = sum(
            self._size(pipeline.steps[0].relation)
            for plan in part.plans
            for pipeline in plan.pipelines[:1]
            if pipeline.steps and isinstance(pipeline.steps[0], Match) and not pipeline.given
        )
        copied = sum(map(self._size, read | grows))
        return scanned >= self.settings.scanned_rows_min and copied <= COPIED_SHARE * scanned

    def _local_rows(self, reference: Reference) -> Iterator[Row]:
        """The rows of a state all of which is on the driver."""
        if not isinstance(reference, Overlay):
            yield from self.rows(reference)
            return
        minus = self.relations[reference.minus]
        yield from (row for row in self.rows(reference.stored) if row not in minus)
        yield from () if reference.plus is None else self.rows(reference.plus)

    def _finished(self, part: SparkPart, before: dict[str, int]) -> dict[str, int]:
        """A part has read everything; answers what is new."""
        part.has_fired = [True] * len(part.plans)
        part.read = [[self.relations[n].end for n in plan.occurrences] for plan in part.plans]
        self.grown.update(before)
        return {name: new for name, size in before.items() if (new := self.size(name) - size)}

    def _partition_round(self, part: SparkPart) -> dict[str, int] | None:
        """The whole fixpoint of a part in one job, if it has a pivot and begins on the cluster.

        In a soft partition parts below may have to run between its rounds, so it does not apply.
        """
        found = part.pivot
        if found is None or part.is_soft or any(part.has_fired):
            return None
        heads = {name: self.relations[name] for name in found.columns}
        if any(len(store) for store in heads.values()) or not self._is_worth_it(part, found):
            return None
        sources = self._sources(found)
        plans = tuple(map(localised, found.recursive))
        types = {name: store.types for name, store in heads.items()}
        partitions = self._partitions()
        self.jobs["partitions"] += 1
        result = run_partitions(
            self.spark, sources, types, plans, partitions, self.clock.now, self.local
        )
        result = result.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        columns = result.columns[2:]
        found_rows = result.groupBy(SOURCE).agg(*counted(columns)).collect()
        counts = {row[0]: row[1:] for row in found_rows}
        self.clock.skip(sum(count[0] for count in counts.values()))
        for number, store in enumerate(heads.values()):
            names = shared_names(store.types)
            own = [F.col(n).alias(name_of(i)) for i, n in enumerate(names)]
            data = result.where(F.col(SOURCE) == number).select(*own, F.col(RANK))
            count, *values = counts.get(number, (0, *(0 for _ in columns)))
            spread = spread_of([count, *(values[columns.index(name)] for name in names)])
            self.place(store, data, count, result, spread)
        return self._finished(part, dict.fromkeys(heads, 0))

    def _is_worth_it(self, part: SparkPart, found: Pivot) -> bool:
        """Whether it starts from something large, and what every task gets is not too much.

        A recursion that starts from a small change is cheaper by probes.
        """
        copied = sum(self._size(each) for each in found.copied)
        starts_large = part.is_large or any(
            self._scans(pipeline, []) for plan in found.exits for pipeline in plan.pipelines
        )
        return starts_large and copied <= self.settings.shipped_rows_max

    def _size(self, reference: Reference) -> int:
        if not isinstance(reference, Overlay):
            return self.size(reference)
        plus = 0 if reference.plus is None else self.size(reference.plus)
        return self.size(reference.stored) + plus

    def _sources(self, found: Pivot) -> list[Source]:
        """What tasks read: the facts of the rules that are not recursive, and what is beside."""
        frames = Frames(self.spark, self.relations)
        sources = []
        for name, column in found.columns.items():
            types = self.relations[name].types
            seeds = [frames.derived(plan, [], False) for plan in found.exits if plan.head == name]
            known = [data for data in seeds if data is not None]
            data = reduce(DataFrame.unionAll, known, contents(self.spark, self.relations[name]))
            sources.append(Source(name, types, data.distinct(), column))
        for each in (*found.shared, *found.copied):
            data = frames.read(Match(each), [])
            types = frames.types(each)
            sources.append(Source(reference_name(each), types, data, found.shared.get(each)))
        return sources

    def _partitions(self) -> int:
        told = self.settings.partitions
        return told or int(self.spark.conf.get("spark.sql.shuffle.partitions") or "2")

    def _delete(self, part: SparkDeletion) -> dict[str, int]:
        """Ranked deletion on the driver; it starts again whenever it learns more.

        If it may be, it is given up when computing everything anew would have taken less time, and
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

        if not part.is_impatient:
            return self.asked(deletion, look_around)
        if any(self.relations[name].has_frames() for name in part.plan.suspects):
            raise GivenUpError
        facts = sum(map(self.size, part.plan.predicates))
        return self.asked(deletion, look_around, JOBS_MIN + facts // FACTS_PER_JOB)

    def _driver_round(self, part: SparkPart) -> Round:
        result = Round()
        waiting: list[int] = []
        for number, plan in enumerate(part.plans):
            is_heavy = self._is_heavy(plan, part, number)
            (result.to_cluster if is_heavy else waiting).append(number)
        for _ in range(PROBES_MAX):
            waiting = self._fired(part, waiting, result)
            if not waiting:
                return result
            if len(self.needs) > self.settings.probe_keys_max:
                self.needs.clear()
                result.to_cluster += waiting
                return result
            self.fetch(is_widened=True)
        raise AssertionError("a round does not come to an end")

    def _fired(self, part: RulesPart, numbers: list[int], result: Round) -> list[int]:
        """Fire rules on what the driver knows; answers those that need more."""
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
        if part.is_large and active and self._unread(plan, read) > self.settings.literal_keys_max:
            return True
        return any(self._scans(pipeline, read) for pipeline in active)

    def _unread(self, plan: RulePlan, read: list[int]) -> int:
        """How many rows are new for a rule; if nothing may grow, how many its first step reads."""
        if plan.occurrences:
            ends = (self.relations[name].end for name in plan.occurrences)
            return sum(end - start for start, end in zip(read, ends, strict=True))
        step = plan.initial.steps[0] if plan.initial and plan.initial.steps else None
        return self._size(step.relation) if isinstance(step, Match) else 0

    def _scans(self, pipeline: Pipeline, read: list[int]) -> bool:
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

    def _cluster_round(
        self, part: RulesPart, numbers: list[int], read: list[list[int]], has_fired: list[bool]
    ) -> dict[str, DataFrame]:
        """What these rules derive, per head; nothing is computed before the round adds."""
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

    def _add(self, derived: list[tuple[str, Row]]) -> None:
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
            new = without(new, contents(self.spark, store), len(store.types))
        new, count = self.cut(new.withColumn(RANK, F.lit(next(self.clock))), "round")
        self.place(store, new, count)


def _parts(reference: Reference) -> tuple[str, ...]:
    """The relations that a state is made of."""
    if not isinstance(reference, Overlay):
        return (reference,)
    plus = () if reference.plus is None else (reference.plus,)
    return (reference.stored, reference.minus, *plus)
