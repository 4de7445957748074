"""The embedded engine at full size: beside the limit, beside peers, and against targets.

Every workload is measured in a process of its own (`bench/full_scale.py`), one after the other.
The limit, DuckDB and the peers (`bench/side_by_side.py`) are measured in the same run. Where a peer
cannot be built, or is not to be run, its figures of another day are shown, and marked as recorded.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import limit, side_by_side
from bench.charts import Axis, dot_line, dot_plot
from bench.contenders import Gap
from bench.figures import NOTHING, compact, pair, ratio
from bench.full_scale import PHASES, Measured
from bench.measure import BenchError, Spread
from bench.peers import DBSP, DIFFERENTIAL, RECORDED
from bench.settings import Progress, Settings
from bench.targets import (
    Comparison,
    Verdict,
    beside_peer,
    limit_milliseconds,
    milliseconds,
    recorded_peer,
    verdicts,
)
from bench.workloads import CHANGES

ENGINE = "embedded"
WORKLOADS = (
    *("w1_scc", "w1_dag", "w1_grid", "w1_chain", "w2", "w3", "w4", "w7"),
    *("w5_10", "w5_1k", "w5_100k", "w5_1m", "w6_500k", "w6"),
)
LARGEST = ("w1_grid", "w5_1m", "w6")
"""Those that take more than a few seconds to load; left out of a quick run."""
CHANGES_QUICK = 40
MORE_UPDATES = 10
"""An update of w5 takes some 30 microseconds: with 200 of them one would measure a moment."""
SECONDS_MAX, SECONDS_MAX_QUICK = 90.0, 30.0
"""For one workload with everything around it; then its process is stopped."""
KINDS = ("load", *(kind for kinds in PHASES.values() for kind in kinds))
DRAWN = ("load", "insert", "delete", "update", "move")
LINE_WIDTH = 64
LIMIT, DUCKDB = "limit", "DuckDB recomputing"
PEERS = (DIFFERENTIAL, DBSP)
PEER_MARKS = {DIFFERENTIAL: ("▲", "△"), DBSP: ("◆", "◇")}
"""Measured in the run, and recorded."""
MARKS = {
    ENGINE: "●",
    LIMIT: "○",
    **{system: measured for system, (measured, _) in PEER_MARKS.items()},
    **{f"{system}, recorded": recorded for system, (_, recorded) in PEER_MARKS.items()},
    DUCKDB: "□",
}
ROOT = Path(__file__).parent.parent
FOOTNOTE = """\
Milliseconds, median/mean; load too. apply: db.apply(…), which answers the exact change. with rows:
the same and reading every row of the change. n: transactions. changed: facts in the change, mean.
B/fact: growth of resident memory while loading, by facts stored, if there are enough of them.
limit: closure by hand, which knows nothing else, in this run. ÷ limit, × faster: by medians/means.
"""
MEASURED = """\
one worker each, measured in this run, without a call from Python: the same
transactions, the same views. × faster: over those that both made one by one."""


@dataclass(frozen=True)
class Embedded:
    """What was measured of each workload, and what was not."""

    found: Mapping[str, Measured]
    gaps: tuple[Gap, ...] = ()
    verdicts: tuple[Verdict, ...] = field(default=())

    def show(self, console: Console) -> None:
        console.print(self._table())
        console.print(FOOTNOTE + self._peers_in_words(), style="dim")
        self._show_duckdb(console)
        self._show_verdicts(console)
        self._show_dots(console)

    def _table(self) -> Table:
        title = f"Engine `{ENGINE}`, ms median/mean"
        table = Table(
            title=title, title_justify="left", header_style="bold", box=None, padding=(0, 1)
        )
        for heading in ("workload", "change"):
            table.add_column(heading)
        for heading in ("facts", "B/fact", "n", "changed"):
            table.add_column(heading, justify="right")
        for heading in ("apply", "with rows"):
            table.add_column(heading, justify="right", style="cyan")
        for heading in ("limit", "÷ limit"):
            table.add_column(heading, justify="right")
        for system in PEERS:
            table.add_column(system.replace("-", "-\n"), justify="right")
            table.add_column("× faster", justify="right")
        table.add_column("target", no_wrap=True)
        for name, measured in self.found.items():
            for number, kind in enumerate(_kinds(measured)):
                table.add_row(*self._row(name, measured, kind, is_first=number == 0))
            table.add_section()
        return table

    def _row(self, name: str, measured: Measured, kind: str, is_first: bool) -> list[str]:
        ours, by_hand = milliseconds(measured, kind), limit_milliseconds(measured, kind)
        cost = measured.costs.get(kind)
        beside = [beside_peer(measured, kind, system) for system in PEERS]
        head = ["", kind, "", ""]
        if is_first:
            held = measured.bytes_per_fact
            shown = name if measured.scale == 1 else f"{name}@{measured.scale:g}"
            facts = compact(measured.facts) if measured.facts is not None else NOTHING
            head = [shown, kind, facts, compact(held) if held is not None else NOTHING]
        return [
            *head,
            str(cost.count) if cost is not None else "1",
            compact(cost.changed) if cost is not None else "",
            pair(ours) if kind != "load" else _once(ours),
            pair(cost.with_rows) if cost is not None else "",
            (pair(by_hand) if kind != "load" else _once(by_hand)) if by_hand is not None else "",
            _ratios(ours, by_hand),
            *(cell for both in beside for cell in _peer(both, kind)),
            " ".join(map(_said, self._verdicts_of(name, kind))),
        ]

    def _peers_in_words(self) -> str:
        measured = {name for each in self.found.values() for name in each.peers_load_seconds}
        recorded = {
            f"{peer.system} ({peer.when})"
            for each in self.found.values()
            for system in PEERS
            if (peer := recorded_peer(each, system)) is not None
        }
        said = [f"{' and '.join(sorted(measured))}: {MEASURED}"] if measured else []
        if recorded:
            said.append(f"r: {'; '.join(sorted(recorded))}: {RECORDED}.")
        return "\n".join([*said, ""])

    def _verdicts_of(self, name: str, kind: str) -> list[Verdict]:
        return [each for each in self.verdicts if (each.workload, each.kind) == (name, kind)]

    def _show_duckdb(self, console: Console) -> None:
        for name, measured in self.found.items():
            spread, insert = measured.duckdb, measured.costs.get("insert")
            if spread is not None and insert is not None:
                console.print(
                    f"{name}: DuckDB recomputes the view in {compact(spread.median)} ms (median of "
                    f"{spread.count}, same rows, same run), "
                    f"{ratio(spread.median, insert.apply.median)} the time of a new order."
                )

    def _show_verdicts(self, console: Console) -> None:
        done = {name: each.verified for name, each in self.found.items() if each.verified}
        if done:
            shown = ", ".join(f"{name} ({how})" for name, how in done.items())
            console.print(f"Views are what recomputation says: {shown}.")
        if not self.verdicts:
            console.print("No targets: they are for workloads at full size.\n")
            return
        missed = [each for each in self.verdicts if not each.is_reached]
        reached = len(self.verdicts) - len(missed)
        console.print(f"[bold]Targets reached: {reached} of {len(self.verdicts)}.[/]")
        for each in missed:
            side = "at most" if each.is_at_most else "at least"
            note = ", with a recorded figure" if each.is_recorded else ""
            console.print(
                f"  ✗ {each.workload} {each.kind}: {each.words}; found {compact(each.ratio)}, "
                f"wanted {side} {compact(each.bound)}{note}"
            )
        console.print()

    def _rows(self) -> list[tuple[str, dict[str, float]]]:
        """Medians by workload and kind of change."""
        rows = []
        for name, measured in self.found.items():
            for kind in (kind for kind in _kinds(measured) if kind in DRAWN):
                spreads = {
                    ENGINE: milliseconds(measured, kind),
                    LIMIT: limit_milliseconds(measured, kind),
                    DUCKDB: measured.duckdb if kind == "insert" else None,
                }
                for system in PEERS:
                    both = beside_peer(measured, kind, system)
                    if both is not None:
                        label = f"{system}, recorded" if both.is_recorded else system
                        spreads[label] = both.peer
                values = {label: each.median for label, each in spreads.items() if each is not None}
                rows.append((f"{name} {kind}", values))
        return rows

    def _show_dots(self, console: Console) -> None:
        rows = self._rows()
        if not rows:
            return
        axis = Axis.over([value for _, values in rows for value in values.values()], 1e-3)
        marks = ", ".join(f"{mark} {label}" for label, mark in MARKS.items())
        scale = f"from {axis.low:g} to {axis.high:g} ms, logarithmic"
        console.print(f"Median milliseconds {scale}: {marks}", style="italic")
        for label, values in rows:
            marked = {MARKS[name]: axis.place(value) for name, value in values.items()}
            shown = compact(values[ENGINE]) if ENGINE in values else NOTHING
            console.print(f"{label:16} [cyan]{dot_line(marked, LINE_WIDTH)}[/] {shown:>6}")
        console.print()

    def charts(self) -> dict[str, str]:
        drawn = dot_plot(
            f"Engine {ENGINE}: milliseconds",
            "medians at full size; the same run, unless recorded",
            self._rows(),
            list(MARKS),
            smallest=1e-3,
        )
        return {"embedded.svg": drawn}

    def as_json(self) -> object:
        peers = [
            {
                "workload": name,
                "system": peer.system,
                "when": peer.when,
                "milliseconds": dict(peer.milliseconds),
            }
            for name, measured in self.found.items()
            for system in PEERS
            if (peer := recorded_peer(measured, system)) is not None
        ]
        return {
            "measured": [_measured_json(measured) for measured in self.found.values()],
            "targets": [each.as_json() for each in self.verdicts],
            "peers": {"note": RECORDED, "recorded": peers},
        }


def _measured_json(measured: Measured) -> dict[str, object]:
    return {**measured.as_json(), "bytes_per_fact": measured.bytes_per_fact}


def _kinds(measured: Measured) -> list[str]:
    return [kind for kind in KINDS if milliseconds(measured, kind) is not None]


def _peer(both: Comparison | None, kind: str) -> tuple[str, str]:
    """Milliseconds of a peer, and how much faster we are."""
    if both is None:
        return "", ""
    shown = pair(both.peer) if kind != "load" else _once(both.peer)
    return f"{shown} r" if both.is_recorded else shown, _ratios(both.peer, both.ours)


def _once(spread: Spread | None) -> str:
    return compact(spread.median) if spread is not None else NOTHING


def _ratios(above: Spread | None, below: Spread | None) -> str:
    """By medians and means; one figure where both are the same."""
    if above is None or below is None:
        return ""
    by_median = ratio(above.median, below.median)
    if (above.median, below.median) == (above.mean, below.mean):
        return by_median
    return f"{by_median}/{ratio(above.mean, below.mean)}"


def _said(verdict: Verdict) -> str:
    mark, colour = ("✓", "green") if verdict.is_reached else ("✗", "red")
    return f"[{colour}]{mark}[/] {verdict.words}"


def _measure(
    name: str,
    settings: Settings,
    peers: Mapping[str, Path],
    progress: Progress,
    done: int,
    total: int,
) -> Measured:
    """Run the process of one workload, and follow what it says."""
    scale = settings.scale if settings.scale is not None else 1.0
    changes = settings.changes or (CHANGES_QUICK if settings.is_quick else CHANGES)
    if settings.changes is None and name.startswith("w5_"):
        changes *= MORE_UPDATES
    command = [sys.executable, "-m", "bench.full_scale", name, "--engine", ENGINE]
    command += ["--scale", str(scale), "--changes", str(changes)]
    command += ["--seconds", str(settings.seconds_max)]
    seconds_max = SECONDS_MAX_QUICK if settings.is_quick else SECONDS_MAX
    for system, executable in peers.items():
        command += ["--peer", f"{system}={executable}"]
        seconds_max += side_by_side.RUN_SECONDS_MAX
    found = Measured(name, scale, ENGINE)
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
        ) as process,
    ):
        assert process.stdout is not None
        timer = threading.Timer(seconds_max, process.kill)
        timer.start()
        try:
            for line in process.stdout:
                found = Measured.of_json(line)
                progress.say("embedded", f"{name}: {found.stage}", done, total)
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
        errors.seek(0)
        said = errors.read().strip()
    if code < 0:
        found.missing[f"the rest, from {found.stage} on"] = f"stopped after {seconds_max:g} s"
    elif code != 0 and "ModuleNotFoundError" in said:
        found.missing["everything"] = said.splitlines()[-1]
    elif code != 0:
        raise BenchError(f"{name} on {ENGINE}, {found.stage}: {said}")
    return found


def embedded(settings: Settings, progress: Progress) -> Embedded:
    """Measure every workload at full size, or at the scale that is asked for."""
    if ENGINE not in settings.side_by_side:
        return Embedded({}, (Gap(f"engine {ENGINE} at full size", "not asked for"),))
    names = [name for name in WORKLOADS if settings.includes(name)]
    left_out = [name for name in names if settings.is_quick and name in LARGEST]
    gaps = [Gap(f"{name} at full size", "left out of a quick run") for name in left_out]
    names = [name for name in names if name not in left_out]
    progress.say("embedded", "compiling the limit, once per machine", 0, len(names))
    limit.get_ready()
    peers: dict[str, Path] = {}
    for system in settings.peers:
        try:
            peers[system] = side_by_side.build(
                system, lambda said: progress.say("embedded", said, 0, len(names))
            )
        except side_by_side.UnavailableError as error:
            gaps.append(Gap(f"{system} in this run", str(error)))
    found: dict[str, Measured] = {}
    for number, name in enumerate(names, start=1):
        measured = _measure(name, settings, peers, progress, number, len(names))
        gaps += [Gap(f"{name}, {what}", why) for what, why in measured.missing.items()]
        found[name] = measured
    for name, measured in found.items():
        if measured.scale == 1 and beside_peer(measured, "load") is None:
            gaps.append(Gap(name, "no peer to compare with, neither in this run nor recorded"))
    return Embedded(found, tuple(gaps), tuple(verdicts(found)))
