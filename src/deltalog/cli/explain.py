"""`deltalog explain`: how a program is understood, and what becomes of it or of a query."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.explanation import SECTIONS, explanation_json, explanation_text
from deltalog.cli.opening import open_program, read_and_parse
from deltalog.cli.options import (
    FACTS_MAX,
    ROUNDS_MAX,
    SECONDS_MAX,
    FactsMax,
    ProgramFile,
    RoundsMax,
    SecondsMax,
)
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import write_result
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.parser import parse_query
from deltalog.language.printer import print_query
from deltalog.rewrites.pipeline import PASSES
from deltalog.runtime.explain import explain as explanation_of
from deltalog.runtime.limits import Limits

EXAMPLE = "deltalog explain graph.dl --query 'path(1, Y)' --show rules"


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"


class Section(StrEnum):
    DEPENDENCIES = "dependencies"
    STRATA = "strata"
    RULES = "rules"
    PLAN = "plan"


assert tuple(Section) == SECTIONS


def _known_pass(name: str | None) -> str | None:
    return None if name is None else _one_of(name, list(PASSES), "pass")


def _optional_passes(names: list[str] | None) -> list[str]:
    optional = [name for name, each in PASSES.items() if each.is_optional]
    return [_one_of(name, optional, "optional pass") for name in names or ()]


def _one_of(name: str, known: list[str], what: str) -> str:
    if name in known:
        return name
    listed = f"there is {', '.join(known)}"
    raise typer.BadParameter(f"no {what} `{name}`; {did_you_mean(name, known) or listed}")


def explain(
    file: ProgramFile,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="QUERY", help="Explain what becomes of this query."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="PASS",
            callback=_known_pass,
            help=f"Show the rules as they are after this pass: {', '.join(PASSES)}.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="PASS",
            callback=_optional_passes,
            help="Leave out an optional pass; may be repeated.",
        ),
    ] = None,
    show: Annotated[
        list[Section] | None,
        typer.Option(
            "--show",
            metavar="|".join(Section),
            help="Show only this; may be repeated. A picture always shows the dependencies.",
        ),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format", metavar="|".join(Form), help="Text, JSON, or a picture of the dependencies."
        ),
    ] = Form.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file."),
    ] = None,
    rounds_max: RoundsMax = ROUNDS_MAX,
    facts_max: FactsMax = FACTS_MAX,
    seconds_max: SecondsMax = SECONDS_MAX,
) -> None:
    """Show dependencies, strata, rules after each rewriting, and plans."""
    progress = Progress()
    program = read_and_parse(file, progress)
    limits = Limits(rounds_max, facts_max, seconds_max)
    database = open_program(program, limits, progress, materialize=False)
    asked = None if query is None else parse_query(query)
    explanation = explanation_of(database, asked, after, without or ())
    title = file.name if asked is None else f"{file.name} {print_query(asked)}"
    sections = tuple(show or Section)
    match form:
        case Form.TEXT:
            text = explanation_text(explanation, sections)
        case Form.JSON:
            text = explanation_json(explanation, sections)
        case Form.SVG:
            from deltalog.cli.dependency_picture import dependency_picture  # slow to import

            text = dependency_picture(explanation, database.relations, asked is not None, title)
    _write(text.rstrip("\n"), output)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        write_result(text)
        return
    try:
        output.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_WRITE.at(None, name=output, reason=reason)]) from None
