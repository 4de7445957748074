"""`deltalog create`: a new database file from a program and files of facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.checks.program import check_program
from deltalog.cli.opening import (
    STANDARD_INPUT,
    assignments,
    create_database,
    files_in,
    read_and_parse,
    read_facts,
)
from deltalog.cli.option_groups import (
    FactFiles,
    LimitOptions,
    Maintenance,
    NetworkOptions,
    settings,
)
from deltalog.cli.options import (
    Durability,
    DurabilityName,
    ProgramFile,
    Virtual,
)
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted, note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.store.storage import is_blank

EXAMPLE = "deltalog create graph.db graph.dl --facts edge=edges.csv"


def create(
    database: Annotated[Path, typer.Argument(metavar="DATABASE", help="The file to create.")],
    file: ProgramFile,
    *,
    files: FactFiles,
    maintenance: Maintenance,
    virtual: Virtual = False,
    durability: Durability = DurabilityName.FULL,
    limits: LimitOptions,
) -> None:
    """Create a database file from a program and facts.

    The commands run, query, apply, audit and repl accept it in place of a program.
    """
    if database.exists() and not is_blank(database):
        raise DataError([catalogue.FILE_EXISTS.at(None, name=database)])
    progress = Progress()
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    loaded = (*files_in(files.facts_dir, relations), *assignments(files.facts, "--facts"))
    rows = read_facts(program, relations, loaded, progress)
    chosen = settings(limits, maintenance, NetworkOptions(virtual), durability)
    given = program if file == STANDARD_INPUT else file  # the text of a file is kept as it is
    with create_database(database, given, chosen, progress, rows) as made:
        held = sum(map(made.engine.size, made.model.stored & made.relations.keys()))
        note(f"{database} contains {counted(held, 'fact')}")
