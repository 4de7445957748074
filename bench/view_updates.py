"""How long until the first realization of "user u must (not) see document d", and until all?

    python -m bench.view_updates [--requests 20] [--scale 1.0] [--whole 1]

Workload w7: users in nested groups, documents in nested folders, grants and denials. Half of the
requests take a permission away, half give one; views are stored, and the engine is embedded. Shown
are seconds on the clock and, behind them, of the processor: other work on the machine adds to the
former only. `--whole` is for how many requests of each sign all realizations of one change are
searched. One request of each sign warms up: it imports and makes plans, and is shown by itself.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

import deltalog
from bench.workloads import permissions

BUDGET = deltalog.Budget(nodes=100_000, seconds=120, changes=1, new_values=0)
Taken = tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--whole", type=int, default=1)
    given = parser.parse_args()
    workload = permissions(given.scale, changes=1)
    db = deltalog.connect(program=workload.program, facts=dict(workload.base))
    draw = random.Random(7)
    known = db.facts("can")
    held = sorted(known)
    users = sorted({user for user, _ in workload.base["member"]})
    documents = sorted({document for document, _ in workload.base["doc_in"]})
    print(f"{len(held):,} permissions, {sum(map(len, workload.base.values())):,} base facts")
    for sign in "-+":
        first: list[Taken] = []
        whole: list[Taken] = []
        counts: list[int] = []
        is_complete = True
        for number in range(given.requests + 1):
            row = draw.choice(held)
            while sign == "+" and row in known:
                row = draw.choice(users), draw.choice(documents)
            begun = _clocks()
            found = db.realize(f"{sign}can({row[0]}, {row[1]})", budget=BUDGET)
            answers = iter(found)
            any_ = next(answers, None)
            first.append(_since(begun))
            if 0 < number <= given.whole:
                counts.append((any_ is not None) + sum(1 for _ in answers))
                whole.append(_since(begun))
                is_complete &= all("more than 1 change" in each for each in found.reasons)
        print(f"{sign}can: first answer {_shown(first[1:])}; the very first {_shown(first[:1])}")
        if whole:
            print(
                f"      all of one change {_shown(whole)}, {statistics.median(counts):.0f} answers,"
                f" {'complete' if is_complete else 'not complete'}"
            )


def _clocks() -> Taken:
    return time.perf_counter(), time.process_time()


def _since(begun: Taken) -> Taken:
    now = _clocks()
    return now[0] - begun[0], now[1] - begun[1]


def _shown(taken: list[Taken]) -> str:
    wall, processor = ([each[i] * 1e3 for each in taken] for i in (0, 1))
    return (
        f"{statistics.median(wall):.0f} ms ({statistics.median(processor):.0f} of the processor; "
        f"at most {max(wall):.0f}, {max(processor):.0f})"
    )


if __name__ == "__main__":
    main()
