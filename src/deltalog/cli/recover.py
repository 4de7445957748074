"""`deltalog recover`: going on with a file that has lost its last commits."""

from __future__ import annotations

from deltalog.cli.options import DatabaseFile, Engine
from deltalog.cli.terminal import note
from deltalog.runtime.database import DEFAULT_ENGINE
from deltalog.store.recover import recover as recovered

EXAMPLE = "deltalog recover graph.db"


def recover(database: DatabaseFile, engine: Engine = DEFAULT_ENGINE) -> None:
    """Go on without commits that cannot be read any more.

    For a file whose write-ahead log is damaged (E0903), when there is no backup: the state before
    the first of these commits becomes the database. Make a copy of the files first.
    """
    with recovered(database, engine) as kept:
        note(f"{database} is at version {kept.version}")
