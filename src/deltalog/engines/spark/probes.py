"""Everything that is needed from frames, fetched in one job.

    needs: edge[0] in {3, 5}, path[0, 1] in {(1, 4)}     →     one union of two filters, one collect

Few keys are written as literals, many are joined as a small frame, which Spark broadcasts. Keys
compare as in the language: null equals itself. Rows of relations with different columns go side by
side through one union: the k-th int column of each is its k-th int column, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

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
from deltalog.language.ast import Row

PROBE = "probe"


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
    data = probe.frame.data
    if not probe.columns:
        return data
    if len(probe.keys) <= literal_keys_max:
        return data.where(_condition(probe))
    types = [probe.types[column] for column in probe.columns]
    keys = frame(spark, probe.keys, types)
    keys = keys.select(*(F.col(name_of(i)).alias(f"k{i}") for i in range(len(types))))
    same = [F.col(name_of(c)).eqNullSafe(F.col(f"k{i}")) for i, c in enumerate(probe.columns)]
    return data.join(F.broadcast(keys), reduce(Column.__and__, same), "left_semi")


def _condition(probe: Probe) -> Column:
    """The keys as literals: `isin` for one column, else a disjunction."""
    if len(probe.columns) == 1:
        (column,) = probe.columns
        type_ = probe.types[column]
        present = [key[0] for key in probe.keys if key[0] is not None]
        conditions = []
        if present and type_ in ("int", "str", "exact", "bool", "float", "date"):
            values = [encoded(value, type_) for value in present]
            conditions.append(F.col(name_of(column)).isin(values))
        elif present:
            values = [literal(value, type_) for value in present]
            conditions.append(F.col(name_of(column)).isin(*values))
        if len(present) < len(probe.keys):
            conditions.append(F.col(name_of(column)).isNull())
        return reduce(Column.__or__, conditions)
    return reduce(Column.__or__, (_is_key(probe, key) for key in probe.keys))


def _is_key(probe: Probe, key: Row) -> Column:
    same = (
        F.col(name_of(column)).eqNullSafe(literal(value, probe.types[column]))
        for column, value in zip(probe.columns, key, strict=True)
    )
    return reduce(Column.__and__, same)
