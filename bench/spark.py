"""What a change costs on Spark, beside recomputing it there by hand.

Two workloads: a star join with an aggregate and a negation at several sizes, up to 50 million rows
(`spark_star.py`), and a closure with 10 million facts (`spark_closure.py`). Ours and the query by
hand run in one session, and both must give the same. Jobs are counted: they are what a small change
costs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench import spark_star
from bench.charts import line_plot
from bench.contenders import Gap
from bench.figures import compact
from bench.settings import Progress, Settings
from bench.spark_closure import ClosureFound, closure
from bench.spark_star import StarFound, star

WORKLOADS = ("star", "closure")
SIZES = (1_000_000, 7_000_000, 50_000_000)
FACTS = 10_000_000
QUICK = 0.02
CHANGES = 5
CHANGE_RATIO_MIN, LOAD_RATIO_MIN = 50.0, 10.0
SESSION = {"spark.driver.memory": "8g", "spark.log.level": "ERROR"}


@dataclass(frozen=True)
class Line:
    """One comparison: seconds of ours and by hand, and the ratio that should be reached."""

    what: str
    size: int
    ours: float
    jobs: Mapping[str, int]
    by_hand: float
    wanted: float | None

    @property
    def ratio(self) -> float:
        return self.by_hand / self.ours if self.ours else 0.0

    def as_json(self) -> dict[str, object]:
        return {**vars(self), "jobs": dict(self.jobs), "ratio": round(self.ratio, 2)}


@dataclass(frozen=True)
class SparkFound:
    stars: tuple[StarFound, ...]
    closed: ClosureFound | None
    is_full: bool
    gaps: tuple[Gap, ...] = ()

    def lines(self) -> Iterator[Line]:
        largest = max((each.rows for each in self.stars), default=0)
        for each in self.stars:
            for kind, seconds in each.seconds.items():
                wanted = CHANGE_RATIO_MIN if each.rows == largest else None
                yield Line(
                    f"star join, 1,000 rows {kind}",
                    each.rows,
                    statistics.median(seconds),
                    each.jobs[kind],
                    each.by_hand_seconds,
                    wanted,
                )
        if self.closed is not None:
            found = self.closed
            yield Line(
                "closure, materialised",
                found.facts,
                found.loaded[-1],
                found.load_jobs,
                found.by_hand[-1],
                LOAD_RATIO_MIN,
            )
            for kind, seconds in found.seconds.items():
                yield Line(
                    f"closure, {kind} one edge",
                    found.facts,
                    statistics.median(seconds),
                    found.jobs[kind],
                    found.by_hand[-1],
                    CHANGE_RATIO_MIN,
                )

    def show(self, console: Console) -> None:
        title = "On Spark: a change, and recomputing by hand in the same session"
        table = Table(title=title, title_justify="left", header_style="bold", box=None)
        table.add_column("what")
        for heading in ("rows or facts", "ours s", "by hand s", "ratio"):
            table.add_column(heading, justify="right")
        for heading in ("target", "jobs"):
            table.add_column(heading)
        for line in self.lines():
            table.add_row(
                line.what,
                compact(line.size),
                compact(line.ours),
                compact(line.by_hand),
                f"{compact(line.ratio)}×",
                self._verdict(line),
                ", ".join(f"{count} {name}" for name, count in sorted(line.jobs.items())),
            )
        console.print(table)
        loads = ", ".join(f"{compact(s.rows)}: {compact(s.load_seconds)} s" for s in self.stars)
        console.print(f"Loading and first aggregate of the star join: {loads}.")
        if self.closed is not None:
            console.print(self._closure_words(self.closed))
        console.print("Checked: what the queries by hand give is what the database says.")
        console.print()

    def _verdict(self, line: Line) -> str:
        if line.wanted is None or not self.is_full:
            return ""
        mark = "[green]✓[/]" if line.ratio >= line.wanted else "[red]✗[/]"
        return f"{mark} ≥{line.wanted:g}×"

    def _closure_words(self, found: ClosureFound) -> str:
        return (
            f"By hand the closure takes {found.by_hand_rounds} rounds; at a tenth of the size "
            f"{compact(found.by_hand[0])} s, ours {compact(found.loaded[0])} s."
        )

    def charts(self) -> dict[str, str]:
        curves = {
            f"1,000 rows {kind}": [
                (each.rows / 1e6, statistics.median(each.seconds[kind]))
                for each in self.stars
                if kind in each.seconds
            ]
            for kind in spark_star.KINDS
        }
        curves["by hand"] = [(each.rows / 1e6, each.by_hand_seconds) for each in self.stars]
        drawn = {name: points for name, points in curves.items() if points}
        subtitle = "by millions of rows: star join, aggregate and negation"
        if not drawn:
            return {}
        return {"spark.svg": line_plot("On Spark: seconds per change", subtitle, drawn, 1.0)}

    def as_json(self) -> dict[str, object]:
        return {
            "lines": [line.as_json() for line in self.lines()],
            "star": [each.as_json() for each in self.stars],
            "closure": None if self.closed is None else self.closed.as_json(),
        }


def spark(settings: Settings, progress: Progress) -> SparkFound:
    """Both workloads in a session of their own, small sizes first."""
    try:
        from deltalog.engines.spark.session import local_session

        session = local_session(has_delta=False, settings=SESSION)
    except ImportError as error:
        return SparkFound((), None, False, (Gap("everything on Spark", str(error)),))
    scale = settings.scale or (QUICK if settings.is_quick else 1.0)
    changes = settings.changes or CHANGES
    sizes = [int(size * scale) for size in SIZES]
    stars: list[StarFound] = []
    closed: ClosureFound | None = None
    try:
        if settings.includes("closure"):
            closed = ClosureFound()
            for stage in closure(session, int(FACTS * scale), changes, closed):
                progress.say("spark", f"closure: {stage}", 1, 1 + len(sizes))
        for number, rows in enumerate(sizes if settings.includes("star") else (), start=2):
            measured = StarFound(rows)
            for stage in star(session, measured, changes, not stars):
                progress.say("spark", f"{rows} rows: {stage}", number, 1 + len(sizes))
            stars.append(measured)
    finally:
        session.stop()
    return SparkFound(tuple(stars), closed, scale >= 1)
