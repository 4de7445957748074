"""`deltalog restore`: a backup in the place of a database file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.opening import Settings, open_database
from deltalog.cli.options import Engine
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import write_note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.store.copies import restore_backup as put_back
from deltalog.store.storage import file_in_use, open_to_read, real_path
from deltalog.store.verify import verify_file
from deltalog.store.writer_lock import WriterLock

EXAMPLE = "deltalog restore graph-monday.db graph.db --replace"


def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="A copy made by backup.")],
    database: Annotated[
        Path, typer.Argument(metavar="DATABASE", help="The database file to restore.")
    ],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Move an existing database aside instead of failing."),
    ] = False,
    engine: Engine = DEFAULT_ENGINE,
) -> None:
    """Verify a backup and restore it.

    The database must not be open in any process.
    """
    database = real_path(database)
    if database.exists() and not replace:
        raise DataError(
            [catalogue.FILE_EXISTS.at(None, name=database, hint="`--replace` moves it aside")]
        )
    progress = Progress()
    with open_database(backup, Settings(Limits(), engine=engine), progress, read_only=True) as kept:
        with progress.phase("verifying"):
            found = verify_file(kept)
        version = kept.version
    if not found.is_clean:
        reason = "it is not consistent; `deltalog verify` shows details"
        raise DataError([catalogue.FILE_DAMAGED.at(None, name=backup, reason=reason)])
    aside = _put_back(backup, database)
    if aside is not None:
        write_note(f"the previous {database} is now {aside}")
    write_note(f"{database} is at version {version}")


def _put_back(backup: Path, database: Path) -> Path | None:
    """Where the database was moved to that was there before."""
    lock = WriterLock(database)
    if not lock.acquire(0.0):
        raise file_in_use(database, lock)
    try:
        source = open_to_read(backup)
        try:
            return put_back(source.connection, backup, database)
        finally:
            source.close()
    finally:
        lock.release()
