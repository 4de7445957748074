"""Read a relation of a state beside its writer: `deltalog.read(spark, "state", "path")`.

What is read is current, or as of an earlier version: the table and the log after it, as one
DataFrame. Nothing is locked, and nothing is computed.
"""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.pipeline.checked_frames import engine_types
from deltalog.pipeline.reading import feed_frame, read_frame
from deltalog.pipeline.state import State
from deltalog.pipeline.stored_table import StoredTable
from deltalog.store.programs import stored_program


def read(
    spark: SparkSession, state: str, relation: str, *, version: int | None = None
) -> DataFrame:
    """All facts of a base relation or stored view, now or as of a version."""
    opened = _opened(spark, state)
    last = opened.last.version if version is None else version
    if not opened.first <= last <= opened.last.version:
        words = {"version": last, "first": opened.first, "last": opened.last.version}
        shown = {name: str(number) for name, number in words.items()}
        raise DataError([catalogue.NO_SUCH_VERSION.at(None, name=state, **shown)])
    table = known_table(opened, relation)
    if table.relative.startswith("changes/"):
        hint = f"declare it with `materialized view {relation}.`, or ask a database"
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
    data = table.outwards(read_frame(opened, table, relation, last))
    return data.select(*(table.columns or data.columns))


def read_changes(
    spark: SparkSession, state: str, relation: str, *, after: int = 0, until: int | None = None
) -> DataFrame:
    """The changes of a relation or view after a version, up to another, as a feed."""
    opened = _opened(spark, state)
    return feed_frame(opened, known_table(opened, relation), relation, after, until)


def _opened(spark: SparkSession | None, state: str) -> State:
    opened = State(spark, str(state))
    opened.open(is_writer=False)
    if opened.is_new:
        reason = "no state has been committed there"
        raise DataError([catalogue.CANNOT_READ.at(None, name=state, reason=reason)])
    return opened


def known_table(state: State, relation: str) -> StoredTable:
    """The table of a relation, as the program of the last commit has it."""
    relations = stored_program(state.program).relations
    if relation not in relations:
        hint = did_you_mean(str(relation), relations)
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
    known = relations[relation]
    columns = tuple(column.name for column in known.columns)
    kept = re.findall(r"^% kept: (.*)$", state.program, re.MULTILINE)[-1].split()
    is_ranked = f"{relation}*" in kept
    room = "tables" if is_ranked or relation in kept else "changes"
    types = engine_types(known)
    return StoredTable(state.location, f"{room}/{relation}", columns, types, is_ranked)
