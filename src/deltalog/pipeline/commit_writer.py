"""The writer of commits: what a change does to every relation, appended to the log at once.

A stored view is brought up from the same relations as the one in memory: what goes, and what comes
with its ranks. Tables follow after the commit (`folds.py`); a large one is then probed where it
lies. A database that is opened again reads a relation when it first needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, cast

from pyspark.sql import DataFrame

from deltalog.engines.spark.columns import name_of
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import relation_frame, rows_matching, rows_without
from deltalog.engines.spark.lazy_frame import LazyFrame
from deltalog.engines.spark.relation import SparkRelation, TableFrame
from deltalog.language.printer import print_program
from deltalog.pipeline.drafts import NOTHING, Draft, Held, hold_rows, with_zero_ranks
from deltalog.pipeline.folds import Folds, net_fold
from deltalog.pipeline.freshness import MINUTE, Freshness
from deltalog.pipeline.log import Batch, Files, Record
from deltalog.pipeline.log_rows import DELETE, INSERT, Changes
from deltalog.pipeline.rejected import Refused
from deltalog.pipeline.state import State
from deltalog.pipeline.stored_table import Fold, Ranked, StoredTable
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fixpoint import Statistics
from deltalog.runtime.model import Model
from deltalog.runtime.outcome import Propagated, StoredChange
from deltalog.runtime.protocols import Facts


class CommitWriter:
    """Writes what a commit changes; knows the tables of a model."""

    def __init__(self, state: State, model: Model, freshness: Freshness = MINUTE) -> None:
        self.state = state
        self.is_omitting = False
        self._freshness: Freshness = freshness
        self._batches: tuple[Batch, ...] = ()
        self._refused: Refused = ()
        self._take_model(model)

    def _take_model(self, model: Model) -> None:
        self.model = model
        ranked = {n for choice in model.choices if choice.is_maintained for n in choice.predicates}
        self.stored = {name: self._table_of(name, name in ranked) for name in sorted(model.stored)}
        kept = " ".join(f"{name}{'*' * table.is_ranked}" for name, table in self.stored.items())
        self.program = f"{print_program(model.checked.program)}% kept: {kept}\n"
        self.folds = Folds(self.state, self.stored, self._freshness)

    def _table_of(self, name: str, is_ranked: bool) -> StoredTable:
        if name in self.model.checked.relations:
            return self.unstored(name, "tables", is_ranked)
        types = self.types(name)
        columns = tuple(name_of(i) for i in range(len(types)))
        return self.state.table(f"helpers/{name}", columns, types, is_ranked)

    def unstored(self, name: str, room: str = "changes", is_ranked: bool = False) -> StoredTable:
        """A table with the declared columns of a relation; the default is for changes only."""
        columns = tuple(column.name for column in self.model.relations[name].columns)
        place = f"{room}/{name}"
        return self.state.table(place, columns, self.types(name), is_ranked)

    def types(self, name: str) -> tuple[str, ...]:
        return tuple(type_ or "int" for type_ in self.model.relations[name].types)

    # --- opening

    def initial_state(self, database: MemoryDatabase, facts: Facts) -> Statistics:
        """Compute the state, or let the engine read stored relations when it wants them."""
        if self.state.is_new:
            return database.compute_state(facts)
        engine = cast("SparkEngine", database.engine)
        for name in self.stored:
            reader = self._make_reader(engine, name)
            engine.relations[name].read_later(self.state.size(name), reader)
        engine.clock.now = max(engine.clock.now, self.state.last.clock)
        return Statistics()

    def _make_reader(self, engine: SparkEngine, name: str) -> Callable[[SparkRelation], None]:
        def read(store: SparkRelation) -> None:
            table, fold = self.stored[name], self._fold_of_log(name)
            rows = [*fold.updated, *fold.inserted]
            if self._is_large(engine, name):
                frame = TableFrame(table.snapshot(engine.spark, self.state.spread(name)), 0)
                frame.mask = fold.lost
                store.pieces = [frame]
            else:
                rows = self.rows_on_disk(name)
            for row, rank in sorted(rows, key=lambda each: each[1]):
                store.put(row, rank)

        return read

    def rows_on_disk(self, name: str) -> list[Ranked]:
        """The rows of a small relation, with ranks, as table and log have them."""
        fold = self._fold_of_log(name)
        kept = [each for each in self.stored[name].ranked_rows() if each[0] not in fold.lost]
        return [*kept, *fold.updated, *fold.inserted]

    def _fold_of_log(self, name: str) -> Fold:
        """The part of the log that a table has not followed yet."""
        table, last = self.stored[name], self.state.last.version
        if any(self.state.files_of(name, table.version, last)):
            self.folds.fold([name])
        return net_fold(self.state.log.changes(name, table.version, last), table.types)

    def _is_large(self, engine: SparkEngine, name: str) -> bool:
        table, most = self.stored[name], engine.settings.driver_rows_max
        return bool(table.types) and table.exists and table.size > most

    def program_changed(
        self, database: MemoryDatabase, touched: Set[str], change: ChangeSet
    ) -> None:
        """Commit a program that is in place, and the relations that it touched, as a whole."""
        engine, before = cast("SparkEngine", database.engine), self.stored
        types_before = {name: self.types(name) for name in self.model.checked.relations}
        self._take_model(database.model)
        draft = Draft(engine.spark)
        for name in change.relations:
            for kind, side in ((INSERT, change.inserted), (DELETE, change.deleted)):
                if rows := list(side[name]):
                    types = self.types(name) if kind == INSERT else types_before[name]
                    draft.changes.append(Changes(name, kind, types, rows))
            draft.counts[name] = len(change.inserted[name]), len(change.deleted[name])
        for name, table in self.stored.items():
            if name in touched or before.get(name) != table:
                held = engine.ranked(name)
                draft.files[name] = Files(table.write_whole([(row, rank) for rank, row in held]))
                draft.sizes[name] = len(held)
        self.commit(draft, engine, self.state.last.version + 1, "program")

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
        draft = Draft(engine.spark)
        moved = {each.relation: each for each in outcome.stored_changes()}
        for name in change.relations:
            if name not in moved:
                self._add_net(draft, engine, name, change)
        for each in moved.values():
            self._add_moved(draft, engine, each)
        self.commit(draft, engine, self.state.last.version + 1)

    def _add_net(self, draft: Draft, engine: SparkEngine, name: str, change: ChangeSet) -> None:
        """The exact change of a base relation, or of a view that is not stored."""
        inserted, deleted = (
            _hold_side(s.held.get(name)) for s in (change.inserted, change.deleted)
        )
        table = self.stored.get(name)
        if table is None:
            draft.add(name, self.unstored(name), inserted, deleted)
            return
        types, spark = table.types, engine.spark

        def whole() -> DataFrame:  # the engine may have the change already
            held = relation_frame(spark, engine.relations[name], is_ranked=True)
            stays = rows_without(held, deleted.frame(spark, types), len(types))
            new = inserted.frame(spark, types)
            return rows_without(stays, new, len(types)).unionByName(new)

        draft.add(name, table, inserted, deleted, whole=whole)

    def _add_moved(self, draft: Draft, engine: SparkEngine, moved: StoredChange) -> None:
        """The change of a stored view or helper, with the ranks of its rows."""
        name, table = moved.relation, self.stored[moved.relation]
        added = engine.relations[moved.inserted_in]
        removed = engine.relations[name if moved.deleted_in is None else moved.deleted_in]
        if table.types and (added.has_frames() or removed.has_frames()):
            self._add_frames(draft, engine, table, moved)
            return
        new = {row: rank for rank, row in engine.ranked(added.name)}
        old = set(engine.rows(removed.name))
        draft.add(
            name,
            table,
            hold_rows([(row, rank) for row, rank in new.items() if row not in old]),
            hold_rows([(row, 0) for row in old if row not in new]),
            hold_rows([each for each in new.items() if each[0] in old] if table.is_ranked else []),
        )

    def _add_frames(
        self, draft: Draft, engine: SparkEngine, table: StoredTable, moved: StoredChange
    ) -> None:
        """The same where rows are on the cluster."""
        name, arity = moved.relation, len(table.types)
        added, stored = (
            relation_frame(engine.spark, engine.relations[each], is_ranked=True)
            for each in (moved.inserted_in, name)
        )
        if moved.deleted_in is not None and not engine.size(moved.deleted_in):
            inserted = Held(engine.size(moved.inserted_in), data=added)
            draft.add(name, table, inserted, whole=lambda: stored.unionByName(added))
            return
        if moved.deleted_in is None:
            removed, whole = stored, added
        else:
            removed = relation_frame(
                engine.spark, engine.relations[moved.deleted_in], is_ranked=True
            )
            whole = rows_without(stored, removed, arity).unionByName(added)
        both = rows_matching(added, removed, tuple(range(arity))) if table.is_ranked else None
        draft.add(
            name,
            table,
            cut_for_commit(engine, rows_without(added, removed, arity)),
            cut_for_commit(engine, rows_without(removed, added, arity)),
            NOTHING if both is None else cut_for_commit(engine, both),
            lambda: whole,
        )

    def commit(
        self, draft: Draft, engine: SparkEngine, version: int, kind: str = "transaction"
    ) -> None:
        """Append to the log: from then on it has happened."""
        for name, (inserted, deleted) in draft.counts.items():
            if name in self.stored:
                draft.sizes.setdefault(name, self.state.size(name) + inserted - deleted)
        for name in self.stored if kind == "load" else ():
            draft.sizes.setdefault(name, self.state.size(name))
        helpers = self.stored.keys() - self.model.checked.relations.keys()
        record = Record(
            version=version,
            clock=engine.clock.now,
            kind=kind,
            program=self.program,
            counts={n: c for n, c in draft.counts.items() if any(c) and n not in helpers},
            sizes=draft.sizes,
            files=draft.files,
            spread=draft.spread,
        )
        all_types = {self.types(name) for name in self.model.relations}
        all_types |= {each.types for each in draft.changes}
        self.state.commit(record, draft.changes, all_types, self._batches, self._refused)
        self._batches, self._refused = (), ()

    def follow(self, engine: SparkEngine, names: Sequence[str] | None = None) -> list[str]:
        """Bring the tables up that are due, or these; large ones are then probed on disk."""
        due = self.folds.due(engine.settings.overlay_rows_max) if names is None else names
        followed = self.folds.fold(due)
        for name in followed:
            if self._is_large(engine, name):
                snapshot = self.stored[name].snapshot(engine.spark, self.state.spread(name))
                engine.keep_on_disk(name, snapshot)
        self.state.log.tidy()
        return followed


def _hold_side(side: Any) -> Held:
    """One side of a change."""
    if isinstance(side, LazyFrame):
        return Held(len(side), data=with_zero_ranks(side.data))
    return hold_rows([(row, 0) for row in side or ()])


def cut_for_commit(engine: SparkEngine, data: DataFrame) -> Held:
    """A frame that is computed now, since it is counted and written."""
    kept, size = engine.cut(data, "commit")
    return Held(size, data=kept) if size else NOTHING
