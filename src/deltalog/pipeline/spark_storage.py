"""Log and tables where only Spark reaches the storage: HDFS, a Spark Connect server, a mount.

A commit is still one transaction on the log. Plain appends of Delta do not exclude each other, so
it is also a transaction of the application `deltalog` with the number of the commit:

    somebody commits at the same time     Delta refuses one of the two (it has read that number)
    somebody has committed before         Delta skips the append, since the number is taken

After the append the log is read: only if our record is there, it has happened. A table says which
version it stands for in the transaction that brought it there, twice: as that of the application,
which the driver reads, and in its metadata, which Spark reads. Small tables are
rewritten, large ones merged; files that commits name are copied into their table, since Spark
cannot add files as they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

import pyarrow
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from deltalog.engines.spark.columns import literal_column
from deltalog.engines.spark.relation import OnDisk
from deltalog.language.ast import Row
from deltalog.pipeline.location import Location
from deltalog.pipeline.log_rows import COMMIT
from deltalog.pipeline.log_table import APPLICATION, COMPACTED_FILES, Wanted
from deltalog.pipeline.stored_table import (
    RANK_COLUMN,
    REWRITTEN_ROWS_MAX,
    Columns,
    Fold,
    Ranked,
    StoredTable,
    stands_for,
)
from deltalog.pipeline.table_files import new_folder

MISSING = frozenset(
    (
        "DELTA_MISSING_DELTA_TABLE",
        "DELTA_PATH_DOES_NOT_EXIST",
        "DELTA_TABLE_NOT_FOUND",
        "PATH_NOT_FOUND",
    )
)
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
LITERALS_MAX = 1_000
"""Values of the first column that a merge names, so that other files are not read."""


def frame_of(spark: SparkSession, rows: pyarrow.Table) -> DataFrame:
    """Rows of the driver as a DataFrame; timestamps without a zone stay so."""
    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    # PySpark 4.2 takes a table whose first chunk is empty for an empty one.
    return spark.createDataFrame(rows.combine_chunks(), schema)


def load_delta_table(spark: SparkSession, path: str) -> DataFrame | None:
    """A Delta table as it is now, if there is one."""
    try:
        data = spark.read.format("delta").load(path)
        data.schema  # noqa: B018 - by Spark Connect nothing is looked at before
    except AnalysisException as error:
        if error.getCondition() in MISSING:
            return None
        raise
    return data


def _is_conflict(error: Exception) -> bool:
    """Whether Delta has refused a transaction because of another one."""
    return "DELTA_CONCURRENT" in str(error) or "Concurrent" in type(error).__name__


class SparkLogTable:
    """The table of a log, read and written by Spark."""

    def __init__(self, spark: SparkSession, location: Location) -> None:
        self._spark = spark
        self._path = location.path("log")
        self.schema: pyarrow.Schema | None = None
        self._count = 0

    def open(self) -> bool:
        data = load_delta_table(self._spark, self._path)
        if data is not None:
            self.schema = to_arrow_schema(data.schema, timezone="UTC")
        return data is not None

    def frame(self, spark: SparkSession) -> DataFrame | None:
        return load_delta_table(spark, self._path)

    def files_for(self, after: int, until: int) -> list[str]:
        raise NotImplementedError("files are read where the driver reaches them")

    @property
    def identity(self) -> str:
        raise NotImplementedError("a state is served where the driver reaches it")

    def bytes_behind(self, version: int) -> int:
        raise NotImplementedError("a state is served where the driver reaches it")

    def read(self, wanted: Wanted, columns: list[str] | None) -> pyarrow.Table:
        data = self._spark.read.format("delta").load(self._path).where(_condition_of_wanted(wanted))
        found = (data if columns is None else data.select(*columns)).toArrow()
        assert self.schema is not None
        return found.cast(pyarrow.schema([self.schema.field(name) for name in found.column_names]))

    def append(self, rows: pyarrow.Table, sequence: int) -> bool:
        own = uuid.uuid4().hex
        try:
            self._append_rows(_mark_commits(rows, own), sequence)
        except Exception as error:  # it has one class for each way to connect
            if not _is_conflict(error):
                raise
            return False
        self.open()
        found = self.read(Wanted(change=COMMIT, later=sequence - 1), ["text"])
        self._count += 1
        return any(own in text for text in found.column("text").to_pylist())

    def _append_rows(self, rows: pyarrow.Table, sequence: int) -> None:
        writer = frame_of(self._spark, rows).coalesce(1).write.format("delta").mode("append")
        writer = writer.option("mergeSchema", "true").option("txnAppId", APPLICATION)
        writer.option("txnVersion", sequence).save(self._path)

    def note(self, rows: pyarrow.Table) -> None:
        data = frame_of(self._spark, rows)
        data.coalesce(1).write.format("delta").mode("append").save(self._path)

    def drop(self, version: int) -> None:
        condition = f"relation IS NOT NULL AND version <= {version}"
        self._spark.sql(f"DELETE FROM delta.`{self._path}` WHERE {condition}")

    def tidy(self) -> bool:
        if self._count <= COMPACTED_FILES:
            return False
        self._spark.sql(f"OPTIMIZE delta.`{self._path}`")
        self._count = 0
        return True


def _mark_commits(rows: pyarrow.Table, own: str) -> pyarrow.Table:
    """The rows of a commit whose record has a mark of ours."""
    texts, kinds = rows.column("text").to_pylist(), rows.column("change").to_pylist()
    marked = [
        f'{text[:-1]}, "mark": "{own}"}}' if kind == COMMIT else text
        for text, kind in zip(texts, kinds, strict=True)
    ]
    place = rows.schema.get_field_index("text")
    return rows.set_column(place, rows.schema.field(place), [marked])


def _condition_of_wanted(wanted: Wanted) -> Column:
    version = F.col("version")
    found = [
        F.col("change") == wanted.change if wanted.change is not None else None,
        F.col("relation") == wanted.relation if wanted.relation is not None else None,
        F.col("sequence") > wanted.later if wanted.later is not None else None,
        version > wanted.after if wanted.after is not None else None,
        version <= wanted.until if wanted.until is not None else None,
    ]
    return reduce(and_, [each for each in found if each is not None])


# --- tables ---------------------------------------------------------------------------------------


@dataclass
class SparkTable(StoredTable):
    """The table of a relation, which Spark reads and writes."""

    spark: SparkSession = field(kw_only=True, repr=False, compare=False)
    _known: tuple[int, int] | None = field(default=None, repr=False, compare=False)
    """The version of Delta, and that of the state that it stands for."""

    def _find_commit(self) -> tuple[int, int] | None:
        if self._known is None and load_delta_table(self.spark, self.path) is not None:
            history = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.path}`")
            own = F.col("userMetadata").startswith(f"{APPLICATION}:")
            last = history.where(own).orderBy(F.desc("version")).limit(1)
            row = last.select("version", "userMetadata").first()
            if row is not None:
                self._known = int(row[0]), int(row[1].partition(":")[2])
        return self._known

    @property
    def exists(self) -> bool:
        return self._find_commit() is not None

    @property
    def version(self) -> int:
        found = self._find_commit()
        return 0 if found is None else found[1]

    @property
    def size(self) -> int:
        return self.frame(self.spark).count() if self.exists else 0

    def frame(self, spark: SparkSession) -> DataFrame:
        found = self._find_commit()
        assert found is not None
        return spark.read.format("delta").option("versionAsOf", found[0]).load(self.path)

    def ranked_rows(self) -> list[Ranked]:
        return self.decoded(self.frame(self.spark).toArrow()) if self.exists else []

    def snapshot(self, spark: SparkSession, spread: tuple[float, ...]) -> OnDisk:
        return SparkSnapshot(self, self.frame(spark), self.size, spread)

    # --- following the log

    def follow(self, fold: Fold, version: int) -> None:
        if self.exists and self.size + len(fold.inserted) > REWRITTEN_ROWS_MAX:
            self._merge_fold(fold, version)
        else:
            kept = [each for each in self.ranked_rows() if each[0] not in fold.lost]
            rows = self.encoded([*kept, *fold.updated, *fold.inserted])
            self._save_frame(frame_of(self.spark, rows).coalesce(1), version, "overwrite")

    def _save_frame(self, data: DataFrame, version: int, mode: str) -> None:
        writer: DataFrameWriter = data.write.format("delta").mode(mode)
        if mode == "overwrite":  # of a program before
            writer = writer.option("overwriteSchema", "true")
        writer = writer.option("txnAppId", APPLICATION).option("txnVersion", version)
        writer.option("userMetadata", stands_for(version)).save(self.path)
        self._known = None

    def _merge_fold(self, fold: Fold, version: int) -> None:
        """Delete, update and insert rows; files that cannot hold them are not read."""
        lost = [(row, 0) for row in fold.deleted]
        sides = (("delete", lost), ("update", fold.updated), ("insert", fold.inserted))
        parts = [
            self.encoded(rows).append_column("op__", pyarrow.repeat(op, len(rows)))
            for op, rows in sides
            if rows
        ]
        source = f"deltalog_{uuid.uuid4().hex}"
        frame_of(self.spark, pyarrow.concat_tables(parts)).createOrReplaceTempView(source)
        same = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in self.columns)
        listed = ", ".join(f"`{name}`" for name in self.names)
        values = ", ".join(f"s.`{name}`" for name in self.names)
        update = f"WHEN MATCHED THEN UPDATE SET t.{RANK_COLUMN} = s.{RANK_COLUMN} "
        near = self._near_values(fold)
        with self._standing_for(version):
            self.spark.sql(
                f"MERGE INTO delta.`{self.path}` t USING {source} s ON {near} {same} "
                f"WHEN MATCHED AND s.op__ = 'delete' THEN DELETE "
                f"{update if self.is_ranked else ''}"
                f"WHEN NOT MATCHED AND s.op__ != 'delete' THEN INSERT ({listed}) VALUES ({values})"
            )
        self.spark.catalog.dropTempView(source)
        self._known = None

    def _near_values(self, fold: Fold) -> str:
        """A condition on the first column that all rows of a fold fulfil, if it is an int."""
        rows = [*fold.deleted, *(row for row, _ in (*fold.updated, *fold.inserted))]
        values = {row[0] for row in rows}
        if self.types[0] != "int" or None in values or len(values) > LITERALS_MAX:
            return ""
        return f"t.`{self.columns[0]}` IN ({', '.join(sorted(map(str, values)))}) AND "

    @contextmanager
    def _standing_for(self, version: int) -> Iterator[None]:
        said = {METADATA: stands_for(version), TXN_ID: APPLICATION, TXN_VERSION: str(version)}
        for name, value in said.items():
            self.spark.conf.set(name, value)
        try:
            yield
        finally:
            for name in said:
                self.spark.conf.unset(name)

    def write_whole(self, rows: Sequence[Ranked]) -> str:
        folder = new_folder(self.relative)
        data = frame_of(self.spark, self.encoded(rows)).coalesce(1)
        data.write.mode("error").parquet(self.location.path(folder))
        return folder

    def adopt(self, folder: str, version: int, is_whole: bool = True) -> None:
        data = self.spark.read.parquet(self.location.path(self.relative, folder))
        self._save_frame(data, version, "overwrite" if is_whole else "append")


class SparkSnapshot:
    """A table at a version of its own; lookups are jobs of Spark."""

    def __init__(
        self, table: SparkTable, data: DataFrame, size: int, spread: tuple[float, ...]
    ) -> None:
        self.size = size
        self.spread = spread
        self._table = table
        self._data = data

    def frame(self) -> DataFrame:
        return self._table.inwards(self._data)

    def find(self, columns: Columns, keys: Sequence[Row]) -> Iterable[Ranked]:
        data = self._data
        for place, column in enumerate(columns):
            name, type_ = self._table.columns[column], self._table.types[column]
            data = data.where(_is_among(F.col(f"`{name}`"), type_, {key[place] for key in keys}))
        return self._table.decoded(data.toArrow())


def _is_among(own: Column, type_: str, values: set[Any]) -> Column:
    found = own.isin([literal_column(value, type_) for value in values if value is not None])
    return found | own.isNull() if None in values else found
