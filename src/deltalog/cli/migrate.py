"""`deltalog migrate`: another program for a database file, with the exact change shown first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from deltalog.checks.program import check_program
from deltalog.cli.applying import Applied
from deltalog.cli.change_results import show_changes
from deltalog.cli.opening import STANDARD_INPUT, Settings, open_database, read_source
from deltalog.cli.options import DatabaseFile, Engine, Format, FormatOption, Wait
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import is_terminal, write_note
from deltalog.language.ast import Program
from deltalog.language.parser import parse_program
from deltalog.runtime.delivery_verbs import check_delivered
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.store.programs import program_and_text

EXAMPLE = "deltalog migrate graph.db graph2.dl"
ROWS_SHOWN = 50


def migrate(
    database: DatabaseFile,
    file: Annotated[Path, typer.Argument(metavar="PROGRAM", help="The new program.")],
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Only show what would change.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    format_: FormatOption = Format.TABLE,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", metavar="ROWS", min=0, help="Show at most this many rows, 0 for all."
        ),
    ] = ROWS_SHOWN,
    engine: Engine = DEFAULT_ENGINE,
    wait: Wait = 0.0,
) -> None:
    """Show the exact change of every relation and view, then switch to another program.

    The switch is one commit. On a terminal it asks for confirmation. A program that differs from
    the current one only in comments and layout changes nothing.
    """
    progress = Progress()
    program: Path | Program = file
    if file == STANDARD_INPUT:
        program = parse_program(read_source(file))
    settings = Settings(Limits(), engine=engine, wait_seconds=wait)
    with open_database(database, settings, progress, read_only=what_if) as kept:
        parsed, _ = program_and_text(program)
        if parsed == kept.model.checked.program:
            write_note(f"{database} already has this program: nothing changes")
            return
        if not what_if:
            check_delivered(kept, check_program(parsed))
        with progress.phase("evaluating"):
            change = kept.change_program(program, is_committed=False)
        place = f"{database} with {file}"
        shown = Applied(1, place, kept.version + 1, change, kept.statistics)
        show_changes([shown], format_, limit or None)
        if what_if:
            return
        if not yes and is_terminal(sys.stdin) and is_terminal(sys.stdout):
            typer.confirm("switch to this program?", abort=True)
        with progress.phase("evaluating"):
            kept.change_program(program)
        write_note(f"{database} has the new program from version {kept.version} on")
