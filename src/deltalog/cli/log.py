"""`deltalog log`: the commits of a database file, or the net change between two versions."""

from __future__ import annotations

from typing import Annotated

import typer

from deltalog.cli.applying import Applied
from deltalog.cli.change_results import show_changes
from deltalog.cli.opening import Settings, open_database
from deltalog.cli.options import DatabaseFile, Engine, Format, FormatOption
from deltalog.cli.progress import Progress
from deltalog.cli.results import check_names
from deltalog.cli.terminal import write_result
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.fixpoint import Statistics
from deltalog.runtime.limits import Limits
from deltalog.store.file_database import FileDatabase

EXAMPLE = "deltalog log graph.db --after 10 --net --show path"
ROWS_SHOWN = 50


def log(
    database: DatabaseFile,
    after: Annotated[
        int | None,
        typer.Option(
            "--after",
            metavar="VERSION",
            min=0,
            help="Start after this version instead of at the first.",
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option("--until", metavar="VERSION", min=0, help="End with this version."),
    ] = None,
    net: Annotated[
        bool, typer.Option("--net", help="Show the net change of all commits together.")
    ] = False,
    show: Annotated[
        list[str] | None,
        typer.Option(
            "--show", metavar="NAME", help="Only changes of this relation or view; may be repeated."
        ),
    ] = None,
    programs: Annotated[
        bool, typer.Option("--programs", help="Show the history of the program instead.")
    ] = False,
    readers: Annotated[
        bool,
        typer.Option("--readers", help="Show the registered readers and their versions instead."),
    ] = False,
    format_: FormatOption = Format.TABLE,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            metavar="ROWS",
            min=0,
            help="Show at most this many rows in each table, 0 for all.",
        ),
    ] = ROWS_SHOWN,
    engine: Engine = DEFAULT_ENGINE,
) -> None:
    """Show what every commit changed, base facts and views alike."""
    settings = Settings(Limits(), engine=engine)
    with open_database(database, settings, Progress(), read_only=True) as kept:
        if programs:
            for version, time, text in kept.programs():
                write_result(f"% from version {version}, {time}\n{text.rstrip()}\n")
        elif readers:
            for name, version in kept.readers.items():
                write_result(f"{name}: read up to version {version} of {kept.version}")
        else:
            found = _net_change(kept, after, until) if net else _each_commit(kept, after, until)
            changed = {name for each in found for name in each.change.relations}
            check_names(kept.relations.keys() | changed, show or ())
            show_changes((_only_relations(each, show) for each in found), format_, limit or None)


def _each_commit(kept: FileDatabase, after: int | None, until: int | None) -> list[Applied]:
    return [
        _as_applied(number, f"{commit.time}, {commit.kind}", commit.version, commit.change)
        for number, commit in enumerate(kept.commits(after, until), start=1)
    ]


def _net_change(kept: FileDatabase, after: int | None, until: int | None) -> list[Applied]:
    first = kept.first_version if after is None else after
    last = kept.version if until is None else until
    return [_as_applied(1, f"from version {first}", last, kept.delta(first, last))]


def _as_applied(number: int, place: str, version: int, change: ChangeSet) -> Applied:
    return Applied(number, place, version, change, Statistics())


def _only_relations(shown: Applied, names: list[str] | None) -> Applied:
    change = shown.change.only(*names) if names else shown.change
    return _as_applied(shown.number, shown.place, shown.version, change)
