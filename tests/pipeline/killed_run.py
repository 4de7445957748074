"""A run that is killed at a write: `python killed_run.py PROJECT WRITE before|after`.

The whole group of processes dies at once, the JVM too: nobody has the time to tidy up.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

from deltalog.pipeline import state
from deltalog.pipeline.drafts import Draft
from deltalog.pipeline.log_table import DriverLogTable
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.spark_storage import SparkLogTable, SparkTable
from deltalog.pipeline.stored_table import StoredTable
from deltalog.pipeline.table_files import TableFiles
from spark_sessions import delta_session


def die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


WRITES = (
    (DriverLogTable, "append"),
    (DriverLogTable, "_rewrite"),
    (DriverLogTable, "_shorten"),
    (SparkLogTable, "append"),
    (SparkLogTable, "drop"),
    (SparkTable, "_save"),
    (SparkTable, "_merge"),
    (SparkTable, "write_whole"),
    (StoredTable, "_commit"),
    (TableFiles, "write"),
    (Draft, "write"),
    (state, "remove_garbage"),
)
"""Everything that writes to a state."""


def deadly(write: Callable[..., Any], numbers: count[int], last: int, when: str) -> Any:
    def wrapped(*arguments: Any) -> Any:
        number = next(numbers)
        if number == last and when == "before":
            die()
        written = write(*arguments)
        if number == last:
            die()
        return written

    return wrapped


def main(project: str, last: int, when: str) -> None:
    numbers = count(1)
    for kind, name in WRITES:
        setattr(kind, name, deadly(getattr(kind, name), numbers, last, when))
    with Pipeline(read_project(project), delta_session()) as pipeline:
        print("open", flush=True)
        for step in pipeline.steps():
            print(step.batches, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
