"""`deltalog query`: run queries given on the command line, deriving only what they need.

Views stay virtual unless they are declared `materialized`, so a query such as `path(1, Y)` is
rewritten by Magic Sets and touches nothing but the paths that start at 1. `--stats` shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from deltalog.analysis.system_relations import SYSTEM_RELATIONS
from deltalog.checks.program import check_program
from deltalog.cli.opening import (
    Settings,
    files_in,
    is_database,
    open_database,
    open_program,
    parse_assignments,
    read_and_parse,
    read_facts,
    refuse_facts,
)
from deltalog.cli.option_groups import FactFiles, LimitOptions
from deltalog.cli.options import (
    Engine,
    Format,
    FormatOption,
    GivenFile,
    Parameters,
    Stats,
)
from deltalog.cli.parameters import checked_queries, parameter_texts
from deltalog.cli.progress import Progress
from deltalog.cli.results import Result, query_result, show_results
from deltalog.cli.statistics import show_statistics
from deltalog.language.ast import Query
from deltalog.language.printer import print_query
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.engine_choice import DEFAULT_ENGINE

EXAMPLE = "deltalog query graph.dl 'path(1, Y)' --facts edge=edges.csv --stats"


def query(
    file: GivenFile,
    queries: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY",
            help="A query such as 'path(1, Y), not edge(1, Y)'; "
            "the `?` and the full stop are optional, and --param sets the value of `$NAME`.",
        ),
    ],
    *,
    parameters: Parameters = None,
    version: Annotated[
        int | None,
        typer.Option(
            "--version",
            "--as-of",
            metavar="VERSION",
            min=0,
            help="For a database file: query the program and the facts as of this version.",
        ),
    ] = None,
    files: FactFiles,
    stats: Stats = False,
    format_: FormatOption = Format.TABLE,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="ROWS",
            min=0,
            help="Show at most this many rows of each result, 0 for all.",
        ),
    ] = None,
    engine: Engine = DEFAULT_ENGINE,
    limits: LimitOptions,
) -> None:
    """Run queries, deriving only the facts they need."""
    progress = Progress()
    values = parameter_texts(parameters)
    if is_database(file):
        refuse_facts(files.facts, files.facts_dir)
        settings = Settings(limits.limits, engine=engine)
        with open_database(file, settings, progress, read_only=True) as kept:
            known = kept.model.readable if version is None else kept.relations_at(version)
            asked = checked_queries(queries, values, known)
            answers = _answer_queries(kept, asked, stats, progress, version)
            show_results(answers, format_, limit or None)
        return
    if version is not None:
        raise typer.BadParameter(
            "only a database file has earlier versions", param_hint="--version"
        )
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    asked = checked_queries(queries, values, {**relations, **SYSTEM_RELATIONS})
    loaded = (*files_in(files.facts_dir, relations), *parse_assignments(files.facts, "--facts"))
    rows = read_facts(program, relations, loaded, progress)
    settings = Settings(limits.limits, engine=engine, materialize=False)
    database = open_program(program, settings, progress, rows)
    show_results(_answer_queries(database, asked, stats, progress, None), format_, limit or None)


def _answer_queries(
    database: MemoryDatabase,
    asked: Sequence[Query],
    stats: bool,
    progress: Progress,
    version: int | None,
) -> Iterator[Result]:
    for each in asked:
        with progress.phase("querying"):
            rows = database.query(each, version=version)
        if stats:
            show_statistics(print_query(each), rows.statistics)
        yield query_result(each, rows)
