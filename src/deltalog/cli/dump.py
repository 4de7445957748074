"""`deltalog dump`: a database as text, or as a folder, from which it can be recreated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.opening import Settings, open_given
from deltalog.cli.options import Engine, GivenFile
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import write_note, write_result
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.store.dump import dump_folder, dump_lines

EXAMPLE = "deltalog dump graph.db > graph-dump.dl"


def dump(
    file: GivenFile,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            metavar="DIRECTORY",
            help="Write program.dl and a .csv file per base relation to this directory instead; "
            "faster to load for many facts.",
        ),
    ] = None,
    engine: Engine = DEFAULT_ENGINE,
) -> None:
    """Write the program and all base facts as a program that recreates the database.

    Views are derived, so they are not written; neither are earlier versions. Of active rules it
    has activations, firings, and the messages that are not delivered.
    """
    progress = Progress()
    settings = Settings(Limits(), engine=engine)
    database = open_given(file, None, None, settings, progress, read_only=True)
    if directory is None:
        for line in dump_lines(database):
            write_result(line)
        return
    written = dump_folder(database, directory)
    write_note(f"wrote {', '.join(str(path) for path in written)}")
