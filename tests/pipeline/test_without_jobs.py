"""What is small costs no job of Spark; what is wrong with a state is found before Spark starts."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import deltalog
from deltalog.cli.main import app
from deltalog.pipeline import migrate_project
from deltalog.pipeline import run as run_module
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.step import Step

PROGRAM = """
base edge(src: int, dst: int).
base price(node: int key, euros: decimal).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
"""
PROJECT = """
program = "graph.dl"
state = "state"
freshness = "commit"
[sources.edge]
kind = "changes"
format = "csv"
path = "incoming"
[sinks.log]
relation = "path"
kind = "append"
path = "out/log"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graph.dl").write_text(PROGRAM)
    (tmp_path / "project.toml").write_text(PROJECT)
    (tmp_path / "incoming").mkdir()
    return tmp_path


def take(spark: SparkSession, folder: Path) -> list[Step]:
    with Pipeline(read_project(folder / "project.toml"), spark) as pipeline:
        return list(pipeline.steps())


def logged(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    data = spark.read.format("delta").load(str(folder / "out/log")).drop("_commit_timestamp")
    return sorted(tuple(row) for row in data.collect())


def test_an_append_sink_gets_small_changes_without_a_job(spark: SparkSession, folder: Path) -> None:
    (folder / "incoming/1.csv").write_text("op,src,dst\n+,1,2\n+,2,3\n")
    (first,) = take(spark, folder)
    (folder / "incoming/2.csv").write_text("op,src,dst\n-,2,3\n")
    (second,) = take(spark, folder)
    assert [first.sinks, second.sinks] == [("log",), ("log",)]
    assert [first.metrics.jobs, second.metrics.jobs] == [0, 0]
    inserted = [(a, b, "insert", 1) for a, b in ((1, 2), (1, 3), (2, 3))]
    deleted = [(1, 3, "delete", 2), (2, 3, "delete", 2)]
    assert logged(spark, folder) == sorted([*inserted, *deleted])
    fields = {
        field.name: field.type.type for field in DeltaTable(folder / "out/log").schema().fields
    }
    assert fields["_commit_timestamp"] == "timestamp"


def test_versions_that_a_sink_has_are_not_appended_again(spark: SparkSession, folder: Path) -> None:
    """By the driver or by Spark, after a run that could not note what it had given."""
    (folder / "incoming/1.csv").write_text("op,src,dst\n+,1,2\n")
    take(spark, folder)
    before = logged(spark, folder)
    with deltalog.connect(spark=spark, program=PROGRAM, state=folder / "state") as db:
        assert db.append_changes("path", 0, str(folder / "out/log"))
        db.note_delivered({"log": 0})
    assert logged(spark, folder) == before
    spark.conf.set("spark.deltalog.driver_rows_max", "1")
    try:
        (folder / "incoming/2.csv").write_text("op,src,dst\n+,2,3\n")
        (step,) = take(spark, folder)
    finally:
        spark.conf.unset("spark.deltalog.driver_rows_max")
    assert step.sinks == ("log",)
    assert logged(spark, folder) == [*before, (1, 3, "insert", 2), (2, 3, "insert", 2)]
    (folder / "incoming/3.csv").write_text("op,src,dst\n+,3,4\n")  # and the driver after Spark
    take(spark, folder)
    assert len(logged(spark, folder)) == 6


def test_few_rows_are_loaded_without_a_job(spark: SparkSession, tmp_path: Path) -> None:
    def jobs() -> int:
        context: Any = spark.sparkContext
        return int(context._jsc.sc().dagScheduler().numTotalJobs())

    with deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state") as db:
        before = jobs()
        with pytest.raises(deltalog.DataError, match="key"):
            db.load({"price": [(1, 2), (1, 3)]})
        db.load({"edge": [(1, 2), (2, 3)], "price": [(1, Decimal("2.5"))]})
        db.load("edge", iter([(3, 4)]))
        assert jobs() == before
        assert len(db.facts("path")) == 6
        with pytest.raises(deltalog.DataError):
            db.load("price", [(1, 9)])
        assert db.audit() == ()


def no_session(**_: object) -> SparkSession:
    raise AssertionError("Spark was started for nothing")


def test_another_program_is_found_before_spark_starts(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "incoming/1.csv").write_text("op,src,dst\n+,1,2\n")
    take(spark, folder)
    (folder / "graph.dl").write_text(PROGRAM + "view loop(node: int).\nloop(X) :- path(X, X).\n")
    monkeypatch.setattr(run_module, "active_or_new_session", no_session)
    with pytest.raises(deltalog.DataError) as found:
        Pipeline(read_project(folder / "project.toml"))
    assert found.value.codes == ("E1002",)
    assert "deltalog pipeline migrate" in str(found.value)


def test_a_project_goes_over_to_its_program(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "incoming/1.csv").write_text("op,src,dst\n+,1,2\n+,2,1\n")
    take(spark, folder)
    command = ["pipeline", "migrate", str(folder / "project.toml")]
    monkeypatch.setattr(migrate_project, "active_or_new_session", no_session)
    same = CliRunner().invoke(app, command)
    assert same.exit_code == 0, same.output
    assert "nothing changes" in same.output
    (folder / "graph.dl").write_text(PROGRAM + "view loop(node: int).\nloop(X) :- path(X, X).\n")
    monkeypatch.setattr(migrate_project, "active_or_new_session", lambda **_: spark)
    asked = CliRunner().invoke(app, [*command, "--what-if"])
    assert asked.exit_code == 0, asked.output
    assert "loop" in asked.output
    with pytest.raises(deltalog.DataError):
        take(spark, folder)
    done = CliRunner().invoke(app, [*command, "--yes"])
    assert done.exit_code == 0, done.output
    assert "from version 2 on" in done.output
    (folder / "incoming/2.csv").write_text("op,src,dst\n-,2,1\n")
    (step,) = take(spark, folder)
    assert step.delta.counts["loop"] == (0, 2)


def test_the_console_has_only_our_own_lines(folder: Path) -> None:
    """Neither Java nor Spark writes to it, from the start of the JVM to its end."""
    (folder / "incoming/1.csv").write_text("op,src,dst\n+,1,2\n")
    script = str(Path(sys.executable).with_name("deltalog"))
    command = [script, "pipeline", "run", "project.toml", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["version"] for line in done.stdout.splitlines()] == [1]
    assert done.stderr == ""
