"""Sources: tables, files and streams, read as batches of changes.

| kind       | a batch is                                        | its name          |
|------------|---------------------------------------------------|-------------------|
| `load`     | all rows, once                                    | `load`            |
| `snapshot` | the difference from what the relation holds       | (none: it is net) |
| `changes`  | a new file or folder, rows with an op             | the file's name   |
| `feed`     | a version of a Delta table with its change feed   | the version       |
| `stream`   | a micro-batch of a streaming query, rows with op  | its number        |

A batch has a name, so that it is applied once. Files are taken in the order of their names; those
of several sources that have the same name, whatever the suffix, are one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.checked_frames import CORRUPT, OP, checked_frame, fitting
from deltalog.pipeline.log import Batch
from deltalog.pipeline.project import Source
from deltalog.pipeline.source_columns import Place

LOADED = "load"
FEED_OPS = {"insert": "+", "update_postimage": "+", "delete": "-", "update_preimage": "-"}


RFC_4180 = {"escape": '"', "multiLine": "true"}


@dataclass(frozen=True)
class Offer:
    """A batch of a source: checked rows, with `op__` if they are changes."""

    source: Source
    name: str
    data: DataFrame

    @property
    def batch(self) -> Batch:
        return self.source.name, self.name


def whole(spark: SparkSession, source: Source, relation: Relation) -> DataFrame:
    """All rows of a source, checked."""
    return _checked(_read(spark, source, source.path), source, relation, None)


def _checked(data: DataFrame, source: Source, relation: Relation, op: str | None) -> DataFrame:
    for old, new in source.columns.items():
        data = data.withColumnRenamed(old, new)
    data = data.drop(*source.ignore)
    fits = fitting(relation, data, Place(source.name), op=op, is_loose=source.format == "json")
    return checked_frame(fits, relation)


def _read(spark: SparkSession, source: Source, path: str) -> DataFrame:
    """The rows of a table or file; those that cannot be read have their text in `corrupt__`."""
    reader = spark.read.options(**_options(source), columnNameOfCorruptRecord=CORRUPT)
    try:
        match source.format:
            case "table":
                return spark.table(source.table)
            case "jdbc":
                return reader.format("jdbc").load()
            case "csv":
                # Text, not guesses: values are read by the types of the relation.
                header = reader.option("header", "true").csv(path)
                texts = [T.StructField(name, T.StringType()) for name in (*header.columns, CORRUPT)]
                return reader.option("header", "true").schema(T.StructType(texts)).csv(path)
            case "json":
                found = reader.option("primitivesAsString", "true").json(path)
                return found.cache() if CORRUPT in found.columns else found
            case _:
                return reader.format(source.format).load(path)
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        name = source.table or path or source.name
        raise DataError([catalogue.CANNOT_READ.at(None, name=name, reason=reason)]) from None


def _options(source: Source) -> dict[str, str]:
    """The options of a source; CSV is that of RFC 4180 unless they say otherwise."""
    return {**(RFC_4180 if source.format == "csv" else {}), **source.options}


def new_files(
    spark: SparkSession, source: Source, relation: Relation, known: Iterable[Batch]
) -> Iterator[Offer]:
    """Files and folders that have not been taken yet, in the order of their names."""
    folder = Path(source.path)
    taken = {name for owner, name in known if owner == source.name}
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_READ.at(None, name=folder, reason=reason)]) from None
    for path in paths:
        if path.name not in taken and not path.name.startswith((".", "_")):
            data = _checked(_read(spark, source, str(path)), source, relation, source.op)
            yield Offer(source, path.name, data)


def feed_versions(
    spark: SparkSession, source: Source, relation: Relation, known: Iterable[Batch]
) -> Iterator[Offer]:
    """The versions of a Delta table after the last one that was taken."""
    taken = [int(name) for owner, name in known if owner == source.name]
    reader = spark.read.format("delta")
    last = feed_version(spark, source)
    for version in range(max(taken, default=-1) + 1, last + 1):
        between = {"readChangeFeed": "true", "startingVersion": version, "endingVersion": version}
        options = reader.options(**{name: str(value) for name, value in between.items()})
        data = options.table(source.table) if source.table else options.load(source.path)
        ops = F.create_map(*(F.lit(word) for pair in FEED_OPS.items() for word in pair))
        data = data.withColumn(OP, ops[F.col("_change_type")])
        data = data.drop("_change_type", "_commit_version", "_commit_timestamp")
        yield Offer(source, str(version), _checked(data, source, relation, OP))


def feed_version(spark: SparkSession, source: Source) -> int:
    table = (
        DeltaTable.forName(spark, source.table)
        if source.table
        else DeltaTable.forPath(spark, source.path)
    )
    return int(table.history(1).select("version").collect()[0]["version"])


def streamed(spark: SparkSession, source: Source) -> DataFrame:
    """The source as a streaming frame: files of a folder, a Delta table, or Kafka by options."""
    reader = spark.readStream.options(**_options(source)).format(source.format)
    if source.schema:
        reader = reader.schema(source.schema)
    if source.format == "csv":
        reader = reader.option("header", "true")
    return reader.load(source.path) if source.path else reader.load()


def of_stream(source: Source, relation: Relation, data: DataFrame, number: int) -> Offer:
    """A micro-batch of a stream."""
    return Offer(source, str(number), _checked(data, source, relation, source.op))
