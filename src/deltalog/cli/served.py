"""Open the database that `deltalog serve` serves: a program, a file, or a state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from deltalog.checks.program import check_program
from deltalog.cli.opening import (
    Settings,
    files_in,
    is_database,
    open_given,
    parse_assignments,
    read_and_parse,
    read_facts,
    refuse_facts,
)
from deltalog.cli.progress import Progress
from deltalog.connect import connect
from deltalog.pipeline.open_state import is_state, open_state
from deltalog.runtime.database import MemoryDatabase
from deltalog.sources.source_files import read_sources


@dataclass(frozen=True)
class Served:
    """The arguments of the command that say what is served."""

    file: Path
    facts: Sequence[str] | None = None
    facts_dir: Path | None = None
    sources: Path | None = None
    is_on_spark: bool = False


def open_served(given: Served, settings: Settings, progress: Progress) -> MemoryDatabase:
    """Open what is named: a folder or an address of a state, a database file, or a program."""
    file, named = given.file, _bucket_address(given.file)
    if named is not None or is_state(file):
        refuse_facts(given.facts, given.facts_dir)
        _refuse_sources(given)
        with progress.phase(f"opening {named or file}"):
            limits, is_writable = settings.limits, given.is_on_spark
            return open_state(named or str(file), limits, is_writable=is_writable)
    if given.is_on_spark:
        raise typer.BadParameter("only a state in tables is on Spark", param_hint="--spark")
    if given.sources is not None:
        if is_database(file):
            _refuse_sources(given)
        return _with_sources(given, given.sources, settings, progress)
    return open_given(file, given.facts, given.facts_dir, settings, progress, read_only=False)


def _refuse_sources(given: Served) -> None:
    """A file or a state has the facts of its base relations itself."""
    if given.sources is not None:
        reason = "only a program in memory has sources; this has its own facts"
        raise typer.BadParameter(reason, param_hint="--sources")


def _with_sources(
    given: Served, sources: Path, settings: Settings, progress: Progress
) -> MemoryDatabase:
    named = read_sources(sources)
    program = read_and_parse(given.file, progress)
    relations = check_program(program).relations
    files = (*files_in(given.facts_dir, relations), *parse_assignments(given.facts, "--facts"))
    rows = read_facts(program, relations, files, progress)
    with progress.phase("evaluating"):
        return connect(
            program=program,
            strategy=settings.strategy,
            materialize=settings.materialize,
            network=settings.network,
            facts=rows,
            limits=settings.limits,
            watch=progress.watch,
            sources=named,
        )


def _bucket_address(file: Path) -> str | None:
    """The address of a bucket, of which a path has lost a slash."""
    found = re.match(r"([a-z][a-z0-9+.-]+):/+(.+)", str(file))
    return None if found is None else f"{found[1]}://{found[2]}"
