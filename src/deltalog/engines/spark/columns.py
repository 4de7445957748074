"""Rows as DataFrames and back: columns `c0`, `c1`, … and the rank of each row.

Values keep their canonical form on both sides: timestamps are without a zone, decimals have 18
places on the cluster and no trailing zeros on the driver. An exact number is written as text
(`"1/3"`): a reduced fraction has one spelling, so equal numbers are equal texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import pyarrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from deltalog.language.ast import Row, Value
from deltalog.language.values import rounded_decimal

RANK = "rank"
SPARK_TYPES: dict[str, T.DataType] = {
    "int": T.LongType(),
    "float": T.DoubleType(),
    "str": T.StringType(),
    "bool": T.BooleanType(),
    "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
    "decimal": T.DecimalType(38, 18),
    "exact": T.StringType(),
}
ARROW_TYPES: dict[str, pyarrow.DataType] = {
    "int": pyarrow.int64(),
    "float": pyarrow.float64(),
    "str": pyarrow.string(),
    "bool": pyarrow.bool_(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us"),
    "decimal": pyarrow.decimal128(38, 18),
    "exact": pyarrow.string(),
}
_DECODERS: dict[str, Callable[[Any], Value]] = {"decimal": rounded_decimal, "exact": Fraction}


def name_of(column: int) -> str:
    return f"c{column}"


def names_of(types: Sequence[str]) -> list[str]:
    return [name_of(column) for column in range(len(types))]


def shared_names(types: Sequence[str]) -> list[str]:
    """The columns of a relation in a table that many share: each is the k-th of its type."""
    return [f"{type_}_{types[:column].count(type_)}" for column, type_ in enumerate(types)]


def schema_of_types(types: Sequence[str], is_ranked: bool = True) -> T.StructType:
    fields = [T.StructField(name_of(i), SPARK_TYPES[type_]) for i, type_ in enumerate(types)]
    rank = [T.StructField(RANK, T.LongType())] if is_ranked else []
    return T.StructType(fields + rank)


def encode_value(value: Value, type_: str) -> Any:
    return str(value) if type_ == "exact" and value is not None else value


def decode_value(value: Any, type_: str) -> Value:
    decode = _DECODERS.get(type_)
    result: Value = value if decode is None or value is None else decode(value)
    return result


def arrow_columns(rows: Sequence[Row], types: Sequence[str]) -> list[pyarrow.Array]:
    """The rows, column by column."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return [
        pyarrow.array(
            [encode_value(value, type_) for value in column] if type_ == "exact" else column,
            ARROW_TYPES[type_],
        )
        for column, type_ in zip(columns, types, strict=True)
    ]


def rows_in(columns: Sequence[pyarrow.Array], types: Sequence[str], count: int) -> list[Row]:
    """Columns of Arrow as rows of canonical values."""
    lists = [column.to_pylist() for column in columns]
    for position, type_ in enumerate(types):
        decode = _DECODERS.get(type_)
        if decode is not None:
            lists[position] = [None if v is None else decode(v) for v in lists[position]]
    return list(zip(*lists, strict=True)) if lists else [()] * count


def frame_of_rows(
    spark: SparkSession,
    rows: Iterable[Row],
    types: Sequence[str],
    ranks: Sequence[int] | None = None,
) -> DataFrame:
    """Rows of the driver as a DataFrame, with their ranks if they are given."""
    listed = list(rows)
    arrays = arrow_columns(listed, types)
    names = names_of(types)
    if ranks is not None:
        arrays.append(pyarrow.array(ranks, pyarrow.int64()))
        names.append(RANK)
    table = pyarrow.Table.from_arrays(arrays, names=names)
    return spark.createDataFrame(table, schema_of_types(types, ranks is not None))


def literal_column(value: Value, type_: str) -> Column:
    """A constant as a column of our type."""
    if type_ not in SPARK_TYPES:  # null, which has no type of its own
        return F.lit(None)
    spark_type = SPARK_TYPES[type_]
    if type_ in ("timestamp", "decimal") and value is not None:
        return F.lit(str(value)).cast(spark_type)
    return F.lit(encode_value(value, type_)).cast(spark_type)
