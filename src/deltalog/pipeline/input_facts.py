"""Facts as they are given: a DataFrame, whose columns are matched by name, or rows.

Both are checked here, once: few facts become `CheckedRows` on the driver, many stay a
`CheckedFrame` on the cluster, and nobody checks either of them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from pyspark.sql import DataFrame, SparkSession

from deltalog.analysis.columns import Relation
from deltalog.engines.spark.columns import frame_of_rows
from deltalog.pipeline.checked_frames import (
    REASON,
    ROW,
    CheckedFrame,
    arrow_facts,
    bad_rows,
    checked_frame,
    engine_types,
    fit_columns,
    fitting_rows,
)
from deltalog.pipeline.rejected import SHOWN_MAX, Rejected, bad_rows_error
from deltalog.pipeline.source_columns import Place
from deltalog.runtime.checked_rows import CheckedRows
from deltalog.runtime.incoming import incoming_rows

FactsInput: TypeAlias = DataFrame | CheckedFrame | Iterable[Sequence[Any]]


def input_facts(relation: Relation, given: FactsInput, most: int) -> CheckedRows | CheckedFrame:
    """Facts on the driver, or a frame of more than `most`; a `DataError` says what is wrong."""
    if isinstance(given, CheckedFrame):
        table = given.data.limit(most + 1).toArrow()
        return given if table.num_rows > most else arrow_facts(relation, table)
    if not _is_frame(given):
        return CheckedRows(relation, incoming_rows(relation, given))
    found = _check_facts(relation, given)
    table = found.limit(most + 1).toArrow()
    if table.num_rows > most:
        return _without_bad_rows(relation, found)
    reasons, rows = (table.column(name).to_pylist() for name in (REASON, ROW))
    bad = [
        Rejected(relation.name, reason, row)
        for reason, row in zip(reasons, rows, strict=True)
        if reason is not None
    ]
    if bad:
        raise bad_rows_error(relation.name, "DataFrame", bad)
    return arrow_facts(relation, table)


def input_rows(relation: Relation, given: FactsInput) -> CheckedRows | DataFrame | CheckedFrame:
    """Rows that are on the driver, checked; a frame stays as it is."""
    if isinstance(given, CheckedFrame) or _is_frame(given):
        return cast("DataFrame", given)
    return CheckedRows(relation, incoming_rows(relation, given))


def input_frame(spark: SparkSession, relation: Relation, given: FactsInput) -> DataFrame:
    """The facts as a frame of the engine, without ranks; a `DataError` says what does not fit."""
    if isinstance(given, CheckedFrame):
        return given.data
    if not _is_frame(given):
        return frame_of_rows(spark, incoming_rows(relation, given), engine_types(relation))
    return _without_bad_rows(relation, _check_facts(relation, given)).data


def _check_facts(relation: Relation, given: FactsInput) -> DataFrame:
    return checked_frame(
        fit_columns(relation, cast("DataFrame", given), Place(relation.name)), relation
    )


def _without_bad_rows(relation: Relation, found: DataFrame) -> CheckedFrame:
    bad = bad_rows(found, relation, SHOWN_MAX + 1)
    if bad:
        raise bad_rows_error(relation.name, "DataFrame", bad)
    return CheckedFrame(relation, fitting_rows(found, relation))


def _is_frame(given: FactsInput) -> bool:
    """DataFrames of Spark Connect are another class: what they can do tells them apart."""
    return hasattr(given, "toArrow")
