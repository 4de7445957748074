"""What installing rules costs: a large program opened, and one of its rules changed.

The program has as many rules as asked for, in groups of ten that build on each other: a join, two
rules of recursion, negation, a comparison, arithmetic, an aggregate, and projections. Each group
has its own views, so nothing is shared, and no rule can be compiled for another. There are few
facts: what is measured is the rules.

A change of rules replaces the comparison of one group, in the live database, by
`db.change_program`. The first is shown apart from later ones.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

import deltalog
from bench.charts import dot_plot
from bench.contenders import Gap
from bench.figures import NOTHING, compact
from bench.measure import UNAVAILABLE, BenchError
from bench.settings import Progress, Settings

RULES = 1_000
SIZES = (10, 100, RULES)
SECONDS_MAX = 1.0
OPENINGS = 3
CHANGES = 5
FACTS = [(a, (a * 7 + 3) % 20) for a in range(20)]
GROUP = """\
{v}_step(X, Z) :- {below}(X, Y), edge(Y, Z).
{v}_near(X, Y) :- {v}_step(X, Y), {v}_step(Y, X).
{v}_path(X, Y) :- {v}_near(X, Y).
{v}_path(X, Z) :- {v}_path(X, Y), {v}_near(Y, Z).
{v}_far(X, Y) :- {v}_step(X, Y), not {v}_path(X, Y).
{v}_up(X, Y) :- {v}_far(X, Y), X < Y + {least}.
{v}_sum(X, Y + {number}) :- {v}_up(X, Y).
{v}_many(X, count()) :- {v}_sum(X, Y).
{v}_top(X, Y) :- {v}_many(X, Y), edge(X, _).
{v}_all(X, Y) :- {v}_step(X, Y), {v}_top(X, _)."""
GROUP_RULES = len(GROUP.splitlines())
BESIDE = 10  # a group reads one of the groups before it, so chains stay short


def program_of(rules: int, changed: int | None = None, least: int = 0) -> str:
    """A program of so many rules; `changed` is a group whose comparison is another one."""
    groups = []
    for number in range(max(1, rules // GROUP_RULES)):
        below = f"g{number - 1}_all" if number % BESIDE else "edge"
        bound = least if number == changed else 0
        groups.append(GROUP.format(v=f"g{number}", below=below, number=number, least=bound))
    return "base edge(a: int, b: int).\n" + "\n".join(groups)


@dataclass(frozen=True)
class Installed:
    """Seconds to open programs of one size on one engine, milliseconds to change a rule."""

    engine: str
    rules: int
    open_seconds: float
    first_change_milliseconds: float
    change_milliseconds: float | None

    def as_json(self) -> dict[str, object]:
        return {
            "engine": self.engine,
            "rules": self.rules,
            "open_seconds": round(self.open_seconds, 4),
            "first_change_milliseconds": round(self.first_change_milliseconds, 3),
            "change_milliseconds": self.change_milliseconds,
        }


@dataclass(frozen=True)
class Installing:
    """Engines by sizes of programs."""

    found: tuple[Installed, ...]
    gaps: tuple[Gap, ...] = ()

    def show(self, console: Console) -> None:
        title = f"Installing rules; a program of {RULES} should take less than {SECONDS_MAX:g} s"
        table = Table(title=title, title_justify="left", header_style="bold", box=None)
        table.add_column("engine")
        headings = ("rules", "open s", "ms per rule", "first rule change ms", "later ones ms")
        for heading in headings:
            table.add_column(heading, justify="right")
        table.add_column("target")
        for each in self.found:
            later = each.change_milliseconds
            table.add_row(
                each.engine,
                compact(each.rules),
                compact(each.open_seconds),
                compact(each.open_seconds * 1_000 / each.rules),
                compact(each.first_change_milliseconds),
                compact(later) if later is not None else NOTHING,
                _verdict(each),
            )
        console.print(table)
        console.print()

    def charts(self) -> dict[str, str]:
        rows = [
            (f"{each.rules} rules, {what}", {each.engine: value})
            for each in self.found
            for what, value in (
                ("open", each.open_seconds * 1_000),
                ("change one", each.first_change_milliseconds),
            )
        ]
        engines = list(dict.fromkeys(each.engine for each in self.found))
        subtitle = "by size of the program, with few facts"
        return {"installing.svg": dot_plot("Installing rules: ms", subtitle, rows, engines)}

    def as_json(self) -> list[object]:
        return [each.as_json() for each in self.found]


def _verdict(each: Installed) -> str:
    if each.rules != RULES:
        return ""
    mark = "[green]✓[/]" if each.open_seconds < SECONDS_MAX else "[red]✗[/]"
    return f"{mark} <{SECONDS_MAX:g} s"


def _open(engine: str, program: str) -> tuple[deltalog.MemoryDatabase, float]:
    gc.collect()
    started = time.perf_counter()
    database = deltalog.connect(program=program, engine=engine, facts={"edge": FACTS})
    return database, time.perf_counter() - started


def _measure(engine: str, rules: int, seconds_max: float) -> Installed:
    """Open several times, the best counts; then change rules in the last database."""
    database, seconds = _open(engine, program_of(rules))
    opened = [seconds]
    while len(opened) < OPENINGS and sum(opened) < seconds_max:
        database, seconds = _open(engine, program_of(rules))
        opened.append(seconds)
    changed: list[float] = []
    group = max(1, rules // GROUP_RULES) // 2
    while len(changed) < 1 + CHANGES and sum(changed) < seconds_max * 1_000:
        program = program_of(rules, group, len(changed) + 1)
        started = time.perf_counter()
        database.change_program(program)
        changed.append((time.perf_counter() - started) * 1_000)
    fresh, _ = _open(engine, program)
    if any(fresh.facts(view) != database.facts(view) for view in fresh.relations):
        raise BenchError(f"{engine}: {rules} rules, changed, are not what they are when opened")
    later = round(statistics.median(changed[1:]), 3) if changed[1:] else None
    return Installed(engine, rules, min(opened), changed[0], later)


def _sizes(settings: Settings) -> Sequence[int]:
    if settings.scale is None:
        return SIZES
    return sorted({max(GROUP_RULES, int(size * settings.scale)) for size in SIZES})


def installing(settings: Settings, progress: Progress) -> Installing:
    """Open and change programs of several sizes on every engine."""
    found: list[Installed] = []
    gaps: list[Gap] = []
    sizes = _sizes(settings)
    for place, engine in enumerate(settings.side_by_side):
        for number, rules in enumerate(sizes, start=1):
            done, total = place * len(sizes) + number, len(sizes) * len(settings.side_by_side)
            progress.say("installing", f"{rules} rules on {engine}", done, total)
            try:
                found.append(_measure(engine, rules, settings.seconds_max))
            except UNAVAILABLE as error:
                gaps.append(Gap(f"installing {rules} rules on {engine}", str(error)))
    return Installing(tuple(found), tuple(gaps))
