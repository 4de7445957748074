"""A closure in a state on disk: single edges, durable, beside computing and writing it anew.

    python -m bench.durable_closure 1000000 --changes 20

The graph is that of `spark_closure.py`. Measured is the road that users take: `load` into a new
state, single edges by `apply` while the process runs, with tables a minute behind and with every
commit, single edges as files that a pipeline takes, and the same from a new process (without the
start of Spark). By hand, the closure is computed by semi-naive rounds and written as a Delta table,
and it is computed by us without a state; above `RECOMPUTED_FACTS_MAX` facts that is left out. Both
must have the same facts; communities that were changed are compared with a closure in Python.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalog
from bench.measure import BenchError
from bench.spark_closure import (
    COMMUNITY,
    FACTS_PER_COMMUNITY,
    KINDS,
    PROGRAM,
    WARM_UPS,
    Sums,
    by_hand,
    changes_of,
    closed,
    edges,
    sums,
)
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = "10g"
RECOMPUTED_FACTS_MAX = 20_000_000
"""Beyond that, computing everything anew takes longer than one wants to wait."""
PROJECT = """
program = "closure.dl"
state = "state"
[sources.edge]
kind = "changes"
format = "csv"
path = "incoming"
"""
Found = dict[str, Any]


@contextmanager
def timed(found: Found, name: str) -> Iterator[None]:
    """Note seconds of the clock, and of the processor for this process, which is the driver."""
    started, used = time.perf_counter(), time.process_time()
    yield
    found.setdefault(name, []).append(time.perf_counter() - started)
    found.setdefault(f"{name}, driver's processor", []).append(time.process_time() - used)


def opened(spark: SparkSession, state: Path, freshness: Any) -> Any:
    return deltalog.connect(spark=spark, state=state, program=PROGRAM, freshness=freshness)


def measure(spark: SparkSession, folder: Path, facts: int, changes: int, is_by_hand: bool) -> Found:
    """Everything in this process; then a new one goes on."""
    found: Found = {}
    communities = max(10, facts // FACTS_PER_COMMUNITY)
    by_hand(edges(spark, 1))
    edge = edges(spark, communities).localCheckpoint()
    is_recomputed = facts <= RECOMPUTED_FACTS_MAX
    expected = recompute(spark, folder, edge, found, is_by_hand) if is_recomputed else None
    with opened(spark, folder / "state", 60.0) as database:
        with timed(found, "load"):
            database.load("edge", edge)
        if expected is not None and sums(database.frame("path")) != expected:
            raise BenchError("the view is not what it is without a state")
        drawn = list(changes_of(edge, communities, 3 * changes + 2 * WARM_UPS))
        parts = [drawn[i : i + len(drawn) // 3] for i in range(0, len(drawn), len(drawn) // 3)]
        _change(database, parts[0], found, "a minute behind")
    with opened(spark, folder / "state", "commit") as database:
        _change(database, parts[1], found, "every commit")
    _change_by_files(spark, folder, parts[2], found)
    with opened(spark, folder / "state", 60.0) as database:
        _check(database, {each[0] // COMMUNITY for part in parts[:3] for each in part})
        path = sums(database.frame("path"))
    found["facts"] = path[0]
    return found


def recompute(spark: SparkSession, folder: Path, edge: Any, found: Found, is_by_hand: bool) -> Sums:
    """Everything anew: by hand and written, and by us without a state."""
    expected: Sums | None = None
    if is_by_hand:
        with timed(found, "by hand, written"):
            known, _ = by_hand(edge)
            known.write.format("delta").save(str(folder / "by_hand"))
        expected = sums(known)
        del known
    with timed(found, "in memory"):
        database = deltalog.connect(spark=spark, program=PROGRAM, facts={"edge": edge})
    engine: Any = database.engine
    ours = sums(engine.frame("path"))
    if expected is not None and ours != expected:
        raise BenchError("the view in memory is not what the rounds by hand say")
    for relation in list(engine.relations):
        engine.drop(relation)
    return ours


def _change_by_files(
    spark: SparkSession, folder: Path, drawn: list[tuple[int, int]], found: Found
) -> None:
    """One edge in a file, which a pipeline that runs takes: durable, and in the feed."""
    incoming = folder / "incoming"
    incoming.mkdir()
    (folder / "closure.dl").write_text(PROGRAM)
    (folder / "project.toml").write_text(PROJECT)
    with Pipeline(read_project(folder / "project.toml"), spark) as pipeline:
        for number, (src, dst) in enumerate(drawn):
            kind = KINDS[number % 2]
            partial = incoming / ".partial"
            partial.write_text(f"op,src,dst\n{kind},{src},{dst}\n")
            label = f"{kind}, as a file" if number >= 2 * WARM_UPS else "warm-up"
            with timed(found, label):
                partial.rename(incoming / f"{number:04}.csv")
                (step,) = pipeline.steps()
            if not step.delta:
                raise BenchError("the file has changed nothing")


def _check(database: Any, touched: set[int]) -> None:
    """The communities that were changed, fact by fact."""
    where = f"src div {COMMUNITY} IN ({', '.join(map(str, sorted(touched)))})"
    edge = {tuple(row) for row in database.frame("edge").where(where).collect()}
    path = database.frame("path").toDF("src", "dst").where(where)
    if {tuple(row) for row in path.collect()} != closed(edge):
        raise BenchError("changed communities are not what a closure in Python says")


def _change(database: Any, drawn: list[tuple[int, int]], found: Found, name: str) -> None:
    for number, edge in enumerate(drawn):
        kind = KINDS[number % 2]
        label = f"{kind}, {name}" if number >= 2 * WARM_UPS else "warm-up"
        with timed(found, label):
            database.apply(**{kind: {"edge": [edge]}})


def new_process(folder: Path) -> Found:
    """Opened by a process of its own, twice changed."""
    command = [sys.executable, "-m", "bench.durable_closure", "--go-on", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def go_on(folder: Path) -> Found:
    found: Found = {}
    spark = _session()
    with timed(found, "open"):
        database = opened(spark, folder / "state", 60.0)
    for label in ("first change", "second change"):
        with timed(found, label):
            database.apply(insert={"edge": [(0, 1 if label[0] == "f" else 2)]})
    database.close()
    return found


def _session() -> SparkSession:
    from deltalog.engines.spark.session import local_session

    return local_session(settings={"spark.driver.memory": MEMORY})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("facts", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument(
        "--without-by-hand", action="store_true", help="do not compute it by hand, which takes long"
    )
    parser.add_argument("--go-on", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.go_on is not None:
        print(json.dumps(go_on(options.go_on)))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="durable-"))
    try:
        spark = _session()
        found = measure(spark, folder, options.facts, options.changes, not options.without_by_hand)
        spark.stop()
        found |= {f"{name}, new process": each for name, each in new_process(folder).items()}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{found.pop('facts'):,} facts")
    summary: Callable[[list[float]], float] = statistics.median
    for name, seconds in found.items():
        print(f"{name:52} {summary(seconds):8.3f} s  (mean {statistics.mean(seconds):.3f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
