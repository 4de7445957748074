"""Loading many facts into tables at once; nothing fires by it, and constraints are checked."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from deltalog.pipeline.bulk_load import bulk_load, check_bulk_keys
from deltalog.pipeline.checked_frames import (
    check_unique_keys,
    check_unique_row_keys,
    driver_rows,
)
from deltalog.pipeline.commit_writer import CommitWriter
from deltalog.pipeline.deltas import Delta, delta_of
from deltalog.pipeline.input_facts import FactsInput, input_frame, input_rows
from deltalog.pipeline.log import Batch
from deltalog.pipeline.rejected import Refused
from deltalog.runtime.checked_rows import CheckedRows
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.protocols import Participant
from deltalog.runtime.transaction import base_relation
from deltalog.runtime.violations import ConstraintError

if TYPE_CHECKING:
    from deltalog.analysis.columns import Relation
    from deltalog.engines.spark.engine import SparkEngine


class TableLoads:
    """The part of a database in tables that loads it."""

    spark: SparkSession
    _database: MemoryDatabase
    _writer: CommitWriter
    _participants: tuple[Participant, ...]

    if TYPE_CHECKING:  # of the database that this is a part of

        @property
        def version(self) -> int: ...
        @property
        def is_new(self) -> bool: ...
        @property
        def engine(self) -> SparkEngine: ...
        @property
        def relations(self) -> Mapping[str, Relation]: ...
        def _changes_after(self, relation: str, after: int = 0) -> DataFrame: ...
        def close(self) -> None: ...
        def _closing_on_failure(self) -> AbstractContextManager[None]: ...
        def _apply_facts(
            self,
            delete: Mapping[str, FactsInput],
            insert: Mapping[str, FactsInput],
            set: Mapping[str, FactsInput],
            known: frozenset[str] | None,
            named: tuple[Batch, ...],
            refused: Refused,
            is_firing: bool,
        ) -> Delta: ...

    def load(
        self,
        relation: str | Mapping[str, FactsInput],
        data: FactsInput | None = None,
        *,
        batches: tuple[Batch, ...] = (),
    ) -> Delta:
        """Add many facts at once; views are computed anew if these are more than a change.

        Several relations are given as a mapping: views are computed once then.
        """
        given = {relation: data} if isinstance(relation, str) else relation
        facts = {name: each for name, each in given.items() if each is not None}
        held = {
            name: input_rows(base_relation(self.relations, name), each)
            for name, each in facts.items()
        }
        rows = {name: each for name, each in held.items() if isinstance(each, CheckedRows)}
        most = self.engine.settings.driver_rows_max
        if len(rows) == len(held) and sum(map(len, rows.values())) <= most:
            self._check_row_keys(rows)
            return self.load_rows(rows, batches, ())
        frames = {
            name: input_frame(self.spark, base_relation(self.relations, name), each)
            for name, each in held.items()
        }
        return self.load_frames(frames, batches=batches)

    def _check_row_keys(self, rows: Mapping[str, CheckedRows]) -> None:
        """Of a new state, which holds little; others check the keys of a change themselves."""
        for name, each in rows.items() if self.is_new else ():
            relation = self.relations[name]
            if relation.key:
                check_unique_row_keys(relation, [*self.engine.rows(name), *each])

    def load_frames(
        self,
        frames: Mapping[str, DataFrame],
        *,
        batches: tuple[Batch, ...] = (),
        refused: Refused = (),
    ) -> Delta:
        """The same for frames whose values are checked, with columns as the engine names them."""
        for name, each in frames.items():
            check_unique_keys(self.relations[name], each)
        if not self.is_new:
            most = self.engine.settings.driver_rows_max
            if sum(each.limit(most + 1).count() for each in frames.values()) <= most:
                rows = {n: driver_rows(self.relations[n], each) for n, each in frames.items()}
                return self._apply_facts({}, rows, {}, None, batches, refused, is_firing=False)
        check_bulk_keys(self._database, frames)
        return self._load_frames(frames, batches, refused)

    def load_rows(
        self, rows: Mapping[str, CheckedRows], batches: tuple[Batch, ...], refused: Refused
    ) -> Delta:
        """The same for few facts, whose values and keys are checked, without a job of Spark."""
        if not self.is_new:
            return self._apply_facts({}, rows, {}, None, batches, refused, is_firing=False)
        return self._load_frames(rows, batches, refused)

    def _load_frames(
        self,
        facts: Mapping[str, DataFrame | CheckedRows],
        batches: tuple[Batch, ...],
        refused: Refused,
    ) -> Delta:
        with self._closing_on_failure(), self._writer.recording(batches, refused):
            try:
                return self._load_in_bulk(facts)
            except ConstraintError:  # nothing has been written
                self._restart_engine()
                raise
            except BaseException:  # what is in memory is not what is in the tables
                self.close()
                raise

    def _load_in_bulk(self, facts: Mapping[str, DataFrame | CheckedRows]) -> Delta:
        counts = bulk_load(self._database, self._writer, facts)
        self._database.version = self.version
        return delta_of(self._changes_after, self.version, counts)

    def _restart_engine(self) -> None:
        """Bring memory back to the last commit, after a change that was not written."""
        before = self._database
        self._database = MemoryDatabase(
            before.model,
            before.engine.fresh(),
            before.limits,
            before.watch,
            {},
            self._writer,
            self._participants,
        )
        self._database.take_actions(before)
        self._database.version = self.version
