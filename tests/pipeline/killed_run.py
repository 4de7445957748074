"""A run of a project that is killed at a write."""

from __future__ import annotations

from killed_processes import Say, make_deadly

from deltalog.pipeline import state
from deltalog.pipeline.drafts import Draft
from deltalog.pipeline.log_table import DriverLogTable
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.spark_storage import SparkLogTable, SparkTable
from deltalog.pipeline.stored_table import StoredTable
from deltalog.pipeline.table_files import TableFiles
from spark_sessions import delta_session

WRITES = (
    (DriverLogTable, "append"),
    (DriverLogTable, "_rewrite_files"),
    (DriverLogTable, "_shorten_delta_log"),
    (SparkLogTable, "append"),
    (SparkLogTable, "drop"),
    (SparkTable, "_save_frame"),
    (SparkTable, "_merge_fold"),
    (SparkTable, "write_whole"),
    (StoredTable, "_commit_actions"),
    (TableFiles, "write"),
    (Draft, "write"),
    (state, "remove_garbage"),
)
"""Everything that writes to a state."""


def run(say: Say, project: str, last: int, when: str) -> None:
    """Take all batches of a project, and die before or after this write."""
    make_deadly(WRITES, last, when, say)
    with Pipeline(read_project(project), delta_session()) as pipeline:
        for step in pipeline.steps():
            say(str(step.batches))
