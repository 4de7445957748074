"""The writer of commits: the tables that changed, and the row that makes it true.

A stored view is brought up from the same relations as the one in memory: deleted rows, and inserted
ones with their ranks. Its change table gets the net change. Everything is written at the same time,
since nothing of it counts before the row in the commit table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from deltalog.diagnostics.report import InternalError
from deltalog.engines.spark.columns import RANK, frame, name_of
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import contents, without
from deltalog.engines.spark.storage import LazyFrame
from deltalog.language.ast import Row
from deltalog.language.printer import print_program
from deltalog.pipeline.commits import Batch, Commits
from deltalog.pipeline.tables import Table, Tables, together
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fixpoint import Statistics
from deltalog.runtime.model import Model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.protocols import Facts

Refused = Sequence[tuple[str, str, str]]
"""Rows that are not taken: relation, reason, and the row as text."""
Work = Callable[[], None]
Sized = tuple[DataFrame, int, Callable[[], Iterable[Row]]]
"""A frame of the engine, how many rows it has, and these rows."""

REWRITTEN_ROWS_MAX = 10_000

QUARANTINE = "quarantine"
QUARANTINE_SCHEMA = (
    "sequence LONG, source STRING, batch STRING, relation STRING, reason STRING, row STRING"
)


class CommitWriter:
    """Writes what a commit changes; knows the tables of a model."""

    def __init__(self, tables: Tables, commits: Commits, model: Model) -> None:
        self.tables = tables
        self.commits = commits
        self.model = model
        self._batches: tuple[Batch, ...] = ()
        self._refused: Refused = ()
        ranked = {n for choice in model.choices if choice.is_recursive for n in choice.predicates}
        self.stored = {name: self._table(name, name in ranked) for name in sorted(model.stored)}
        kept = " ".join(f"{name}{'*' * table.is_ranked}" for name, table in self.stored.items())
        self.program = f"{print_program(model.checked.program)}% kept: {kept}\n"

    def _table(self, name: str, is_ranked: bool) -> Table:
        relation = self.model.relations[name]
        if name in self.model.checked.relations:
            columns = tuple(column.name for column in relation.columns)
            return Table(self.tables.path("tables", name), columns, is_ranked)
        columns = tuple(name_of(i) for i in range(relation.arity))
        return Table(self.tables.path("helpers", name), columns, is_ranked)

    @property
    def is_new(self) -> bool:
        return not self.commits.last.sequence

    def relative(self, path: str) -> str:
        return path.removeprefix(self.tables.path("")).lstrip("/")

    def recover(self) -> None:
        """Put back what is ahead of the last commit."""
        ahead = [
            path
            for path, version in self.commits.last.tables.items()
            if self.tables.version(self.tables.path(path)) != version
        ]
        if not ahead:
            return
        known = self.commits.last.tables
        paths = {path: self.tables.path(path) for path in ahead}
        together([partial(self.tables.restore, paths[path], known[path]) for path in ahead])
        self.commits.write(self.commits.last, self._versions(paths.values()), (), "restore")

    def initial_state(self, database: MemoryDatabase, facts: Facts) -> Statistics:
        """Compute the state, or load stored relations into the engine as they were kept."""
        if self.is_new:
            return database.compute_state(facts)
        engine = cast("SparkEngine", database.engine)
        versions = self.commits.last.tables

        def load(name: str, table: Table) -> None:
            found = self.tables.read(table.path, versions[self.relative(table.path)])
            engine.load_ranked(name, table.inwards(found))

        together(partial(load, name, table) for name, table in self.stored.items())
        engine.clock.now = max(engine.clock.now, self.commits.last.clock)
        return Statistics()

    def program_changed(
        self, database: MemoryDatabase, touched: Set[str], change: ChangeSet
    ) -> None:
        raise InternalError("a state in tables has one program")

    # --- committing

    @contextmanager
    def recording(self, batches: tuple[Batch, ...], refused: Refused) -> Iterator[None]:
        """Write with the next commit of the block which batches it takes, and rows it refuses."""
        self._batches, self._refused = batches, refused
        try:
            yield
        finally:
            self._batches, self._refused = (), ()

    def before_change(
        self, database: MemoryDatabase, outcome: Propagated, change: ChangeSet
    ) -> None:
        engine = cast("SparkEngine", database.engine)
        works: dict[str, Work] = {}
        for name in change.relations:
            works.update(self._noted(name, change, engine))
            if self.model.relations[name].kind == "base":
                table = self.stored[name]
                deleted, inserted = (
                    held_frame(side.held.get(name), engine, self._types(name))
                    for side in (change.deleted, change.inserted)
                )
                works[table.path] = self._bringing_up(engine, name, table, deleted, inserted)
        for stored, deleted_name, inserted_name, *_ in outcome.stored_changes():
            table = self.stored[stored]
            inserted = stored_frame(engine, inserted_name)
            if deleted_name is None:
                works[table.path] = partial(
                    self.tables.replace, table.path, table.outwards(inserted[0]), inserted[1]
                )
                continue
            deleted = stored_frame(engine, deleted_name)
            if deleted[1] or inserted[1]:
                works[table.path] = self._bringing_up(engine, stored, table, deleted, inserted)
        self.commit(works, engine, self.commits.last.version + 1)

    def _bringing_up(
        self, engine: SparkEngine, name: str, table: Table, deleted: Sized, inserted: Sized
    ) -> Work:
        """Delete rows from a table and insert others.

        A small table is written anew, which costs a third of a merge.
        """
        if not deleted[1]:
            return partial(self.tables.append, table.path, table.outwards(inserted[0]), inserted[1])
        arity = len(table.columns)
        store = engine.relations[name]
        if arity and not store.has_frames() and len(store) + inserted[1] <= REWRITTEN_ROWS_MAX:
            old = set(deleted[2]())
            ranked = [each for each in engine.ranked(name) if each[1] not in old]
            held = frame(
                engine.spark, [row for _, row in ranked], store.types, [rank for rank, _ in ranked]
            )
            whole = table.outwards(held.unionByName(inserted[0]))
            return partial(self.tables.replace, table.path, whole, len(ranked) + inserted[1])
        left = without(deleted[0], inserted[0], arity) if inserted[1] else deleted[0]
        return partial(self.tables.merge, table, table.outwards(left), table.outwards(inserted[0]))

    def _noted(
        self, name: str, change: ChangeSet, engine: SparkEngine
    ) -> Iterator[tuple[str, Work]]:
        """The exact change of a relation, appended to its change table."""
        sides = []
        count = 0
        for op, side in (("-", change.deleted), ("+", change.inserted)):
            data, size, _ = held_frame(side.held.get(name), engine, self._types(name))
            count += size
            if size:
                sides.append(self.with_op(name, data, op))
        if sides:
            data = sides[0] if len(sides) == 1 else sides[0].unionByName(sides[1])
            yield self.noting(name, data, count)

    def _types(self, name: str) -> tuple[str, ...]:
        return tuple(type_ or "int" for type_ in self.model.relations[name].types)

    def with_op(self, name: str, data: DataFrame, op: str) -> DataFrame:
        version = F.lit(self.commits.last.version + 1).cast("long").alias("version")
        columns = tuple(column.name for column in self.model.relations[name].columns)
        named = Table("", columns).outwards(data)
        return named.select(version, F.lit(op).alias("op"), "*")

    def noting(self, name: str, data: DataFrame, count: int) -> tuple[str, Work]:
        path = self.tables.path("changes", name)
        is_known = self.relative(path) in self.commits.last.tables
        write = self.tables.append if is_known else self.tables.replace
        return path, partial(write, path, data, count)

    def commit(self, works: dict[str, Work], engine: SparkEngine, version: int) -> None:
        """Write tables, and then the row that makes it true."""
        works |= self._refusing()
        together(works.values())
        changed = replace(
            self.commits.last, version=version, clock=engine.clock.now, program=self.program
        )
        self.commits.write(changed, self._versions(works), self._batches, "commit")
        self._batches, self._refused = (), ()

    def _refusing(self) -> dict[str, Work]:
        if not self._refused:
            return {}
        source, batch = self._batches[0] if self._batches else ("", "")
        sequence = self.commits.last.sequence + 1
        rows = [(sequence, source, batch, *each) for each in self._refused]
        data = self.tables.spark.createDataFrame(rows, QUARANTINE_SCHEMA)
        path = self.tables.path(QUARANTINE)
        is_known = QUARANTINE in self.commits.last.tables
        write = self.tables.append if is_known else self.tables.replace
        return {path: partial(write, path, data, len(rows))}

    def _versions(self, paths: Iterable[str]) -> dict[str, int]:
        found = {self.relative(path): self.tables.version(path) for path in paths}
        return {path: version for path, version in found.items() if version is not None}


def held_frame(held: Any, engine: SparkEngine, types: tuple[str, ...]) -> Sized:
    """One side of a change as a frame of the engine."""
    if isinstance(held, LazyFrame):
        return held.data.withColumn(RANK, F.lit(0).cast("long")), held.size, held.read
    rows = list(held or ())
    if not types:
        nothing = engine.spark.range(len(rows)).select(F.lit(0).cast("long").alias(RANK))
        return nothing, len(rows), rows.copy
    return frame(engine.spark, rows, types, [0] * len(rows)), len(rows), rows.copy


def stored_frame(engine: SparkEngine, name: str) -> Sized:
    """A relation of the engine as a frame with ranks."""
    store = engine.relations[name]
    data = contents(engine.spark, store, is_ranked=True)
    if not store.types:
        data = data.select(F.lit(0).cast("long").alias(RANK))
    return data, len(store), partial(engine.rows, name)
