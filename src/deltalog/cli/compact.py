"""`deltalog compact`: drop old commits from the log of a database file."""

from __future__ import annotations

from typing import Annotated

import typer

from deltalog.cli.opening import Settings, open_database
from deltalog.cli.options import DatabaseFile, Engine, Wait
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted_noun, write_note
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.store.readers import Retention

EXAMPLE = "deltalog compact graph.db --versions 1000"


def compact(
    database: DatabaseFile,
    versions: Annotated[
        int | None,
        typer.Option(
            "--versions",
            metavar="NUMBER",
            min=0,
            help="Keep this many of the latest commits. The latest one is always kept, so 0 means "
            "1: the current state and the one before it.",
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option("--days", metavar="NUMBER", min=0, help="Keep the commits of this many days."),
    ] = None,
    bytes_max: Annotated[
        int | None,
        typer.Option(
            "--bytes-max",
            metavar="BYTES",
            min=0,
            help="Drop the oldest commits if the log is larger, even if a reader needs them.",
        ),
    ] = None,
    engine: Engine = DEFAULT_ENGINE,
    wait: Wait = 0.0,
) -> None:
    """Drop commits from the log that neither an option nor a registered reader keeps.

    With both --versions and --days, a commit that either of them keeps is kept.
    """
    if versions is None and days is None and bytes_max is None:
        raise typer.BadParameter("set --versions, --days or --bytes-max")
    retention = Retention(versions, None if days is None else days * 86_400, bytes_max)
    settings = Settings(Limits(), engine=engine, wait_seconds=wait)
    with open_database(database, settings, Progress(), read_only=False) as kept:
        dropped = kept.compact(retention)
        first, last = kept.first_version, kept.version
    write_note(f"{counted_noun(dropped.versions, 'version')} dropped, {first} to {last} remain")
