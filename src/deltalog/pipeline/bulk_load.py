"""Load many facts at once: views are computed anew, and every table is written as a whole.

    edge + 50,000,000 rows   →   all views evaluated; tables replaced, differences in change tables

A change that is larger than what it changes is not worth propagating. Keys are checked before
anything is loaded; after that an error leaves memory and tables apart, so the caller closes the
database.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple, cast

from pyspark.sql import DataFrame

from deltalog.engines.spark.columns import frame
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import contents, without
from deltalog.pipeline.checked_frames import check_free_keys
from deltalog.pipeline.commit_writer import CommitWriter, Work, stored_frame
from deltalog.pipeline.deltas import Counts
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import evaluate


def check_bulk_keys(database: MemoryDatabase, frames: Mapping[str, DataFrame]) -> None:
    """No fact of the frames has the key of another one that is there."""
    engine = cast("SparkEngine", database.engine)
    for name, data in frames.items():
        relation = database.relations[name]
        if relation.key and engine.size(name):
            stored = contents(engine.spark, engine.relations[name])
            check_free_keys(relation, without(data, stored, relation.arity), stored)


def bulk_load(
    database: MemoryDatabase, writer: CommitWriter, frames: Mapping[str, DataFrame]
) -> Counts:
    """Load checked frames, compute all views, and write everything that is not as it was.

    Returns how many facts of each relation were inserted and deleted.
    """
    engine = cast("SparkEngine", database.engine)
    for name, data in frames.items():
        engine.load_frame(name, data)
    model = database.model
    evaluate(engine, model, database.limits, database.watch)
    works: dict[str, Work] = {}
    counts: dict[str, tuple[int, int]] = {}
    for name, table in writer.stored.items():
        data, size, _ = stored_frame(engine, name)
        if name in model.checked.relations:
            inserted, deleted = _difference(engine, writer, name, data, size)
            if inserted.size or deleted.size:
                counts[name] = inserted.size, deleted.size
                both = writer.with_op(name, inserted.data, "+").unionByName(
                    writer.with_op(name, deleted.data, "-")
                )
                works.update([writer.noting(name, both, inserted.size + deleted.size)])
        works[table.path] = partial(writer.tables.replace, table.path, table.outwards(data), size)
    writer.commit(works, engine, writer.commits.last.version + bool(counts))
    return counts


class _Side(NamedTuple):
    """One side of a difference, with its number of rows."""

    data: DataFrame
    size: int


def _difference(
    engine: SparkEngine, writer: CommitWriter, name: str, data: DataFrame, size: int
) -> tuple[_Side, _Side]:
    """The facts that a relation has and its table has not, and the other way round."""
    table = writer.stored[name]
    version = writer.commits.last.tables.get(writer.relative(table.path))
    types = engine.relations[name].types
    if version is None:
        return _Side(data, size), _Side(frame(engine.spark, [], types), 0)
    before = table.inwards(writer.tables.read(table.path, version))
    if not types:
        excess = before.count() - size
        return _Side(data, max(0, -excess)), _Side(before.limit(max(0, excess)), max(0, excess))
    inserted, deleted = without(data, before, len(types)), without(before, data, len(types))
    return _Side(inserted, inserted.count()), _Side(deleted, deleted.count())
