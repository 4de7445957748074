"""A relation at any version, and its changes between two, as DataFrames: tables and log together.

    now              the table, and the log after the version it stands for
    version 12       the same, without what has changed since then
    changes          the log, and the files that commits name

Readers need no lock: everything they read was written once and stays as it is.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import RANK, SPARK_TYPES, name_of, shared_names
from deltalog.engines.spark.frames import without
from deltalog.pipeline.folds import net_fold
from deltalog.pipeline.log_rows import DELETE, INSERT
from deltalog.pipeline.state import State
from deltalog.pipeline.stored_table import HOLDS_COLUMN, StoredTable

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = (
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
)
"""The columns of a feed of changes, named as Spark names its own."""
FEED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


def read_frame(state: State, table: StoredTable, name: str, version: int) -> DataFrame:
    """A stored relation at a version, with the columns of its table."""
    stands_for = table.version
    data = _table_frame(state.spark, table)
    if version < stands_for:
        return _undone(state, table, name, data, version)
    after = stands_for
    for at, files in state.files_since_whole(name, stands_for, version):
        if files.whole is not None:
            data = table.inwards(state.read_files(files.whole))
        elif files.inserted is not None:
            data = _followed(state, table, name, data, after, at - 1)
            data = data.unionByName(table.inwards(state.read_files(files.inserted)))
        after = at
    return _followed(state, table, name, data, after, version)


def _table_frame(spark: SparkSession, table: StoredTable) -> DataFrame:
    if table.delta is None:
        return table.inwards(spark.createDataFrame(table.encoded([])))
    reader = spark.read.format("delta").option("versionAsOf", table.delta.version())
    return table.inwards(reader.load(table.path))


def _followed(
    state: State, table: StoredTable, name: str, data: DataFrame, after: int, until: int
) -> DataFrame:
    """A frame of the engine, brought up by the log between two versions."""
    fold, spark = net_fold(state.log.changes(name, after, until), table.types), state.spark
    lost = [(row, 0) for row in fold.lost]
    added = [*fold.updated, *fold.inserted]
    if lost:
        removed = table.inwards(spark.createDataFrame(table.encoded(lost)))
        data = without(data, removed, len(table.columns)) if table.columns else data.limit(0)
    if added:
        data = data.unionByName(table.inwards(spark.createDataFrame(table.encoded(added))))
    return data


def _undone(
    state: State, table: StoredTable, name: str, data: DataFrame, version: int
) -> DataFrame:
    """A relation without the changes after a version."""
    changes = feed_frame(state, table, name, version, table.version)
    net = net_changes(changes, table)
    named = [F.col(column).alias(name_of(i)) for i, column in enumerate(table.columns)]
    rank = F.lit(0).cast("long").alias(RANK)
    later, before = (
        net.where(F.col(CHANGE_TYPE) == kind).select(*named, rank) for kind in (INSERT, DELETE)
    )
    if not table.columns:  # it holds or not
        return data if net.isEmpty() else before
    return without(data, later, len(table.columns)).unionByName(before)


def net_changes(changes: DataFrame, table: StoredTable) -> DataFrame:
    """The net change: every row that was finally inserted or deleted."""
    columns = list(table.columns or (HOLDS_COLUMN,))
    signs = F.when(F.col(CHANGE_TYPE) == INSERT, 1).otherwise(-1)
    total = changes.groupBy(*columns).agg(F.sum(signs).alias("total__"))
    kind = F.when(F.col("total__") > 0, INSERT).otherwise(DELETE).alias(CHANGE_TYPE)
    return total.where("total__ != 0").select(*columns, kind)


def feed_frame(
    state: State, table: StoredTable, name: str, after: int, until: int | None = None
) -> DataFrame:
    """The changes of a relation after a version, up to another: its columns and those of a feed."""
    last = state.last.version if until is None else until
    parts = [_logged(state, table, name, after, last)]
    times = {record.version: record.at for record in state.records}
    for version, files in state.files_of(name, after, last):
        stamp = (F.lit(version).cast("long"), F.lit(times[version]).cast("timestamp"))
        for kind, folder in ((INSERT, files.inserted), (DELETE, files.deleted)):
            if folder is not None:
                data = state.read_files(folder)
                parts.append(data.select(*_own(table), *_stamped(F.lit(kind), *stamp)))
    return reduce(DataFrame.unionByName, parts)


def _own(table: StoredTable) -> list[Column]:
    """The columns of a relation; without any, there is one that says that it holds."""
    found = [F.col(f"`{column}`") for column in table.columns]
    return found or [F.lit(True).alias(HOLDS_COLUMN)]


def _stamped(kind: Column, version: Column, at: Column) -> list[Column]:
    return [each.alias(name) for each, name in zip((kind, version, at), FEED, strict=True)]


def _logged(state: State, table: StoredTable, name: str, after: int, until: int) -> DataFrame:
    kinds = [F.col(each) for each in ("change", "version", "at")]
    shared = zip(shared_names(table.types), table.columns, strict=True)
    own = [F.col(each).alias(column) for each, column in shared] or _own(table)
    version = state.log.table_version
    if version is None:
        empty = [
            F.lit(None).cast(SPARK_TYPES[type_]).alias(column)
            for type_, column in zip(table.types, table.columns, strict=True)
        ]
        made = (F.lit(""), F.lit(0).cast("long"), F.lit(None).cast("timestamp"))
        return state.spark.range(0).select(*(empty or _own(table)), *_stamped(*made))
    data = state.spark.read.format("delta").option("versionAsOf", version).load(state.log.path)
    wanted = (F.col("relation") == name) & F.col("change").isin(INSERT, DELETE)
    held = data.where(wanted & (F.col("version") > after) & (F.col("version") <= until))
    return held.select(*own, *_stamped(*kinds))
