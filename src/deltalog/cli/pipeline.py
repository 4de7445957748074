"""`deltalog pipeline`: tables in, exact changes and maintained tables out, on Spark."""

from __future__ import annotations

import json
from time import sleep
from typing import Annotated

import typer
from rich.text import Text

from deltalog.cli import project_check, project_explain, project_migrate, project_replay
from deltalog.cli.actions import Actions
from deltalog.cli.messages import report_error
from deltalog.cli.options import ProjectFile, WholeJson
from deltalog.cli.pipeline_steps import (
    ROWS_SHOWN,
    AsJson,
    RowLimit,
    open_pipeline,
    show_step,
    watch_steps,
)
from deltalog.cli.progress import Progress
from deltalog.cli.results import table_lines
from deltalog.cli.terminal import write_note, write_result
from deltalog.pipeline.problems import PartsFailedError
from deltalog.pipeline.project import read_project
from deltalog.pipeline.spark_needed import spark_needed

EXAMPLE = "deltalog pipeline run project.toml"
SECONDS_BETWEEN = 2.0
app = typer.Typer(no_args_is_help=True, help="Maintain views of a data lake, on Apache Spark.")
app.command(epilog=f"Example: {project_check.EXAMPLE}")(project_check.check)
app.command(epilog=f"Example: {project_explain.EXAMPLE}")(project_explain.explain)
app.command(epilog=f"Example: {project_replay.EXAMPLE}")(project_replay.replay)
app.command(epilog=f"Example: {project_migrate.EXAMPLE}")(project_migrate.migrate)


@app.command(epilog="Example: deltalog pipeline run project.toml --json")
def run(
    project: ProjectFile,
    continuous: Annotated[
        bool,
        typer.Option("--continuous", help="Keep polling for new data until interrupted."),
    ] = False,
    as_json: AsJson = False,
    limit: RowLimit = ROWS_SHOWN,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            metavar="SECONDS",
            min=0.1,
            help="With --continuous: seconds between polls.",
        ),
    ] = SECONDS_BETWEEN,
    actions: Actions = None,
) -> None:
    """Process all new data of the sources, and show the exact change of every view."""
    read = read_project(project)
    progress = Progress()
    with open_pipeline(read, progress, actions) as pipeline:
        number = 0
        reported = ""
        while True:
            try:
                for step in watch_steps(pipeline.steps(), progress):
                    number += 1
                    show_step(step, as_json, limit or None, number > 1)
            except PartsFailedError as error:
                if not continuous:
                    raise
                if str(error) != reported:  # what still fails has been reported
                    report_error(error)
                reported = str(error)
            if not continuous:
                break
            sleep(seconds)
    if not number:
        write_note(f"no new data; the state is at version {pipeline.database.version}")


@app.command(epilog="Example: deltalog pipeline status project.toml")
def status(project: ProjectFile, as_json: WholeJson = False) -> None:
    """Show the version and the tables of a state, and the batches it has processed."""
    read = read_project(project)
    with spark_needed():
        from deltalog.pipeline.status import state_status
    found = state_status(read)
    if as_json:
        write_result(json.dumps(found.record(), ensure_ascii=False, default=str))
        return
    write_result(Text(f"{read.state}: version {found.version}", style="bold cyan"))
    cost = f"  ({found.metrics[-1][1]})" if found.metrics else ""
    write_result(f"last commit: {found.at or 'none yet'}{cost}")
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
