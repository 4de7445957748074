"""Runs that are killed: the next one makes it as if nothing had happened, each batch taken once.

A kill at a chosen write belongs to every run of the tests; `make fuzz` kills fifty times, at random
writes or random moments, and lets killed runs repair what killed runs have left.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from test_table_database import replay

from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from waiting import HANG_SECONDS

HERE = Path(__file__).parent
KILLS = 50 if os.environ.get("DELTALOG_FUZZ") else 0
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


def start(folder: Path, write: int, when: str) -> subprocess.Popen[str]:
    paths = [str(HERE.parent), str(HERE.parents[1] / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(HERE / "killed_run.py"), str(folder / "project.toml")]
    return subprocess.Popen(
        [*command, str(write), when],
        start_new_session=True,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def finish(spark: SparkSession, folder: Path) -> None:
    """A run that nobody kills; then everything is as it must be."""
    with Pipeline(read_project(folder / "project.toml"), spark) as pipeline:
        list(pipeline.steps())
        database = pipeline.database
        assert database.audit() == ()
        database.fold()
        for name in ("edge", "path", "reach"):
            table = spark.read.format("delta").load(str(folder / "state/tables" / name))
            listed = [tuple(row) for row in table.drop("rank__").collect()]
            assert Counter(listed) == Counter(database.facts(name)), name
            assert replay(database.changes(name)) == set(listed)
        files = {path.name for path in (folder / "incoming").iterdir()}
        log = spark.read.format("delta").load(str(folder / "state/log"))
        taken = log.where("change = 'batch'").select("text").collect()
        assert Counter(json.loads(row[0])[1] for row in taken) == Counter({"load", *files})


@pytest.mark.parametrize(("write", "when"), KILLED)
def test_a_killed_run_can_go_on(spark: SparkSession, folder: Path, write: int, when: str) -> None:
    """Killed before and after the commit of the load, between its tables, and at later writes."""
    add_batch(folder, 1, random.Random(write))
    process = start(folder, write, when)
    assert process.wait(HANG_SECONDS) == -signal.SIGKILL
    add_batch(folder, 2, random.Random(write + 1))
    finish(spark, folder)


@pytest.mark.skipif(not KILLS, reason="make fuzz kills fifty times")
def test_many_kills(spark: SparkSession, folder: Path) -> None:
    rng = random.Random(20261116)
    finish(spark, folder)
    for number in range(KILLS):
        add_batch(folder, number, rng)
        at_write = rng.random() < 0.7
        write = rng.randrange(1, 20) if at_write else 0
        process = start(folder, write, rng.choice(("before", "after")))
        if not at_write:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0, 15))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait(HANG_SECONDS)
        if rng.random() < 0.3:
            finish(spark, folder)
    finish(spark, folder)
