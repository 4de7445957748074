"""`deltalog backup`: a consistent copy of a database file, also while it is being written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.options import DatabaseFile
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import write_note
from deltalog.store.copies import back_up_to as make_backup
from deltalog.store.log import Log
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.storage import open_to_read

EXAMPLE = "deltalog backup graph.db graph-monday.db"


def backup(
    database: DatabaseFile,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The file to create.")],
) -> None:
    """Copy the current state of a database file, with its log.

    The copy is created atomically and is a database file itself.
    """
    storage = open_to_read(database)
    try:
        with Progress().phase(f"copying {database}"):
            make_backup(storage.connection, database, target)
    finally:
        storage.close()
    copy = open_to_read(target)
    try:
        with sqlite_errors_reported(target):
            version = Log(copy.connection).last
    finally:
        copy.close()
    write_note(f"{target} is {database} at version {version}")
