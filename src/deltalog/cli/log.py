"""`deltalog log`: the commits of a database file, or the net change between two versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from deltalog.cli.applying import Applied
from deltalog.cli.change_results import show_changes
from deltalog.cli.opening import Settings, open_database
from deltalog.cli.options import DatabaseFile, Engine, Format, FormatOption
from deltalog.cli.progress import Progress
from deltalog.cli.results import check_names
from deltalog.cli.terminal import write_note, write_result
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
    """Show what every commit changed, base facts and views alike.

    The log omits virtual views that nobody wanted. They are derived if `--show` names them.
    """
    settings = Settings(Limits(), engine=engine)
    with open_database(database, settings, Progress(), read_only=True) as kept:
        if programs:
            for version, time, text in kept.programs():
                write_result(f"% from version {version}, {time}\n{text.rstrip()}\n")
        elif readers:
            for name, version in kept.readers.items():
                write_result(f"{name}: read up to version {version} of {kept.version}")
        else:
            first = kept.first_version if after is None else after
            last = kept.version if until is None else until
            check_names(_names_between(kept, first, last), show or ())
            found = (_net_change if net else _each_commit)(kept, first, last, show)
            show_changes(found, format_, limit or None)
            if not show and (omitted := kept.omitted(first, last)):
                names = ", ".join(f"`{name}`" for name in sorted(omitted))
                write_note(f"the log omits {names}, which `--show` derives")


def _names_between(kept: FileDatabase, first: int, last: int) -> set[str]:
    """The names of all relations and views that there were."""
    changed = [version for version, _, _ in kept.programs() if first < version <= last]
    return {name for version in (first, *changed) for name in kept.relations_at(version)}


def _each_commit(
    kept: FileDatabase, first: int, last: int, show: list[str] | None
) -> Iterator[Applied]:
    for number, each in enumerate(kept.each_commit(first, last, show or ()), start=1):
        place = f"{each.time}, {each.kind}"
        yield _shown_part(number, place, each.version, each.change, each.omitted, show)


def _net_change(
    kept: FileDatabase, first: int, last: int, show: list[str] | None
) -> Iterator[Applied]:
    change, omitted = kept.delta(first, last, show or ()), kept.omitted(first, last)
    yield _shown_part(1, f"from version {first}", last, change, omitted, show)


def _shown_part(
    number: int,
    place: str,
    version: int,
    change: ChangeSet,
    omitted: frozenset[str],
    show: list[str] | None,
) -> Applied:
    """A change, or the part of it that is asked for, of which nothing is omitted."""
    if show:
        change, omitted = change.only(*show), frozenset()
    return Applied(number, place, version, change, Statistics(), omitted)
