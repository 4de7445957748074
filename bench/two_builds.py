"""Speed of two builds, in turns: this checkout, and an older one that is somewhere else on disk.

    git worktree add /tmp/older REVISION
    python -m bench.two_builds /tmp/older --rounds 3

Each round makes the same transactions of a workload once with the older build and once with this
one, in processes of their own and in changing order, so that fast and slow minutes of a shared
machine meet both; what counts is processor time of the thread that asks. A first part of the
transactions warms up: indexes are built, and what runs often becomes machine code. For each
workload and kind of change the figure of a build is the least of its medians over the rounds,
which is what it can do when nobody disturbs it; the ratio is this build's to the older one's. What
takes more than `SLOWER` times as long is marked. Both builds must change as many facts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.machine_code import geometric_mean
from bench.measure import BenchError
from bench.workloads import WORKLOADS

HERE = Path(__file__).resolve().parents[1]
SLOWER = 1.05
LOAD = "load"
TIMED = """
import json, statistics, sys, time
import deltalog
from bench.measure import transactions
from bench.workloads import workload

made = workload(sys.argv[1], 1.0, int(sys.argv[2]))
deltalog.connect(program="base cold(x: int). warm(X) :- cold(X).", facts={"cold": [(1,)]})
begun = time.process_time()
database = deltalog.connect(program=made.program, facts=made.base)
found = {"load": [time.process_time() - begun]}
steps = transactions(made)
changed = 0
for number, step in enumerate(steps):
    begun = time.thread_time()
    change = database.apply(insert=step.insert, delete=step.delete)
    taken = time.thread_time() - begun
    for side in change.inserted, change.deleted:
        changed += sum(map(len, side.values()))
    if number >= 0.4 * len(steps):
        found.setdefault(step.kind, []).append(taken)
medians = {kind: statistics.median(taken) * 1_000 for kind, taken in found.items()}
print(json.dumps({"changed": changed, "medians": medians}))
"""
"""Run in the folder of a checkout, with what it has in its own `bench`."""

Figures = dict[tuple[str, str], list[float]]
"""Milliseconds of each round, by workload and kind of change."""


def measure(checkout: Path, workload: str, changes: str) -> dict[str, Any]:
    """Run one workload with one build; returns medians by kind, and how many facts changed."""
    command = [sys.executable, "-c", TIMED, workload, changes]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(older: Figures, newer: Figures, console: Console) -> None:
    table = Table("workload", "change", "older ms", "this ms", "ratio")
    ratios: dict[str, list[float]] = {LOAD: [], "changes": []}
    for (workload, kind), before in older.items():
        now = newer[workload, kind]
        ratio = min(now) / min(before)
        ratios[LOAD if kind == LOAD else "changes"].append(ratio)
        mark = " slower" if ratio > SLOWER else ""
        table.add_row(workload, kind, f"{min(before):.4f}", f"{min(now):.4f}", f"{ratio:.2f}{mark}")
    console.print(table)
    for name, some in ratios.items():
        slower = sum(ratio > SLOWER for ratio in some)
        mean = geometric_mean(some)
        console.print(f"{name}: geometric mean {mean:.3f}, {slower} of {len(some)} above {SLOWER}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.two_builds", description=__doc__)
    parser.add_argument("older", type=Path, help="a checkout of the older build")
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--changes", default="100", help="transactions of each kind")
    given = parser.parse_args(arguments)
    console = Console()
    older: Figures = {}
    newer: Figures = {}
    builds = ((given.older, older), (HERE, newer))
    for number in range(given.rounds):
        for workload in given.workloads:
            counts = set()
            for checkout, figures in builds if number % 2 == 0 else builds[::-1]:
                found = measure(checkout, workload, given.changes)
                counts.add(found["changed"])
                for kind, milliseconds in found["medians"].items():
                    figures.setdefault((workload, kind), []).append(milliseconds)
            if len(counts) > 1:
                raise BenchError(f"{workload}: the builds change {sorted(counts)} facts")
            console.print(f"round {number + 1} of {given.rounds}: {workload}", style="dim")
    show(older, newer, console)


if __name__ == "__main__":
    main()
