"""`deltalog rules`: the active rules of a program or database file, and what would trigger them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.applying import Applying
from deltalog.cli.change_files import read_changes
from deltalog.cli.opening import open_given
from deltalog.cli.option_groups import FactFiles, LimitOptions, Maintenance, database_settings
from deltalog.cli.options import GivenFile, Relation
from deltalog.cli.progress import Progress
from deltalog.cli.results import table_lines
from deltalog.cli.terminal import write_result
from deltalog.graphs.dot import dot_text
from deltalog.graphs.mermaid import mermaid_text
from deltalog.graphs.rule_graph import rule_graph
from deltalog.language.values import plain_text, print_value
from deltalog.rewrites.names import is_generated
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.rule_trace import TracedFiring
from deltalog.runtime.rule_verbs import RuleState

EXAMPLE = "deltalog rules shop.db --trace changes.jsonl"


class RulesForm(StrEnum):
    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    DOT = "dot"


def rules(
    file: GivenFile,
    *,
    files: FactFiles,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="CHANGES",
            help="Show what the transactions in this file would fire, each against the current "
            "state, and the arcs of the propagation network that lead there.",
        ),
    ] = None,
    relation: Relation = None,
    format_: Annotated[
        RulesForm,
        typer.Option(
            "--format",
            metavar="|".join(RulesForm),
            help="Text or JSON; with --trace also a graph, as Mermaid or DOT.",
        ),
    ] = RulesForm.TEXT,
    maintenance: Maintenance,
    limits: LimitOptions,
) -> None:
    """List active rules: priority, state, firings, time, last firing, and their messages.

    Messages count that are undelivered, or that could not be delivered (dead letters).
    """
    is_graph = format_ in (RulesForm.MERMAID, RulesForm.DOT)
    if is_graph and trace is None:
        raise typer.BadParameter("a graph shows a trace", param_hint="--format")
    progress = Progress()
    chosen = database_settings(limits, maintenance)
    with open_given(file, files.facts, files.facts_dir, chosen, progress) as database:
        if trace is None:
            _write_rules(database, format_)
            return
        applying = Applying(database, progress, is_tried=True)
        with database.trace.recording() as firings:
            for _ in applying.run(read_changes(trace, database.relations, relation)):
                pass
        _write_trace(firings, format_, str(file))
    raise typer.Exit(applying.code)


def _write_rules(database: MemoryDatabase, form: RulesForm) -> None:
    found = database.rules()
    if form is RulesForm.JSON:
        records = [_rule_record(rule) for rule in found]
        write_result(json.dumps(records, indent=2, ensure_ascii=False, default=plain_text))
        return
    header = ("rule", "priority", "state", "firings", "seconds", "last", "undelivered", "dead")
    for line in table_lines(header, [_rule_cells(rule) for rule in found], _RIGHTS):
        write_result(line)


_RIGHTS = (False, True, False, True, True, False, True, True)


def _rule_cells(rule: RuleState) -> tuple[str, ...]:
    state = "active" if rule.is_active else "inactive"
    if rule.parameters:
        shown = (", ".join(map(print_value, row)) for row in rule.parameters)
        state += f" for {', '.join(f'({each})' for each in shown)}"
    last = "never" if rule.last is None else f"{rule.last:%Y-%m-%d %H:%M:%S}"
    done = f"{rule.firings:,}", f"{rule.seconds:.3f}", last
    return rule.name, str(rule.priority), state, *done, f"{rule.undelivered:,}", f"{rule.dead:,}"


def _rule_record(rule: RuleState) -> dict[str, object]:
    return {
        "name": rule.name,
        "priority": rule.priority,
        "active": rule.is_active,
        "parameters": rule.parameters,
        "firings": rule.firings,
        "seconds": rule.seconds,
        "last": rule.last,
        "undelivered": rule.undelivered,
        "dead": rule.dead,
    }


def _write_trace(firings: list[TracedFiring], form: RulesForm, title: str) -> None:
    match form:
        case RulesForm.TEXT:
            for line in _trace_lines(firings):
                write_result(line)
        case RulesForm.JSON:
            records = [_trace_record(firing) for firing in firings]
            write_result(json.dumps(records, indent=2, ensure_ascii=False, default=plain_text))
        case _:
            draw = mermaid_text if form is RulesForm.MERMAID else dot_text
            write_result(draw(rule_graph(firings, title)).rstrip("\n"))


def _trace_lines(firings: list[TracedFiring]) -> Iterator[str]:
    for firing in firings:
        yield ", ".join(fact_text(firing.rule, row) for row in firing.instances)
        is_event = not is_generated(firing.watched)
        if is_event:
            yield f"  {firing.watched} → {firing.rule}: event"
        for arc in firing.arcs:
            is_last = arc.target == firing.watched and not is_event
            target = firing.rule if is_last else arc.target
            yield f"  {arc.source} → {target}: +{arc.inserted} −{arc.deleted}"
    if not firings:
        yield "no rule is triggered"


def _trace_record(firing: TracedFiring) -> dict[str, object]:
    arcs = [[arc.source, arc.target, arc.inserted, arc.deleted] for arc in firing.arcs]
    return {"rule": firing.rule, "instances": firing.instances, "arcs": arcs}
