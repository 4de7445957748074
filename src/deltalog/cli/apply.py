"""`deltalog apply`: transactions in, the exact change of every relation and view out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.applying import Applied, Applying
from deltalog.cli.change_files import check_changes, read_changes
from deltalog.cli.change_results import FILE_SUFFIXES, show_changes, write_changes
from deltalog.cli.opening import open_given
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
    GivenFile,
    Relation,
    Stats,
    Wait,
)
from deltalog.cli.progress import Progress
from deltalog.cli.statistics import show_statistics
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.store.file_database import FileDatabase

EXAMPLE = "deltalog apply graph.dl changes.jsonl --strategy magic --format json"
ROWS_SHOWN = 50


def apply(
    file: GivenFile,
    changes: Annotated[
        Path,
        typer.Argument(
            metavar="CHANGES",
            help="Transactions: JSON Lines, or a .csv, .tsv or .parquet file with a column `op`; "
            "`-` reads JSON Lines from standard input and writes each result at once.",
        ),
    ],
    *,
    files: FactFiles,
    relation: Relation = None,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if",
            help="Commit nothing: evaluate every transaction against the current state.",
        ),
    ] = False,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Continue after a transaction that fails."),
    ] = False,
    repairs: Annotated[
        int,
        typer.Option(
            "--repairs",
            metavar="COUNT",
            min=0,
            help="For a change that a constraint refuses, show this many minimal additions with "
            "which it would be accepted.",
        ),
    ] = 0,
    maintenance: Maintenance,
    network: NetworkOptions,
    stats: Stats = False,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="table|json|csv",
            help="Output format of changes: a table, one JSON line per transaction, or CSV with "
            "one line per fact.",
        ),
    ] = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the changes to a .jsonl, .csv, .tsv or .parquet file instead.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            metavar="ROWS",
            min=0,
            help="Show at most this many rows in each table, 0 for all.",
        ),
    ] = ROWS_SHOWN,
    durability: Durability = DurabilityName.FULL,
    wait: Wait = 0.0,
    limits: LimitOptions,
) -> None:
    """Apply transactions and show the exact change of every relation and view.

    Applied to a program they stay in memory; applied to a database file they are committed.
    """
    check_changes(changes, file)
    _check_output(output)
    chosen = database_settings(limits, maintenance, network, durability, wait)
    progress = Progress()
    database = open_given(file, files.facts, files.facts_dir, chosen, progress, read_only=what_if)
    applying = Applying(database, progress, what_if, keep_going, repairs=repairs)
    answers = applying.run(read_changes(changes, database.relations, relation))
    if stats:
        answers = map(_with_statistics, answers)
    if output is None:
        show_changes(answers, format_, limit or None)
    else:
        write_changes(answers, output)
    if isinstance(database, FileDatabase):
        database.close()
    raise typer.Exit(applying.code)


def _with_statistics(answer: Applied) -> Applied:
    show_statistics(answer.place, answer.statistics)
    return answer


def _check_output(output: Path | None) -> None:
    if output is not None and output.suffix.lower() not in FILE_SUFFIXES:
        hint = f"the known suffixes are {', '.join(FILE_SUFFIXES)}"
        raise DataError([catalogue.UNKNOWN_FORMAT.at(None, name=output, hint=hint)])
