"""`deltalog query`: answer queries given on the command line, deriving only what they need.

Views stay virtual unless they are declared `materialized`, so a query such as `path(1, Y)` is
rewritten by Magic Sets and touches nothing but the paths that start at 1. `--stats` shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from deltalog.analysis.columns import Relations
from deltalog.checks.program import check_program, check_query
from deltalog.cli.opening import (
    Settings,
    assignments,
    files_in,
    open_program,
    read_and_parse,
    read_facts,
)
from deltalog.cli.options import (
    FACTS_MAX,
    ROUNDS_MAX,
    SECONDS_MAX,
    Engine,
    Facts,
    FactsDirectory,
    FactsMax,
    Format,
    FormatOption,
    ProgramFile,
    RoundsMax,
    SecondsMax,
    Stats,
)
from deltalog.cli.progress import Progress
from deltalog.cli.results import Result, query_result, show_results
from deltalog.cli.statistics import show_statistics
from deltalog.diagnostics.report import Diagnostic, ProgramError, raise_if_any
from deltalog.language.ast import Query
from deltalog.language.parser import parse_query
from deltalog.language.printer import print_query
from deltalog.runtime.database import DEFAULT_ENGINE, Database
from deltalog.runtime.limits import Limits

EXAMPLE = "deltalog query graph.dl 'path(1, Y)' --facts edge=edges.csv --stats"


def query(
    file: ProgramFile,
    queries: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY",
            help="What is asked, as in 'path(1, Y), not edge(1, Y)'; "
            "the `?` and the final stop may be left out.",
        ),
    ],
    facts: Facts = None,
    facts_dir: FactsDirectory = None,
    stats: Stats = False,
    format_: FormatOption = Format.TABLE,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="ROWS", min=0, help="Show so many rows of each answer, 0 for all."
        ),
    ] = None,
    engine: Engine = DEFAULT_ENGINE,
    rounds_max: RoundsMax = ROUNDS_MAX,
    facts_max: FactsMax = FACTS_MAX,
    seconds_max: SecondsMax = SECONDS_MAX,
) -> None:
    """Answer queries, deriving only what they need."""
    progress = Progress()
    loaded = assignments(facts, "--facts")
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    asked = _checked(queries, relations)
    files = (*files_in(facts_dir, relations), *loaded)
    rows = read_facts(program, relations, files, progress)
    settings = Settings(
        Limits(rounds_max, facts_max, seconds_max), engine=engine, materialize=False
    )
    database = open_program(program, settings, progress, rows)
    show_results(_answers(database, asked, stats, progress), format_, limit or None)


def _checked(texts: Sequence[str], relations: Relations) -> list[Query]:
    """All queries, or the problems of all of them."""
    asked: list[Query] = []
    problems: list[Diagnostic] = []
    for text in texts:
        try:
            parsed = parse_query(text)
            check_query(parsed, relations)
            asked.append(parsed)
        except ProgramError as error:
            problems += error.diagnostics
    raise_if_any(problems)
    return asked


def _answers(
    database: Database, asked: Sequence[Query], stats: bool, progress: Progress
) -> Iterator[Result]:
    for each in asked:
        with progress.phase("answering"):
            rows = database.query(each)
        if stats:
            show_statistics(print_query(each), rows.statistics)
        yield query_result(each, rows)
