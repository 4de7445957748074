"""Where recomputation wins: ever larger changes, rederived and recomputed.

The share is that of changed facts among those a view reads: what `MUCH_SHARE` and `LOST_SHARE` in
`runtime/nodes.py` are compared with. Facts are only deleted, only inserted, or half and half.
Below the crossover maintaining the view is cheaper, above it starting afresh is. A fast engine gets
more facts, so that there is something to measure.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.charts import line_plot
from bench.contenders import RECOMPUTE, REDERIVE, Contender, Gap
from bench.figures import NOTHING, compact, percent, ratio
from bench.measure import UNAVAILABLE, BenchError, Sample, Transaction, run
from bench.settings import Progress, Settings
from bench.workloads import Fact, Workload, acyclic_graph, workload
from deltalog.runtime.nodes import LOST_SHARE, MUCH_SHARE

SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0)
MODES: Mapping[str, tuple[float, float]] = {
    "delete": (1.0, 0.0),
    "insert": (0.0, 1.0),
    "both": (0.5, 0.5),
}
"""Which part of the changed facts is deleted, and which inserted."""
TRIES = 2
CURVE_SECONDS = 2
"""The seconds of a contender, this many times, are the seconds of a curve."""


@dataclass(frozen=True)
class Sweep:
    """A workload whose one relation is changed; `fresh` are as many new facts as it has.

    Facts generated say nothing where an aggregate is recomputed: what it ranges over is only read.
    """

    workload: str
    scales: Mapping[str, float]
    relation: str
    fresh: Callable[[Workload], list[Fact]]
    is_aggregate: bool = False

    def scale(self, engine: str) -> float:
        return self.scales.get(engine, self.scales["reference"])


def _fresh_edges(made: Workload) -> list[Fact]:
    edges = set(made.base["edge"])
    nodes = 1 + max(node for edge in edges for node in edge)
    draw = random.Random(21)
    possible = nodes * (nodes - 1) // 2 - len(edges)
    wanted = min(len(edges), possible // 2)
    others = [e for e in acyclic_graph(nodes, len(edges) + wanted, seed=22) if e not in edges]
    return draw.sample(others, min(wanted, len(others)))


def _fresh_orders(made: Workload) -> list[Fact]:
    draw = random.Random(23)
    rows, customers = len(made.base["orders"]), len(made.base["customer"])
    return [(rows + o, draw.randrange(customers), draw.randrange(1000)) for o in range(rows)]


SWEEPS = (
    Sweep("w1_dag", {"reference": 0.02, "embedded": 0.1}, "edge", _fresh_edges),
    Sweep(
        "w6_500k",
        {"reference": 0.004, "embedded": 0.04},
        "orders",
        _fresh_orders,
        is_aggregate=True,
    ),
)


@dataclass(frozen=True)
class Point:
    """A change of a certain share, as both strategies did it."""

    share: float
    changed: int
    rederived: Sample
    recomputed: Sample

    @property
    def by_time(self) -> float:
        """How many times more expensive rederiving is."""
        return self.rederived.milliseconds / self.recomputed.milliseconds

    @property
    def by_facts(self) -> float:
        return max(self.rederived.facts, 1) / max(self.recomputed.facts, 1)


@dataclass(frozen=True)
class Curve:
    """One sweep in one mode on one engine."""

    sweep: Sweep
    scale: float
    mode: str
    engine: str
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        return f"{self.sweep.workload} {self.mode}"

    @property
    def crossing_by_time(self) -> float | None:
        return crossing([(point.share, point.by_time) for point in self.points])

    @property
    def crossing_by_facts(self) -> float | None:
        if self.sweep.is_aggregate:
            return None
        return crossing([(point.share, point.by_facts) for point in self.points])


def crossing(points: Sequence[tuple[float, float]]) -> float | None:
    """The share from which on the ratio stays above 1, between two points by their logarithms.

    >>> round(crossing([(0.01, 0.1), (0.1, 10.0)]), 4)
    0.0316
    >>> crossing([(0.01, 0.1), (0.1, 0.2)]) is None
    True
    """
    below = [number for number, (_, value) in enumerate(points) if value < 1]
    last = below[-1] if below else -1
    if last == len(points) - 1:
        return None
    if last < 0:
        return points[0][0]
    (x0, y0), (x1, y1) = points[last], points[last + 1]
    part = math.log(1 / y0) / math.log(y1 / y0)
    return float(x0 * (x1 / x0) ** part)


@dataclass(frozen=True)
class Crossover:
    """All curves."""

    curves: tuple[Curve, ...]
    gaps: tuple[Gap, ...] = ()

    def show(self, console: Console) -> None:
        for curve in self.curves:
            console.print(_table(curve))
        summary = Table(
            title="Recomputing is cheaper from this share of changed facts on",
            title_justify="left",
            header_style="bold",
            box=None,
        )
        for heading in ("workload", "change", "engine", "by milliseconds", "by facts generated"):
            summary.add_column(heading)
        for curve in self.curves:
            summary.add_row(
                curve.sweep.workload,
                curve.mode,
                curve.engine,
                _said(curve, curve.crossing_by_time),
                NOTHING if curve.sweep.is_aggregate else _said(curve, curve.crossing_by_facts),
            )
        console.print(summary)
        console.print(
            f"`auto` recomputes from a share of {percent(MUCH_SHARE)} on (MUCH_SHARE), and from "
            f"{percent(LOST_SHARE)} on where that much is deleted below recursion (LOST_SHARE).\n"
        )

    def charts(self) -> dict[str, str]:
        engines = {curve.engine for curve in self.curves}
        lines = {
            (f"{curve.name}, {curve.engine}" if len(engines) > 1 else curve.name): [
                (point.share, point.by_time) for point in curve.points
            ]
            for curve in self.curves
        }
        drawn = line_plot(
            "Where recomputation wins: time to rederive ÷ time to recompute",
            "by the share of changed facts; above 1 starting afresh is cheaper",
            lines,
            1.0,
        )
        return {"crossover.svg": drawn}

    def as_json(self) -> list[object]:
        return [
            {
                "workload": curve.sweep.workload,
                "scale": curve.scale,
                "mode": curve.mode,
                "engine": curve.engine,
                "crossover_by_time": curve.crossing_by_time,
                "crossover_by_facts": curve.crossing_by_facts,
                "points": [_point_json(point) for point in curve.points],
            }
            for curve in self.curves
        ]


def _point_json(point: Point) -> dict[str, float]:
    rederived, recomputed = point.rederived, point.recomputed
    return {
        "share": point.share,
        "facts_changed": point.changed,
        "rederive_milliseconds": round(rederived.milliseconds, 3),
        "recompute_milliseconds": round(recomputed.milliseconds, 3),
        "rederive_facts": rederived.facts,
        "recompute_facts": recomputed.facts,
    }


def _said(curve: Curve, share: float | None) -> str:
    if share is not None:
        return percent(share)
    return f"never, up to {percent(curve.points[-1].share)}"


def _table(curve: Curve) -> Table:
    title = f"{curve.sweep.workload}@{curve.scale:g}, {curve.mode}, on {curve.engine}"
    table = Table(title=title, title_justify="left", header_style="bold", box=None)
    for heading in ("share", "changed", "rederive ms", "recompute ms", "ratio"):
        table.add_column(heading, justify="right")
    for heading in ("rederive facts", "recompute facts", "ratio"):
        table.add_column(heading, justify="right", style="cyan")
    for point in curve.points:
        rederived, recomputed = point.rederived, point.recomputed
        table.add_row(
            percent(point.share),
            compact(point.changed),
            compact(rederived.milliseconds),
            compact(recomputed.milliseconds),
            ratio(rederived.milliseconds, recomputed.milliseconds),
            compact(rederived.facts),
            compact(recomputed.facts),
            ratio(rederived.facts, recomputed.facts),
        )
    return table


def _changes(sweep: Sweep, made: Workload) -> Iterator[tuple[str, float, Transaction]]:
    """Every mode and share as one transaction, the larger ones containing the smaller.

    A share of less than one fact is left out.
    """
    draw = random.Random(20)
    old = list(made.base[sweep.relation])
    draw.shuffle(old)
    new = sweep.fresh(made)
    for mode, (deleted, inserted) in MODES.items():
        for share in SHARES:
            gone = old[: round(share * deleted * len(old))]
            come = new[: round(share * inserted * len(old))]
            if gone or come:
                yield mode, share, Transaction(mode, {sweep.relation: come}, {sweep.relation: gone})


def _compared(
    contenders: Sequence[Contender], made: Workload, step: Transaction, warm_up: Transaction
) -> list[Sample]:
    """The step by each contender on a database of its own: the better of two, in agreement."""
    best = []
    for contender in contenders:
        tried = [run(contender, made, [step], warm_up=warm_up).samples[0] for _ in range(TRIES)]
        best.append(min(tried, key=lambda sample: sample.milliseconds))
    if len({sample.change for sample in best}) > 1:
        raise BenchError(f"{made.name}: rederive and recompute give different deltas")
    return best


def crossover(settings: Settings, progress: Progress) -> Crossover:
    """Sweep the share of changed facts, with `rederive` and `recompute`, on every engine."""
    curves: list[Curve] = []
    gaps: list[Gap] = []
    for sweep in (sweep for sweep in SWEEPS if settings.includes(sweep.workload)):
        for engine in settings.side_by_side:
            try:
                done = _swept(sweep, engine, settings, progress)
            except UNAVAILABLE as error:
                gaps.append(Gap(f"crossover of {sweep.workload} on {engine}", str(error)))
                continue
            curves += done.curves
            gaps += done.gaps
    return Crossover(tuple(curves), tuple(gaps))


def _swept(sweep: Sweep, engine: str, settings: Settings, progress: Progress) -> Crossover:
    """All modes of one sweep on one engine."""
    scale = settings.scale if settings.scale is not None else sweep.scale(engine)
    made = workload(sweep.workload, scale, 1)
    steps = list(_changes(sweep, made))
    warm_up = Transaction("warm up", {}, {sweep.relation: made.base[sweep.relation][:1]})
    both = [Contender(c.strategy, engine=engine) for c in (REDERIVE, RECOMPUTE)]
    found: dict[str, list[Point]] = {}
    used = dict.fromkeys(MODES, 0.0)
    gaps: list[Gap] = []
    offered = {(mode, share) for mode, share, _ in steps}
    for mode in MODES:
        for share in SHARES:
            if (mode, share) not in offered:
                what = f"{sweep.workload} on {engine}: {mode} {percent(share)}"
                gaps.append(Gap(what, "less than one fact at this scale"))
    stopped: dict[str, Gap] = {}
    for number, (mode, share, step) in enumerate(steps, start=1):
        text = f"{sweep.workload}: {mode} {percent(share)} on {engine}"
        if used[mode] > CURVE_SECONDS * settings.seconds_max:
            stopped.setdefault(mode, Gap(f"{text} and more", "the seconds of a curve were used up"))
            continue
        progress.say("where recomputation wins", text, number, len(steps))
        started = time.perf_counter()
        rederived, recomputed = _compared(both, made, step, warm_up)
        used[mode] += time.perf_counter() - started
        changed = sum(map(len, [*step.insert.values(), *step.delete.values()]))
        found.setdefault(mode, []).append(Point(share, changed, rederived, recomputed))
    curves = (Curve(sweep, scale, mode, engine, tuple(p)) for mode, p in found.items())
    return Crossover(tuple(curves), (*gaps, *stopped.values()))
