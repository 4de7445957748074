"""`deltalog create`: a new database file from a program and files of facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.checks.program import check_program
from deltalog.cli.amosql import is_amosql, run_script
from deltalog.cli.opening import (
    STANDARD_INPUT,
    create_database,
    files_in,
    parse_assignments,
    read_and_parse,
    read_facts,
    read_source,
    refuse_facts_of_scripts,
)
from deltalog.cli.option_groups import (
    FactFiles,
    LimitOptions,
    Maintenance,
    NetworkOptions,
    database_settings,
)
from deltalog.cli.options import (
    Durability,
    DurabilityName,
    Format,
    ProgramFile,
    Virtual,
)
from deltalog.cli.progress import Progress
from deltalog.cli.results import show_results
from deltalog.cli.terminal import counted_noun, write_note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Program
from deltalog.runtime.amosql.session import AmosqlSession
from deltalog.store.file_database import FileDatabase
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

    The commands run, query, apply, audit and repl accept it in place of a program. The statements
    of an AMOSQL script (.amosql) are carried out one by one, each durable before the next.
    """
    if database.exists() and not is_blank(database):
        raise DataError([catalogue.FILE_EXISTS.at(None, name=database)])
    progress = Progress()
    chosen = database_settings(limits, maintenance, NetworkOptions(virtual), durability)
    if is_amosql(file):
        refuse_facts_of_scripts(files.facts, files.facts_dir)
        with create_database(database, Program(), chosen, progress, {}) as made:
            show_results(run_script(AmosqlSession(made), read_source(file)), Format.TABLE)
            _note_size(database, made)
        return
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    loaded = (*files_in(files.facts_dir, relations), *parse_assignments(files.facts, "--facts"))
    rows = read_facts(program, relations, loaded, progress)
    given = program if file == STANDARD_INPUT else file  # the text of a file is kept as it is
    with create_database(database, given, chosen, progress, rows) as made:
        _note_size(database, made)


def _note_size(path: Path, made: FileDatabase) -> None:
    held = sum(map(made.engine.size, made.model.stored & made.relations.keys()))
    write_note(f"{path} contains {counted_noun(held, 'fact')}")
