"""`deltalog pipeline check`: everything that is wrong with a project, found without Spark."""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from deltalog.analysis.columns import Relation
from deltalog.cli.options import ProjectFile, WholeJson
from deltalog.cli.results import table_lines
from deltalog.cli.terminal import counted_noun, write_result
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.check_inputs import check_inputs
from deltalog.pipeline.check_project import CheckedProject, check_project
from deltalog.pipeline.project import read_project

EXAMPLE = "deltalog pipeline check project.toml"


def check(project: ProjectFile, as_json: WholeJson = False) -> None:
    """Check a project, its program, and a sample of its inputs, without Spark.

    Shows the columns of every relation and view, as tables, sources and sinks have them.
    """
    checked = check_project(read_project(project))
    problems = check_inputs(checked)
    if as_json:
        write_result(json.dumps(_project_record(checked), ensure_ascii=False))
    else:
        _show_project(checked)
    if problems:
        raise DataError(problems)


def _show_project(checked: CheckedProject) -> None:
    project = checked.project
    sources = counted_noun(len(project.sources), "source")
    sinks = counted_noun(len(project.sinks), "sink")
    write_result(Text(f"{project.name}: {sources}, {sinks}", style="bold cyan"))
    cells = [
        (relation.kind, name, _shown_columns(relation), _storage_word(checked, name))
        for name, relation in _sort_relations(checked)
    ]
    for line in table_lines(("", "relation", "columns", "is"), cells, (False,) * 4):
        write_result(line)


def _sort_relations(checked: CheckedProject) -> list[tuple[str, Relation]]:
    return sorted(checked.relations.items(), key=lambda each: (each[1].kind, each[0]))


def _storage_word(checked: CheckedProject, name: str) -> str:
    return "stored" if name in checked.model.stored else "virtual"


def _shown_columns(relation: Relation) -> str:
    return ", ".join(
        f"{column.name}: {column.type}{'?' * column.nullable}{' key' * column.key}"
        for column in relation.columns
    )


def _project_record(checked: CheckedProject) -> dict[str, Any]:
    return {
        name: {
            "kind": relation.kind,
            "is_stored": name in checked.model.stored,
            "columns": [
                {
                    "name": column.name,
                    "type": column.type,
                    "nullable": column.nullable,
                    "key": column.key,
                }
                for column in relation.columns
            ],
        }
        for name, relation in _sort_relations(checked)
    }
