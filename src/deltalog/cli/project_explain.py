"""`deltalog pipeline explain`: how each view of a project is maintained, and why."""

from __future__ import annotations

import json

from rich.text import Text

from deltalog.cli.options import ProjectFile, WholeJson
from deltalog.cli.terminal import write_result
from deltalog.pipeline.check_project import check_project
from deltalog.pipeline.project import read_project
from deltalog.pipeline.refresh import Refresh, explain_refresh

EXAMPLE = "deltalog pipeline explain project.toml"


def explain(project: ProjectFile, as_json: WholeJson = False) -> None:
    """Show how each view is refreshed, by which strategy, and why, without Spark."""
    read = read_project(project)
    found = list(explain_refresh(read, check_project(read).model))
    if as_json:
        records = {each.view: each._asdict() for each in found}
        write_result(json.dumps(records, ensure_ascii=False))
        return
    for each in found:
        _show_refresh(each)


def _show_refresh(view: Refresh) -> None:
    kept = "stored in a table" if view.is_stored else "virtual"
    write_result(Text(f"{view.view}: {view.refresh}, {kept}", style="bold cyan"))
    write_result(f"  strategy    {view.strategy}: {view.meaning}")
    write_result(f"  why         {view.reason}")
    write_result(f"  recomputed  {view.recomputed}")
