"""Facts as they are given: a DataFrame, whose columns are matched by name, or rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.spark.columns import frame, name_of, rows_in
from deltalog.language.ast import Row
from deltalog.pipeline.checking import REASON, ROW, checked, fitting, taken
from deltalog.runtime.incoming import incoming_rows

FactsInput: TypeAlias = DataFrame | Iterable[Sequence[Any]]
SHOWN_MAX = 3


def input_rows(relation: Relation, given: FactsInput, most: int) -> list[Row] | None:
    """The facts on the driver, or None if they are too many; a `DataError` says what is wrong."""
    if not _is_frame(given):
        return incoming_rows(relation, given)
    found = checked(fitting(relation, given, relation.name), relation)  # type: ignore[arg-type]
    table = found.limit(most + 1).toArrow()
    if table.num_rows > most:
        return None
    reasons = [reason for reason in table.column(REASON).to_pylist() if reason is not None]
    if reasons:
        raise refusal(relation.name, "DataFrame", reasons)
    types = tuple(map(str, relation.types))
    columns = [table.column(name_of(i)) for i in range(relation.arity)]
    return rows_in(columns, types, table.num_rows)


def input_frame(spark: SparkSession, relation: Relation, given: FactsInput) -> DataFrame:
    """The facts as a frame of the engine, without ranks; a `DataError` says what does not fit."""
    if not _is_frame(given):
        rows = incoming_rows(relation, given)
        return frame(spark, rows, tuple(map(str, relation.types)))
    found = checked(fitting(relation, given, relation.name), relation)  # type: ignore[arg-type]
    bad = found.where(f"{REASON} IS NOT NULL").limit(SHOWN_MAX + 1).select(REASON, ROW).collect()
    if bad:
        raise refusal(relation.name, "DataFrame", [row[REASON] for row in bad])
    return taken(found, relation)


def check_keys(relation: Relation, data: DataFrame) -> None:
    """No two facts of a frame have the same key."""
    if relation.key:
        keys = [name_of(i) for i in relation.key]
        twice = data.distinct().groupBy(*keys).count().where("count > 1").limit(1).collect()
        if twice:
            key = ", ".join(str(value) for value in tuple(twice[0])[:-1])
            raise DataError([catalogue.KEY_CONFLICT.at(None, name=relation.name, key=key)])


def refusal(name: str, batch: str, reasons: Sequence[str]) -> DataError:
    """Rows that cannot be taken, with the first of the reasons."""
    shown = "; ".join(dict.fromkeys(reasons[:SHOWN_MAX]))
    more = f"; and {len(reasons) - SHOWN_MAX:,} more" if len(reasons) > SHOWN_MAX else ""
    count = f"{len(reasons):,} row{'' if len(reasons) == 1 else 's'}"
    words = {"count": count, "batch": batch, "name": name, "reason": shown + more}
    return DataError([catalogue.BAD_ROWS.at(None, **words)])


def _is_frame(given: FactsInput) -> bool:
    """DataFrames of Spark Connect are another class: what they can do tells them."""
    return hasattr(given, "toArrow")
