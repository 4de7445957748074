"""Partition-local recursion: each task runs the whole fixpoint of its share.

Where a component has a pivot (`plan/pivots.py`), facts with different pivots never meet. The facts
of the rules that are not recursive are computed as DataFrames and put apart by their pivot; so are
the relations beside that have the pivot in a column; all others are copied to every task. Then one
task per share runs the recursive rules to the end with an engine of this process, and gives all
facts of the component with their local ranks. One job, no shuffle between rounds.

    path(X, Z) :- path(X, Y), edge(Y, Z).     edges copied, `path` by X

Ranks: a fact is derived from facts of its own share, and those have lower local ranks.

Everything goes through one DataFrame: a number that says which relation a row belongs to, and the
k-th column of each type. The share of a row is a number whose hash leads to a partition of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow
import pyarrow.compute
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from deltalog.engines.base import Engine
from deltalog.engines.extensions import NULL_WORD, RawInt64Engine, takes_raw_int64
from deltalog.engines.spark.columns import (
    ARROW_TYPES,
    RANK,
    SPARK_TYPES,
    arrow_columns,
    name_of,
    rows_in,
    shared_names,
)
from deltalog.engines.spark.local_fixpoint import MakeEngine, run_to_fixpoint
from deltalog.language.ast import Row
from deltalog.plan.nodes import RulePlan

SOURCE, SHARE = "source", "share"
BATCH_ROWS = 100_000


@dataclass(frozen=True)
class Source:
    """A relation that tasks read: a name for it there, its rows, and the column of the pivot."""

    name: str
    types: tuple[str, ...]
    data: DataFrame
    column: int | None


def run_partitions(
    spark: SparkSession,
    sources: Sequence[Source],
    heads: Mapping[str, tuple[str, ...]],
    plans: tuple[RulePlan, ...],
    partitions: int,
    rank: int,
    local: MakeEngine,
) -> DataFrame:
    """All facts of the component: `source` is the number of the head, ranks are above `rank`."""
    places = share_numbers(spark, partitions)
    wide = _shared_columns([source.types for source in sources])
    parts = [rows_to_send(source, number, places, wide) for number, source in enumerate(sources)]
    together = reduce(DataFrame.unionAll, parts).repartition(partitions, F.col(SHARE))
    output = _shared_columns(list(heads.values()))
    task = _partition_task([(s.name, s.types) for s in sources], heads, plans, rank, local)
    return together.drop(SHARE).mapInArrow(task, _output_schema(output))


# --- sending ------------------------------------------------------------------------------------


def _shared_columns(all_types: Sequence[tuple[str, ...]]) -> dict[str, str]:
    """Every column that some relation needs, with its type."""
    return {
        name: type_
        for types in all_types
        for name, type_ in zip(shared_names(types), types, strict=True)
    }


def rows_to_send(
    source: Source, number: int, shares: Sequence[int], wide: Mapping[str, str]
) -> DataFrame:
    own = {name: name_of(i) for i, name in enumerate(shared_names(source.types))}
    columns = [
        (F.col(own[name]) if name in own else F.lit(None).cast(SPARK_TYPES[type_])).alias(name)
        for name, type_ in wide.items()
    ]
    places = F.array(*(F.lit(share).cast("bigint") for share in shares))  # as they were hashed
    if source.column is None:
        share: Column = F.explode(places)
    else:
        place = F.pmod(F.hash(F.col(name_of(source.column))), F.lit(len(shares)))
        share = F.element_at(places, place + 1)
    return source.data.select(share.alias(SHARE), F.lit(number).alias(SOURCE), *columns)


def share_numbers(spark: SparkSession, partitions: int) -> list[int]:
    """Numbers that Spark's partitioning by hash puts into partitions of their own."""
    candidates = spark.range(64 * partitions).select(
        F.col("id"), F.pmod(F.hash(F.col("id")), F.lit(partitions)).alias("place")
    )
    found = candidates.groupBy("place").agg(F.min("id").alias("id")).collect()
    return [row["id"] for row in found]


def _output_schema(output: Mapping[str, str]) -> T.StructType:
    fields = [T.StructField(name, SPARK_TYPES[type_]) for name, type_ in output.items()]
    return T.StructType(
        [T.StructField(SOURCE, T.IntegerType()), T.StructField(RANK, T.LongType()), *fields]
    )


# --- inside a task ------------------------------------------------------------------------------

Batches = Iterator[pyarrow.RecordBatch]


def _partition_task(
    sources: list[tuple[str, tuple[str, ...]]],
    heads: Mapping[str, tuple[str, ...]],
    plans: tuple[RulePlan, ...],
    rank: int,
    local: MakeEngine,
) -> Callable[[Batches], Batches]:
    output = _shared_columns(list(heads.values()))

    def task(batches: Batches) -> Batches:
        listed = list(batches)
        if not listed:
            return
        received = pyarrow.Table.from_batches(listed)
        numbers = received.column(SOURCE)
        tables = {
            name: received.filter(pyarrow.compute.equal(numbers, number)).select(
                shared_names(types)
            )
            for number, (name, types) in enumerate(sources)
        }
        if any(tables[head].num_rows for head in heads):
            engine = local()
            for name, types in sources:
                engine.create(name, types)
                _insert_table(engine, name, types, tables[name])
            del listed, received, tables
            run_to_fixpoint(engine, plans)
            yield from _batches_of_result(engine, heads, output, rank)

    return task


def _insert_table(engine: Engine, name: str, types: tuple[str, ...], table: pyarrow.Table) -> None:
    """Ints as words, if the engine takes them; anything else as rows."""
    columns = table.columns
    if _are_ints(types) and takes_raw_int64(engine) and not any(c.null_count for c in columns):
        words = array("q")
        if table.num_rows:
            words.frombytes(np.stack([c.to_numpy() for c in columns], axis=1).tobytes())
        engine.insert_words(name, words)
    else:
        engine.insert(name, rows_in(columns, types, table.num_rows))


def _are_ints(types: Sequence[str]) -> bool:
    return bool(types) and set(types) == {"int"}


def _word_batches(engine: RawInt64Engine, head: str, arity: int, rank: int) -> Batches:
    """The facts of the only head, in the order of their first column: probes can skip then."""
    words = np.frombuffer(engine.words(head), dtype=np.int64).reshape(-1, arity)
    order = np.argsort(words[:, 0], kind="stable")
    names = [SOURCE, RANK, *shared_names(("int",) * arity)]
    for start in range(0, len(order), BATCH_ROWS):
        chosen = order[start : start + BATCH_ROWS]
        rows = words[chosen]
        arrays = [
            pyarrow.array(np.zeros(len(chosen), np.int32)),
            pyarrow.array(chosen + (rank + 1)),
            *(
                pyarrow.array(
                    np.ascontiguousarray(rows[:, column]), mask=rows[:, column] == NULL_WORD
                )
                for column in range(arity)
            ),
        ]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=names)


def _batches_of_result(
    engine: Engine, heads: Mapping[str, tuple[str, ...]], output: Mapping[str, str], rank: int
) -> Batches:
    """Every fact of the component in the order of derivation, relation by relation."""
    numbered: dict[str, list[tuple[int, Row]]] = {head: [] for head in heads}
    if len(heads) == 1:
        ((head, types),) = heads.items()
        if _are_ints(types) and takes_raw_int64(engine):
            yield from _word_batches(engine, head, len(types), rank)
            return
        numbered[head] = list(enumerate(engine.rows(head), rank + 1))
    else:
        for position, (head, row) in enumerate(engine.history(list(heads)), rank + 1):
            numbered[head].append((position, row))
    for number, (head, types) in enumerate(heads.items()):
        found = numbered[head]
        for start in range(0, len(found), BATCH_ROWS):
            yield _batch_of_relation(number, types, found[start : start + BATCH_ROWS], output)


def _batch_of_relation(
    number: int,
    types: tuple[str, ...],
    found: Sequence[tuple[int, Row]],
    output: Mapping[str, str],
) -> pyarrow.RecordBatch:
    own = dict(
        zip(shared_names(types), arrow_columns([row for _, row in found], types), strict=True)
    )
    arrays = [
        pyarrow.array([number] * len(found), pyarrow.int32()),
        pyarrow.array([position for position, _ in found], pyarrow.int64()),
    ]
    arrays += [
        own[name] if name in own else pyarrow.nulls(len(found), ARROW_TYPES[type_])
        for name, type_ in output.items()
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names=[SOURCE, RANK, *output])
