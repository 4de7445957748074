"""The net effect of a large batch, computed where its rows are.

A small batch is a transaction like any other: its rows come to the driver. A large one stays on the
cluster: its net effect is found by joins with the stored relation, and is bound as frames. With S
stored, and D, I and P the facts to delete, insert and set (which replaces the fact with that key):

    wanted     those of I without a key of P, and P
    inserted   wanted - S
    deleted    ((D ∩ S) ∪ those of S with a key of P) - wanted

which is what the three in this order would have done one by one, if neither I nor P has two facts
with one key. That is checked first, here as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame

from deltalog.analysis.columns import Relation
from deltalog.engines.base import Changed
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import (
    relation_frame,
    rows_matching,
    rows_not_matching,
    rows_without,
)
from deltalog.engines.spark.lazy_frame import LazyFrame
from deltalog.pipeline.checked_frames import (
    check_free_keys,
    check_set_once,
    check_unique_keys,
    driver_rows,
)
from deltalog.runtime.changes import ChangeSet

Frames = Mapping[str, DataFrame]


def net_frames(
    engine: SparkEngine,
    relations: Mapping[str, Relation],
    delete: Frames,
    insert: Frames,
    put: Frames,
) -> ChangeSet:
    """The net change of deleting, inserting and setting these frames, as frames."""
    inserted: dict[str, Changed] = {}
    deleted: dict[str, Changed] = {}
    for name in sorted({*delete, *insert, *put}):
        sides = delete.get(name), insert.get(name), put.get(name)
        minus, plus = _net_sides(engine, relations[name], *sides)
        if plus:
            inserted[name] = plus
        if minus:
            deleted[name] = minus
    return ChangeSet.exact(inserted, deleted)


def _net_sides(
    engine: SparkEngine,
    relation: Relation,
    delete: DataFrame | None,
    insert: DataFrame | None,
    put: DataFrame | None,
) -> tuple[LazyFrame, LazyFrame]:
    """The facts of one relation that are deleted, and those that are inserted."""
    arity = relation.arity
    stored = relation_frame(engine.spark, engine.relations[relation.name])
    removed = [] if delete is None else [rows_matching(stored, delete, tuple(range(arity)))]
    if put is not None:
        check_set_once(relation, put)
        removed.append(rows_matching(stored, put, relation.key))
        insert = None if insert is None else rows_not_matching(insert, put, relation.key)
    if insert is not None:
        check_unique_keys(relation, insert)
    added = [data for data in (insert, put) if data is not None]
    wanted = reduce(DataFrame.unionAll, added).distinct() if added else stored.limit(0)
    left = reduce(DataFrame.unionAll, removed).distinct() if removed else stored.limit(0)
    plus = _compute_side(engine, relation, rows_without(wanted, stored, arity))
    minus = _compute_side(engine, relation, rows_without(left, wanted, arity) if added else left)
    if plus:
        check_free_keys(relation, plus.data, rows_without(stored, minus.data, arity))
    return minus, plus


def _compute_side(engine: SparkEngine, relation: Relation, data: DataFrame) -> LazyFrame:
    """One side of a change, computed now."""
    kept, count = engine.cut(data, "net")
    return LazyFrame(count, lambda: driver_rows(relation, kept), kept)
