"""A run of a pipeline: everything that is new at the sources, through the rules, to the sinks.

    with Pipeline(read_project("project.toml")) as pipeline:
        for step in pipeline.steps():
            print(step.delta.counts)

A step is one commit. First comes what is loaded, then snapshots, feeds, files of changes in the
order of their names, and streams. What happens to rows that cannot be taken is said by `bad_rows`:

    fail         the run ends at this batch, of which nothing is taken
    refuse       the batch goes to the quarantine with its bad rows, and the run goes on
    quarantine   bad rows go to the quarantine, the others are taken
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from deltalog.analysis.columns import Relation
from deltalog.diagnostics.report import DataError
from deltalog.engines.spark.columns import name_of
from deltalog.engines.spark.frames import without
from deltalog.engines.spark.session import session
from deltalog.pipeline.check_project import check_project
from deltalog.pipeline.checked_frames import (
    Bad,
    CheckedFrame,
    bad_rows,
    fitting_rows,
    refusal,
)
from deltalog.pipeline.classify import classify
from deltalog.pipeline.deltas import Delta
from deltalog.pipeline.lock import check_unused
from deltalog.pipeline.log import Batch, Refused
from deltalog.pipeline.open_tables import open_tables
from deltalog.pipeline.project import Project, Source
from deltalog.pipeline.sinks import Sinks
from deltalog.pipeline.sources import (
    LOADED,
    Offer,
    feed_version,
    feed_versions,
    new_files,
    of_stream,
    streamed,
    whole,
)
from deltalog.pipeline.table_database import TableDatabase
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits


@dataclass(frozen=True)
class Step:
    """One commit of a run: the batches it took, what changed, and what was not taken."""

    batches: tuple[Batch, ...]
    delta: Delta
    refused: Refused = ()
    is_refused: bool = False  # the batch as a whole
    sinks: tuple[str, ...] = ()


class Pipeline:
    """A project with its state open; one run at a time has it."""

    def __init__(
        self, project: Project, spark: SparkSession | None = None, watch: Watch | None = None
    ) -> None:
        self.project = project
        self._checked = check_project(project)
        check_unused(project.state)
        self.spark = spark or session(settings=project.spark)
        self.database: TableDatabase = open_tables(
            self._checked.model.checked.program,
            self.spark,
            str(project.state),
            self._checked.model.options,
            Limits(),
            watch,
            freshness=project.freshness,
        )
        self._sinks = Sinks(self.database, project.sinks, Path(project.name).parent)

    def steps(self) -> Iterator[Step]:
        """Take everything that is new, one commit after the other."""
        self._sinks.deliver()  # what an earlier run had no time for
        for step in self._taken():
            yield step if not step.delta else self._delivered(step)

    def _delivered(self, step: Step) -> Step:
        given = tuple(self._sinks.deliver())
        return Step(step.batches, step.delta, step.refused, step.is_refused, given)

    def _taken(self) -> Iterator[Step]:
        is_new = self.database.is_new
        yield from self._loaded(is_new)
        for source in self._of("snapshot") if not is_new else ():
            yield from self._compared(source)
        for source in self._of("feed"):
            known = self.database.batches
            for offer in feed_versions(self.spark, source, self._relation(source), known):
                yield self._applied((offer,))
        yield from self._files()
        for source in self._of("stream"):
            yield from self._streamed(source)

    def _of(self, kind: str) -> list[Source]:
        return [source for source in self.project.sources if source.kind == kind]

    def _relation(self, source: Source) -> Relation:
        return self._checked.relation_of(source)

    # --- loading

    def _loaded(self, is_new: bool) -> Iterator[Step]:
        """Sources that are read as a whole, all in one commit."""
        frames: dict[str, list[DataFrame]] = {}
        batches: list[Batch] = []
        bad: list[Bad] = []
        for source in self.project.sources:
            if source.kind not in ("load", "feed", *(("snapshot",) if is_new else ())):
                continue
            if source.kind == "feed" and any(s == source.name for s, _ in self.database.batches):
                continue
            name = str(feed_version(self.spark, source)) if source.kind == "feed" else LOADED
            if (source.name, name) in self.database.batches:
                continue
            relation = self._relation(source)
            found = whole(self.spark, source, relation)
            found_bad = bad_rows(found, relation)
            if found_bad and self.project.bad_rows != "quarantine":
                raise refusal(source.name, name, [reason for _, reason, _ in found_bad])
            bad += found_bad
            frames.setdefault(relation.name, []).append(fitting_rows(found, relation))
            if source.kind != "snapshot":
                batches.append((source.name, name))
        if frames:
            whole_frames = {name: reduce(DataFrame.unionAll, each) for name, each in frames.items()}
            delta = self.database.load_frames(whole_frames, batches=tuple(batches), refused=bad)
            yield Step(tuple(batches), delta, tuple(bad))

    def _compared(self, source: Source) -> Iterator[Step]:
        """The difference between a source and what its relation holds."""
        relation = self._relation(source)
        found = whole(self.spark, source, relation)
        bad = bad_rows(found, relation)
        text = "\n".join(sorted(row for _, _, row in bad))
        batch = (source.name, f"rows {hashlib.sha256(text.encode()).hexdigest()[:12]}")
        if bad and self.project.bad_rows == "fail":
            raise refusal(source.name, "snapshot", [reason for _, reason, _ in bad])
        if batch in self.database.batches:  # these have been put in quarantine before
            bad = []
        named: tuple[Batch, ...] = (batch,) if bad else ()
        if bad and self.project.bad_rows == "refuse":
            yield Step(named, self.database.apply(batches=named, refused=bad), tuple(bad), True)
            return
        good = fitting_rows(found, relation).distinct()
        names = [name_of(i) for i in range(relation.arity)]
        held = self.database.frame(relation.name).toDF(*names)
        inserted = CheckedFrame(relation, without(good, held, relation.arity))
        deleted = CheckedFrame(relation, without(held, good, relation.arity))
        delta = self.database.apply(
            insert={relation.name: inserted},
            delete={relation.name: deleted},
            batches=named,
            refused=bad,
        )
        if delta or bad:
            yield Step(named, delta, tuple(bad))

    # --- changes

    def _files(self) -> Iterator[Step]:
        """Files of all sources together, by name; the same name is one transaction."""
        offers: list[Offer] = []
        known = self.database.batches
        for source in self._of("changes"):
            offers += new_files(self.spark, source, self._relation(source), known)
        offers.sort(key=lambda offer: (Path(offer.name).stem, offer.source.name))
        for _, together in groupby(offers, key=lambda offer: Path(offer.name).stem):
            yield self._applied(tuple(together))

    def _streamed(self, source: Source) -> Iterator[Step]:
        """Everything a streaming query has now, as steps of their own."""
        steps: list[Step] = []
        problems: list[DataError] = []
        relation = self._relation(source)

        def take(data: DataFrame, number: int) -> None:
            try:
                offer = of_stream(source, relation, data, number)
                if offer.batch not in self.database.batches:
                    steps.append(self._applied((offer,)))
            except DataError as error:
                problems.append(error)
                raise

        query = (
            streamed(self.spark, source)
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", f"{self.project.state}/streams/{source.name}")
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except Exception:
            if not problems:
                raise
        yield from steps
        if problems:
            raise problems[0]

    def _applied(self, offers: tuple[Offer, ...]) -> Step:
        """One commit for what some sources offer together."""
        found = classify(
            self.database, [(self._relation(each.source), each.data) for each in offers]
        )
        batches = tuple(offer.batch for offer in offers)
        if found.bad and self.project.bad_rows == "fail":
            source, name = batches[0]
            raise refusal(source, name, [reason for _, reason, _ in found.bad])
        if found.bad and self.project.bad_rows == "refuse":
            delta = self.database.apply(batches=batches, refused=found.bad)
            return Step(batches, delta, tuple(found.bad), True)
        delta = self.database.apply(
            found.insert, found.delete, found.set, batches=batches, refused=found.bad
        )
        return Step(batches, delta, tuple(found.bad))

    # --- ending

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
