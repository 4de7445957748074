"""`deltalog create`: a new database file from a program and files of facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.checks.program import check_program
from deltalog.cli.opening import (
    STANDARD_INPUT,
    Settings,
    assignments,
    create_database,
    files_in,
    read_and_parse,
    read_facts,
)
from deltalog.cli.options import (
    FACTS_MAX,
    ROUNDS_MAX,
    SECONDS_MAX,
    Durability,
    DurabilityName,
    Engine,
    Facts,
    FactsDirectory,
    FactsMax,
    ProgramFile,
    RoundsMax,
    SecondsMax,
    Strategies,
    Virtual,
    strategy_of,
)
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted, note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.database import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.store.storage import is_blank

EXAMPLE = "deltalog create graph.db graph.dl --facts edge=edges.csv"


def create(
    database: Annotated[Path, typer.Argument(metavar="DATABASE", help="The file to create.")],
    file: ProgramFile,
    facts: Facts = None,
    facts_dir: FactsDirectory = None,
    strategy: Strategies = None,
    engine: Engine = DEFAULT_ENGINE,
    virtual: Virtual = False,
    durability: Durability = DurabilityName.FULL,
    rounds_max: RoundsMax = ROUNDS_MAX,
    facts_max: FactsMax = FACTS_MAX,
    seconds_max: SecondsMax = SECONDS_MAX,
) -> None:
    """Create a database file from a program and facts.

    The commands run, query, apply, audit and repl accept it in place of a program.
    """
    if database.exists() and not is_blank(database):
        raise DataError([catalogue.FILE_EXISTS.at(None, name=database)])
    progress = Progress()
    loaded = assignments(facts, "--facts")
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    rows = read_facts(program, relations, (*files_in(facts_dir, relations), *loaded), progress)
    settings = Settings(
        Limits(rounds_max, facts_max, seconds_max),
        strategy_of(strategy),
        engine,
        not virtual,
        durability=durability,
    )
    given = program if file == STANDARD_INPUT else file  # the text of a file is kept as it is
    with create_database(database, given, settings, progress, rows) as made:
        held = sum(map(made.engine.size, made.model.stored & made.relations.keys()))
        note(f"{database} contains {counted(held, 'fact')}")
