"""Runs that are killed: the next one makes it as if nothing had happened, each batch taken once.

Five kills at chosen writes belong to every run of the tests; `make kills` and `make fuzz` kill as
often as `DELTALOG_KILLS` says, at random writes or moments of a process that takes batches, loads,
folds, compacts and goes over to other programs (`killed_walk.py`), and let killed processes go on
after killed ones. Some processes have a JVM of their own, which dies with them; most work with that
of the test, whose jobs go on when they are dead. On a cluster, and by Spark Connect
(`tests/spark/elsewhere.py`), the same.

What is left is checked without Spark where that is as strong: tables are read by delta-rs, views
are recomputed by the embedded engine. The last state is verified by Spark, too.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import killed_run
import killed_walk
import pytest
from deltalake import DeltaTable
from killed_processes import Killed
from pyarrow import compute
from pyspark.sql import SparkSession
from test_table_database import replay

from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.table_database import TableDatabase
from spark_sessions import MASTER, gateway_of

NOTHING: Mapping[str, str] = {}
KILLS = int(os.environ.get("DELTALOG_KILLS", "50" if os.environ.get("DELTALOG_FUZZ") else "0"))
IS_ONE_JVM = bool(os.environ.get("DELTALOG_KILLS_IN_ONE_JVM"))
"""Whether no JVM dies."""
JVMS = 0.15
"""How many processes have a JVM of their own; a kill of the others takes some seconds."""
KILLS_EACH = 12
"""How often processes of one state are killed; then another state begins."""
IS_CONNECTED = MASTER.startswith("sc:")
KILLED = [(1, "before"), (1, "after"), (3, "after"), (12, "before"), (14, "after")]
"""Writes at which a run is killed in every test."""
PROGRAM = """
base edge(src: int, dst: int).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
view reach(src: int, number: int).
reach(X, count()) :- path(X, _).
"""
PROJECT = """
program = "graph.dl"
state = "state"
freshness = "commit"
[sources.edge]
kind = "load"
format = "csv"
path = "edge.csv"
[sources.changes]
relation = "edge"
kind = "changes"
format = "csv"
path = "incoming"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graph.dl").write_text(PROGRAM)
    (tmp_path / "project.toml").write_text(PROJECT)
    ring = "".join(f"{node},{(node + 1) % 6}\n" for node in range(6))
    (tmp_path / "edge.csv").write_text("src,dst\n" + ring)
    (tmp_path / "incoming").mkdir()
    return tmp_path


def add_batch(folder: Path, number: int, rng: random.Random) -> None:
    lines = [f"{rng.choice('+-')},{rng.randrange(8)},{rng.randrange(8)}\n" for _ in range(3)]
    lines += [f"+,{100 + number},{rng.randrange(8)}\n"]  # so that it always changes something
    (folder / f"incoming/{number:04}.csv").write_text("op,src,dst\n" + "".join(lines))


def finish(spark: SparkSession, folder: Path) -> None:
    """A run that nobody kills; then everything is as it must be."""
    with Pipeline(read_project(folder / "project.toml"), spark) as pipeline:
        list(pipeline.steps())
        database = pipeline.database
        assert database.audit(engine="reference") == ()
        database.fold()
        for name in ("edge", "path", "reach"):
            listed = table_rows(folder / "state", name)
            assert Counter(listed) == Counter(database.facts(name)), name
        assert replay(database.changes("path")) == database.facts("path")
        files = {path.name for path in (folder / "incoming").iterdir()}
        assert Counter(batches(folder / "state")) == Counter({"load", *files})


def table_rows(state: Path, name: str) -> list[tuple[Any, ...]]:
    """A table as delta-rs reads it, with rows that are there twice."""
    table = DeltaTable(state / "tables" / name).to_pyarrow_table()
    named = [column for column in table.column_names if column != "rank__"]
    return [tuple(row.values()) for row in table.select(named).to_pylist()]


def batches(state: Path) -> list[str]:
    """The names of all batches in the log, in the order of commits."""
    log = DeltaTable(state / "log").to_pyarrow_table(columns=["change", "sequence", "text"])
    found = log.filter(compute.equal(log["change"], "batch")).sort_by("sequence")
    return [json.loads(text)[1] for text in found["text"].to_pylist()]


@pytest.mark.parametrize(("write", "when"), KILLED)
def test_a_killed_run_can_go_on(spark: SparkSession, folder: Path, write: int, when: str) -> None:
    """Killed before and after the commit of the load, between its tables, and at later writes."""
    add_batch(folder, 1, random.Random(write))
    words = (str(folder / "project.toml"), write, when)
    process = Killed(killed_run.run, *words, gateway=gateway_for(spark, write == 3))
    assert [line for line in process.lines() if line.startswith("dies")]
    assert process.status() == -signal.SIGKILL
    add_batch(folder, 2, random.Random(write + 1))
    finish(spark, folder)


def gateway_for(spark: SparkSession, has_own: bool) -> Mapping[str, str]:
    """The way to the JVM of the test, for a process that is to have none of its own."""
    return NOTHING if IS_CONNECTED or has_own else gateway_of(spark)


def check_walk(spark: SparkSession, state: Path, done: set[str]) -> None:
    """Every batch that was acknowledged is there once, and everything follows from the batches."""
    if not DeltaTable.is_deltatable(str(state / "log")):
        assert not done
        return
    with killed_walk.opened(spark, str(state)) as database:
        taken = batches(state)
        assert len(taken) == len(set(taken))
        assert done <= set(taken)
        edges: killed_walk.Edges = set()
        for number in map(int, taken):
            inserted, deleted = killed_walk.batch(number)
            edges = (edges - deleted) | inserted
        assert database.facts("edge") == edges
        assert database.audit(engine="embedded") == ()
        check_rules(database)
        for name, version in database.table_versions.items():
            if name in database.relations and version >= database.first_version:
                listed = table_rows(state, name)
                assert Counter(listed) == Counter(database.facts(name, version)), name


def check_rules(database: TableDatabase) -> None:
    """Each commit has what its rules did, and its messages: they open and close in turn."""
    loops = {src for src, dst in database.facts("path") if src == dst}
    assert database.facts("looped") == {(each,) for each in loops}
    messages = database.messages()
    assert len({message.id for message in messages}) == len(messages)
    states: dict[int, list[str]] = {}
    for message in messages:
        states.setdefault(message.arguments[0], []).append(message.name)
    for node, names in states.items():
        assert names == [("loop", "open")[i % 2] for i in range(len(names))], node
        assert (names[-1] == "loop") == (node in loops)
    fired = {rule.name: rule.firings for rule in database.rules()}
    assert fired["loops"] == sum(message.name == "loop" for message in messages)
    assert loops <= states.keys()


@pytest.mark.skipif(not KILLS, reason="make kills")
def test_many_kills(spark: SparkSession, tmp_path: Path) -> None:
    """At random writes and moments of loads, batches, folds, compactions and migrations.

    `DELTALOG_KILLS` says how many, `DELTALOG_KILL_SEED` which; a tally of where they died is
    printed, and appended to the file `DELTALOG_KILL_TALLY`.
    """
    seed = int(os.environ.get("DELTALOG_KILL_SEED", "20261118"))
    rng = random.Random(seed)
    tally: Counter[str] = Counter()
    taken = jvms = 0
    while tally.total() < KILLS:
        state, done = tmp_path / f"state{tally.total()}", set[str]()
        for _ in range(min(KILLS_EACH, KILLS - tally.total())):
            has_own = not IS_ONE_JVM and rng.random() < JVMS
            said = killed(state, rng, gateway_for(spark, has_own))
            done |= {line.split()[1] for line in said if line.startswith("batch")}
            if said[-1].startswith("dies"):
                tally[f"{said[-1]}, after {said[-2].split()[0]}"] += 1
            elif said[-1] == "killed":
                tally["at a moment"] += 1
            jvms += has_own
            print(tally.total(), len(said), said[-1], file=sys.stderr, flush=True)
            if rng.random() < 0.1:
                check_walk(spark, state, done)
        check_walk(spark, state, done)
        taken += len(done)
        print(f"{tally.total()} kills, {taken} batches", file=sys.stderr, flush=True)
    with killed_walk.opened(spark, str(state)) as database:
        assert database.verify().is_clean
    counts = {"kills": tally.total(), "with a JVM": jvms, "batches": taken}
    found = {"seed": seed, **counts, **dict(sorted(tally.items()))}
    print(json.dumps(found, indent=1), file=sys.stderr, flush=True)
    if path := os.environ.get("DELTALOG_KILL_TALLY"):
        with Path(path).open("a") as file:
            file.write(json.dumps(found) + "\n")


def killed(state: Path, rng: random.Random, gateway: Mapping[str, str]) -> list[str]:
    """Let a process walk until it dies, at a write or a moment; returns what it said."""
    write = rng.randrange(1, 25) if rng.random() < 0.7 else 0
    words = (str(state), rng.randrange(10**6), write, rng.choice(("before", "after")))
    process = Killed(killed_walk.walk, *words, gateway=gateway)
    steps = rng.randrange(1, 12) if not write else 0
    said: list[str] = []
    for line in process.lines():
        said.append(line)
        if len(said) == steps:
            time.sleep(rng.uniform(0, 1))
            process.kill()
    status = process.status()
    assert status in (0, -signal.SIGKILL), said
    return [*said, "killed"] if steps and status else said
