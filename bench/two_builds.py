"""Speed of two builds, in turns: this checkout, and an older one that is somewhere else on disk.

    git worktree add /tmp/older REVISION
    python -m bench.two_builds /tmp/older --rounds 3 --seconds 3

Each round runs `bench.full_scale` once with the older build and once with this one, in processes of
their own and in changing order, so that fast and slow minutes of a shared machine meet both. Every
process checks its own views. For each workload and kind of change the figure of a build is the
least of its medians over the rounds, which is what it can do when nobody disturbs it; the ratio is
this build's to the older one's. What takes more than `SLOWER` times as long is marked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.machine_code import geometric_mean
from bench.workloads import WORKLOADS

HERE = Path(__file__).resolve().parents[1]
SLOWER = 1.05
LOAD = "load"

Figures = dict[tuple[str, str], list[float]]
"""Milliseconds of each round, by workload and kind of change."""


def measure(checkout: Path, workload: str, arguments: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Run one workload with one build; yields kinds of change with their milliseconds."""
    command = [sys.executable, "-m", "bench.full_scale", workload, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    yield LOAD, found["load_seconds"] * 1_000
    for kind, cost in found["costs"].items():
        yield kind, cost["apply"]["median"]


def show(older: Mapping[tuple[str, str], list[float]], newer: Figures, console: Console) -> None:
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
        console.print(
            f"{name}: geometric mean {geometric_mean(some):.3f}, "
            f"{slower} of {len(some)} above {SLOWER}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.two_builds", description=__doc__)
    parser.add_argument("older", type=Path, help="a checkout of the older build")
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", default="3", help="for the transactions of each kind")
    parser.add_argument("--changes", default="200", help="transactions of each kind")
    given = parser.parse_args()
    console = Console()
    builds: tuple[tuple[Path, Figures], ...] = ((given.older, {}), (HERE, {}))
    arguments = ("--seconds", given.seconds, "--changes", given.changes)
    for number in range(given.rounds):
        for workload in given.workloads:
            for checkout, figures in builds if number % 2 == 0 else builds[::-1]:
                for kind, milliseconds in measure(checkout, workload, arguments):
                    figures.setdefault((workload, kind), []).append(milliseconds)
            console.print(f"round {number + 1} of {given.rounds}: {workload}", style="dim")
    (_, older), (_, newer) = builds
    show(older, newer, console)


if __name__ == "__main__":
    main()
