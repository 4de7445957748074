"""`deltalog run`: load facts, evaluate, run the queries in the program, write relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from deltalog.analysis.columns import Relations
from deltalog.checks.program import check_program
from deltalog.cli.amosql import is_amosql, run_script
from deltalog.cli.opening import (
    Assignment,
    Settings,
    files_in,
    is_database,
    open_database,
    open_program,
    parse_assignments,
    read_and_parse,
    read_facts,
    read_source,
    refuse_facts,
    refuse_facts_of_scripts,
)
from deltalog.cli.option_groups import FactFiles, LimitOptions, Maintenance, database_settings
from deltalog.cli.options import (
    Format,
    FormatOption,
    GivenFile,
)
from deltalog.cli.progress import Progress
from deltalog.cli.results import (
    Result,
    check_names,
    facts_at,
    query_result,
    relation_result,
    relations_at,
    show_results,
)
from deltalog.cli.terminal import counted_noun, write_note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.language.ast import Program
from deltalog.runtime.amosql.session import AmosqlSession
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.rows import Rows
from deltalog.store.files import read_rows, write_rows

EXAMPLE = "deltalog run graph.dl --facts edge=edges.csv --output path=paths.parquet"
VIEW_ROWS_SHOWN = 50


def run(
    file: GivenFile,
    *,
    files: FactFiles,
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
            help=f"Show at most this many rows of each result, 0 for all. Default: "
            f"{VIEW_ROWS_SHOWN} for tables of whole relations, all for everything else.",
        ),
    ] = None,
    as_of: Annotated[
        int | None,
        typer.Option(
            "--as-of",
            metavar="VERSION",
            min=0,
            help="For a database file: show relations and views as of this version.",
        ),
    ] = None,
    maintenance: Maintenance,
    limits: LimitOptions,
) -> None:
    """Evaluate a program, or load a database file, and run the queries in it.

    Without queries every view is shown, unless relations are written with --output. The statements
    of an AMOSQL script (.amosql) are carried out on a new database in memory.
    """
    progress = Progress()
    written = parse_assignments(output, "--output")
    chosen = database_settings(limits, maintenance)
    names = [*(show or ()), *(each.relation for each in written)]
    if is_amosql(file):
        refuse_facts_of_scripts(files.facts, files.facts_dir)
        _refuse_as_of(as_of)
        _run_amosql(file, chosen, show, written, format_, limit, progress)
        return
    if is_database(file):
        refuse_facts(files.facts, files.facts_dir)
        with open_database(file, chosen, progress, read_only=True) as kept:
            known = relations_at(kept, as_of)
            check_names(known, names)
            _check_writable(known, written)
            _show_relations(kept, show, written, format_, limit, progress, as_of)
        return
    _refuse_as_of(as_of)
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    check_names(relations, names)
    _check_writable(relations, written)
    loaded = (*files_in(files.facts_dir, relations), *parse_assignments(files.facts, "--facts"))
    rows = read_facts(program, relations, loaded, progress)
    database = open_program(program, chosen, progress, rows)
    _show_relations(database, show, written, format_, limit, progress, None)


def _refuse_as_of(as_of: int | None) -> None:
    if as_of is not None:
        raise typer.BadParameter("only a database file has earlier versions", param_hint="--as-of")


def _run_amosql(
    file: Path,
    chosen: Settings,
    show: Sequence[str] | None,
    written: Sequence[Assignment],
    format_: Format,
    limit: int | None,
    progress: Progress,
) -> None:
    """Carry out a script on a new database; show what it selects, and relations afterwards."""
    database = open_program(Program(), chosen, progress)
    results = run_script(AmosqlSession(database), read_source(file))
    show_results(results, format_, limit or None)
    if show or written:
        check_names(database.relations, [*(show or ()), *(each.relation for each in written)])
        _check_writable(database.relations, written)
        _show_relations(database, show, written, format_, limit, progress, None)


def _show_relations(
    database: MemoryDatabase,
    show: Sequence[str] | None,
    written: Sequence[Assignment],
    format_: Format,
    limit: int | None,
    progress: Progress,
    as_of: int | None,
) -> None:
    """Write what is to be written and show the rest."""
    _write_relations(database, written, progress, as_of)
    names = _shown_names(database, show, bool(written), as_of)
    results = _compute_results(database, names, progress, as_of)
    show_results(results, format_, _row_limit(limit, format_, names))


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


def _write_relations(
    database: MemoryDatabase, written: Sequence[Assignment], progress: Progress, as_of: int | None
) -> None:
    for each in written:
        with progress.phase(f"writing {each.path}"):
            columns = relations_at(database, as_of)[each.relation].columns
            rows = Rows(columns, facts_at(database, each.relation, as_of))
            write_rows(each.path, columns, rows)
        write_note(f"wrote {counted_noun(len(rows), 'row')} of {each.relation} to {each.path}")


def _shown_names(
    database: MemoryDatabase, show: Sequence[str] | None, is_written: bool, as_of: int | None
) -> Sequence[str] | None:
    """The relations to show, or None when the queries are to be answered."""
    if show:
        return show
    if database.model.checked.program.queries and as_of is None:
        return None
    known = relations_at(database, as_of)
    views = [name for name, each in known.items() if each.kind == "view"]
    if not views:
        write_note("the program has no queries and no views, so there is nothing to show")
    return [] if is_written else sorted(views)


def _compute_results(
    database: MemoryDatabase, names: Sequence[str] | None, progress: Progress, as_of: int | None
) -> Iterator[Result]:
    if names is not None:
        for name in names:
            with progress.phase(f"computing {name}"):
                result = relation_result(database, name, as_of)
            yield result
        return
    for query in database.model.checked.program.queries:
        with progress.phase("querying"):
            rows = database.query(query)
        yield query_result(query, rows)


def _row_limit(limit: int | None, format_: Format, names: Sequence[str] | None) -> int | None:
    if limit is None:
        is_whole_table = format_ is Format.TABLE and names is not None
        return VIEW_ROWS_SHOWN if is_whole_table else None
    return limit or None
