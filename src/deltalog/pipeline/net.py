"""The net effect of a large batch, computed where its rows are.

A small batch is a transaction like any other: its rows come to the driver. A large one stays on the
cluster: what is really new and really gone is found by joins with the stored relation, and is
bound as frames. With S stored, D deleted, I inserted and P put (which replaces what has its key):

    wanted   those of I without a key of P, and P
    come     wanted - S
    gone     ((D ∪ those of S with a key of P) ∩ S) - wanted

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
from deltalog.engines.spark.frames import apart, contents, within, without
from deltalog.engines.spark.storage import LazyFrame
from deltalog.pipeline.checked_frames import (
    check_free_keys,
    check_set_once,
    check_unique_keys,
    driver_rows,
)
from deltalog.runtime.changes import ChangeSet

Frames = Mapping[str, DataFrame]


def net(
    engine: SparkEngine,
    relations: Mapping[str, Relation],
    delete: Frames,
    insert: Frames,
    put: Frames,
) -> ChangeSet:
    """What deleting, inserting and putting these frames really changes, in frames."""
    inserted: dict[str, Changed] = {}
    deleted: dict[str, Changed] = {}
    for name in sorted({*delete, *insert, *put}):
        relation, arity = relations[name], relations[name].arity
        stored = contents(engine.spark, engine.relations[name])
        given = [insert[name]] if name in insert else []
        taken = [delete[name]] if name in delete else []
        if name in put:
            check_set_once(relation, put[name])
            taken.append(within(stored, put[name], relation.key))
            given = [apart(data, put[name], relation.key) for data in given]
        for data in given:
            check_unique_keys(relation, data)
        given += [put[name]] if name in put else []
        wanted = reduce(DataFrame.unionAll, given).distinct() if given else stored.limit(0)
        everything = tuple(range(arity))
        come = _kept(engine, relation, without(wanted, stored, arity))
        go = [within(stored, data, everything) for data in taken]
        gone = reduce(DataFrame.unionAll, go).distinct() if go else stored.limit(0)
        gone = without(gone, wanted, arity) if given else gone
        went = _kept(engine, relation, gone)
        if come:
            check_free_keys(relation, come.data, without(stored, went.data, arity))
            inserted[name] = come
        if went:
            deleted[name] = went
    return ChangeSet.exact(inserted, deleted)


def _kept(engine: SparkEngine, relation: Relation, data: DataFrame) -> LazyFrame:
    """One side of a change, computed now."""
    kept, count = engine.cut(data, "net")
    return LazyFrame(count, lambda: driver_rows(relation, kept), kept)
