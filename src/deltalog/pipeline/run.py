"""A run of a pipeline: everything that is new at the sources, through the rules, to the sinks.

    with Pipeline(read_project("project.toml")) as pipeline:
        for step in pipeline.steps():
            print(step.delta.counts)

A step is one commit. First comes what is loaded, then snapshots, feeds, files of changes in the
order of their names, and streams. What happens to rows that cannot be taken is said by `bad_rows`:

    fail         nothing of the batch is taken, and its source waits: later batches come after it
    refuse       the batch goes to the quarantine with its bad rows, and its source goes on
    quarantine   bad rows go to the quarantine, the others are taken

A batch that violates a constraint, or is rejected by a rule, is bad as a whole (`violating.py`).
Sources and sinks fail alone: when all others are done, `steps` raises what failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from deltalog.analysis.columns import Relation
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.engines.spark.session import active_or_new_session
from deltalog.pipeline.check_project import check_project
from deltalog.pipeline.check_state import check_state
from deltalog.pipeline.checked_frames import fitting_rows
from deltalog.pipeline.classify import classify_offers
from deltalog.pipeline.log import Batch
from deltalog.pipeline.metrics import Stopwatch
from deltalog.pipeline.offers import (
    Offer,
    mark_inserted,
    offer_bad_rows,
    offer_frame,
    refused_with,
    taken_batches,
)
from deltalog.pipeline.open_tables import open_tables
from deltalog.pipeline.problems import Problems
from deltalog.pipeline.project import Project, Source
from deltalog.pipeline.quarantine import Quarantined
from deltalog.pipeline.rejected import Refused, Rejected, as_whole, bad_rows_error
from deltalog.pipeline.replay import Mended, Replay
from deltalog.pipeline.sinks import Sinks
from deltalog.pipeline.snapshots import compare_snapshot
from deltalog.pipeline.sources import (
    LOADED,
    SourceReader,
    new_files,
    of_stream,
    spark_problem,
)
from deltalog.pipeline.step import Step
from deltalog.pipeline.table_database import TableDatabase
from deltalog.pipeline.violating import violating_rows
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.violations import ConstraintError

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class Pipeline:
    """A project with its state open; one run at a time has it."""

    def __init__(
        self, project: Project, spark: SparkSession | None = None, watch: Watch | None = None
    ) -> None:
        self.project = project
        self._checked = check_project(project)
        check_state(self._checked)
        self.spark = spark or active_or_new_session(settings=project.spark)
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
        self.reader = SourceReader(self.spark, self.database.engine.settings.driver_rows_max)
        self._problems = Problems()
        self._stopwatch = Stopwatch(self.spark)

    def steps(self) -> Iterator[Step]:
        """Take everything that is new, one commit after the other; raise what failed at the end."""
        self._problems = Problems()
        self._sinks.deliver(self._problems)  # what an earlier run had no time for
        yield from self._deliver_steps(self._take_sources())
        self.database.note_problems(self._problems.noted(self.database.problems))
        self._problems.raise_if_any()

    def replay(self, mended: Sequence[Mended] | None = None) -> Iterator[Step]:
        """Take rows back in that are mended; without any, all in quarantine, and refused files."""
        self._problems = Problems()
        replay = Replay(self, self._problems)
        if mended is None:
            yield from self._deliver_steps(replay.batches())
        yield from self._deliver_steps(replay.rows(mended))
        self._problems.raise_if_any()

    @property
    def quarantined(self) -> list[Quarantined]:
        """The rows in quarantine."""
        return self.database.quarantined()

    def _deliver_steps(self, steps: Iterator[Step]) -> Iterator[Step]:
        """The same steps, when sinks have been given what is new; each with what it cost."""
        self._stopwatch.restart()
        while (step := self._next_step(steps)) is not None:
            if step.delta:
                step = replace(step, sinks=tuple(self._sinks.deliver(self._problems)))
            yield replace(step, metrics=self._stopwatch.metrics(step.delta.counts))
            self._stopwatch.restart()

    def _next_step(self, steps: Iterator[Step]) -> Step | None:
        with self.database.measured(self._stopwatch.of_record):
            return next(steps, None)

    def _take_sources(self) -> Iterator[Step]:
        is_new = self.database.is_new
        yield from self._load_initial(is_new)
        for source in self._sources_of("snapshot") if not is_new else ():
            yield from self._compare_source(source)
        for source in self._sources_of("feed"):
            yield from self._take_feed(source)
        yield from self._take_files()
        for source in self._sources_of("stream"):
            yield from self._take_stream(source)

    def _sources_of(self, kind: str) -> list[Source]:
        return [source for source in self.project.sources if source.kind == kind]

    def relation_of(self, source: Source) -> Relation:
        return self._checked.relation_of(source)

    # --- failing alone

    def _try_read(
        self,
        sources: Sequence[Source],
        read: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result | None:
        """Read something; if that fails, it is a problem of these sources, and of no others."""
        try:
            return read(*arguments, **named)
        except (DataError, ConstraintError) as error:
            self._add_problems(sources, error.diagnostics)
        except PySparkException as error:
            name = sources[0].table or sources[0].path or sources[0].name
            self._add_problems(sources, spark_problem(name, error).diagnostics)
        return None

    def _add_problems(self, sources: Iterable[Source], diagnostics: Iterable[Diagnostic]) -> None:
        for source in sources:
            self._problems.add(f"source {source.name}", diagnostics)
            diagnostics = ()  # shown once

    def _is_held(self, source: Source) -> bool:
        """Whether batches of a source wait for an earlier one that has failed."""
        is_strict = self.project.bad_rows == "fail"
        return is_strict and f"source {source.name}" in self._problems

    # --- loading

    def _load_initial(self, is_new: bool) -> Iterator[Step]:
        """Sources that are read as a whole, all in one commit."""
        offers: list[Offer] = []
        for source in self.project.sources:
            name = self._try_read([source], self._load_name, source, is_new)
            if name is None or (source.name, name) in self.database.batches:
                continue
            relation = self.relation_of(source)
            data = self._try_read([source], self.reader.whole, source, relation)
            if data is not None:
                offers.append(Offer(source, relation, name, data))
        if not offers:
            return
        if all(isinstance(offer.data, list) for offer in offers):
            yield from self._load_rows(offers)
        else:
            yield from self._load_frames(offers)

    def _load_name(self, source: Source, is_new: bool) -> str | None:
        """The name of the batch that is all of a source, if it is to be read as a whole."""
        if source.kind == "feed" and all(s != source.name for s, _ in self.database.batches):
            return str(self.reader.feed_version(source))
        is_whole = source.kind == "load" or (source.kind == "snapshot" and is_new)
        return LOADED if is_whole else None

    def _load_rows(self, offers: list[Offer]) -> Iterator[Step]:
        """Few rows of text: classified like insertions, and no frame is made of them."""
        kept: list[Offer] = []
        for offer in offers:
            loading = replace(offer, data=mark_inserted(offer.data))
            found = classify_offers(self.database, [loading])
            if not self._is_refused([offer], found.bad):
                kept.append(loading)
        found = classify_offers(self.database, kept)
        if self._is_refused(kept, found.bad) or not kept:
            return
        batches = taken_batches(kept)
        load, sources = self.database.load_rows, [offer.source for offer in kept]
        delta = self._try_read(sources, load, found.insert, batches, found.bad)
        if delta is not None:
            yield Step(batches, delta, tuple(found.bad))

    def _load_frames(self, offers: list[Offer]) -> Iterator[Step]:
        frames: dict[str, list[DataFrame]] = {}
        kept: list[Offer] = []
        bad: list[Rejected] = []
        for offer in offers:
            data = offer_frame(self.spark, offer)
            found_bad = self._try_read([offer.source], offer_bad_rows, offer, data)
            if found_bad is None or self._is_refused([offer], found_bad):
                continue
            bad += found_bad
            kept.append(offer)
            frames.setdefault(offer.relation.name, []).append(fitting_rows(data, offer.relation))
        if kept:
            whole = {name: reduce(DataFrame.unionAll, each) for name, each in frames.items()}
            batches = taken_batches(kept)
            load, sources = self.database.load_frames, [offer.source for offer in kept]
            delta = self._try_read(sources, load, whole, batches=batches, refused=bad)
            if delta is not None:
                yield Step(batches, delta, tuple(bad))

    def _is_refused(self, offers: Sequence[Offer], bad: Refused) -> bool:
        """Whether bad rows keep something out that is loaded; it is reported then."""
        if not bad or self.project.bad_rows == "quarantine":
            return False
        by_batch = {offer.batch: offer.source for offer in offers}
        for batch, source in by_batch.items():
            own = [each for each in bad if (each.source, each.batch) == batch]
            if own:
                self._add_problems([source], bad_rows_error(*batch, own).diagnostics)
        return True

    # --- snapshots

    def _compare_source(self, source: Source) -> Iterator[Step]:
        """The difference between a source and what its relation holds."""
        relation = self.relation_of(source)
        data = self._try_read([source], self.reader.whole, source, relation)
        if data is None:
            return
        offer = Offer(source, relation, "snapshot", data)
        compared = self._try_read([source], compare_snapshot, self.database, offer)
        if compared is None:
            return
        inserted, deleted, bad = compared
        if bad and self.project.bad_rows == "fail":
            self._add_problems([source], bad_rows_error(source.name, "snapshot", bad).diagnostics)
            return
        text = "\n".join(sorted(each.row for each in bad))
        batch = (source.name, f"rows {hashlib.sha256(text.encode()).hexdigest()[:12]}")
        if batch in self.database.batches:  # these have been put in quarantine before
            bad = []
        bad = [each._replace(batch=batch[1]) for each in bad]
        named: tuple[Batch, ...] = (batch,) if bad else ()
        if bad and self.project.bad_rows == "refuse":
            bad = as_whole(bad)
            yield Step(named, self.database.apply(batches=named, refused=bad), tuple(bad), True)
            return
        sides = {relation.name: inserted}, {relation.name: deleted}
        apply = self.database.apply  # a snapshot that violates a constraint waits for a better one
        delta = self._try_read([source], apply, *sides, batches=named, refused=bad)
        if delta or (bad and delta is not None):
            yield Step(named, delta, tuple(bad))

    # --- changes

    def _take_feed(self, source: Source) -> Iterator[Step]:
        """The versions of a Delta table that are new, one after the other."""
        relation, known = self.relation_of(source), self.database.batches
        versions = self._try_read([source], self.reader.feed_versions, source, known)
        for version in versions or ():
            if self._is_held(source):
                return
            offer = self._try_read([source], self.reader.feed, source, relation, version)
            if offer is not None:
                yield from self._apply_offers([offer])

    def _take_files(self) -> Iterator[Step]:
        """Files of all sources together, by name; the same name is one transaction."""
        waiting: list[tuple[Source, Path]] = []
        known = self.database.batches
        for source in self._sources_of("changes"):
            paths = self._try_read([source], new_files, source, known)
            waiting += [(source, path) for path in paths or ()]
        waiting.sort(key=lambda each: (each[1].stem, each[0].name))
        for _, together in groupby(waiting, key=lambda each: each[1].stem):
            group = list(together)
            sources = [source for source, _ in group]
            if any(map(self._is_held, sources)):
                self._add_problems(sources, ())  # what belongs together waits together
                continue
            offers = self._try_read(sources, self._read_files, group)
            if offers is not None:
                yield from self._apply_offers(offers)

    def _read_files(self, files: Iterable[tuple[Source, Path]]) -> list[Offer]:
        return [self.reader.file(source, self.relation_of(source), path) for source, path in files]

    def _take_stream(self, source: Source) -> Iterator[Step]:
        """Everything a streaming query has now, as steps of their own."""
        steps: list[Step] = []
        relation = self.relation_of(source)

        def take(data: DataFrame, number: int) -> None:
            offer = of_stream(source, relation, data, number)
            if offer.batch not in self.database.batches:
                made = list(self._apply_offers([offer]))
                if not made:  # the checkpoint must not pass over it
                    raise DataError(self._problems.diagnostics)
                steps.extend(made)

        def run() -> None:
            query = (
                self.reader.streamed(source)
                .writeStream.foreachBatch(take)
                .option("checkpointLocation", f"{self.project.state}/streams/{source.name}")
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            except Exception:
                if f"source {source.name}" not in self._problems:
                    raise

        self._try_read([source], run)
        yield from steps

    def _apply_offers(self, offers: Sequence[Offer]) -> Iterator[Step]:
        """One commit for what some sources offer together, or none if it fails."""
        sources = [offer.source for offer in offers]
        found = self._try_read(sources, classify_offers, self.database, offers)
        if found is None:
            return
        batches = tuple(offer.batch for offer in offers)
        if found.bad and self.project.bad_rows == "fail":
            source, batch = found.bad[0].source, found.bad[0].batch
            self._add_problems(sources, bad_rows_error(source, batch, found.bad).diagnostics)
            return
        if found.bad and self.project.bad_rows == "refuse":
            bad = as_whole([*found.bad, *refused_with(offers, found.bad)])
            delta = self.database.apply(batches=batches, refused=bad)
            yield Step(batches, delta, tuple(bad), True)
            return
        sides = found.insert, found.delete, found.set
        try:
            delta = self.database.apply(*sides, batches=batches, refused=found.bad)
        except ConstraintError as error:
            yield from self._take_violation(offers, error)
        else:
            yield Step(batches, delta, tuple(found.bad))

    def _take_violation(self, offers: Sequence[Offer], error: ConstraintError) -> Iterator[Step]:
        """Nothing of a batch that violates a constraint is taken; it waits, or is in quarantine."""
        sources, how = [offer.source for offer in offers], self.project.bad_rows
        if how == "fail":
            self._add_problems(sources, error.diagnostics)
            return
        most = self.database.engine.settings.driver_rows_max
        bad = violating_rows(error, offers, most, is_each=how == "quarantine")
        batches = tuple(offer.batch for offer in offers)
        yield Step(batches, self.database.apply(batches=batches, refused=bad), tuple(bad), True)

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
