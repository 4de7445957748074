"""A relation at any version, and its changes between two, as DataFrames: tables and log together.

    now              the table, and the log after the version it stands for
    version 12       the same, without what has changed since then
    changes          the log, and the files that commits name

Readers need no lock: everything they read was written once and stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import RANK, SPARK_TYPES, name_of, shared_names
from deltalog.engines.spark.frames import rows_without
from deltalog.pipeline.change_log import TableLog
from deltalog.pipeline.feed_columns import FeedColumn, Stretch, stretches_between
from deltalog.pipeline.folds import net_fold
from deltalog.pipeline.log_rows import DELETE, INSERT
from deltalog.pipeline.state import State
from deltalog.pipeline.state_tables import table_at
from deltalog.pipeline.stored_table import HOLDS_COLUMN, StoredTable
from deltalog.store.cells import with_types

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = (
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
)
"""The columns of a feed of changes, named as Spark names its own."""
FEED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


def read_frame(state: State, table: StoredTable, name: str, version: int) -> DataFrame:
    """A stored relation at a version, as a frame of the engine.

    `table` is as the program of that version has it; on disk it is as that of the version it
    stands for.
    """
    stands_for = table.version
    if version < stands_for:
        return _undo_later_changes(state, table, name, version)
    after = stands_for
    files = state.files_since_whole(name, stands_for, version)
    is_replaced = bool(files) and files[0][1].whole is not None
    data = None if is_replaced else _table_frame(state.spark, table)
    for at, each in files:
        if each.whole is not None:
            data = table.inwards(state.read_files(each.whole))
        elif each.inserted is not None:
            assert data is not None
            data = _apply_log(state, table, name, data, after, at - 1)
            data = data.unionByName(table.inwards(state.read_files(each.inserted)))
        after = at
    assert data is not None
    return _apply_log(state, table, name, data, after, version)


def _table_frame(spark: SparkSession, table: StoredTable) -> DataFrame:
    if not table.exists:
        return table.inwards(spark.createDataFrame(table.encoded([])))
    return table.inwards(table.frame(spark))


def _apply_log(
    state: State, table: StoredTable, name: str, data: DataFrame, after: int, until: int
) -> DataFrame:
    """A frame of the engine, brought up by the log between two versions."""
    fold, spark = net_fold(state.log.changes(name, after, until), table.types), state.spark
    lost = [(row, 0) for row in fold.lost]
    added = [*fold.updated, *fold.inserted]
    if lost:
        removed = table.inwards(spark.createDataFrame(table.encoded(lost)))
        data = rows_without(data, removed, len(table.columns)) if table.columns else data.limit(0)
    if added:
        data = data.unionByName(table.inwards(spark.createDataFrame(table.encoded(added))))
    return data


def _undo_later_changes(state: State, table: StoredTable, name: str, version: int) -> DataFrame:
    """A relation without the changes after a version."""
    held = table_at(state, name, table.version)
    if held is None or (held.columns, held.types) != (table.columns, table.types):
        return _undone_here(state, held, table, name, version)
    data = _table_frame(state.spark, table)
    net = net_changes(feed_frame(state, name, version, table.version), table)
    named = [F.col(f"`{column}`").alias(name_of(i)) for i, column in enumerate(table.columns)]
    rank = F.lit(0).cast("long").alias(RANK)
    later, before = (
        net.where(F.col(CHANGE_TYPE) == kind).select(*named, rank) for kind in (INSERT, DELETE)
    )
    if not table.columns:  # it holds or not
        return data if net.isEmpty() else before
    return rows_without(data, later, len(table.columns)).unionByName(before)


def _undone_here(
    state: State, held: StoredTable | None, table: StoredTable, name: str, version: int
) -> DataFrame:
    """The same where a program has altered the columns since, on the driver: few rows are alike."""
    net = TableLog(state).net(version, table.version, name)
    facts = set() if held is None else {row for row, _ in held.ranked_rows()}
    rows = with_types((facts - net.inserted[name]) | net.deleted[name], table.types)
    return table.inwards(state.spark.createDataFrame(table.encoded([(row, 0) for row in rows])))


def net_changes(changes: DataFrame, table: StoredTable) -> DataFrame:
    """The net change: every row that was finally inserted or deleted."""
    columns = list(table.columns or (HOLDS_COLUMN,))
    signs = F.when(F.col(CHANGE_TYPE) == INSERT, 1).otherwise(-1)
    total = changes.groupBy(*columns).agg(F.sum(signs).alias("total__"))
    kind = F.when(F.col("total__") > 0, INSERT).otherwise(DELETE).alias(CHANGE_TYPE)
    return total.where("total__ != 0").select(*columns, kind)


def feed_frame(state: State, name: str, after: int, until: int | None = None) -> DataFrame:
    """The changes of a relation after a version, up to another: its columns and those of a feed."""
    last = state.last.version if until is None else until
    times = {record.version: record.at for record in state.records if record.counts}
    log = state.log.table.frame(state.spark)
    assert log is not None
    found = stretches_between(state, name, after, last)
    parts = [_changes_in_log(log, stretch, name, after, last) for stretch in found]
    for version, files in state.files_of(name, after, last):
        stamp = (F.lit(version).cast("long"), F.lit(times.get(version)).cast("timestamp"))
        for kind, folder in ((INSERT, files.inserted), (DELETE, files.deleted)):
            age = version if kind == INSERT else version - 1
            for stretch in found if folder is not None else ():
                if stretch.first <= age <= stretch.last:
                    data = state.read_files(str(folder))
                    own = _feed_columns(stretch, {})
                    parts.append(data.select(*own, *_stamp_columns(F.lit(kind), *stamp)))
    return reduce(DataFrame.unionByName, parts)


def empty_feed(state: State, table: StoredTable) -> DataFrame:
    """The feed of a relation of which nothing has been committed."""
    types = zip(table.columns or (HOLDS_COLUMN,), table.types or ("bool",), strict=True)
    own = [F.lit(None).cast(SPARK_TYPES[type_]).alias(column) for column, type_ in types]
    made = (F.lit(""), F.lit(0).cast("long"), F.lit(None).cast("timestamp"))
    return state.spark.range(0).select(*own, *_stamp_columns(*made))


def _changes_in_log(
    log: DataFrame, stretch: Stretch, name: str, after: int, until: int
) -> DataFrame:
    """The changes of a relation in the log, for the versions of a stretch."""
    version, change = F.col("version"), F.col("change")
    inserted = (change == INSERT) & version.between(stretch.first, stretch.last)
    deleted = (change == DELETE) & version.between(stretch.first + 1, stretch.last + 1)
    held = (F.col("relation") == name) & (version > after) & (version <= until)
    own = _feed_columns(
        stretch, dict(zip(stretch.table.columns, shared_names(stretch.table.types), strict=True))
    )
    stamp = [F.col(each) for each in ("change", "version", "at")]
    return log.where(held & (inserted | deleted)).select(*own, *_stamp_columns(*stamp))


def _feed_columns(stretch: Stretch, shared: Mapping[str, str]) -> list[Column]:
    """The columns of a feed, from files or, by the names there, from the log."""
    return [_feed_column(column, shared).alias(column.name) for column in stretch.columns]


def _feed_column(column: FeedColumn, shared: Mapping[str, str]) -> Column:
    if column.source == HOLDS_COLUMN:
        return F.lit(True)
    if column.source is None:
        return F.lit(None).cast(SPARK_TYPES[column.type])
    source = shared.get(column.source, column.source)
    return F.col(f"`{source}`").cast(SPARK_TYPES[column.type])


def _stamp_columns(kind: Column, version: Column, at: Column) -> list[Column]:
    return [each.alias(name) for each, name in zip((kind, version, at), FEED, strict=True)]
