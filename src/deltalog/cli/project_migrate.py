"""`deltalog pipeline migrate`: the program of a project for a state that has another one."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from deltalog.cli.applying import Applied
from deltalog.cli.change_results import show_changes
from deltalog.cli.options import Format, FormatOption, ProjectFile
from deltalog.cli.pipeline_steps import ROWS_SHOWN, RowLimit
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import is_terminal, write_note
from deltalog.pipeline.project import read_project
from deltalog.pipeline.spark_needed import spark_needed

EXAMPLE = "deltalog pipeline migrate project.toml --what-if"


def migrate(
    project: ProjectFile,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Only show what would change.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    format_: FormatOption = Format.TABLE,
    limit: RowLimit = ROWS_SHOWN,
) -> None:
    """Show what the program of the project changes in its state, then switch to it.

    The switch is one commit; what was taken from sources stays. On a terminal it asks for
    confirmation.
    """
    read = read_project(project)
    progress = Progress()
    with spark_needed():
        from deltalog.pipeline.migrate_project import Migration
    with progress.phase("starting Spark and opening the state"):
        migration = Migration(read, progress.watch)
    if migration.database is None:
        write_note(f"{read.state} has the program of {project}: nothing changes")
        return
    with migration.database as kept:
        if not what_if:
            migration.check_delivered()
        with progress.phase("evaluating"):
            change = kept.change_program(migration.program, is_committed=False)
        shown = Applied(1, str(project), kept.version + 1, change, kept.statistics)
        show_changes([shown], format_, limit or None)
        if what_if:
            return
        if not yes and is_terminal(sys.stdin) and is_terminal(sys.stdout):
            typer.confirm("switch to this program?", abort=True)
        with progress.phase("evaluating"):
            kept.change_program(migration.program)
        write_note(f"{read.state} has the program of {project} from version {kept.version} on")
