"""`deltalog explain`: dependencies, strata, rewritten rules and plans of a program or query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.actions import Actions
from deltalog.cli.amosql import is_amosql, schema_in
from deltalog.cli.applying import each_applied
from deltalog.cli.change_files import check_changes
from deltalog.cli.opening import (
    Settings,
    is_database,
    open_given,
    open_program,
    program_in,
    read_and_parse,
    read_source,
)
from deltalog.cli.option_groups import (
    ChangesFile,
    FactFiles,
    LimitOptions,
    Maintenance,
    NetworkOptions,
    database_settings,
    options_of,
)
from deltalog.cli.options import (
    GivenFile,
    Parameters,
    Strategies,
    one_of,
)
from deltalog.cli.parameters import checked_queries, parameter_texts
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import write_result
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.graphs.dependency_graph import program_graph, query_graph
from deltalog.graphs.dot import dot_text
from deltalog.graphs.graph import Graph
from deltalog.graphs.mermaid import mermaid_text
from deltalog.graphs.network_graph import network_graph
from deltalog.graphs.page import page_html
from deltalog.language.printer import print_program, print_query
from deltalog.rewrites.pipeline import EVERY_PASS, UPDATE_PASSES
from deltalog.runtime.amosql.explained_rules import explain_rules, rule_explanation_text
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.explain import explain as explanation_of
from deltalog.runtime.explanation_text import SECTIONS, explanation_json, explanation_text
from deltalog.runtime.limits import Limits
from deltalog.runtime.network import Flows, network_of
from deltalog.runtime.network_text import network_json, network_text

EXAMPLE = "deltalog explain graph.dl --query 'path(1, Y)' --show rules"


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    DOT = "dot"
    HTML = "html"


class Section(StrEnum):
    DEPENDENCIES = "dependencies"
    STRATA = "strata"
    RULES = "rules"
    PLAN = "plan"


assert tuple(Section) == SECTIONS

_DRAWN = {Form.MERMAID: mermaid_text, Form.DOT: dot_text, Form.HTML: page_html}


def _known_pass(name: str | None) -> str | None:
    return None if name is None else one_of(name, EVERY_PASS, "pass")


def _optional_passes(names: list[str] | None) -> list[str]:
    optional = [name for name, each in EVERY_PASS.items() if each.is_optional]
    return [one_of(name, optional, "optional pass") for name in names or ()]


@dataclass(frozen=True)
class QueryOptions:
    """A query, and which of its rewriting is shown."""

    query: Annotated[
        str | None,
        typer.Option("--query", metavar="QUERY", help="Explain how this query is evaluated."),
    ] = None
    parameters: Parameters = None
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="PASS",
            callback=_known_pass,
            help=f"Show the rules after this pass: {', '.join(EVERY_PASS)}.",
        ),
    ] = None
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="PASS",
            callback=_optional_passes,
            help="Skip an optional pass; may be repeated.",
        ),
    ] = None
    show: Annotated[
        list[Section] | None,
        typer.Option(
            "--show",
            metavar="|".join(Section),
            help="Show only this section, in text and JSON; may be repeated. A graph always shows "
            "the dependencies.",
        ),
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """The form and the place of the output."""

    form: Annotated[
        Form,
        typer.Option(
            "--format",
            metavar="|".join(Form),
            help="Text or JSON; or a graph: Mermaid or DOT for tools that draw it, or one "
            "interactive HTML file that works offline.",
        ),
    ] = Form.TEXT
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file."),
    ] = None


def explain(
    file: GivenFile,
    *,
    asked: QueryOptions,
    written: OutputOptions,
    propagation: Annotated[
        bool,
        typer.Option(
            "--propagation",
            help="Show the propagation network instead: the strategy of each view with its reason, "
            "the rules it runs, and the differentials of every arc.",
        ),
    ] = False,
    as_rules: Annotated[
        bool,
        typer.Option("--as-rules", help="Only print the program; that of AMOSQL as rules."),
    ] = False,
    changed: ChangesFile,
    files: FactFiles,
    strategy: Strategies = None,
    actions: Actions = None,
    network: NetworkOptions,
    limits: LimitOptions,
) -> None:
    """Show dependencies, strata, rewritten rules, and plans.

    With --propagation, show how changes propagate from relations to views. --changes and the
    options after it require --propagation; with --changes every arc also shows its flow (of a
    program, not of a database file). With --after and a pass of update propagation, show the rules
    of the views that run it under the chosen --strategy. Of an AMOSQL script (.amosql), also show
    how its rules are monitored.
    """
    progress = Progress()
    changes = changed.changes
    chosen = database_settings(limits, Maintenance(strategy, actions=actions), network)
    if propagation:
        refused = {**options_of(asked, "query", "after", "without", "show")}
        _refuse_options("with --propagation", {**refused, "--param": asked.parameters})
        if changes is not None:
            check_changes(changes, file)
        if changes is not None and is_database(file):
            raise typer.BadParameter(
                "a database file is read-only here; use `deltalog apply` to change it",
                param_hint="--changes",
            )
        database = open_given(file, files.facts, files.facts_dir, chosen, progress)
        flows = _total_flows(database, changes, changed.relation, progress)
        write_output(_network_output(database, flows, written.form, file.name), written.output)
        return
    needing = {
        "--changes": changes,
        "--actions": actions,
        **options_of(files, "facts", "facts_dir"),
    }
    _refuse_options("without --propagation", needing)
    is_update = asked.after in UPDATE_PASSES
    if is_update and asked.query is not None:
        raise typer.BadParameter(f"`{asked.after}` applies to changes, not to queries")
    if not is_update:
        choosing = {"--strategy": strategy, **options_of(network, "virtual")}
        _refuse_options("without --propagation or --after a pass of update propagation", choosing)
    if as_rules:
        write_output(print_program(read_and_parse(file, progress)).rstrip("\n"), written.output)
        return
    database = _open_without_facts(file, limits.limits, progress, chosen if is_update else None)
    text = _explain_program(database, asked, written.form, file.name)
    is_whole = asked.query is None and asked.after is None and not asked.show
    if is_amosql(file) and is_whole and written.form is Form.TEXT:
        explained = map(rule_explanation_text, explain_rules(schema_in(read_source(file)).schema))
        text = "\n\n".join((*explained, text))
    write_output(text, written.output)


def _explain_program(database: MemoryDatabase, asked: QueryOptions, form: Form, name: str) -> str:
    query = None
    if asked.query is not None:
        texts = parameter_texts(asked.parameters)
        (query,) = checked_queries([asked.query], texts, database.model.readable)
    explanation = explanation_of(database, query, asked.after, asked.without or ())
    sections = tuple(asked.show or Section)
    match form:
        case Form.TEXT:
            return explanation_text(explanation, sections)
        case Form.JSON:
            return explanation_json(explanation, sections)
        case _:
            graph = program_graph if query is None else query_graph
            title = name if query is None else f"{name} {print_query(query)}"
            return draw_graph(graph(explanation, database.model.checked, title), form)


def _open_without_facts(
    file: Path, limits: Limits, progress: Progress, chosen: Settings | None
) -> MemoryDatabase:
    """The program alone: of a database file its facts are not loaded, and its views are stored.

    Settings that were `chosen` go before.
    """
    if is_database(file):
        program = program_in(file)
        settings = Settings(limits, engine="reference")
    else:
        program = read_and_parse(file, progress)
        settings = Settings(limits, engine="reference", materialize=False)
    return open_program(program, chosen or settings, progress)


def _refuse_options(where: str, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise typer.BadParameter(f"{name} cannot be used {where}")


# --- the propagation network


def _total_flows(
    database: MemoryDatabase, changes: Path | None, relation: str | None, progress: Progress
) -> Flows | None:
    """Total flow over each arc in all transactions, or None without changes."""
    if changes is None:
        return None
    total: dict[tuple[str, str], tuple[int, int]] = {}
    for applied in each_applied(database, changes, relation, progress):
        for arc, (plus, minus) in (database.propagation.flows if applied.change else {}).items():
            before = total.get(arc, (0, 0))
            total[arc] = before[0] + plus, before[1] + minus
    return total


def _network_output(database: MemoryDatabase, flows: Flows | None, form: Form, title: str) -> str:
    found = network_of(database, flows)
    match form:
        case Form.TEXT:
            return network_text(found)
        case Form.JSON:
            return network_json(found)
        case _:
            return draw_graph(network_graph(found, database.model.checked, title), form)


def draw_graph(graph: Graph, form: Form) -> str:
    """The graph in a form that is a picture."""
    return _DRAWN[form](graph).rstrip("\n")


def write_output(text: str, output: Path | None) -> None:
    """Write a result to a file, or to standard output."""
    if output is None:
        write_result(text)
        return
    try:
        output.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_WRITE.at(None, name=output, reason=reason)]) from None
