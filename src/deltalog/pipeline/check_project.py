"""Check a project without Spark: its program, and sources and sinks against the program.

    [sinks.offers]
    relation = "offer"             error: sink `offers` has no column `prt`
    kind = "merge"                 hint: did you mean `part`?
    key = ["prt"]

Everything that can be known before anything is read is checked before the first commit, by every
command. What files hold today is another matter (`check_inputs.py`).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deltalog.analysis.columns import Relation, Relations
from deltalog.checks.program import check_program
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.parser import parse_program
from deltalog.pipeline.project import Project, Sink, Source
from deltalog.pipeline.project_places import Place, span_in
from deltalog.pipeline.refresh import refreshed_model
from deltalog.runtime.model import Model
from deltalog.runtime.read_program import read_program


@dataclass(frozen=True)
class CheckedProject:
    """A project whose parts fit its program."""

    project: Project
    model: Model

    @property
    def relations(self) -> Relations:
        return self.model.checked.relations

    def relation_of(self, part: Source | Sink) -> Relation:
        return self.relations[part.relation]


def check_project(project: Project) -> CheckedProject:
    """Raise a `DeltalogError` with everything that is wrong, or return the checked project."""
    checked = check_program(parse_program(read_program(Path(project.program))))
    problems = [
        *(each for view in project.views for each in _of_view(project, view, checked.relations)),
        *(
            each
            for source in project.sources
            for each in _of_source(project, source, checked.relations)
        ),
        *(each for sink in project.sinks for each in _of_sink(project, sink, checked.relations)),
    ]
    if problems:
        raise DataError(problems)
    return CheckedProject(project, refreshed_model(project, checked))


def _of_view(project: Project, view: str, relations: Relations) -> Iterator[Diagnostic]:
    place = ("views", view)
    relation = relations.get(view)
    if relation is None:
        yield _no_relation(project, place, view, relations)
    elif relation.kind != "view":
        reason, hint = f"`{view}` is not a view", "only views are refreshed"
        yield catalogue.BAD_PROJECT.at(span_in(project.text, place), reason=reason, hint=hint)
    elif relation.storage == "virtual" and project.views[view] == "FULL":
        reason = f"`{view}` is virtual, so there is nothing to compute anew"
        hint = f"declare `materialized view {view}`, or use AUTO"
        span = span_in(project.text, place, "refresh")
        yield catalogue.BAD_PROJECT.at(span, reason=reason, hint=hint)


def _of_source(project: Project, source: Source, relations: Relations) -> Iterator[Diagnostic]:
    place = ("sources", source.name)
    relation = relations.get(source.relation)
    if relation is None:
        yield _no_relation(project, place, source.relation, relations)
        return
    if relation.kind != "base":
        span = span_in(project.text, place, "relation")
        yield catalogue.NOT_BASE.at(span, name=source.relation)
        return
    known = [column.name for column in relation.columns]
    for name in source.columns.values():
        if name not in known and name != source.op:
            yield _no_column(project, place, "columns", relation, name)


def _of_sink(project: Project, sink: Sink, relations: Relations) -> Iterator[Diagnostic]:
    place = ("sinks", sink.name)
    relation = relations.get(sink.relation)
    if relation is None:
        yield _no_relation(project, place, sink.relation, relations)
        return
    known = [column.name for column in relation.columns]
    for name in sink.key:
        if name not in known:
            yield _no_column(project, place, "key", relation, name)
    if sink.kind == "function" and not _is_found(project, sink):
        module = sink.function.partition(":")[0]
        reason = f"there is no module `{module}`"
        hint = f"put `{module.replace('.', '/')}.py` beside the project file, or install it"
        span = span_in(project.text, place, "function")
        yield catalogue.BAD_PROJECT.at(span, reason=reason, hint=hint)


def _is_found(project: Project, sink: Sink) -> bool:
    """Whether the module of a function is there; it is imported when there is something to give."""
    module = sink.function.partition(":")[0]
    folder = str(Path(project.name).absolute().parent)
    is_added = folder not in sys.path
    if is_added:
        sys.path.insert(0, folder)
    try:
        importlib.invalidate_caches()
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
    finally:
        if is_added:
            sys.path.remove(folder)


def _no_relation(project: Project, place: Place, name: str, relations: Relations) -> Diagnostic:
    span = span_in(project.text, place, "relation")
    hint = did_you_mean(name, relations) or f"the relations are {', '.join(sorted(relations))}"
    return catalogue.NO_SUCH_RELATION.at(span, name=name, hint=hint)


def _no_column(
    project: Project, place: Place, key: str, relation: Relation, name: str
) -> Diagnostic:
    known = [column.name for column in relation.columns]
    hint = did_you_mean(name, known) or f"its columns are {', '.join(known)}"
    reason = f"`{relation.name}` has no column `{name}`"
    return catalogue.BAD_PROJECT.at(span_in(project.text, place, key), reason=reason, hint=hint)
