"""Everything that is needed from frames, fetched in one job.

    needs: edge[0] in {3, 5}, path[0, 1] in {(1, 4)}     →     one union of two filters, one collect

Values are written as literals and tested column by column (`c0 in (1, 2) and c1 in (4, 5)`), which
Spark compiles much faster than a disjunction of keys; what it lets through in excess is dropped on
the driver. Where that could be much, or values are many, keys are joined as a small frame, which
Spark broadcasts. Keys compare as in the language: null equals itself. Rows of relations with
different columns go side by side through one union: the k-th int column of each is its k-th int
column, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any

import pyarrow
import pyarrow.compute
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import (
    RANK,
    SPARK_TYPES,
    encode_value,
    frame_of_rows,
    literal_column,
    name_of,
    rows_in,
    shared_names,
)
from deltalog.engines.spark.relation import Columns, Frame, Needs, SparkRelation, TableFrame
from deltalog.language.ast import Row, Value

PROBE = "probe"
PLAIN = ("int", "str", "exact", "bool", "float", "date")
"""Types whose values Spark takes as literals as they are."""
RANGED = ("int", "str", "float", "date", "timestamp", "decimal")
"""Types with an order that is the same here and there."""
TWINS_MAX = 2
"""Rows with one value of a column, on average, up to which whole rows are asked for by it."""
NEIGHBOURS_MAX = 1_000
"""The same where neighbours are welcome."""
FETCHED_MAX = 100_000
"""Rows that such a probe may bring, by estimate."""
RANGES_MAX = 8
MIXED_MAX = 20_000
"""Combinations of the values of a probe's columns up to which testing each column is enough."""


@dataclass(frozen=True)
class Probe:
    """Keys to look up in one frame."""

    frame: Frame
    types: tuple[str, ...]
    columns: Columns
    keys: tuple[Row, ...]

    def shared_names(self) -> list[str]:
        """The names of its columns in the union of all probes."""
        return shared_names(self.types)

    def read_on_disk(self) -> bool:
        """Look the keys up without a job, if the frame is a table that the driver can read."""
        if not isinstance(self.frame, TableFrame):
            return False
        found = self.frame.table.find(self.columns, self.keys)
        self.frame.remember(self.columns, self.keys, found)
        return True


def probes_needed(
    needs: Needs, relations: Mapping[str, SparkRelation], is_widened: bool = False
) -> list[Probe]:
    """One per frame and column set, with the keys this frame has not been asked for yet.

    Whole rows are asked for by a column with few rows per value, if there is one: a lookup by that
    column is then answered, too. If it `is_widened` there may be more of them: what is derived next
    from a row is often one of its neighbours.
    """
    wanted: dict[tuple[int, Columns], Probe] = {}
    for (name, columns), keys in needs.keys.items():
        relation = relations[name]
        for piece in relation.frames:
            unknown = [key for key in keys if piece.known(columns, key) is None]
            asked = columns
            if len(columns) > 1 and columns == relation.all_columns:
                narrow = _narrow_column(piece, columns, unknown, is_widened)
                if narrow is not None:
                    asked = (narrow,)
                    unknown = [(key[narrow],) for key in unknown]
            if unknown:
                before = wanted.get((id(piece), asked))
                merged = dict.fromkeys((*(before.keys if before else ()), *unknown))
                wanted[id(piece), asked] = Probe(piece, relation.types, asked, tuple(merged))
    return list(wanted.values())


def _narrow_column(piece: Frame, columns: Columns, keys: list[Row], is_widened: bool) -> int | None:
    found = piece.narrow(columns, NEIGHBOURS_MAX if is_widened else TWINS_MAX)
    if found is None or len({key[found] for key in keys}) * piece.spread[found] > FETCHED_MAX:
        return None
    return found


def is_little(piece: Frame, columns: Columns, keys: int) -> bool:
    """Whether this many keys have few rows, by what is known of their columns."""
    found = piece.narrow(columns, NEIGHBOURS_MAX)
    return found is not None and keys * piece.spread[found] <= FETCHED_MAX


def look_at_columns(piece: Frame, types: Sequence[str]) -> None:
    """Find out how many rows the values of each column have, on average; one job."""
    found = piece.data.select(*count_columns([name_of(i) for i in range(len(types))])).first()
    assert found is not None
    piece.spread = spread_of(found)


def count_columns(names: Sequence[str]) -> list[Column]:
    """The number of rows, and about how many values each column has."""
    return [F.count(F.lit(1)), *(F.approx_count_distinct(name) for name in names)]


def spread_of(found: Sequence[int]) -> tuple[float, ...]:
    """Rows per value, from those numbers."""
    return tuple(found[0] / max(1, values) for values in found[1:])


def fetch_probes(spark: SparkSession, wanted: Sequence[Probe], literal_keys_max: int) -> None:
    """Run all probes as one job; each frame remembers what was found."""
    wide = {
        name: SPARK_TYPES[type_].simpleString()
        for probe in wanted
        for name, type_ in zip(probe.shared_names(), probe.types, strict=True)
    }
    parts = [
        _select_shared_columns(spark, probe, number, literal_keys_max, wide)
        for number, probe in enumerate(wanted)
    ]
    table = reduce(DataFrame.unionAll, parts).toArrow()
    numbers = table.column(PROBE)
    for number, probe in enumerate(wanted):
        own = table.filter(pyarrow.compute.equal(numbers, number)) if len(wanted) > 1 else table
        columns = [own.column(name) for name in probe.shared_names()]
        rows = rows_in(columns, probe.types, own.num_rows)
        ranks = own.column(RANK).to_pylist()
        probe.frame.remember(probe.columns, probe.keys, zip(rows, ranks, strict=True))


def _select_shared_columns(
    spark: SparkSession,
    probe: Probe,
    number: int,
    literal_keys_max: int,
    wide: Mapping[str, str],
) -> DataFrame:
    found = _rows_with_keys(spark, probe, literal_keys_max)
    own = {name: name_of(i) for i, name in enumerate(probe.shared_names())}
    named = [f"{own.get(name, f'CAST(NULL AS {kind})')} AS {name}" for name, kind in wide.items()]
    return found.selectExpr(f"{number} AS {PROBE}", RANK, *named)


def _rows_with_keys(spark: SparkSession, probe: Probe, literal_keys_max: int) -> DataFrame:
    """The rows that have one of the keys, and perhaps others that mix the values of several."""
    values = [list(dict.fromkeys(column)) for column in zip(*probe.keys, strict=True)]
    is_exact = prod(map(len, values)) <= MIXED_MAX
    data, texts = probe.frame.data, []
    for column, wanted in zip(probe.columns, values, strict=True):
        type_ = probe.types[column]
        is_text = type_ == "int" and None not in wanted
        if is_text:
            texts.append(_in_range_text(name_of(column), wanted))
        else:
            data = _in_range(data, column, type_, wanted)
        if len(wanted) > literal_keys_max:
            is_exact = False
        elif is_text:
            texts.append(f"{name_of(column)} IN ({', '.join(map(str, wanted))})")
        else:
            data = data.where(_is_one_of(column, type_, wanted))
    if texts:  # ints are what most keys are: as text, all of them are one call to Spark
        data = data.where(" AND ".join(texts))
    return data if is_exact else _join_with_keys(spark, data, probe)


def _in_range_text(name: str, wanted: Sequence[Any]) -> str:
    parts = (
        f"{name} BETWEEN {first} AND {last}" for first, last in cover_with_ranges(sorted(wanted))
    )
    return f"({' OR '.join(parts)})"


def _join_with_keys(spark: SparkSession, data: DataFrame, probe: Probe) -> DataFrame:
    """The rows that have one of the keys, by a join with all of them."""
    made = frame_of_rows(spark, probe.keys, [probe.types[column] for column in probe.columns])
    named = made.select(*(F.col(name_of(i)).alias(f"k{i}") for i in range(len(probe.columns))))
    same = []
    for i, column in enumerate(probe.columns):
        own, key = F.col(name_of(column)), F.col(f"k{i}")
        is_plain = all(each[i] is not None for each in probe.keys)  # faster than with null
        same.append(own == key if is_plain else own.eqNullSafe(key))
    return data.join(F.broadcast(named), reduce(Column.__and__, same), "left_semi")


def _in_range(data: DataFrame, column: int, type_: str, wanted: Sequence[Value]) -> DataFrame:
    """Only where values can be: Spark skips batches and files that lie outside.

    It does so for ranges, and not for long lists (`InSet` in Spark 4.2), hence both.
    """
    if type_ not in RANGED or None in wanted:
        return data
    own = F.col(name_of(column))
    parts = [
        own.between(literal_column(first, type_), literal_column(last, type_))
        for first, last in cover_with_ranges(sorted(wanted))
    ]
    return data.where(reduce(Column.__or__, parts))


def cover_with_ranges(values: list[Any]) -> list[tuple[Any, Any]]:
    """A few ranges that hold all values: the widest gaps are left out.

    >>> ranges([1, 2, 3, 900, 901])
    [(1, 3), (900, 901)]
    """
    gaps = range(1, len(values))
    if isinstance(values[0], int):
        gaps_wide = sorted(gaps, key=lambda i: values[i - 1] - values[i])[: RANGES_MAX - 1]
        cuts = sorted(i for i in gaps_wide if values[i] - values[i - 1] > len(values))
    else:
        cuts = []
    bounds = [0, *cuts, len(values)]
    return [(values[i], values[j - 1]) for i, j in pairwise(bounds)]


def _is_one_of(column: int, type_: str, wanted: Sequence[Value]) -> Column:
    """Whether a column has one of these values, as literals; null is a value."""
    own = F.col(name_of(column))
    present = [value for value in wanted if value is not None]
    conditions = [own.isNull()] if len(present) < len(wanted) else []
    if present and type_ in PLAIN:
        conditions.append(own.isin([encode_value(value, type_) for value in present]))
    elif present:
        conditions.append(own.isin(*(literal_column(value, type_) for value in present)))
    return reduce(Column.__or__, conditions)
