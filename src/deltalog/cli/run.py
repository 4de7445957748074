"""`deltalog run`: load facts, evaluate, answer the queries in the program, write relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from deltalog.analysis.columns import Relations
from deltalog.checks.program import check_program
from deltalog.cli.opening import (
    Assignment,
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
    Strategies,
    strategy_of,
)
from deltalog.cli.progress import Progress
from deltalog.cli.results import Result, query_result, relation_result, show_results
from deltalog.cli.terminal import counted, note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.runtime.database import DEFAULT_ENGINE, Database
from deltalog.runtime.limits import Limits
from deltalog.runtime.rows import Rows
from deltalog.store.files import read_rows, write_rows

EXAMPLE = "deltalog run graph.dl --facts edge=edges.csv --output path=paths.parquet"
VIEW_ROWS_SHOWN = 50


def run(
    file: ProgramFile,
    facts: Facts = None,
    facts_dir: FactsDirectory = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="RELATION=FILE",
            help="Write a relation or view to a .csv, .tsv, .jsonl or .parquet file; "
            "may be repeated.",
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            "--show",
            metavar="NAME",
            help="Show this relation or view instead of the queries; may be repeated.",
        ),
    ] = None,
    format_: FormatOption = Format.TABLE,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="ROWS",
            min=0,
            help=f"Show so many rows of each answer, 0 for all. Without it, tables of whole "
            f"relations have {VIEW_ROWS_SHOWN} rows, and everything else has all.",
        ),
    ] = None,
    strategy: Strategies = None,
    engine: Engine = DEFAULT_ENGINE,
    rounds_max: RoundsMax = ROUNDS_MAX,
    facts_max: FactsMax = FACTS_MAX,
    seconds_max: SecondsMax = SECONDS_MAX,
) -> None:
    """Evaluate a program and answer the queries in it.

    Without queries every view is shown, unless relations are written with --output.
    """
    progress = Progress()
    loaded, written = assignments(facts, "--facts"), assignments(output, "--output")
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    _check_names(relations, [*(show or ()), *(each.relation for each in written)])
    _check_writable(relations, written)
    files = (*files_in(facts_dir, relations), *loaded)
    rows = read_facts(program, relations, files, progress)
    settings = Settings(Limits(rounds_max, facts_max, seconds_max), strategy_of(strategy), engine)
    database = open_program(program, settings, progress, rows)
    _write(database, written, progress)
    names = _shown_names(database, show, bool(written))
    show_results(_results(database, names, progress), format_, _limit(limit, format_, names))


def _check_names(known: Relations, names: Sequence[str]) -> None:
    problems = [
        catalogue.NO_SUCH_RELATION.at(None, name=name, hint=did_you_mean(name, known))
        for name in names
        if name not in known
    ]
    if problems:
        raise DataError(problems)


def _check_writable(relations: Relations, written: Sequence[Assignment]) -> None:
    """Find out before a long evaluation, not after it, that a file cannot be written."""
    problems: list[Diagnostic] = []
    for each in written:
        try:
            # Knows the formats, and reads nothing before the first row is asked for.
            read_rows(each.path, relations[each.relation].columns)
        except DataError as error:
            problems += error.diagnostics
            continue
        if not each.path.parent.is_dir():
            reason = f"there is no directory `{each.path.parent}`"
            problems.append(catalogue.CANNOT_WRITE.at(None, name=each.path, reason=reason))
    if problems:
        raise DataError(problems)


def _write(database: Database, written: Sequence[Assignment], progress: Progress) -> None:
    for each in written:
        with progress.phase(f"writing {each.path}"):
            columns = database.relations[each.relation].columns
            rows = Rows(columns, database.facts(each.relation))
            write_rows(each.path, columns, rows)
        note(f"wrote {counted(len(rows), 'row')} of {each.relation} to {each.path}")


def _shown_names(
    database: Database, show: Sequence[str] | None, is_written: bool
) -> Sequence[str] | None:
    """The relations to show, or None when the queries are to be answered."""
    if show:
        return show
    if database.model.checked.program.queries:
        return None
    views = [name for name, each in database.relations.items() if each.kind == "view"]
    if not views:
        note("the program has no queries and no views, so there is nothing to show")
    return [] if is_written else sorted(views)


def _results(
    database: Database, names: Sequence[str] | None, progress: Progress
) -> Iterator[Result]:
    if names is not None:
        for name in names:
            with progress.phase(f"computing {name}"):
                result = relation_result(database, name)
            yield result
        return
    for query in database.model.checked.program.queries:
        with progress.phase("answering"):
            rows = database.query(query)
        yield query_result(query, rows)


def _limit(limit: int | None, format_: Format, names: Sequence[str] | None) -> int | None:
    if limit is None:
        is_whole_table = format_ is Format.TABLE and names is not None
        return VIEW_ROWS_SHOWN if is_whole_table else None
    return limit or None
