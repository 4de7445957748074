"""`deltalog why-changed`: the base changes by which a transaction changed a fact.

    deltalog why-changed graph.db 'path(1, 3)' --version 7
    path(1, 3) was deleted by version 7, 2026-11-18 12:00:00
      because of -edge(2, 3)
      1 derivation was lost, and none remains

A program has no transactions: `--changes` applies a file of them first, and the last is explained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.applying import each_applied
from deltalog.cli.change_files import check_changes
from deltalog.cli.explain import OutputOptions
from deltalog.cli.opening import is_database
from deltalog.cli.option_groups import FactFiles, LimitOptions
from deltalog.cli.options import GivenFile
from deltalog.cli.progress import Progress
from deltalog.cli.why import Fact, Sentences, open_to_prove, write_reason

EXAMPLE = 'deltalog why-changed shop.db \'sees("ann", "plan")\' --version 7'


def why_changed(
    file: GivenFile,
    fact: Fact,
    *,
    version: Annotated[
        int | None,
        typer.Option(
            "--version",
            metavar="VERSION",
            min=1,
            help="For a database file: the version that made the change; else the last one.",
        ),
    ] = None,
    changes: Annotated[
        Path | None,
        typer.Option(
            "--changes",
            metavar="FILE",
            help="For a program: transactions to apply first; the last one is explained.",
        ),
    ] = None,
    sentences: Sentences = False,
    written: OutputOptions,
    files: FactFiles,
    limits: LimitOptions,
) -> None:
    """Show which changes of a version inserted or deleted a fact, and by which way.

    They are changes of base facts, and of rules where the version changed the program.
    """
    if (changes is None) != is_database(file):
        needed = "a program needs --changes" if changes is None else "a database file has its own"
        raise typer.BadParameter(needed, param_hint="--changes")
    with open_to_prove(file, files, limits) as database:
        if changes is not None:
            check_changes(changes, file)
            for _ in each_applied(database, changes, None, Progress()):
                pass
        found = database.why_changed(fact, version)
        write_reason(found, sentences, written)
