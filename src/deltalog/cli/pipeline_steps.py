"""Commits of a pipeline on the terminal, for the commands that make some."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from deltalog.cli.actions import read_actions
from deltalog.cli.change_results import change_rows
from deltalog.cli.progress import Progress
from deltalog.cli.results import table_lines
from deltalog.cli.terminal import counted_noun, write_result
from deltalog.language.values import plain_text
from deltalog.pipeline.project import Project
from deltalog.pipeline.source_columns import shorten_text
from deltalog.pipeline.spark_needed import spark_needed

if TYPE_CHECKING:
    from deltalog.pipeline.run import Pipeline
    from deltalog.pipeline.step import Step

ROWS_SHOWN = 20
REASONS_SHOWN = 5
CHANGES_LISTED_MAX = 100_000
"""A larger change stays on the cluster, and is counted."""
AsJson = Annotated[bool, typer.Option("--json", help="Write one JSON line for each commit.")]
RowLimit = Annotated[
    int,
    typer.Option(
        "--limit",
        metavar="ROWS",
        min=0,
        help="Show at most this many rows of each commit, 0 for all.",
    ),
]


def watch_steps(steps: Iterator[Step], progress: Progress) -> Iterator[Step]:
    """The steps of a run, each with a line of progress while it is made."""
    while True:
        with progress.phase("polling the sources"):
            step = next(steps, None)
        if step is None:
            return
        yield step


def open_pipeline(project: Project, progress: Progress, actions: Path | None = None) -> Pipeline:
    """Start Spark, and open the state of a project, with the functions that rules call."""
    with spark_needed():
        from deltalog.pipeline.run import Pipeline
    functions = read_actions(actions)
    with progress.phase("starting Spark and opening the state"):
        made = Pipeline(project, watch=progress.watch)
    for name, function in functions.items():
        made.database.action(name)(function)
    return made


def show_step(step: Step, as_json: bool, limit: int | None, is_later: bool) -> None:
    """Write a commit to standard output, as a table or as a JSON line."""
    if as_json:
        write_result(json.dumps(_step_record(step), ensure_ascii=False, default=plain_text))
        sys.stdout.flush()
        return
    if is_later:
        write_result()
    taken = ", ".join(f"{source}/{name}" for source, name in step.batches) or "snapshot"
    title = Text(f"{taken}: version {step.delta.version}", style="bold cyan")
    write_result(title.append(f"  ({step.metrics})", style="not bold dim"))
    for bad in step.refused[:REASONS_SHOWN]:
        place = f"{bad.file}:{bad.line}: " if bad.line else ""
        what = "batch" if step.is_refused else "row"
        write_result(Text(f"{what} refused: {place}{bad.reason}  {shorten_text(bad.row)}"))
    if len(step.refused) > REASONS_SHOWN:
        write_result(
            f"… {counted_noun(len(step.refused) - REASONS_SHOWN, 'more row')} in quarantine"
        )
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
    sys.stdout.flush()


def _step_record(step: Step) -> dict[str, Any]:
    delta = step.delta
    return {
        "version": delta.version,
        "batches": [list(batch) for batch in step.batches],
        "counts": {name: list(each) for name, each in delta.counts.items()},
        "refused": [each._asdict() for each in step.refused],
        "sinks": list(step.sinks),
        "metrics": step.metrics._asdict(),
    }
