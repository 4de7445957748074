"""`deltalog pipeline replay`: rows in quarantine, written out to be mended and taken back in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.actions import Actions
from deltalog.cli.options import ProjectFile
from deltalog.cli.pipeline_steps import (
    ROWS_SHOWN,
    AsJson,
    RowLimit,
    open_pipeline,
    show_step,
    watch_steps,
)
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted_noun, write_note
from deltalog.pipeline.project import read_project
from deltalog.pipeline.spark_needed import spark_needed

EXAMPLE = "deltalog pipeline replay project.toml --file mended.jsonl"


def replay(
    project: ProjectFile,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Take the rows of this file, once mended."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Write the rows in quarantine to this file."),
    ] = None,
    as_json: AsJson = False,
    limit: RowLimit = ROWS_SHOWN,
    actions: Actions = None,
) -> None:
    """Take rows back in from quarantine, each once.

    With --write, write them to a file as JSON lines, to mend `op` and `row` of each; with --file,
    take them from there. Without either, take all rows that fit now, and read the files again that
    were refused as a whole.
    """
    read = read_project(project)
    with spark_needed():
        from deltalog.pipeline.replay import read_mended, write_quarantine
    if write is not None:
        if file is not None:
            raise typer.BadParameter("--file cannot be used with --write")
        write_note(f"{counted_noun(write_quarantine(read, write), 'row')} written to {write}")
        return
    mended = None if file is None else read_mended(file)
    progress = Progress()
    number = 0
    with open_pipeline(read, progress, actions) as pipeline:
        for step in watch_steps(pipeline.replay(mended), progress):
            number += 1
            show_step(step, as_json, limit or None, number > 1)
        left = len(pipeline.quarantined)
    write_note(f"{counted_noun(left, 'row')} in quarantine")
