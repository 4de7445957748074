"""The Spark engine: relations live where their size says, and rounds run where their input is.

Small relations, and what a transaction derives from them, stay on the driver: rules over them cost
no Spark job. Large ones are frames on the cluster (`relation.py`). In a round, each rule goes one
of two ways:

- *driver*: what is new is small, and the cluster is only probed (`probing.py`): the keys that all
  rules of the round need next are fetched together, one job for each step deep they go;
- *cluster*: it reads something large from end to end, so it becomes a DataFrame (`frames.py`). What
  it derives is compared with what is known and kept as a new frame, its lineage cut, or brought to
  the driver if it is small.

A round derives first and adds at the end, whichever way its rules went. Ranks: rows added by the
driver get one each, rows of a frame share that of their round. Both are above the ranks of the
facts they were derived from, which is all that deletion by rank needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.base import Part
from deltalog.engines.interpreter import DeletionPart, RulesPart
from deltalog.engines.spark.columns import RANK, name_of, names_of, rows_in
from deltalog.engines.spark.frames import Frames, contents, without
from deltalog.engines.spark.partitions import (
    SOURCE,
    Source,
    localised,
    reference_name,
    run_partitions,
    shared_names,
)
from deltalog.engines.spark.probes import fetch, look_for_narrow_column, probes
from deltalog.engines.spark.probing import ProbingInterpreter
from deltalog.engines.spark.relation import Clock, Columns, Needs, SparkRelation
from deltalog.engines.spark.session import session
from deltalog.engines.spark.settings import Settings
from deltalog.language.ast import Row
from deltalog.plan.nodes import Absent, Match, Overlay, Pipeline, RankedDeletion, RulePlan, Window
from deltalog.plan.pivots import Pivot, Reference, pivot

Answer = TypeVar("Answer")
PROBES_MAX = 10_000
"""Jobs that one question may take before something must be wrong."""


@dataclass
class Round:
    """What the rules of a round gave: rows of the driver, and the rules that go to the cluster."""

    derived: list[tuple[str, Row]] = field(default_factory=list)
    to_cluster: list[int] = field(default_factory=list)


@dataclass
class SparkPart(RulesPart):
    """Rules, and the pivot of their recursion if they have one."""

    pivot: Pivot | None = None


class SparkEngine:
    name = "spark"

    def __init__(self, spark: SparkSession | None = None, settings: Settings | None = None) -> None:
        self.spark = spark or session()
        self.settings = settings or Settings.of(self.spark)
        self.needs = Needs()
        self.clock = Clock()
        self.relations: dict[str, SparkRelation] = {}
        self.interpreter = ProbingInterpreter(self.relations, self.needs)
        self.jobs: Counter[str] = Counter()
        self.grown: set[str] = set()

    # --- relations

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        if relation not in self.relations:
            made = SparkRelation(relation, types, self.clock, self.needs)
            self.relations[relation] = made

    def drop(self, relation: str) -> None:
        known = self.relations.pop(relation, None)
        if known is not None:
            self._release(known)

    def clear(self, relation: str) -> None:
        self._release(self.relations[relation])
        self.relations[relation].clear()
        self._tidy()

    def size(self, relation: str) -> int:
        return len(self.relations[relation])

    def rows(self, relation: str) -> Iterator[Row]:
        return (row for row, _ in self._ranked_rows(relation))

    def contains(self, relation: str, row: Row) -> bool:
        return self._asked(lambda: row in self.relations[relation])

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        store = self.relations[relation]
        listed = list(rows)
        self.expect(relation, store.all_columns, listed)
        self.grown.add(relation)
        return sum(store.add(row) for row in listed)

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        store = self.relations[relation]
        listed = list(rows)
        self.expect(relation, store.all_columns, listed)
        self.grown.add(relation)
        return sum(store.remove(row) for row in listed)

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        store = self.relations[relation]
        columns = tuple(sorted(key))
        values: Row = tuple(key[column] for column in columns)  # type: ignore[misc]
        return iter(list(self._asked(lambda: store.matching(columns, values, 0, store.end))))

    def history(self, relations: Sequence[str]) -> Iterator[tuple[str, Row]]:
        stamped = [(rank, name, row) for name in relations for row, rank in self._ranked_rows(name)]
        return ((name, row) for _, name, row in sorted(stamped, key=lambda entry: entry[0]))

    def _ranked_rows(self, relation: str) -> list[tuple[Row, int]]:
        """All rows with their ranks; those of frames are brought to the driver."""
        store = self.relations[relation]
        found = [(row, piece.rank(row)) for piece in store.locals for row in piece]
        if store.has_frames():
            last = store.frames[-1].end
            data = self._frames_only(store, last)
            self.jobs["collect"] += 1
            table = data.toArrow()
            columns = [table.column(name) for name in names_of(store.types)]
            rows = rows_in(columns, store.types, table.num_rows)
            found += zip(rows, table.column(RANK).to_pylist(), strict=True)
        return found

    def _frames_only(self, store: SparkRelation, last: int) -> DataFrame:
        only = SparkRelation(store.name, store.types, self.clock, self.needs)
        only.pieces = list(store.frames)
        return contents(self.spark, only, 0, last, is_ranked=True)

    # --- in bulk

    def load_frame(self, relation: str, data: DataFrame) -> int:
        """Add the rows of a DataFrame, column by column in this order; answers how many are new.

        They stay on the cluster. Values must be canonical (`columns.py`).
        """
        store = self.relations[relation]
        named = data.toDF(*names_of(store.types)).distinct()
        if len(store):
            named = without(named, contents(self.spark, store), len(store.types))
        kept = named.withColumn(RANK, F.lit(next(self.clock)))
        kept = kept.sortWithinPartitions(*names_of(store.types)[:1])  # so that probes can skip
        kept = kept.persist(StorageLevel.MEMORY_AND_DISK)
        self.jobs["load"] += 1
        count = kept.count()
        self._place(store, kept, count)
        return count

    def frame(self, relation: str) -> DataFrame:
        """The rows of a relation as they are now, as a DataFrame with columns `c0`, `c1`, …"""
        return contents(self.spark, self.relations[relation])

    def expect(self, relation: str, columns: Columns, keys: Iterable[Row]) -> None:
        """These keys will be looked up: fetch together what is not known yet."""
        store = self.relations[relation]
        if store.has_frames():
            for key in keys:
                self.needs.note(relation, columns, key)
            self._fetch()

    # --- asking the cluster

    def _asked(self, question: Callable[[], Answer], is_widened: bool = False) -> Answer:
        """The answer once everything it needs is on the driver."""
        for _ in range(PROBES_MAX):
            self.needs.clear()
            answer = question()
            if not self.needs:
                return answer
            self._fetch(is_widened)
        raise AssertionError("a question does not come to an end")

    def _fetch(self, is_widened: bool = False) -> None:
        wanted = probes(self.needs, self.relations, is_widened)
        self.needs.clear()
        if wanted:
            self.jobs["probe"] += 1
            fetch(self.spark, wanted, self.settings.literal_keys_max)

    def _release(self, store: SparkRelation) -> None:
        for piece in store.frames:
            piece.data.unpersist()

    def _tidy(self) -> None:
        """What has grown goes to the cluster, many pieces become one.

        Positions in the relation change, so this is done only where nothing is being read: when
        relations are cleared, before and after a run, and when a new run is prepared.
        """
        for name in self.grown & self.relations.keys():
            if self.relations[name].types:
                self._tidy_one(self.relations[name])
        self.grown.clear()

    def _tidy_one(self, store: SparkRelation) -> None:
        settings = self.settings
        local = sum(len(piece) for piece in store.locals)
        masked = sum(len(piece.mask) for piece in store.frames)
        limit = settings.overlay_rows_max if store.frames else settings.driver_rows_max
        if masked > settings.overlay_rows_max or len(store.frames) > settings.pieces_max:
            self._fold(store)
        elif local > limit:
            self._promote(store)
        for piece in store.frames:
            if len(piece.ranks) > settings.cached_rows_max:
                piece.forget()

    def _promote(self, store: SparkRelation) -> None:
        """Local rows become a frame; the frames that are there stay as they are."""
        local = SparkRelation(store.name, store.types, self.clock, self.needs)
        local.pieces = list(store.locals)
        data, count = self._cut(contents(self.spark, local, is_ranked=True), "promote")
        frames = store.frames
        store.pieces = []
        for piece in frames:
            piece.start = store.end
            store.pieces.append(piece)
        store.append(data, count)

    def _fold(self, store: SparkRelation) -> None:
        """All pieces become one frame."""
        data, count = self._cut(contents(self.spark, store, is_ranked=True), "fold")
        self._release(store)
        store.clear()
        store.append(data, count)

    def _cut(self, data: DataFrame, purpose: str) -> tuple[DataFrame, int]:
        """Computed now, its lineage cut; and how many rows there are."""
        counted = Observation()
        self.jobs[purpose] += 1
        observed = data.observe(counted, F.count(F.lit(1)).alias("rows"))
        kept = observed.localCheckpoint(True, StorageLevel.MEMORY_AND_DISK)
        rows = counted.get.get("rows")  # Spark Connect (4.2) does not tell it for checkpoints
        return kept, kept.count() if rows is None else int(rows)

    def _place(self, store: SparkRelation, data: DataFrame, count: int) -> None:
        """New rows stay on the cluster if there are many, else they come to the driver."""
        if count > self.settings.driver_rows_max and store.types:
            store.append(data, count)
        elif count:
            self.jobs["collect"] += 1
            table = data.toArrow()
            columns = [table.column(name) for name in names_of(store.types)]
            found = rows_in(columns, store.types, 1 if not store.types else table.num_rows)
            for row in found:
                for piece in store.frames:  # it is new, so no frame has it
                    if piece.known(store.all_columns, row) is None:
                        piece.remember(store.all_columns, [row], [])
                store.add(row)

    # --- rounds

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        self.interpreter.checkpoint = checkpoint

    def prepare(self, plans: tuple[RulePlan, ...]) -> RulesPart:
        self._tidy()
        return SparkPart(plans, pivot=pivot(plans))

    def prepare_deletion(self, plan: RankedDeletion) -> DeletionPart:
        return DeletionPart(plan)

    def run_round(self, part: Part) -> dict[str, int]:
        if isinstance(part, DeletionPart):
            return self._delete(part)
        assert isinstance(part, SparkPart)
        alone = self._partition_round(part)
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

    def _partition_round(self, part: SparkPart) -> dict[str, int] | None:
        """The whole fixpoint of a part in one job, if it has a pivot and begins on the cluster.

        In a soft partition parts below may have to run between its rounds, so it does not apply.
        """
        found = part.pivot
        if found is None or part.is_soft or any(part.has_fired):
            return None
        heads = {name: self.relations[name] for name in found.columns}
        if any(len(store) for store in heads.values()) or not self._is_worth_it(found):
            return None
        sources = self._sources(found)
        names: dict[Reference, str] = {
            each: reference_name(each) for each in (*found.shared, *found.copied)
        }
        plans = tuple(localised(plan, names) for plan in found.recursive)
        types = {name: store.types for name, store in heads.items()}
        partitions = self._partitions()
        self.jobs["partitions"] += 1
        result = run_partitions(self.spark, sources, types, plans, partitions, self.clock.now)
        result = result.persist(StorageLevel.MEMORY_AND_DISK)
        counts = {row[SOURCE]: row["count"] for row in result.groupBy(SOURCE).count().collect()}
        self.clock.skip(sum(counts.values()))
        for number, store in enumerate(heads.values()):
            own = [F.col(n).alias(name_of(i)) for i, n in enumerate(shared_names(store.types))]
            data = result.where(F.col(SOURCE) == number).select(*own, F.col(RANK))
            self._place(store, data, counts.get(number, 0))
        part.has_fired = [True] * len(part.plans)
        part.read = [[self.relations[n].end for n in plan.occurrences] for plan in part.plans]
        return {name: len(store) for name, store in heads.items() if len(store)}

    def _is_worth_it(self, found: Pivot) -> bool:
        """Whether it starts from something large, and what every task gets is not too much.

        A recursion that starts from a small change is cheaper by probes.
        """
        copied = sum(self._size(each) for each in found.copied)
        starts_large = any(
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

    def _delete(self, part: DeletionPart) -> dict[str, int]:
        """Ranked deletion on the driver; it starts again whenever it learns more."""

        def deletion() -> dict[str, int]:
            part.rewind()
            for name in part.plan.deleted:
                self.relations[name].clear()
            return self.interpreter.delete(part)

        if part.has_fired or not any(self.size(name) for name in part.plan.suspects):
            part.has_fired = True
            return {}
        for name in part.plan.predicates:
            for piece in self.relations[name].frames:
                if not piece.is_narrow_known:
                    self.jobs["statistics"] += 1
                    look_for_narrow_column(piece, self.relations[name].types)
        return self._asked(deletion, is_widened=True)

    def _driver_round(self, part: RulesPart) -> Round:
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
            self._fetch(is_widened=True)
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

    def _is_heavy(self, plan: RulePlan, part: RulesPart, number: int) -> bool:
        """Whether the rule reads, from end to end, something that is on the cluster."""
        read = part.read[number]
        active = [] if plan.initial is None or part.has_fired[number] else [plan.initial]
        active += [
            variant
            for occurrence, variant in enumerate(plan.variants)
            if read[occurrence] < self.relations[plan.occurrences[occurrence]].end
        ]
        if active and plan.aggregation is not None:
            active.append(plan.aggregation.bindings)
        return any(self._scans(pipeline, read) for pipeline in active)

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
        self._fetch()
        for name, row in derived:
            self.relations[name].add(row)

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
        new, count = self._cut(new.withColumn(RANK, F.lit(next(self.clock))), "round")
        self._place(store, new, count)
