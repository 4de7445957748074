"""The cost of proofs: on commits nothing, and on Spark seconds among millions of facts.

    python -m bench.why commits
    python -m bench.why levels 10000
    python -m bench.why spark 1000000

`commits` runs the same single changes of a closure on two databases in one process, in turn: one as
it is, and one whose commit is compiled without keeping its last change, the only thing that proofs
need of it. Shown is the ratio of the median times, and the least and greatest of several runs.

`levels` deletes the fact that a chain of so many edges starts from, and inserts it again, in memory
and in a file; each time it asks why the last fact has changed, which lies that many levels above
the cause. Shown are seconds of the processor; `earlier` is asked of a version that others followed.

`spark` loads the closure of `spark_closure.py` into a state on disk, opens it anew, and asks for
proofs of facts that are drawn from it, why others do not hold, and why a single deletion deleted
one. The same is asked of a database in memory with one community only, to compare the answers.
"""

from __future__ import annotations

import argparse
import inspect
import json
import random
import statistics
import tempfile
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalog
from bench.measure import BenchError
from bench.spark_closure import COMMUNITY, FACTS_PER_COMMUNITY, PROGRAM, edges
from deltalog.runtime import database as module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = "10g"
CHANGES = 4_000
RUNS = 7
CHAIN = """
    base start(node: int).
    base edge(src: int, dst: int).
    reach(X) :- start(X).
    reach(Y) :- reach(X), edge(X, Y).
"""
KEPT = """
                if self._persistence is None:
                    self.last_change = exact
"""
Found = dict[str, Any]


def compiled(is_kept: bool) -> type[deltalog.MemoryDatabase]:
    """The database in memory, its commit compiled with the lines that keep the last change or not.

    Both are compiled anew, so that they differ in nothing else.
    """
    text = inspect.getsource(deltalog.MemoryDatabase._run_propagation)
    if KEPT not in text:
        raise BenchError("the commit does not keep its last change by these lines any more")
    names = dict(vars(module))
    exec(textwrap.dedent(text if is_kept else text.replace(KEPT, "\n")), names)
    return type(
        "Compiled", (deltalog.MemoryDatabase,), {"_run_propagation": names["_run_propagation"]}
    )


def commits() -> Found:
    """The ratio of commits as they are to commits that keep nothing."""
    draw = random.Random(7)
    facts = {"edge": [(i, i + 1) for i in range(2_000) if i % 10]}
    ours, bare = (deltalog.connect(program=PROGRAM, facts=facts) for _ in range(2))
    ours.__class__, bare.__class__ = compiled(True), compiled(False)
    ratios: list[float] = []
    for _ in range(RUNS + 1):  # the first warms up
        times: dict[int, list[float]] = {id(ours): [], id(bare): []}
        for _ in range(CHANGES):
            edge = draw.randrange(2_000) // 10 * 10, draw.randrange(2_000) // 10 * 10 + 5
            for database in draw.sample((ours, bare), 2):
                started = time.perf_counter()
                database.apply(insert={"edge": [edge]})
                times[id(database)].append(time.perf_counter() - started)
                database.apply(delete={"edge": [edge]})
        ratios.append(statistics.median(times[id(ours)]) / statistics.median(times[id(bare)]))
    if ours.last_change is None or bare.last_change is not None:
        raise BenchError("one of them must keep its last change, and the other must not")
    ratios = sorted(ratios[1:])
    return {"ratio": statistics.median(ratios), "least": ratios[0], "greatest": ratios[-1]}


def levels(count: int) -> Found:
    """Seconds of the processor for changes that many levels above their cause."""
    facts = {"start": [(0,)], "edge": [(i, i + 1) for i in range(count)]}
    found: Found = {}
    with tempfile.TemporaryDirectory() as folder:
        for place in (None, Path(folder) / "chain.db"):
            with deltalog.connect(place, program=CHAIN, facts=facts) as database:
                kind = "memory" if place is None else "file"
                database.apply(delete={"start": [(0,)]})
                _ask_last(database, count, found, f"{kind}, deleted")
                database.apply(insert={"start": [(0,)]})
                _ask_last(database, count, found, f"{kind}, inserted")
                if kind == "file":
                    _ask_last(database, count, found, f"{kind}, earlier", database.version - 1)
    return found


def _ask_last(
    database: Any, count: int, found: Found, name: str, version: int | None = None
) -> None:
    started = time.process_time()
    reason = database.why_changed(f"reach({count - 1})", version)
    found[name] = round(time.process_time() - started, 2)
    if len(reason.steps) != count or not reason.is_complete:
        raise BenchError("every level must be followed")


def on_spark(spark: SparkSession, folder: Path, facts: int) -> Found:
    """Seconds for questions to a state with this many facts."""
    found: Found = {}
    communities = max(10, facts // FACTS_PER_COMMUNITY)
    edge = edges(spark, communities).localCheckpoint()
    started = time.perf_counter()
    with deltalog.connect(spark=spark, state=folder / "state", program=PROGRAM) as database:
        database.load("edge", edge)
        found["load"] = time.perf_counter() - started
        found["facts"] = database.frame("path").count()
    with deltalog.connect(spark=spark, state=folder / "state", program=PROGRAM) as database:
        for number in range(6):
            _ask(database, edge, (number * 7 + 3) % communities, found)
        _ask_changed(database, edge, communities - 1, found)
    return found


def _community(edge: Any, number: int) -> deltalog.MemoryDatabase:
    first = number * COMMUNITY
    rows = edge.where(f"src >= {first} AND src < {first + COMMUNITY}").collect()
    return deltalog.connect(program=PROGRAM, facts={"edge": [(row[0], row[1]) for row in rows]})


def _ask(database: Any, edge: Any, number: int, found: Found) -> None:
    small = _community(edge, number)
    draw = random.Random(number)
    row = draw.choice(sorted(small.facts("path")))
    fact = f"path({row[0]}, {row[1]})"
    expected = small.why(fact)
    proof = _timed(found, "why", lambda: database.why(fact))
    if proof.height != expected.height:  # type: ignore[union-attr]
        raise BenchError(f"{fact} has a proof of height {expected.height}")  # type: ignore[union-attr]
    found.setdefault("heights", []).append(proof.height)
    first = number * COMMUNITY
    nodes = range(first, first + COMMUNITY)
    missing = next((x, y) for x in nodes for y in nodes if (x, y) not in small.facts("path"))
    blocked = _timed(
        found, "why not", lambda: database.why_not(f"path({missing[0]}, {missing[1]})")
    )
    if len(blocked.rules) != 2:
        raise BenchError("every rule must be blocked")


def _ask_changed(database: Any, edge: Any, number: int, found: Found) -> None:
    small = _community(edge, number)
    lost: list[tuple[Any, ...]] = []
    for gone in sorted(small.facts("edge")):
        lost = sorted(small.what_if(delete={"edge": [gone]}).deleted["path"])
        if lost:
            break
    database.apply(delete={"edge": [gone]})
    small.apply(delete={"edge": [gone]})
    fact = f"path({lost[0][0]}, {lost[0][1]})"
    reason = _timed(found, "why changed", lambda: database.why_changed(fact))
    if reason.causes != small.why_changed(fact).causes:
        raise BenchError(f"{fact} has other causes: {reason.causes}")
    past = _timed(
        found,
        "why, in the version before",
        lambda: database.why(fact, version=database.version - 1),
    )
    if past.conclusion != fact:
        raise BenchError("another fact")


def _timed(found: Found, name: str, ask: Any) -> Any:
    started = time.perf_counter()
    answer = ask()
    found.setdefault(name, []).append(round(time.perf_counter() - started, 3))
    return answer


def main() -> None:
    """Measure one part and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("commits", "levels", "spark"))
    parser.add_argument("count", type=int, nargs="?")
    arguments = parser.parse_args()
    if arguments.part == "levels":
        print(json.dumps(levels(arguments.count or 9_990)))
        return
    if arguments.part == "commits":
        print(json.dumps(commits()))
        return
    from deltalog.engines.spark.session import local_session

    session = local_session(settings={"spark.driver.memory": MEMORY})
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(on_spark(session, Path(folder), arguments.count or 1_000_000)))


if __name__ == "__main__":
    main()
