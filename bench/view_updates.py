"""How long until the first realization of "user u must (not) see document d", and until all?

    python -m bench.view_updates [--requests 20] [--scale 1.0] [--whole 1]
    python -m bench.view_updates --spark 1000000 [--requests 3]

Workload w7: users in nested groups, documents in nested folders, grants and denials. Half of the
requests take a permission away, half give one; views are stored, and the engine is embedded. Shown
are seconds on the clock and, behind them, of the processor: other work on the machine adds to the
former only. `--whole` is for how many requests of each sign all realizations of one change are
searched. One request of each sign warms up: it imports and makes plans, and is shown by itself.

`--spark` loads the closure of `spark_closure.py` into a state on disk, opens it anew, and requests
paths of one community to go and to be there; shown are the medians by the changes that are needed,
after a first request of each sign. Answers are compared with those of a database in memory that has
this community only.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalog
from bench.measure import BenchError
from bench.spark_closure import COMMUNITY, FACTS_PER_COMMUNITY, PROGRAM, edges
from bench.workloads import permissions

BUDGET = deltalog.Budget(nodes=100_000, seconds=120, changes=1, new_values=0)
Taken = tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--whole", type=int, default=1)
    parser.add_argument("--spark", type=int, metavar="FACTS")
    given = parser.parse_args()
    if given.spark:
        with tempfile.TemporaryDirectory() as folder:
            on_spark(Path(folder), given.spark, given.requests)
        return
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


def on_spark(folder: Path, facts: int, requests: int) -> None:
    """Show the seconds until the first realization in a state with this many facts."""
    from deltalog.engines.spark.session import local_session

    spark = local_session(settings={"spark.driver.memory": "6g"})
    communities = max(10, facts // FACTS_PER_COMMUNITY)
    edge = edges(spark, communities).localCheckpoint()
    begun = time.perf_counter()
    with deltalog.connect(spark=spark, state=folder / "state", program=PROGRAM) as database:
        database.load("edge", edge)
        print(f"{database.frame('path').count():,} facts, {time.perf_counter() - begun:.0f} s")
    taken: dict[tuple[str, int], list[Taken]] = {}
    with deltalog.connect(spark=spark, state=folder / "state", program=PROGRAM) as database:
        for number in range(requests + 1):
            first = (number * 7 + 3) % communities * COMMUNITY
            rows = edge.where(f"src >= {first} AND src < {first + COMMUNITY}").collect()
            facts_ = {"edge": [(row[0], row[1]) for row in rows]}
            small = deltalog.connect(program=PROGRAM, facts=facts_)
            for sign, changes, each in _request(database, small, random.Random(number)):
                taken.setdefault((sign, changes if number else 0), []).append(each)
    for (sign, changes), times in sorted(taken.items()):
        what = f"{changes} change{'s' * (changes > 1)}, {len(times)} requests"
        print(f"{sign}path, {what if changes else 'the very first'}: {_shown(times)}")


def _request(
    database: Any, small: deltalog.MemoryDatabase, draw: random.Random
) -> Iterator[tuple[str, int, Taken]]:
    held = small.facts("path")
    nodes = sorted({node for row in small.facts("edge") for node in row}, key=repr)
    missing = [(x, y) for x in nodes for y in nodes if (x, y) not in held]
    for sign, row in (("-", draw.choice(sorted(held))), ("+", draw.choice(missing))):
        request = f"{sign}path({row[0]}, {row[1]})"
        begun = _clocks()
        first = next(iter(database.realize(request)))
        taken = _since(begun)
        expected = next(iter(small.realize(request)))
        after = small.what_if(first.inserted, first.deleted)
        side = after.inserted if sign == "+" else after.deleted
        if len(first) != len(expected) or row not in side["path"]:
            raise BenchError(f"{first} is not as small as {expected}, for {request}")
        yield sign, len(first), taken


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
