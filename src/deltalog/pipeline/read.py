"""Read a relation of a state beside its writer: `deltalog.read(spark, "state", "path")`.

What is read is current, or as of an earlier version: the table and the log after it, as one
DataFrame. Nothing is locked, and nothing is computed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.reading import feed_frame, read_frame
from deltalog.pipeline.state import State
from deltalog.pipeline.state_tables import check_version, is_stored, known_table


def read_relation(
    spark: SparkSession, state: str, relation: str, *, version: int | None = None
) -> DataFrame:
    """All facts of a base relation or stored view, now or as of a version."""
    opened = opened_state(state, spark)
    last = opened.last.version if version is None else version
    check_version(opened, last)
    table = known_table(opened, relation, last)
    if not is_stored(table):
        hint = f"declare it with `materialized view {relation}.`, or ask a database"
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
    data = table.outwards(read_frame(opened, table, relation, last))
    return data.select(*(table.columns or data.columns))


def read_changes(
    spark: SparkSession, state: str, relation: str, *, after: int = 0, until: int | None = None
) -> DataFrame:
    """The changes of a relation or view after a version, up to another, as a feed."""
    opened = opened_state(state, spark)
    known_table(opened, relation, until)
    return feed_frame(opened, relation, after, until)


def opened_state(state: str, spark: SparkSession | None = None) -> State:
    """A state, to be read beside its writer; without a session, its tables and log only."""
    opened = State(spark, str(state))
    opened.open(is_writer=False)
    if opened.is_new:
        reason = "no state has been committed there"
        raise DataError([catalogue.CANNOT_READ.at(None, name=state, reason=reason)])
    return opened
