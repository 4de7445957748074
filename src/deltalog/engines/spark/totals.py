"""Aggregates on the cluster: from bindings to the rows of groups.

Aggregates range over distinct bindings. A binding has a value for every column of every atom, and
relations are sets, so the joins give each binding once; only where an overlay is read, duplicates
are taken out. Counts, sums of ints (in 38 digits, and then tested; of halves in 64 bits), smallest
and largest values are Spark's own. Sums of floats and decimals must be rounded once from the exact
sum, which is done in Python, group by group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from deltalog.engines.scalars import aggregate_value
from deltalog.engines.spark.columns import (
    ARROW_TYPES,
    encode_value,
    literal_column,
    name_of,
    names_of,
    rows_in,
    schema_of_types,
)
from deltalog.engines.spark.expressions import column_of, slot_name
from deltalog.language.values import INT_MAX, INT_MIN
from deltalog.plan.nodes import (
    Absent,
    Aggregation,
    Assign,
    Compute,
    Fixed,
    Match,
    Overlay,
    Pipeline,
    Slot,
    Step,
    Total,
)

Types = Mapping[int, str]
WIDE = "decimal(28,0)"
"""Spark sums it in 38 digits: enough for ten thousand million million million ints."""


def totals_of_groups(
    data: DataFrame, slots: Types, aggregation: Aggregation, types: Sequence[str]
) -> DataFrame:
    """The rows of all groups, from a frame of slots with all bindings."""
    sources = _native_sources(aggregation)
    is_native = all(part in sources for part in aggregation.head if isinstance(part, Total))
    needed = set(sources.values()) if is_native else None
    values = [
        column_of(value, slots).alias(f"b{i}")
        for i, value in enumerate(aggregation.bindings.output)
        if needed is None or i in needed or _has_overlay(aggregation.bindings)
    ]
    inputs = [F.col(slot_name(index)) for index in range(aggregation.bindings.inputs)]
    bindings = data.select(*inputs, *values, F.lit(0).alias("binding"))
    if _has_overlay(aggregation.bindings):
        bindings = bindings.distinct()
    if is_native:
        return _native_totals(bindings, aggregation, sources, types)
    return _exact_totals(bindings.drop("binding"), aggregation, slots, types)


def open_bindings(pipeline: Pipeline) -> Pipeline | None:
    """The pipeline without inputs: it binds what was to be an input, where it can.

    inputs $0: match a where #0=$0 -> $1=#1     →     match a -> $0=#0 $1=#1
    """
    bound: set[int] = set()
    steps: list[Step] = []
    for step in pipeline.steps:
        if isinstance(step, Match):
            steps.append(_bind_unknown_slots(step, bound))
            bound |= {slot.index for _, slot in (*step.bind, *_key_slots(step))}
        elif not _slots_used_by(step) <= bound:
            return None
        else:
            steps.append(step)
            bound |= {step.slot.index} if isinstance(step, Assign) else set()
    if not set(range(pipeline.inputs)) <= bound:
        return None
    return Pipeline(tuple(steps), pipeline.output, pipeline.slots)


def _key_slots(step: Match | Absent) -> list[tuple[int, Slot]]:
    return [(column, value) for column, value in step.key if isinstance(value, Slot)]


def _bind_unknown_slots(step: Match, bound: set[int]) -> Match:
    key: list[tuple[int, Slot | Fixed]] = []
    bind, same = list(step.bind), list(step.same)
    own: set[int] = set()
    for column, value in step.key:
        if isinstance(value, Fixed) or value.index in bound:
            key.append((column, value))
        elif value.index in own:
            same.append((column, value))
        else:
            own.add(value.index)
            bind.append((column, value))
    return Match(step.relation, tuple(key), tuple(bind), tuple(same), step.window, step.occurrence)


def _slots_used_by(step: Step) -> set[int]:
    """The slots that a step must find bound."""
    if isinstance(step, Match | Absent):
        return {slot.index for _, slot in _key_slots(step)}
    operands = [step.value] if isinstance(step, Assign) else [step.left, step.right]
    used: set[int] = set()
    while operands:
        operand = operands.pop()
        if isinstance(operand, Slot):
            used.add(operand.index)
        elif isinstance(operand, Compute):
            operands += operand.operands
    return used


def _has_overlay(pipeline: Pipeline) -> bool:
    return any(
        isinstance(step, Match) and isinstance(step.relation, Overlay) for step in pipeline.steps
    )


# --- by Spark -----------------------------------------------------------------------------------


def _native_sources(aggregation: Aggregation) -> dict[Total, int]:
    """The totals that Spark computes exactly, each with the column of the bindings it reads."""
    found: dict[Total, int] = {}
    for part in aggregation.head:
        if not isinstance(part, Total):
            continue
        if part.column is None or part.function == "count":
            found[part] = -1
        elif part.function in ("min", "max") or (part.function, part.type) == ("sum", "int"):
            found[part] = part.column
    return found


def _columns_of_halves(bindings: Pipeline) -> set[int]:
    """The columns that hold halves of ints: their sums stay in range (decision 0012)."""
    made = {
        step.slot
        for step in bindings.steps
        if isinstance(step, Assign)
        and isinstance(step.value, Compute)
        and step.value.function in ("high__", "low__")
    }
    return {column for column, value in enumerate(bindings.output) if value in made}


def _native_totals(
    bindings: DataFrame,
    aggregation: Aggregation,
    sources: Mapping[Total, int],
    types: Sequence[str],
) -> DataFrame:
    halves = _columns_of_halves(aggregation.bindings)
    made = [
        _native_total(part, sources[part], sources[part] in halves).alias(f"t{i}")
        for i, part in enumerate(aggregation.head)
        if isinstance(part, Total)
    ]
    inputs = [F.col(slot_name(index)) for index in range(aggregation.bindings.inputs)]
    grouped = bindings.groupBy(*inputs).agg(*made, F.count(F.lit(1)).alias("bindings"))
    grouped = grouped.where(F.col("bindings") > 0)
    columns = []
    for i, part in enumerate(aggregation.head):
        if isinstance(part, Total):
            value = F.col(f"t{i}")
            if part.function == "sum":
                grouped = grouped.where(value.isNull() | value.between(INT_MIN, INT_MAX))
                value = value.cast("bigint")
        elif isinstance(part, Fixed):
            value = literal_column(part.value, types[i])
        else:
            value = column_of(part, {})
        columns.append(value.alias(name_of(i)))
    return grouped.select(*columns)


def _native_total(part: Total, source: int, is_half: bool) -> Column:
    if part.function == "count":
        return F.count(F.lit(1))
    column = F.col(f"b{source}")
    if part.function == "sum":
        return F.try_sum(column) if is_half else F.sum(column.cast(WIDE))
    return F.min(column) if part.function == "min" else F.max(column)


# --- in Python ----------------------------------------------------------------------------------


def _exact_totals(
    bindings: DataFrame, aggregation: Aggregation, slots: Types, types: Sequence[str]
) -> DataFrame:
    """Group by group, with exact sums."""
    output, inputs, head = (
        aggregation.bindings.output,
        aggregation.bindings.inputs,
        aggregation.head,
    )
    input_types = [
        *(slots[index] for index in range(inputs)),
        *(slots[v.index] if isinstance(v, Slot) else v.type for v in output),
    ]

    def of_group(table: pyarrow.Table) -> pyarrow.Table:
        rows = rows_in(table.columns[: len(input_types)], input_types, table.num_rows)
        made = list(_head_row(head, rows, inputs))
        arrays = [
            pyarrow.array([encode_value(row[i], type_) for row in made], ARROW_TYPES[type_])
            for i, type_ in enumerate(types)
        ]
        return pyarrow.Table.from_arrays(arrays, names=names_of(types))

    keys = [slot_name(index) for index in range(inputs)]
    if not keys:  # one group of everything
        bindings, keys = bindings.withColumn("group", F.lit(0)), ["group"]
    return bindings.groupBy(*keys).applyInArrow(of_group, schema_of_types(types, is_ranked=False))


def _head_row(
    head: Sequence[Slot | Fixed | Total], rows: Sequence[tuple[Any, ...]], inputs: int
) -> Iterator[tuple[Any, ...]]:
    """The head row of one group, if it has a value."""
    made: list[Any] = []
    for part in head:
        if isinstance(part, Total):
            column = part.column
            values = [None if column is None else row[inputs + column] for row in rows]
            total = aggregate_value(part.function, part.type, values)
            if total is None and any(value is not None for value in values):
                return
            made.append(total)
        else:
            made.append(part.value if isinstance(part, Fixed) else rows[0][part.index])
    yield tuple(made)
