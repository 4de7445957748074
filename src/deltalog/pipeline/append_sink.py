"""Append a feed of changes to a Delta table, without a job of Spark.

    feed of versions 15, 16    +    a table that has versions up to 15    →    16 is appended

A run that was killed after it had appended, and before it could note that, gives the same versions
again; the table itself says which it has. So nothing is there twice.
"""

from __future__ import annotations

import pyarrow
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from deltalog.pipeline.feed_columns import stretches_between
from deltalog.pipeline.reading import COMMIT_VERSION
from deltalog.pipeline.relation_parts import feed_parts, output_schema
from deltalog.pipeline.state import State


def feed_table(state: State, relation: str, after: int) -> pyarrow.Table:
    """The changes of a relation after a version, in the order of commits, on the driver."""
    until = state.last.version
    batches = [
        batch for part in feed_parts(state, relation, after, until, {}) for batch in part.read()
    ]
    columns = stretches_between(state, relation, after, until)[-1].columns
    found = pyarrow.Table.from_batches(batches, output_schema(columns, is_feed=True))
    return found.sort_by(COMMIT_VERSION)


def append_feed(path: str, changes: pyarrow.Table) -> None:
    """Append those versions that a table does not have; if there is no table, make one."""
    try:
        table = DeltaTable(path)
    except TableNotFoundError:
        write_deltalake(path, changes, mode="error")
        return
    new = changes.filter(pc.field(COMMIT_VERSION) > last_version(table))
    if new.num_rows:
        write_deltalake(table, new, mode="append")


def last_version(table: DeltaTable) -> int:
    """The last version of which a table has changes, by the statistics of its files."""
    actions = pyarrow.table(table.get_add_actions(flatten=True))
    most = f"max.{COMMIT_VERSION}"
    if most in actions.column_names and not actions.column(most).null_count:
        return int(pc.max(actions.column(most)).as_py() or 0)
    found = table.to_pyarrow_table(columns=[COMMIT_VERSION]).column(COMMIT_VERSION)
    return int(pc.max(found).as_py() or 0)
