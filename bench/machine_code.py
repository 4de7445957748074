"""Speed that generated machine code brings: the same changes with it and without it, in turns.

    python -m bench.machine_code --seconds 6

Two databases of one process, one interpreted, make the same transactions one after the other, so a
machine that is shared slows both down alike; what counts is processor time of this thread. Some
transactions come before any is timed: pipelines that run often get their code then, and nothing is
timed before it is made. For each workload and kind of change there is the ratio of medians and that
of means; then the geometric mean of each, and of both together. If that is below `WORTH`, generated
code is not worth its place.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from rich.console import Console
from rich.table import Table

import deltalog
from bench.figures import pair
from bench.measure import BenchError, Spread, Transaction, transactions
from bench.single_changes import PLANS
from bench.workloads import Workload, workload
from deltalog.engines.embedded import jit

WORTH = 1.25
SECONDS = 6.0
WARM_UP_SHARE = 0.4
"""Of the transactions, and of the seconds, before anything counts."""


@dataclass(frozen=True)
class Ratio:
    """Milliseconds of one kind of change, interpreted and generated."""

    workload: str
    kind: str
    interpreted: Spread
    generated: Spread

    @property
    def medians(self) -> float:
        return self.interpreted.median / self.generated.median

    @property
    def means(self) -> float:
        return self.interpreted.mean / self.generated.mean


def compare(made: Workload, seconds_max: float) -> list[Ratio]:
    """Make the changes of a workload in turns, with machine code and without."""
    steps = transactions(made)
    both = _opened(made, "never"), _opened(made, "often")
    gc.collect()
    gc.freeze()
    try:
        left, used = iter(steps), 0.0
        for step in islice(left, int(WARM_UP_SHARE * len(steps))):
            used += sum(_timed(database, step) for database in both)
            if used > WARM_UP_SHARE * seconds_max:
                break
        _wait_for_code()
        return _ratios(made.name, both, left, seconds_max)
    finally:
        gc.unfreeze()


def _opened(made: Workload, when: str) -> deltalog.MemoryDatabase:
    """Open a database whose engine makes machine code, or never does."""
    before, jit.WHEN = jit.WHEN, when
    try:
        return deltalog.connect(program=made.program, engine="embedded", facts=made.base)
    finally:
        jit.WHEN = before


def _wait_for_code() -> None:
    while jit.SPECIALIST.is_busy:
        time.sleep(0.01)


def _ratios(
    name: str,
    both: tuple[deltalog.MemoryDatabase, deltalog.MemoryDatabase],
    steps: Iterable[Transaction],
    seconds_max: float,
) -> list[Ratio]:
    taken: dict[str, tuple[list[float], list[float]]] = {}
    used = 0.0
    for step, order in zip(steps, cycle([(0, 1), (1, 0)]), strict=False):
        for which in order:
            seconds = _timed(both[which], step)
            taken.setdefault(step.kind, ([], []))[which].append(seconds * 1_000)
            used += seconds
        if used > seconds_max:
            break
    for relation in both[0].relations:
        if both[0].facts(relation) != both[1].facts(relation):
            raise BenchError(f"{name}: `{relation}` differs")
    found = {kind: tuple(map(Spread.of, sides)) for kind, sides in taken.items()}
    return [
        Ratio(name, kind, *sides)  # type: ignore[arg-type]  # a kind has been timed
        for kind, sides in found.items()
    ]


def _timed(database: deltalog.MemoryDatabase, step: Transaction) -> float:
    """Seconds of processor time: the clock also counts what other programs take."""
    started = time.thread_time()
    database.apply(insert=step.insert, delete=step.delete)
    return time.thread_time() - started


def geometric_mean(values: Sequence[float]) -> float:
    """
    >>> geometric_mean([2.0, 8.0])
    4.0
    """
    return math.exp(sum(map(math.log, values)) / len(values))


def show(found: Sequence[Ratio], console: Console) -> None:
    table = Table("workload", "change", "n", "interpreted", "generated", "medians", "means")
    for each in found:
        table.add_row(
            each.workload,
            each.kind,
            str(each.generated.count),
            pair(each.interpreted),
            pair(each.generated),
            f"{each.medians:.2f}×",
            f"{each.means:.2f}×",
        )
    console.print("Milliseconds of a single change, median/mean")
    console.print(table)
    medians = geometric_mean([each.medians for each in found])
    means = geometric_mean([each.means for each in found])
    console.print(
        f"geometric mean of {len(found)}: medians {medians:.2f}×, means {means:.2f}×, "
        f"together {geometric_mean([medians, means]):.2f}×; worth keeping from {WORTH}× on"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.machine_code", description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(PLANS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for one workload")
    given = parser.parse_args()
    console = Console()
    found: list[Ratio] = []
    for name in given.workloads:
        new = compare(workload(name, given.scale), given.seconds)
        found += new
        for each in new:
            console.print(f"{name} {each.kind}: {each.medians:.2f}× {each.means:.2f}×", style="dim")
    show(found, console)


if __name__ == "__main__":
    main()
