"""Files of text as frames: read by tasks, one for each file, with the reader of the driver.

So a file gives the same rows however large it is. Columns are `c0`, `c1`, … as the engine has them,
and `op__`, `reason__`, `row__`, `file__` and `line__` beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from deltalog.analysis.columns import Relation
from deltalog.diagnostics.report import DataError
from deltalog.engines.spark.columns import arrow_columns, names_of, schema_of_types
from deltalog.pipeline.checked_frames import FILE, LINE, OP, REASON, ROW, engine_types
from deltalog.pipeline.text_files import TextReader, TextRow

ROWS_AT_ONCE = 10_000
UNREADABLE = "file"
"""The operation of a row that stands for a file which cannot be read on."""
_TEXTS = (OP, REASON, ROW, FILE)


def text_frame(spark: SparkSession, reader: TextReader, files: Sequence[Path]) -> DataFrame:
    """The rows of large files, as they are read by `TextReader.rows`."""
    relation = reader.relation
    paths = [(str(path),) for path in files]

    def read(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                rows = _rows_to_the_end(reader, Path(path))
                while some := list(islice(rows, ROWS_AT_ONCE)):
                    yield from _table_of_texts(relation, some).to_batches()

    named = spark.createDataFrame(paths, "path STRING").repartition(len(paths))
    return named.mapInArrow(read, _schema_of_texts(relation))


def _rows_to_the_end(reader: TextReader, path: Path) -> Iterator[TextRow]:
    """The rows, and one more if the file cannot be read to its end."""
    try:
        yield from reader.rows(path)
    except DataError as error:
        reason = error.diagnostics[0].message
        yield TextRow(str(path), 0, UNREADABLE, None, reason, "")


def rows_frame(spark: SparkSession, relation: Relation, rows: Sequence[TextRow]) -> DataFrame:
    """Rows of the driver as such a frame."""
    return spark.createDataFrame(_table_of_texts(relation, rows), _schema_of_texts(relation))


def _schema_of_texts(relation: Relation) -> T.StructType:
    texts = [T.StructField(name, T.StringType()) for name in _TEXTS]
    values = schema_of_types(engine_types(relation), is_ranked=False).fields
    return T.StructType([*values, *texts, T.StructField(LINE, T.LongType())])


def _table_of_texts(relation: Relation, rows: Iterable[TextRow]) -> pyarrow.Table:
    listed = list(rows)
    types = engine_types(relation)
    nothing = (None,) * relation.arity
    values = arrow_columns([nothing if each.row is None else each.row for each in listed], types)
    texts = [
        [each.op for each in listed],
        [each.reason for each in listed],
        [None if each.reason is None else each.text for each in listed],
        [each.file for each in listed],
    ]
    beside = [pyarrow.array(column, pyarrow.string()) for column in texts]
    lines = pyarrow.array([each.line for each in listed], pyarrow.int64())
    return pyarrow.Table.from_arrays(
        [*values, *beside, lines], names=[*names_of(types), *_TEXTS, LINE]
    )
