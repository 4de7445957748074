"""Plans as DataFrames: what is large stays on the cluster.

A pipeline becomes one query over columns `s0`, `s1`, …, its slots:

    match path -> $0=#0 $1=#1 (new rows)  |  match edge where #0=$1 -> $2=#1  |  emit path($0, $2)
    path_new.select(s0, s1).join(edge, s1 <=> #0).select(s0, s1, s2)  →  select(c0, c1)

Joins compare with `<=>`, since null equals itself. `Absent` is an anti-join. Windows choose pieces
of a relation; an overlay is stored rows without those of `minus` and with those of `plus`. What the
driver has of a relation is sent along, and broadcast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import (
    RANK,
    frame_of_rows,
    literal_column,
    name_of,
    names_of,
)
from deltalog.engines.spark.expressions import column_of, slot_name, test_column, type_of
from deltalog.engines.spark.relation import Frame, SparkRelation
from deltalog.engines.spark.totals import open_bindings, totals_of_groups
from deltalog.plan.nodes import (
    Absent,
    Aggregation,
    Assign,
    Compute,
    Fixed,
    Match,
    Overlay,
    Pipeline,
    RulePlan,
    Slot,
    Test,
    Window,
)

Read = Sequence[int]
Relations = Mapping[str, SparkRelation]


def relation_frame(
    spark: SparkSession,
    relation: SparkRelation,
    start: int = 0,
    end: int | None = None,
    is_ranked: bool = False,
) -> DataFrame:
    """The rows of a relation between two positions."""
    last = relation.end if end is None else end
    if not relation.types:  # a frame needs some column
        found = list(relation.matching((), (), start, last))
        return spark.range(len(found)).select(F.lit(0).alias("nothing"))
    columns = [*names_of(relation.types), *([RANK] if is_ranked else [])]
    parts: list[DataFrame] = []
    for piece in relation.pieces:
        if isinstance(piece, Frame):
            if start <= piece.start and piece.end <= last:
                parts.append(_frame_without_mask(spark, piece, relation.types).select(*columns))
        else:
            first, stop = max(0, start - piece.start), min(piece.end, last - piece.start)
            rows = list(piece.between(first, stop)) if first < stop else []
            if rows:
                ranks = [piece.rank(row) for row in rows] if is_ranked else None
                parts.append(F.broadcast(frame_of_rows(spark, rows, relation.types, ranks)))
    if not parts:
        return frame_of_rows(spark, [], relation.types, [] if is_ranked else None)
    return reduce(DataFrame.unionAll, parts)


def _frame_without_mask(spark: SparkSession, piece: Frame, types: Sequence[str]) -> DataFrame:
    if not piece.mask:
        return piece.data
    return rows_without(
        piece.data, F.broadcast(frame_of_rows(spark, piece.mask, types)), len(types)
    )


def rows_without(data: DataFrame, deleted: DataFrame, arity: int) -> DataFrame:
    """The rows of one frame that are not in another; both have columns `c0`, `c1`, …"""
    return rows_not_matching(data, deleted, range(arity))


def rows_not_matching(data: DataFrame, others: DataFrame, columns: Sequence[int]) -> DataFrame:
    """The rows that have the values of no row of another frame in these columns."""
    return data.join(*_rename_for_join(others, columns), "left_anti")


def rows_matching(data: DataFrame, others: DataFrame, columns: Sequence[int]) -> DataFrame:
    """The rows that have the values of some row of another frame in these columns."""
    return data.join(*_rename_for_join(others, columns), "left_semi")


def _rename_for_join(others: DataFrame, columns: Sequence[int]) -> tuple[DataFrame, Column]:
    """Another frame under names of its own, and that both have the same values."""
    renamed = others.selectExpr(*(f"{name_of(i)} AS g{i}" for i in columns))
    return renamed, columns_equal((name_of(i), f"g{i}") for i in columns)


def columns_equal(pairs: Iterable[tuple[str, str]]) -> Column:
    """Whether columns are equal, pair by pair; as text, it is one call to Spark and not many."""
    return F.expr(" AND ".join(f"{left} <=> {right}" for left, right in pairs) or "true")


class Frames:
    """Rules as DataFrames over the relations of an engine, as they are now."""

    def __init__(self, spark: SparkSession, relations: Relations) -> None:
        self.spark = spark
        self.relations = relations

    def derived(self, plan: RulePlan, read: Read, has_fired: bool) -> DataFrame | None:
        """Return what a rule derives from what it has not read yet; None if nothing is unread."""
        active = [] if plan.initial is None or has_fired else [plan.initial]
        active += [
            variant
            for occurrence, variant in enumerate(plan.variants)
            if read[occurrence] < self.relations[plan.occurrences[occurrence]].end
        ]
        if not active:
            return None
        if plan.aggregation is not None:
            return self._frame_of_totals(plan, plan.aggregation, active, read)
        types = self.relations[plan.head].types
        return reduce(
            DataFrame.unionAll, (self._run_and_emit(each, types, read) for each in active)
        )

    def _run_and_emit(self, pipeline: Pipeline, types: Sequence[str], read: Read) -> DataFrame:
        data, slots = self.run(pipeline, read)
        return data.select(*_output_columns(pipeline.output, slots, types))

    # --- steps

    def run(
        self,
        pipeline: Pipeline,
        read: Read,
        inputs: DataFrame | None = None,
        types: Mapping[int, str] | None = None,
    ) -> tuple[DataFrame, dict[int, str]]:
        """All ways through the steps: a frame of slots, and their types."""
        slots: dict[int, str] = dict(types or {})
        data = inputs
        for number, step in enumerate(pipeline.steps):
            if isinstance(step, Match):
                data = self._join_match(step, number, data, slots, read)
            else:
                data = self._apply_filter(step, number, self._start_frame(data), slots)
        return self._start_frame(data), slots

    def _start_frame(self, data: DataFrame | None) -> DataFrame:
        return self.spark.range(1).select(F.lit(0).alias("nothing")) if data is None else data

    def _apply_filter(
        self, step: Absent | Test | Assign, number: int, data: DataFrame, slots: dict[int, str]
    ) -> DataFrame:
        if isinstance(step, Absent):
            return self._exclude_matches(step, number, data)
        if isinstance(step, Test):
            return data.where(test_column(step, slots))
        name = slot_name(step.slot.index)
        value = column_of(step.value, slots)
        slots[step.slot.index] = type_of(step.value, slots)
        data = data.withColumn(name, value)
        return data.where(F.col(name).isNotNull()) if isinstance(step.value, Compute) else data

    def _join_match(
        self,
        step: Match,
        number: int,
        data: DataFrame | None,
        slots: dict[int, str],
        read: Read,
    ) -> DataFrame:
        types = self.types(step.relation)
        side = self._frame_of_match(step, number, types, read)
        bound = [
            f"{_name_in_step(number, column)} AS {slot_name(s.index)}" for column, s in step.bind
        ]
        kept = [slot_name(index) for index in sorted(slots)]
        slots |= {slot.index: types[column] for column, slot in step.bind}
        if data is None:
            return side.selectExpr(*bound) if bound else side
        on = _joined_on(step, number)
        joined = data.join(side, columns_equal(on), "inner") if on else data.crossJoin(side)
        chosen = [*kept, *bound]
        return joined.selectExpr(*chosen) if chosen else joined

    def _frame_of_match(
        self, step: Match, number: int, types: Sequence[str], read: Read
    ) -> DataFrame:
        """The rows a match can meet, under names of their own."""
        data = self.read(step, read)
        first_of = {slot: column for column, slot in step.bind}
        for column, slot in step.same:
            data = data.where(columns_equal([(name_of(column), name_of(first_of[slot]))]))
        return _rename_for_step(data, step.key, number, types)

    def _exclude_matches(self, step: Absent, number: int, data: DataFrame) -> DataFrame:
        types = self.types(step.relation)
        side = _rename_for_step(self.read(Match(step.relation), []), step.key, number, types)
        on = _joined_on(step, number)
        if on:
            return data.join(side, columns_equal(on), "left_anti")
        return data.join(side.limit(1), F.lit(True), "left_anti")

    def types(self, relation: str | Overlay) -> tuple[str, ...]:
        name = relation.stored if isinstance(relation, Overlay) else relation
        return self.relations[name].types

    def read(self, step: Match, read: Read) -> DataFrame:
        if not isinstance(step.relation, Overlay):
            return self._frame_of_window(self.relations[step.relation], step, read)
        overlay = step.relation
        parts = []
        if step.window is not Window.NEW:
            stored = self.relations[overlay.stored]
            minus = self.relations[overlay.minus]
            kept = relation_frame(self.spark, stored)
            if len(minus):
                kept = rows_without(kept, relation_frame(self.spark, minus), len(stored.types))
            parts.append(kept)
        if overlay.plus is not None and len(self.relations[overlay.plus]):
            parts.append(self._frame_of_window(self.relations[overlay.plus], step, read))
        if not parts:
            return frame_of_rows(self.spark, [], self.types(overlay))
        return reduce(DataFrame.unionAll, parts)

    def _frame_of_window(self, relation: SparkRelation, step: Match, read: Read) -> DataFrame:
        start = read[step.occurrence] if step.window is Window.NEW else 0
        end = read[step.occurrence] if step.window is Window.OLD else relation.end
        return relation_frame(self.spark, relation, start, end)

    # --- aggregates

    def _frame_of_totals(
        self, plan: RulePlan, aggregation: Aggregation, active: Sequence[Pipeline], read: Read
    ) -> DataFrame:
        """The rows of all groups that the active pipelines name."""
        bindings = aggregation.bindings
        everything = open_bindings(bindings) if active == [plan.initial] else None
        if everything is not None:  # all groups are named
            data, slots = self.run(everything, read)
        else:
            groups, types = self._frame_of_groups(active, read)
            data, slots = self.run(bindings, read, groups if bindings.inputs else None, types)
            if not bindings.inputs:
                data = data.crossJoin(groups.limit(1).select(F.lit(0).alias("group")))
        return totals_of_groups(data, slots, aggregation, self.relations[plan.head].types)

    def _frame_of_groups(
        self, active: Sequence[Pipeline], read: Read
    ) -> tuple[DataFrame, dict[int, str]]:
        parts = []
        types: dict[int, str] = {}
        for pipeline in active:
            data, slots = self.run(pipeline, read)
            types = {
                i: slots[value.index] if isinstance(value, Slot) else value.type
                for i, value in enumerate(pipeline.output)
            }
            named = [
                _column_of_operand(v, slots).alias(slot_name(i))
                for i, v in enumerate(pipeline.output)
            ]
            parts.append(data.select(*named) if named else data.select(F.lit(0).alias("nothing")))
        return reduce(DataFrame.unionAll, parts).distinct(), types


def _joined_on(step: Match | Absent, number: int) -> list[tuple[str, str]]:
    """The slots that must equal columns of a step."""
    return [
        (slot_name(value.index), _name_in_step(number, column))
        for column, value in step.key
        if isinstance(value, Slot)
    ]


def _name_in_step(number: int, column: int) -> str:
    return f"m{number}_{column}"


def _rename_for_step(
    data: DataFrame,
    key: Sequence[tuple[int, Slot | Fixed]],
    number: int,
    types: Sequence[str],
) -> DataFrame:
    """With constants tested, and under names that no other step uses."""
    for column, value in key:
        if isinstance(value, Fixed):
            constant = literal_column(value.value, types[column])
            data = data.where(F.col(name_of(column)).eqNullSafe(constant))
    if not types:
        return data.select(F.lit(0).alias(f"m{number}"))
    return data.selectExpr(
        *(f"{name_of(i)} AS {_name_in_step(number, i)}" for i in range(len(types)))
    )


def _column_of_operand(value: Slot | Fixed, slots: Mapping[int, str]) -> Column:
    return column_of(value, slots)


def _output_columns(
    output: Sequence[Slot | Fixed], slots: Mapping[int, str], types: Sequence[str]
) -> list[Column]:
    """The emitted columns in the types of the head; something is emitted even without columns."""
    columns = [
        (literal_column(v.value, type_) if isinstance(v, Fixed) else column_of(v, slots)).alias(
            name_of(i)
        )
        for i, (v, type_) in enumerate(zip(output, types, strict=True))
    ]
    return columns or [F.lit(0).alias("nothing")]
