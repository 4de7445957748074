"""Going on with a file that has lost commits: what can still be read becomes the database."""

from __future__ import annotations

from pathlib import Path

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options
from deltalog.store.file_database import FileDatabase
from deltalog.store.open_file import FileOptions, open_file
from deltalog.store.readers import Retention
from deltalog.store.settings import renew_history
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.storage import open_to_write


def recover_file(path: Path, engine: str) -> FileDatabase:
    """Accept that commits are missing in the write-ahead log; returns the database without them."""
    if not path.exists():
        raise DataError([catalogue.CANNOT_OPEN.at(None, name=path, reason="there is no such file")])
    storage = open_to_write(path, "full", 0.0, Retention(), is_loss_accepted=True)
    try:
        with sqlite_errors_reported(path):
            renew_history(storage.connection)  # version numbers will be used again
            storage.connection.execute("PRAGMA wal_checkpoint = TRUNCATE").fetchall()
    finally:
        storage.close()
    return open_file(path, None, FileOptions(engine), Options(), Limits())
