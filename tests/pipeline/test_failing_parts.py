"""Sources and sinks fail alone: others go on, the failure is reported, and is mended later."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import deltalog
from deltalog.cli.main import app
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.step import Step

PROGRAM = """
base edge(src: int, dst: int).
base price(node: int key, euros: decimal?).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
"""
SOURCES = """
[sources.edge]
kind = "changes"
format = "csv"
path = "edges"
[sources.price]
kind = "changes"
format = "csv"
path = "prices"
"""


def project(folder: Path, text: str) -> Path:
    (folder / "graph.dl").write_text(PROGRAM)
    (folder / "edges").mkdir()
    (folder / "prices").mkdir()
    head = 'program = "graph.dl"\nstate = "state"\nfreshness = "commit"\n'
    (folder / "project.toml").write_text(head + text)
    return folder / "project.toml"


def run(spark: SparkSession, path: Path) -> tuple[list[Step], str]:
    """The steps of a run, and what failed."""
    steps: list[Step] = []
    with Pipeline(read_project(path), spark) as pipeline:
        try:
            for step in pipeline.steps():
                steps.append(step)
        except deltalog.DataError as error:
            return steps, str(error)
    return steps, ""


def batches(steps: list[Step]) -> list[str]:
    return [name for step in steps for _, name in step.batches]


def test_a_broken_sink_stops_neither_versions_nor_other_sinks(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One with a key that rows share: the merge fails, and everything else goes on."""
    sink = '[sinks.{}]\nrelation = "path"\nkind = "{}"\npath = "out/{}"\n'
    path = project(
        tmp_path,
        SOURCES
        + sink.format("copy", "merge", "copy")
        + 'key = ["src"]\n'
        + sink.format("log", "append", "log"),
    )
    edges = tmp_path / "edges"
    (edges / "1.csv").write_text("op,src,dst\n+,1,2\n+,1,3\n")
    steps, problems = run(spark, path)
    assert [step.sinks for step in steps] == [("copy", "log")]
    assert problems == ""
    (edges / "2.csv").write_text("op,src,dst\n-,1,2\n-,1,3\n+,1,4\n+,1,5\n")
    (edges / "3.csv").write_text("op,src,dst\n+,5,6\n")
    steps, problems = run(spark, path)
    assert batches(steps) == ["2.csv", "3.csv"]
    assert [step.sinks for step in steps] == [("log",), ("log",)]
    assert problems.count("error[E1008]: sink `copy` failed at version 2") == 1
    log = spark.read.format("delta").load(str(tmp_path / "out/log"))
    assert log.agg({"_commit_version": "max"}).collect()[0][0] == 3

    shown = CliRunner().invoke(app, ["pipeline", "status", str(path)]).stdout
    assert "sink copy: version 1, 2 behind" in shown
    assert "sink copy failed: sink `copy` failed at version 2" in shown
    done = CliRunner().invoke(app, ["pipeline", "run", str(path)])
    assert done.exit_code == 1
    assert "error[E1008]" in done.stderr

    path.write_text(path.read_text().replace('key = ["src"]\n', 'key = ["src", "dst"]\n'))
    assert run(spark, path) == ([], "")
    copy = spark.read.format("delta").load(str(tmp_path / "out/copy"))
    assert {tuple(row) for row in copy.collect()} == {(1, 4), (1, 5), (1, 6), (5, 6)}
    shown = CliRunner().invoke(app, ["pipeline", "status", str(path)]).stdout
    assert "sink copy: version 3\n" in shown
    assert "failed" not in shown


@pytest.mark.parametrize("bad_rows", ["fail", "refuse"])
def test_a_bad_file_blocks_no_other_source(
    spark: SparkSession, tmp_path: Path, bad_rows: str
) -> None:
    """Earlier files of its source are taken; later ones wait for it if rows must not be missing."""
    path = project(tmp_path, f'bad_rows = "{bad_rows}"\n{SOURCES}')
    edges, prices = tmp_path / "edges", tmp_path / "prices"
    (edges / "1.csv").write_text("op,src,dst\n+,1,2\n")
    (edges / "2.csv").write_text("")
    (edges / "3.csv").write_text("op,src,dst\n+,3,4\n")
    (prices / "9.csv").write_text("op,node,euros\n+,1,2\n")
    steps, problems = run(spark, path)
    later = [] if bad_rows == "fail" else ["3.csv"]
    assert batches(steps) == ["1.csv", *later, "9.csv"]
    assert "2.csv`: it has no header" in problems
    status = CliRunner().invoke(app, ["pipeline", "status", str(path)]).stdout
    assert "source edge failed: cannot read" in status
    (edges / "2.csv").write_text("op,src,dst\n+,2,3\n")
    steps, problems = run(spark, path)
    assert batches(steps) == ["2.csv", *(["3.csv"] if bad_rows == "fail" else [])]
    assert problems == ""
    assert "failed" not in CliRunner().invoke(app, ["pipeline", "status", str(path)]).stdout


def test_files_of_one_transaction_wait_for_each_other(spark: SparkSession, tmp_path: Path) -> None:
    path = project(tmp_path, SOURCES)
    edges, prices = tmp_path / "edges", tmp_path / "prices"
    (edges / "1.csv").write_text("op,src,dst\n+,1,x\n")
    (prices / "1.csv").write_text("op,node,euros\n+,1,2\n")
    (prices / "2.csv").write_text("op,node,euros\n+,2,2\n")
    steps, problems = run(spark, path)
    assert steps == []
    assert "edges/1.csv:2:1" in problems
    assert "+,1,x" in problems
    assert '"x" does not fit column `dst`, which is int' in problems
    (edges / "1.csv").write_text("op,src,dst\n+,1,3\n")
    steps, problems = run(spark, path)
    assert (batches(steps), problems) == (["1.csv", "1.csv", "2.csv"], "")


def test_a_load_and_a_snapshot_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    source = '[sources.{}]\nkind = "{}"\nformat = "{}"\npath = "{}"\n'
    path = project(
        tmp_path,
        source.format("edge", "load", "csv", "edge.csv")
        + source.format("price", "snapshot", "parquet", "price.parquet"),
    )
    (tmp_path / "edge.csv").write_text("src,dst\n1,2\n2,3\n")
    steps, problems = run(spark, path)
    assert [step.delta.counts for step in steps] == [{"edge": (2, 0), "path": (3, 0)}]
    assert "price.parquet" in problems
    data = spark.createDataFrame([(1, "2.5")], "node long, euros string")
    data.write.parquet(str(tmp_path / "price.parquet"))
    steps, problems = run(spark, path)
    assert [step.delta.counts for step in steps] == [{"price": (1, 0)}]
    assert problems == ""


def test_absent_deletes_late_files_and_rewritten_files(spark: SparkSession, tmp_path: Path) -> None:
    """Deleting what is not there is a no-op; a late file is taken; a rewritten one is not."""
    path = project(tmp_path, SOURCES)
    prices = tmp_path / "prices"
    (prices / "5.csv").write_text("op,node,euros\n-,1,2\ndelete,7,\nset,2,3\n")
    steps, _ = run(spark, path)
    assert [step.delta.counts for step in steps] == [{"price": (1, 0)}]
    (prices / "4.csv").write_text("op,node,euros\nset,2,4\n")
    (prices / "5.csv").write_text("op,node,euros\nset,2,9\n")
    steps, problems = run(spark, path)
    assert (batches(steps), problems) == (["4.csv"], "")
    (row,) = deltalog.read(spark, tmp_path / "state", "price").collect()
    assert (row["node"], row["euros"]) == (2, 4)


def test_one_call_runs_a_project(spark: SparkSession, tmp_path: Path) -> None:
    path = project(tmp_path, SOURCES)
    (tmp_path / "edges/1.csv").write_text("op,src,dst\n+,1,2\n")
    (tmp_path / "prices/1.csv").write_text("op,node,euros\n+,x,2\n")
    with pytest.raises(deltalog.DataError, match=r"batch `1.csv` of source `price`"):
        deltalog.run_project(path, spark)
    result = deltalog.run_project(path, raise_problems=False)
    assert (result.version, result.steps, len(result.problems)) == (0, (), 1)
    (tmp_path / "prices/1.csv").rename(tmp_path / "prices/2.csv")
    (tmp_path / "prices/2.csv").write_text("op,node,euros\n+,1,2\n")
    result = deltalog.run_project(str(path), spark)
    assert (result.version, batches(list(result.steps))) == (2, ["1.csv", "2.csv"])
    assert (result.problems, result.rejected) == ((), 0)
    assert all(step.metrics.jobs == 0 for step in result.steps)
