"""`deltalog pipeline`: tables in, exact changes and maintained tables out, on Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from deltalog.cli import project_check
from deltalog.cli.change_results import change_rows
from deltalog.cli.messages import report
from deltalog.cli.options import ProjectFile, WholeJson
from deltalog.cli.progress import Progress
from deltalog.cli.results import table_lines
from deltalog.cli.terminal import counted, note, write_result
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.values import plain
from deltalog.pipeline.problems import PartsFailedError
from deltalog.pipeline.project import Project, read_project

if TYPE_CHECKING:
    from deltalog.pipeline.run import Pipeline, Step

EXAMPLE = "deltalog pipeline run project.toml"
ROWS_SHOWN = 20
REASONS_SHOWN = 5
CHANGES_LISTED_MAX = 100_000
"""A larger change stays on the cluster, and is counted."""
SECONDS_BETWEEN = 2.0
app = typer.Typer(no_args_is_help=True, help="Maintain views of a data lake, on Apache Spark.")

app.command(epilog=f"Example: {project_check.EXAMPLE}")(project_check.check)

AsJson = Annotated[bool, typer.Option("--json", help="Write one JSON line for each commit.")]


@app.command(epilog="Example: deltalog pipeline run project.toml --json")
def run(
    project: ProjectFile,
    continuous: Annotated[
        bool,
        typer.Option("--continuous", help="Keep polling for new data until interrupted."),
    ] = False,
    as_json: AsJson = False,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            metavar="ROWS",
            min=0,
            help="Show at most this many rows of each commit, 0 for all.",
        ),
    ] = ROWS_SHOWN,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            metavar="SECONDS",
            min=0.1,
            help="With --continuous: seconds between polls.",
        ),
    ] = SECONDS_BETWEEN,
) -> None:
    """Process all new data of the sources, and show the exact change of every view."""
    read = read_project(project)
    progress = Progress()
    with _opened(read, progress) as pipeline:
        number = 0
        reported = ""
        while True:
            try:
                for step in _watched(pipeline, progress):
                    number += 1
                    _show(step, as_json, limit or None, number > 1)
                    sys.stdout.flush()
            except PartsFailedError as error:
                if not continuous:
                    raise
                if str(error) != reported:  # what still fails has been reported
                    report(error)
                reported = str(error)
            if not continuous:
                break
            sleep(seconds)
    if not number:
        note(f"no new data; the state is at version {pipeline.database.version}")


def _watched(pipeline: Pipeline, progress: Progress) -> Iterator[Step]:
    """The steps of a run, each with a line of progress while it is made."""
    steps = iter(pipeline.steps())
    while True:
        with progress.phase("polling the sources"):
            step = next(steps, None)
        if step is None:
            return
        yield step


def _opened(project: Project, progress: Progress) -> Pipeline:
    """Imported when it is asked for: Spark is an extra, and takes its time."""
    try:
        from deltalog.pipeline.run import Pipeline
    except ImportError as error:
        hint = "install it with `pip install 'deltalog[spark]'`"
        needed = {"name": "spark", "needed": "pyspark", "hint": hint}
        raise DataError([catalogue.ENGINE_NEEDS.at(None, **needed)]) from error
    with progress.phase("starting Spark and opening the state"):
        return Pipeline(project, watch=progress.watch)


def _show(step: Step, as_json: bool, limit: int | None, is_later: bool) -> None:
    if as_json:
        write_result(json.dumps(_record(step), ensure_ascii=False, default=plain))
        return
    if is_later:
        write_result()
    taken = ", ".join(f"{source}/{name}" for source, name in step.batches) or "snapshot"
    write_result(Text(f"{taken}: version {step.delta.version}", style="bold cyan"))
    for bad in step.refused[:REASONS_SHOWN]:
        place = f"{bad.file}:{bad.line}: " if bad.line else ""
        what = "batch" if step.is_refused else "row"
        write_result(Text(f"{what} refused: {place}{bad.reason}  {bad.row}"))
    if len(step.refused) > REASONS_SHOWN:
        write_result(f"… {counted(len(step.refused) - REASONS_SHOWN, 'more row')} in quarantine")
    if step.delta.changes and len(step.delta.changes) <= CHANGES_LISTED_MAX:
        for line in change_rows(step.delta.changes, limit):
            write_result(line)
    elif step.delta.counts:
        counts = step.delta.counts.items()
        cells = [(name, f"{inserted:,}", f"{deleted:,}") for name, (inserted, deleted) in counts]
        for line in table_lines(("relation", "inserted", "deleted"), cells, (False, True, True)):
            write_result(line)
    else:
        write_result(Text("(nothing changes)", style="dim"))


def _record(step: Step) -> dict[str, Any]:
    delta = step.delta
    return {
        "version": delta.version,
        "batches": [list(batch) for batch in step.batches],
        "counts": {name: list(each) for name, each in delta.counts.items()},
        "refused": [each._asdict() for each in step.refused],
        "sinks": list(step.sinks),
    }


@app.command(epilog="Example: deltalog pipeline status project.toml")
def status(project: ProjectFile, as_json: WholeJson = False) -> None:
    """Show the version and the tables of a state, and the batches it has processed."""
    read = read_project(project)
    try:
        from deltalog.pipeline.status import state_status
    except ImportError as error:
        hint = "install it with `pip install 'deltalog[spark]'`"
        needed = {"name": "spark", "needed": "pyspark", "hint": hint}
        raise DataError([catalogue.ENGINE_NEEDS.at(None, **needed)]) from error
    found = state_status(read)
    if as_json:
        write_result(json.dumps(found.record(), ensure_ascii=False, default=str))
        return
    write_result(Text(f"{read.state}: version {found.version}", style="bold cyan"))
    write_result(f"last commit: {found.at or 'none yet'}")
    write_result(f"rows in quarantine: {found.quarantined:,}")
    cells = [(name, f"{version:,}", f"{rows:,}") for name, version, rows in found.tables]
    for line in table_lines(("table", "version", "rows"), cells, (False, True, True)):
        write_result(line)
    for sink, version in found.sinks.items():
        behind = f", {found.version - version:,} behind" if version < found.version else ""
        write_result(f"sink {sink}: version {version}{behind}")
    for part, reason in found.problems.items():
        write_result(Text(f"{part} failed: {reason}", style="red"))
    for source, names in found.batches.items():
        number = f"{len(names):,} batch{'' if len(names) == 1 else 'es'}"
        write_result(f"{source}: {number}, the last `{names[-1]}`")
