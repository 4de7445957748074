"""Load many facts at once: views are computed anew, and what is large is written once.

    edge + 50,000,000 rows   →   all views evaluated; large ones in files that the commit names

A change that is larger than what it changes is not worth propagating. Keys are checked before
anything is loaded; after that an error leaves memory and log apart, so the caller closes the
database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql import DataFrame

from deltalog.engines.spark.columns import RANK
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import relation_frame, rows_matching, rows_without
from deltalog.engines.spark.lazy_frame import LazyFrame
from deltalog.pipeline.checked_frames import check_free_keys
from deltalog.pipeline.commit_writer import CommitWriter, cut_for_commit
from deltalog.pipeline.deltas import Counts
from deltalog.pipeline.drafts import NOTHING, Draft, Held, hold_rows, with_zero_ranks
from deltalog.pipeline.reading import read_frame
from deltalog.pipeline.stored_table import StoredTable
from deltalog.runtime.checked_rows import CheckedRows
from deltalog.runtime.constraints import check_state
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import evaluate_views


def check_bulk_keys(database: MemoryDatabase, frames: Mapping[str, DataFrame]) -> None:
    """No fact of the frames has the key of another one that is there."""
    engine = cast("SparkEngine", database.engine)
    for name, data in frames.items():
        relation = database.relations[name]
        if relation.key and engine.size(name):
            stored = relation_frame(engine.spark, engine.relations[name])
            check_free_keys(relation, rows_without(data, stored, relation.arity), stored)


def bulk_load(
    database: MemoryDatabase,
    writer: CommitWriter,
    frames: Mapping[str, DataFrame | CheckedRows],
) -> Counts:
    """Load checked facts, compute all views, and commit everything that is not as it was.

    Returns how many facts of each relation were inserted and deleted.
    """
    engine, state = cast("SparkEngine", database.engine), writer.state
    virtual = sorted(database.model.checked.relations.keys() - writer.stored.keys())
    before = (
        {} if state.is_new else {name: _facts_of_virtual_view(database, name) for name in virtual}
    )
    for name, data in frames.items():
        if isinstance(data, CheckedRows):
            engine.insert(name, data)
        else:
            engine.load_frame(name, data)
    evaluate_views(engine, database.model, database.limits, database.watch)
    check_state(database)
    draft = Draft(engine.spark)
    for name, table in writer.stored.items():
        held = _held_relation(engine, name)
        if state.is_new:
            draft.add_load(name, table, held)
        else:
            _add_difference(draft, engine, writer, name, held)
    for name in virtual:
        _add_virtual(
            draft,
            writer.unstored(name),
            name,
            before.get(name),
            _facts_of_virtual_view(database, name),
        )
    is_changed = any(map(any, draft.counts.values()))
    writer.commit(draft, engine, state.last.version + is_changed, "load")
    return state.last.counts


def _held_relation(engine: SparkEngine, name: str) -> Held:
    """A relation of the engine, where it is."""
    store = engine.relations[name]
    if store.types and store.has_frames():
        return Held(len(store), data=relation_frame(engine.spark, store, is_ranked=True))
    return hold_rows([(row, rank) for rank, row in engine.ranked(name)])


def _facts_of_virtual_view(database: MemoryDatabase, name: str) -> Any:
    """The facts of a view that is not stored."""
    return database.rows(name).held


def _add_difference(
    draft: Draft, engine: SparkEngine, writer: CommitWriter, name: str, held: Held
) -> None:
    """The difference between a stored relation and what table and log have of it."""
    table, state = writer.stored[name], writer.state
    if held.data is None and state.size(name) <= engine.settings.driver_rows_max:
        _add_small(draft, writer, name, held)
        return
    new = held.frame(engine.spark, table.types)
    old = read_frame(state, table, name, state.last.version)
    arity = len(table.types)
    inserted, deleted = (
        cut_for_commit(engine, rows_without(a, b, arity)) for a, b in ((new, old), (old, new))
    )
    reranked = NOTHING
    if table.is_ranked:
        columns = [f"c{i}" for i in range(arity)]
        other = old.withColumnRenamed(RANK, "before__")
        both = rows_matching(new, old, tuple(range(arity))).join(other, columns)
        reranked = cut_for_commit(engine, both.where(f"before__ != {RANK}").drop("before__"))
    draft.add(name, table, inserted, deleted, reranked, lambda: new)


def _add_small(draft: Draft, writer: CommitWriter, name: str, held: Held) -> None:
    table = writer.stored[name]
    old = dict(writer.rows_on_disk(name))
    new = dict(held.rows)
    draft.add(
        name,
        table,
        hold_rows([each for each in new.items() if each[0] not in old]),
        hold_rows([(row, 0) for row in old if row not in new]),
        hold_rows(
            [e for e in new.items() if e[0] in old and old[e[0]] != e[1]] if table.is_ranked else []
        ),
    )


def _add_virtual(draft: Draft, table: StoredTable, name: str, before: Any, after: Any) -> None:
    """The change of a view that is not stored, from what it was."""
    sides = (after, () if before is None else before)
    if any(isinstance(side, LazyFrame) for side in sides) and table.types:
        new, old = (_frame_of_side(draft, table, side) for side in sides)
        arity = len(table.types)
        inserted, deleted = rows_without(new, old, arity), rows_without(old, new, arity)
        sizes = inserted.count(), deleted.count()
        draft.add(name, table, Held(sizes[0], data=inserted), Held(sizes[1], data=deleted))
        return
    now, then = (set(side.read() if isinstance(side, LazyFrame) else side) for side in sides)
    draft.add(
        name,
        table,
        hold_rows([(row, 0) for row in now - then]),
        hold_rows([(row, 0) for row in then - now]),
    )


def _frame_of_side(draft: Draft, table: StoredTable, side: Any) -> DataFrame:
    if isinstance(side, LazyFrame):
        return with_zero_ranks(side.data)
    return hold_rows([(row, 0) for row in side]).frame(draft.spark, table.types)
