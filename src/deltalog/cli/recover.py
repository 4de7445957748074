"""`deltalog recover`: repair a file whose last commits cannot be read."""

from __future__ import annotations

from deltalog.cli.options import DatabaseFile, Engine
from deltalog.cli.terminal import write_note
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.store.recover import recover_file

EXAMPLE = "deltalog recover graph.db"


def recover(database: DatabaseFile, engine: Engine = DEFAULT_ENGINE) -> None:
    """Discard commits that can no longer be read.

    For a file whose write-ahead log is damaged (E0903) and that has no backup: the state before
    the first unreadable commit becomes the database. Make a copy of the files first.
    """
    with recover_file(database, engine) as kept:
        write_note(f"{database} is at version {kept.version}")
