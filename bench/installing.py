"""Installing many rules: what a program costs before its first transaction.

Programs of ever more rules (`many_rules.py`) are parsed, checked, modelled, and evaluated over
empty relations; a node of the propagation network is rewritten and lowered when a change first
reaches it, which is measured apart, for all nodes together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from bench.contenders import Gap
from bench.figures import compact
from bench.many_rules import many_rules
from bench.measure import UNAVAILABLE
from bench.settings import Progress, Settings
from deltalog.checks.program import check_program
from deltalog.language.parser import parse_text
from deltalog.runtime.database import ENGINES, Database
from deltalog.runtime.limits import UNLIMITED
from deltalog.runtime.model import Options, make_model

RULES = 1000
T = TypeVar("T")


@dataclass(frozen=True)
class Installation:
    """Milliseconds of processor time by step, for one program on one engine."""

    rules: int
    engine: str
    parse: float
    check: float
    model: float
    open: float
    nodes: float

    @property
    def connected(self) -> float:
        """What `connect` takes: all but the nodes."""
        return self.parse + self.check + self.model + self.open


@dataclass(frozen=True)
class Installing:
    installations: tuple[Installation, ...]
    gaps: tuple[Gap, ...] = ()

    def show(self, console: Console) -> None:
        title = "Milliseconds to install a program"
        table = Table(title=title, title_justify="left", header_style="bold", box=None)
        table.add_column("engine")
        for heading in ("rules", "parse", "check", "model", "open", "all of it", "a rule"):
            table.add_column(heading, justify="right")
        table.add_column("all nodes, later", justify="right", style="cyan")
        for each in self.installations:
            steps = (each.parse, each.check, each.model, each.open, each.connected)
            cells = [*steps, each.connected / each.rules, each.nodes]
            table.add_row(each.engine, str(each.rules), *map(compact, cells))
        console.print(table)
        console.print()

    def charts(self) -> dict[str, str]:
        return {}

    def as_json(self) -> list[object]:
        return [
            {field.name: getattr(each, field.name) for field in fields(each)}
            for each in self.installations
        ]


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.process_time()
    result = work()
    return 1000 * (time.process_time() - started), result


def _installed(rules: int, engine: str) -> Installation:
    text = many_rules(rules)
    parsing, program = _timed(lambda: parse_text(text))
    checking, checked = _timed(lambda: check_program(program))
    modelling, model = _timed(lambda: make_model(checked, Options()))
    opening, database = _timed(lambda: Database(model, ENGINES[engine](), UNLIMITED))
    nodes, _ = _timed(lambda: [node.installed for node in database.propagation.nodes])
    return Installation(rules, engine, parsing, checking, modelling, opening, nodes)


def installing(settings: Settings, progress: Progress) -> Installing:
    """Install programs of a quarter, half and all of the rules."""
    rules = max(8, int(RULES * (settings.scale if settings.scale is not None else 1)))
    found, gaps = [], []
    for engine in settings.engines:
        for number, part in enumerate((4, 2, 1), start=1):
            progress.say("installing", f"{rules // part} rules on {engine}", number, 3)
            try:
                found.append(_installed(rules // part, engine))
            except UNAVAILABLE as error:
                gaps.append(Gap(f"installing on {engine}", str(error)))
                break
    return Installing(tuple(found), tuple(gaps))
