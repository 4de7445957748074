"""Speed of two builds, in turns: this checkout, and an older one that is somewhere else on disk.

    git worktree add /tmp/older REVISION
    python -m bench.two_builds /tmp/older --rounds 3

Each round makes the same transactions of a workload once with the older build and once with this
one, in processes of their own and in changing order, so that fast and slow minutes of a shared
machine meet both; what counts is processor time of the thread that asks. A first part of the
transactions warms up: indexes are built, and what runs often becomes machine code. The time of a
transaction is the least of all rounds, which is what a build can do when nobody disturbs it.
Transactions of one kind differ by orders of magnitude in what they change, so that each is compared
with itself: the ratio of a kind is the median of the ratios of its transactions, this build's time
to the older one's. What takes more than `SLOWER` times as long is marked. Both builds must change
as many facts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
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
import json, sys, time
import deltalog
from bench.measure import transactions
from bench.workloads import workload

made = workload(sys.argv[1], 1.0, int(sys.argv[2]))
few = {name: list(rows)[:10] for name, rows in made.base.items()}
deltalog.connect(program=made.program, facts=few)
begun = time.process_time()
database = deltalog.connect(program=made.program, facts=made.base)
found = {"load": [(time.process_time() - begun) * 1_000]}
steps = transactions(made)
changed = 0
for number, step in enumerate(steps):
    begun = time.thread_time()
    change = database.apply(insert=step.insert, delete=step.delete)
    taken = time.thread_time() - begun
    for side in change.inserted, change.deleted:
        changed += sum(map(len, side.values()))
    if number >= 0.4 * len(steps):
        found.setdefault(step.kind, []).append(taken * 1_000)
print(json.dumps({"changed": changed, "milliseconds": found}))
"""
"""Run in the folder of a checkout, with what it has in its own `bench`."""

Figures = dict[tuple[str, str], list[float]]
"""Milliseconds of each transaction in its fastest round, by workload and kind of change."""


def measure(checkout: Path, workload: str, changes: str) -> dict[str, Any]:
    """Run one workload with one build; returns times by kind, and how many facts changed."""
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
        ratio = statistics.median(new / old for old, new in zip(before, now, strict=True))
        ratios[LOAD if kind == LOAD else "changes"].append(ratio)
        mark = " slower" if ratio > SLOWER else ""
        medians = (f"{statistics.median(taken):.4f}" for taken in (before, now))
        table.add_row(workload, kind, *medians, f"{ratio:.2f}{mark}")
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
                for kind, taken in found["milliseconds"].items():
                    least = figures.get((workload, kind), taken)
                    figures[workload, kind] = list(map(min, least, taken))
            if len(counts) > 1:
                raise BenchError(f"{workload}: the builds change {sorted(counts)} facts")
            console.print(f"round {number + 1} of {given.rounds}: {workload}", style="dim")
    show(older, newer, console)


if __name__ == "__main__":
    main()
