"""Every check of frames against their relation: columns, types, nulls, keys.

What fits is taken, the rest has a reason:

    src  dst          c0    c1    reason__                                          row__
    1    2      →     1     2     null                                              {"src":"1",…}
    x    3            null  3     "x" does not fit column `src`, which is int       {"src":"x",…}

Two things are distinguished. Columns that are missing, unknown or of another kind are a *change of
schema*: nobody wants a million rows in quarantine for that, so it is an error that names them. A
value that does not fit is a *bad row*.

Text becomes a value as everywhere else (`language/values.py`), in a Python function; columns that
have the right type already never leave Spark. JSON has no schema: there, a column that is unknown
is a matter of the rows that have it, and one that is missing is null.

Frames are checked once: a `CheckedFrame` is taken as it is. The same checks for rows on the driver
are in `runtime/checked_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.spark.columns import SPARK_TYPES, name_of, rows_in
from deltalog.engines.spark.frames import rows_matching, rows_not_matching, rows_without
from deltalog.language.ast import Column as RelationColumn
from deltalog.language.ast import Row
from deltalog.language.values import VALUE_ERRORS, parse_value, plain_text
from deltalog.pipeline.rejected import Rejected
from deltalog.pipeline.source_columns import (
    TEXT_MAX,
    Place,
    check_columns,
    leaves_values_out,
)
from deltalog.pipeline.text_files import DELETE_KEY, DELETES, ONLY_DELETIONS
from deltalog.runtime.checked_rows import CheckedRows, key_of, key_set_twice, key_taken, shown_fact

REASON = "reason__"
ROW = "row__"
OP = "op__"
CORRUPT = "corrupt__"
FILE = "file__"
LINE = "line__"
LEFT_OUT = "left_out__"
"""There if changes leave out all columns but the key."""
INT_REFUSED = -(2**63)
PLACES = 18
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_SOURCES: dict[str, tuple[type[T.DataType], ...]] = {
    "int": _WHOLE,
    "float": (*_WHOLE, T.FloatType, T.DoubleType),
    "str": (),
    "bool": (T.BooleanType,),
    "date": (T.DateType,),
    "timestamp": (T.TimestampType, T.TimestampNTZType, T.DateType),
    "decimal": (*_WHOLE, T.DecimalType),
}
"""The types of Spark that a column of ours can be read from; text can always be."""


class CheckedFrame(NamedTuple):
    """Facts that fit a relation, as a frame of the engine without ranks."""

    relation: Relation
    data: DataFrame


# --- columns, types and nulls


def fit_columns(
    relation: Relation,
    data: DataFrame,
    place: Place,
    *,
    op: str | None = None,
    is_loose: bool = False,
) -> DataFrame:
    """The columns of a relation, each of a type it can be read from; or a `DataError`.

    `op` is a column beside them, which becomes `op__`. If `is_loose`, unknown columns stay, and
    missing ones are null.
    """
    found = {field.name: field.dataType for field in data.schema if field.name != CORRUPT}
    wanted = {column.name: column for column in relation.columns}
    misfits = [
        f"`{name}` is {found[name].simpleString()} instead of {column.type}"
        for name, column in wanted.items()
        if name in found and not _is_readable(found[name], str(column.type))
    ]
    check_columns(place, relation, found, op, misfits=misfits, is_loose=is_loose)
    unknown = [name for name in found if name not in wanted and name != op]
    kept = [
        F.col(f"`{name}`") if name in found else F.lit(None).cast("string").alias(name)
        for name in wanted
    ]
    kept += [F.col(f"`{name}`") for name in unknown]
    kept += [F.col(f"`{op}`").alias(OP)] if op else []
    kept += [F.lit(True).alias(LEFT_OUT)] if leaves_values_out(relation, found, op) else []
    kept += [F.col(CORRUPT)] if CORRUPT in data.columns else []
    return data.select(*kept)


def _is_readable(type_: T.DataType, wanted: str) -> bool:
    return isinstance(type_, (T.StringType, T.NullType, *_SOURCES[wanted]))


def checked_frame(data: DataFrame, relation: Relation) -> DataFrame:
    """Columns `c0`, `c1`, … as the engine has them, `op__` if given, the reason and the row."""
    known = [column.name for column in relation.columns]
    extra = [name for name in data.columns if name not in (*known, OP, CORRUPT, LEFT_OUT)]
    types = {field.name: field.dataType for field in data.schema}
    reasons = [F.when(F.col(CORRUPT).isNotNull(), F.lit("this row cannot be read"))]
    reasons = reasons if CORRUPT in data.columns else []
    reasons += [
        F.when(F.col(f"`{name}`").isNotNull(), F.lit(f"column `{name}` is unknown"))
        for name in extra
    ]
    is_by_key = _is_by_key(data, relation)
    if LEFT_OUT in data.columns:
        reasons.append(F.when(~is_by_key, F.lit(ONLY_DELETIONS)))
    values = []
    for position, column in enumerate(relation.columns):
        value, reason = _value_and_reason(F.col(f"`{column.name}`"), types[column.name], column)
        values.append(value.alias(name_of(position)))
        reasons.append(reason if column.key else F.when(~is_by_key, reason))
    shown = [F.col(f"`{name}`") for name in data.columns if name not in (OP, CORRUPT, LEFT_OUT)]
    text = F.to_json(F.struct(*shown), {"ignoreNullFields": "false"}) if shown else F.lit("{}")
    if CORRUPT in data.columns:
        text = F.coalesce(F.col(CORRUPT), text)
    op = F.when(is_by_key, F.lit(DELETE_KEY)).otherwise(F.col(OP)) if OP in data.columns else None
    kept = [] if op is None else [op.alias(OP)]
    reason = F.coalesce(*reasons) if reasons else F.lit(None).cast("string")
    return data.select(*values, *kept, reason.alias(REASON), text.alias(ROW))


def _is_by_key(data: DataFrame, relation: Relation) -> Column:
    """Whether a row deletes by key: all other values are left out, where null is not a value."""
    others = [column for column in relation.columns if not column.key]
    is_left_out = LEFT_OUT in data.columns
    if OP not in data.columns or not relation.key or not others:
        return F.lit(False)
    if not is_left_out and any(column.nullable for column in others):
        return F.lit(False)
    empty = [F.col(f"`{column.name}`").isNull() for column in others if not is_left_out]
    is_deletion = F.coalesce(F.col(OP).cast("string").isin(*DELETES), F.lit(False))
    return reduce(Column.__and__, empty, is_deletion)


def fitting_rows(found: DataFrame, relation: Relation) -> DataFrame:
    """The rows without a reason against them, as a frame of the engine."""
    good = found.where(F.col(REASON).isNull())
    return good.select(*(name_of(i) for i in range(relation.arity)))


def bad_rows(found: DataFrame, relation: Relation, most: int | None = None) -> list[Rejected]:
    """The rows with a reason against them, at most this many."""
    beside = [name for name in (OP, FILE, LINE) if name in found.columns]
    bad = found.where(F.col(REASON).isNotNull()).select(REASON, ROW, *beside)
    rows = (bad if most is None else bad.limit(most)).collect()
    return [rejected_row(relation, row) for row in rows]


def rejected_row(relation: Relation, row: Any) -> Rejected:
    """A row of a frame of checked rows that was not taken."""
    held = row.asDict()
    op, file, line = (held.get(name) for name in (OP, FILE, LINE))
    return Rejected(relation.name, held[REASON], held[ROW], op, file, line)


def _value_and_reason(
    given: Column, type_: T.DataType, column: RelationColumn
) -> tuple[Column, Column]:
    """The canonical value, and why there is none."""
    wanted = str(column.type)
    value = _convert_column(given, type_, wanted)
    quoted = F.concat(F.lit('"'), given.cast("string"), F.lit('"'))
    is_long = F.length(quoted) > TEXT_MAX
    cut_off = F.concat(F.substring(quoted, 1, TEXT_MAX), F.lit("…"))
    misfit = F.concat(
        F.coalesce(F.when(is_long, cut_off).otherwise(quoted), F.lit("null")),
        F.lit(f" does not fit column `{column.name}`, which is {wanted}"),
    )
    is_bad = value.isNull() & given.isNotNull() if column.nullable else value.isNull()
    return value, F.when(is_bad, misfit)


def _convert_column(given: Column, type_: T.DataType, wanted: str) -> Column:
    spark_type = SPARK_TYPES[wanted]
    if isinstance(type_, T.NullType):
        return F.lit(None).cast(spark_type)
    if isinstance(type_, T.StringType):
        return given if wanted == "str" else _text_reader(wanted)(given).cast(spark_type)
    if isinstance(type_, T.DecimalType) and type_.scale > PLACES:
        return _text_reader(wanted)(given.cast("string")).cast(spark_type)
    if wanted == "int":
        cast = given.cast(spark_type)
        return F.when(cast != F.lit(INT_REFUSED).cast("long"), cast)
    if wanted == "float":
        cast = given.cast(spark_type) + F.lit(0.0)  # there is one zero
        is_finite = ~F.isnan(cast) & (F.abs(cast) != F.lit(float("inf")))
        return F.when(is_finite, cast)
    if isinstance(type_, T.TimestampType):
        zone = F.current_timezone()
        return F.convert_timezone(zone, F.lit("UTC"), given.cast(spark_type))
    return given.try_cast(spark_type)


def _text_reader(wanted: str) -> Callable[[Column], Column]:
    def read(text: str | None) -> str | None:
        return _read_value(wanted, text)

    return F.udf(read, "string", useArrow=False)


def _read_value(wanted: str, text: str | None) -> str | None:
    """The value that a text stands for, written so that Spark reads the same; None if none."""
    try:
        return None if text is None else plain_text(parse_value(text, wanted))
    except VALUE_ERRORS:
        return None


# --- keys


def check_unique_keys(relation: Relation, data: DataFrame) -> None:
    """No two facts of a frame have the same key."""
    if relation.key:
        twice = _repeated_keys(relation, data.distinct()).limit(1).collect()
        if twice:
            key = ", ".join(str(value) for value in tuple(twice[0])[:-1])
            raise DataError([catalogue.KEY_CONFLICT.at(None, name=relation.name, key=key)])


def check_unique_row_keys(relation: Relation, rows: Iterable[Row]) -> None:
    """The same for rows of the driver."""
    seen: dict[Row, Row] = {}
    for row in rows:
        key = tuple(row[i] for i in relation.key)
        if seen.setdefault(key, row) != row:
            shown = ", ".join(map(str, key))
            raise DataError([catalogue.KEY_CONFLICT.at(None, name=relation.name, key=shown)])


def check_set_once(relation: Relation, data: DataFrame) -> None:
    """No two rows of one `set` have the same key and different values."""
    twice = _repeated_keys(relation, data.distinct()).limit(1).localCheckpoint()
    if not twice.isEmpty():
        rows = driver_rows(relation, rows_matching(data, twice, relation.key).distinct().limit(2))
        shown = " and ".join(sorted(shown_fact(relation, row) for row in rows))
        raise DataError([key_set_twice(relation, shown, key_of(relation, rows[0]))])


def _repeated_keys(relation: Relation, distinct: DataFrame) -> DataFrame:
    keys = [name_of(i) for i in relation.key]
    return distinct.groupBy(*keys).count().where("count > 1")


def check_free_keys(relation: Relation, inserted: DataFrame, remaining: DataFrame) -> None:
    """Nothing is inserted beside a fact that has its key and stays."""
    if relation.key:
        found = driver_rows(relation, rows_matching(remaining, inserted, relation.key).limit(1))
        if found:
            raise DataError([key_taken(relation, found[0])])


def split_by_repeated_keys(relation: Relation, distinct: DataFrame) -> tuple[DataFrame, list[Row]]:
    """The rows whose key no other one has, and the others: which came first, nobody knows."""
    twice = _repeated_keys(relation, distinct).localCheckpoint()
    refused = driver_rows(relation, rows_matching(distinct, twice, relation.key))
    return rows_not_matching(distinct, twice, relation.key), refused


def split_by_taken_keys(
    relation: Relation, inserted: DataFrame, deleted: DataFrame, stored: DataFrame
) -> tuple[DataFrame, list[tuple[Row, Row]]]:
    """The rows that can be inserted, and the others, each with the fact that has its key."""
    stays = rows_matching(stored, inserted, relation.key)
    stays = rows_without(rows_without(stays, deleted, relation.arity), inserted, relation.arity)
    stays = stays.localCheckpoint()
    holders = {key_of(relation, row): row for row in driver_rows(relation, stays)}
    found = driver_rows(relation, rows_matching(inserted, stays, relation.key))
    refused = [(row, holders[key_of(relation, row)]) for row in found]
    return rows_not_matching(inserted, stays, relation.key), refused


# --- on the driver


def driver_rows(relation: Relation, data: DataFrame) -> CheckedRows:
    """The facts of a checked frame as rows."""
    names = [name_of(i) for i in range(relation.arity)]
    return arrow_facts(relation, (data.select(*names) if names else data).toArrow())


def arrow_facts(relation: Relation, table: pyarrow.Table) -> CheckedRows:
    """The facts of an Arrow table with columns `c0`, `c1`, …, and perhaps others."""
    columns = [table.column(name_of(i)) for i in range(relation.arity)]
    rows = rows_in(columns, engine_types(relation), table.num_rows)
    return CheckedRows(relation, rows)


def engine_types(relation: Relation) -> tuple[str, ...]:
    """The types of the columns; one that is not known belongs to a relation without facts."""
    return tuple(type_ or "int" for type_ in relation.types)
