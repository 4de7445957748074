"""Everything that is needed from frames, fetched in one job.

    needs: edge[0] in {3, 5}, path[0, 1] in {(1, 4)}     →     one union of two filters, one collect

Few keys are written as literals, many are joined as a small frame, which Spark broadcasts. Literals
are tested column by column (`c0 in (1, 2) and c1 in (4, 5)`), which Spark compiles much faster than
a disjunction of keys; what it lets through in excess is dropped on the driver. Keys compare as in
the language: null equals itself. Rows of relations with different columns go side by
side through one union: the k-th int column of each is its k-th int column, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import pyarrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import (
    RANK,
    encoded,
    frame,
    literal,
    name_of,
    rows_in,
)
from deltalog.engines.spark.relation import Columns, Frame, Needs, SparkRelation
from deltalog.language.ast import Row, Value

PROBE = "probe"
PLAIN = ("int", "str", "exact", "bool", "float", "date")
"""Types whose values Spark takes as literals as they are."""
MIXED_MAX = 20_000
"""Combinations of the values of a probe's columns for which each column is tested by itself."""


@dataclass(frozen=True)
class Probe:
    """Keys to look up in one frame."""

    frame: Frame
    types: tuple[str, ...]
    columns: Columns
    keys: tuple[Row, ...]

    def shared_names(self) -> list[str]:
        """The names of its columns in the union of all probes."""
        return [
            f"{type_}_{self.types[:column].count(type_)}" for column, type_ in enumerate(self.types)
        ]


def probes(needs: Needs, relations: Mapping[str, SparkRelation]) -> list[Probe]:
    """One per frame and column set, with the keys this frame has not been asked for yet."""
    wanted = []
    for (name, columns), keys in needs.keys.items():
        relation = relations[name]
        for piece in relation.frames:
            unknown = tuple(key for key in keys if piece.known(columns, key) is None)
            if unknown:
                wanted.append(Probe(piece, relation.types, columns, unknown))
    return wanted


def fetch(spark: SparkSession, wanted: Sequence[Probe], literal_keys_max: int) -> None:
    """Run all probes as one job; each frame remembers what was found."""
    parts = [
        _selected(spark, probe, number, literal_keys_max) for number, probe in enumerate(wanted)
    ]
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    table = together.toArrow()
    numbers = table.column(PROBE)
    for number, probe in enumerate(wanted):
        own = table.filter(pyarrow.compute.equal(numbers, number))
        columns = [own.column(name) for name in probe.shared_names()]
        rows = rows_in(columns, probe.types, own.num_rows)
        ranks = own.column(RANK).to_pylist()
        probe.frame.remember(probe.columns, probe.keys, zip(rows, ranks, strict=True))


def _selected(spark: SparkSession, probe: Probe, number: int, literal_keys_max: int) -> DataFrame:
    found = _filtered(spark, probe, literal_keys_max)
    named = [F.col(name_of(i)).alias(name) for i, name in enumerate(probe.shared_names())]
    return found.select(F.lit(number).alias(PROBE), F.col(RANK), *named)


def _filtered(spark: SparkSession, probe: Probe, literal_keys_max: int) -> DataFrame:
    """The rows that have one of the keys, and perhaps others that mix the values of several."""
    data = probe.frame.data
    values = [list(dict.fromkeys(column)) for column in zip(*probe.keys, strict=True)]
    if prod(map(len, values)) <= MIXED_MAX and max(map(len, values), default=0) <= literal_keys_max:
        for column, wanted in zip(probe.columns, values, strict=True):
            data = data.where(_is_one_of(column, probe.types[column], wanted))
        return data
    types = [probe.types[column] for column in probe.columns]
    keys = frame(spark, probe.keys, types)
    keys = keys.select(*(F.col(name_of(i)).alias(f"k{i}") for i in range(len(types))))
    same = [F.col(name_of(c)).eqNullSafe(F.col(f"k{i}")) for i, c in enumerate(probe.columns)]
    return data.join(F.broadcast(keys), reduce(Column.__and__, same), "left_semi")


def _is_one_of(column: int, type_: str, wanted: Sequence[Value]) -> Column:
    """Whether a column has one of these values, as literals; null is a value."""
    own = F.col(name_of(column))
    present = [value for value in wanted if value is not None]
    conditions = [own.isNull()] if len(present) < len(wanted) else []
    if present and type_ in PLAIN:
        conditions.append(own.isin([encoded(value, type_) for value in present]))
    elif present:
        conditions.append(own.isin(*(literal(value, type_) for value in present)))
    return reduce(Column.__or__, conditions)
