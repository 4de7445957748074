"""Sources: tables, files and streams, read as batches of changes.

| kind       | a batch is                                        | its name          |
|------------|---------------------------------------------------|-------------------|
| `load`     | all rows, once                                    | `load`            |
| `snapshot` | the difference from what the relation holds       | (none: it is net) |
| `changes`  | a new file or folder, rows with an op             | the file's name   |
| `feed`     | a version of a Delta table with its change feed   | the version       |
| `stream`   | a micro-batch of a streaming query, rows with op  | its number        |

A batch has a name, so that it is applied once. Files are taken in the order of their names; those
of several sources that have the same name, whatever the suffix, are one transaction. Few rows of
text are read by the driver, without a job; many by tasks, with the same reader.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.checked_frames import CORRUPT, FILE, LINE, OP, checked_frame, fit_columns
from deltalog.pipeline.log import Batch
from deltalog.pipeline.offers import Data, Offer
from deltalog.pipeline.project import Source
from deltalog.pipeline.source_columns import Place, shown_path
from deltalog.pipeline.text_files import TextReader, files_of, is_known
from deltalog.pipeline.text_frames import text_frame

LOADED = "load"
FEED_OPS = {"insert": "+", "update_postimage": "+", "delete": "-", "update_preimage": "-"}
RFC_4180 = {"escape": '"', "multiLine": "true", "nullValue": "\ufffe"}
"""Options by which Spark reads CSV as we do; with another null, `""` is the empty text."""
DRIVER_BYTES_MAX = 16 * 2**20
"""Files of text up to this size are read by the driver, if they have few rows."""


class SourceReader:
    """Reads sources; up to `most` rows of text come to the driver."""

    def __init__(self, spark: SparkSession, most: int) -> None:
        self.spark = spark
        self._most = most

    def whole(self, source: Source, relation: Relation) -> Data:
        """All rows of a source, checked."""
        return self._read_rows(source, relation, source.path, None)

    def file(self, source: Source, relation: Relation, path: Path) -> Offer:
        """A file or folder of changes."""
        return Offer(
            source, relation, path.name, self._read_rows(source, relation, path, source.op)
        )

    def _read_rows(
        self, source: Source, relation: Relation, path: str | Path, op: str | None
    ) -> Data:
        if is_known(source):
            return self._read_text(TextReader(source, relation, op), files_of(Path(path)))
        found = _read_source(self.spark, source, str(path))
        return _check_source_rows(found, source, relation, op, shown_path(path) if path else None)

    def _read_text(self, reader: TextReader, files: list[Path]) -> Data:
        size = sum(path.stat().st_size for path in files if path.exists())
        most = self._most if size <= DRIVER_BYTES_MAX else 0
        rows = list(islice(chain.from_iterable(map(reader.rows, files)), most + 1))
        return rows if len(rows) <= most else text_frame(self.spark, reader, files)

    # --- feeds and streams

    def feed_versions(self, source: Source, known: Iterable[Batch]) -> range:
        """The versions of a Delta table after the last one that was taken."""
        taken = [int(name) for owner, name in known if owner == source.name]
        return range(max(taken, default=-1) + 1, self.feed_version(source) + 1)

    def feed(self, source: Source, relation: Relation, version: int) -> Offer:
        """The changes of one version of a Delta table."""
        between = {"readChangeFeed": "true", "startingVersion": version, "endingVersion": version}
        options = {name: str(value) for name, value in between.items()}
        reader = self.spark.read.format("delta").options(**options)
        data = reader.table(source.table) if source.table else reader.load(source.path)
        ops = F.create_map(*(F.lit(word) for pair in FEED_OPS.items() for word in pair))
        data = data.withColumn(OP, ops[F.col("_change_type")])
        data = data.drop("_change_type", "_commit_version", "_commit_timestamp")
        return Offer(source, relation, str(version), _check_source_rows(data, source, relation, OP))

    def feed_version(self, source: Source) -> int:
        table = (
            DeltaTable.forName(self.spark, source.table)
            if source.table
            else DeltaTable.forPath(self.spark, source.path)
        )
        return int(table.history(1).select("version").collect()[0]["version"])

    def streamed(self, source: Source) -> DataFrame:
        """A streaming frame: files of a folder, a Delta table, or Kafka by options."""
        reader = self.spark.readStream.options(**_options_of_source(source)).format(source.format)
        if source.schema:
            reader = reader.schema(source.schema)
        if source.format == "csv":
            reader = reader.option("header", "true")
        return reader.load(source.path) if source.path else reader.load()


def of_stream(source: Source, relation: Relation, data: DataFrame, number: int) -> Offer:
    """A micro-batch of a stream."""
    return Offer(
        source, relation, str(number), _check_source_rows(data, source, relation, source.op)
    )


def new_files(source: Source, known: Iterable[Batch]) -> list[Path]:
    """Files and folders that have not been taken yet, in the order of their names."""
    folder = Path(source.path)
    taken = {name for owner, name in known if owner == source.name}
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        name = shown_path(folder)
        raise DataError([catalogue.CANNOT_READ.at(None, name=name, reason=reason)]) from None
    return [
        path for path in paths if path.name not in taken and not path.name.startswith((".", "_"))
    ]


def _check_source_rows(
    data: DataFrame, source: Source, relation: Relation, op: str | None, file: str | None = None
) -> DataFrame:
    for old, new in source.columns.items():
        data = data.withColumnRenamed(old, new)
    data = data.drop(*source.ignore)
    if source.format == "csv":  # `""` is the empty text, and no other value
        others = [c.name for c in relation.columns if c.type != "str" and c.name in data.columns]
        data = data.withColumns({name: F.nullif(F.col(f"`{name}`"), F.lit("")) for name in others})
    place = Place(source.name, file or "")
    fits = fit_columns(relation, data, place, op=op, is_loose=source.format == "json")
    beside = {FILE: F.lit(file).cast("string"), LINE: F.lit(None).cast("long")}
    return checked_frame(fits, relation).withColumns(beside)


def _read_source(spark: SparkSession, source: Source, path: str) -> DataFrame:
    """The rows of a table or file; those that cannot be read have their text in `corrupt__`."""
    reader = spark.read.options(**_options_of_source(source), columnNameOfCorruptRecord=CORRUPT)
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
        raise spark_problem(source.table or shown_path(path) or source.name, error) from None


def spark_problem(name: str, error: Exception) -> DataError:
    """The error for something that Spark cannot read."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError([catalogue.CANNOT_READ.at(None, name=name, reason=reason)])


def _options_of_source(source: Source) -> dict[str, str]:
    """The options of a source; CSV is that of RFC 4180 unless they say otherwise."""
    return {**(RFC_4180 if source.format == "csv" else {}), **source.options}
