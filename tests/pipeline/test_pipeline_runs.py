"""Runs of a project: every kind of source and sink, bad rows, changed schemas, the command."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import deltalog
from deltalog.cli.main import app
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.step import Step

ROOT = Path(__file__).parents[2]
PROGRAM = """
base edge(src: int, dst: int).
base price(node: int key, euros: decimal).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
"""


def project(folder: Path, text: str) -> Path:
    (folder / "graph.dl").write_text(PROGRAM)
    head = 'program = "graph.dl"\nstate = "state"\nfreshness = "commit"\n'
    (folder / "project.toml").write_text(head + text)
    return folder / "project.toml"


def run(spark: SparkSession, path: Path) -> list[Step]:
    with Pipeline(read_project(path), spark) as pipeline:
        steps = list(pipeline.steps())
        assert pipeline.database.audit() == ()
        return steps


def facts(spark: SparkSession, folder: Path, name: str) -> set[tuple[object, ...]]:
    data = deltalog.read(spark, folder / "state", name)
    return {tuple(row) for row in data.collect()}


def test_snapshot_feed_stream_and_all_sinks(spark: SparkSession, tmp_path: Path) -> None:
    feed, stream = tmp_path / "feed", tmp_path / "stream"
    spark.createDataFrame([(1, 2), (2, 3)], "src long, dst long").coalesce(1).write.format(
        "delta"
    ).option("delta.enableChangeDataFeed", "true").save(str(feed))
    stream.mkdir()
    nodes = tmp_path / "nodes.parquet"
    spark.createDataFrame([(1, "1.50"), (2, "2")], "node int, amount string").coalesce(
        1
    ).write.parquet(str(nodes))
    (tmp_path / "receive.py").write_text(
        "seen = []\n\ndef take(changes):\n    seen.extend(tuple(r) for r in changes.collect())\n"
    )
    path = project(
        tmp_path,
        """
[sources.edge]
kind = "feed"
format = "delta"
path = "feed"
[sources.more]
relation = "edge"
kind = "stream"
format = "json"
path = "stream"
schema = "op STRING, src LONG, dst LONG"
[sources.price]
kind = "snapshot"
format = "parquet"
path = "nodes.parquet"
columns = { amount = "euros" }
[sinks.log]
relation = "path"
kind = "append"
path = "out/log"
[sinks.copy]
relation = "path"
kind = "merge"
path = "out/copy"
[sinks.files]
relation = "price"
kind = "snapshot"
path = "out/files"
[sinks.call]
relation = "path"
kind = "function"
function = "receive:take"
""",
    )
    (first,) = run(spark, path)
    assert first.delta.counts == {"edge": (2, 0), "path": (3, 0), "price": (2, 0)}
    assert set(first.sinks) == {"log", "copy", "files", "call"}

    spark.createDataFrame([(3, 4)], "src long, dst long").coalesce(1).write.format("delta").mode(
        "append"
    ).save(str(feed))
    (stream / "a.json").write_text('{"op": "-", "src": 1, "dst": 2}\n')
    shutil.rmtree(nodes)
    spark.createDataFrame([(1, "1.75")], "node int, amount string").coalesce(1).write.parquet(
        str(nodes)
    )
    compared, fed, streamed = run(spark, path)
    assert compared.delta.counts == {"price": (1, 2)}
    assert fed.batches == (("edge", "1"),)
    assert streamed.batches == (("more", "0"),)
    assert facts(spark, tmp_path, "edge") == {(2, 3), (3, 4)}
    paths = {(2, 3), (3, 4), (2, 4)}
    copy = spark.read.format("delta").load(str(tmp_path / "out/copy"))
    assert {tuple(row) for row in copy.collect()} == facts(spark, tmp_path, "path") == paths
    log = spark.read.format("delta").load(str(tmp_path / "out/log"))
    held: set[tuple[object, ...]] = set()
    listed = [tuple(row) for row in log.collect()]
    for *row, kind, _, _ in sorted(listed, key=lambda r: (r[-2], r[-3] == "insert")):
        (held.remove if kind == "delete" else held.add)(tuple(row))
    assert held == paths
    assert spark.read.parquet(str(tmp_path / "out/files")).count() == 1
    import receive  # type: ignore[import-not-found]  # the run has put the folder on the path

    assert len(receive.seen) == log.count()
    assert run(spark, path) == []


def test_files_with_ops_and_bad_rows(spark: SparkSession, tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    text = '[sources.price]\nkind = "changes"\nformat = "csv"\npath = "incoming"\n'
    path = project(tmp_path, 'bad_rows = "quarantine"\n' + text)
    bad = "+,2,x\n+,1,9\n?,3,3\n+,,4\n+,5\nset,6,6\nset,6,7\n"
    (incoming / "1.csv").write_text(f"op,node,euros\n+,1,1.5\n{bad}set,7,7\nset,7,7\n")
    (step,) = run(spark, path)
    assert facts(spark, tmp_path, "price") != set()
    taken = {(1, step_price("1.5")), (7, step_price("7"))}
    assert step.delta.changes.inserted["price"] == taken
    reasons = [bad.reason for bad in step.refused]
    assert len(reasons) == 7
    twice = "another row of this batch has the same key and different values"
    assert [(bad.line, json.loads(bad.row)) for bad in step.refused if bad.reason == twice] == [
        (8, {"node": "6", "euros": "6"}),
        (9, {"node": "6", "euros": "7"}),
    ]
    expected = "`euros`, which is decimal", "is not an operation", "null does not fit"
    for words in (*expected, "cannot be read"):
        assert any(words in reason for reason in reasons), (words, reasons)
    assert any("price(1, 1.5) already has this key" in reason for reason in reasons)
    with Pipeline(read_project(path), spark) as pipeline:
        quarantined = pipeline.database.quarantine().collect()
    assert {row["reason"] for row in quarantined} == set(reasons)
    assert {row["source"] for row in quarantined} == {"price"}

    (incoming / "2.csv").write_text("op,node,euro\n+,1,1.5\n")
    with pytest.raises(deltalog.DataError) as caught:
        run(spark, path)
    assert caught.value.codes == ("E1004",)
    assert "`euros` is missing, `euro` is unknown" in str(caught.value)
    assert '`columns = { euro = "euros" }` renames' in str(caught.value)

    (incoming / "2.csv").write_text("op,node,euros\nset,1,two\n-,1,1.5\n")
    path.write_text(path.read_text().replace("quarantine", "fail"))
    with pytest.raises(deltalog.DataError) as caught:
        run(spark, path)
    assert caught.value.codes == ("E1005",)
    path.write_text(path.read_text().replace('"fail"', '"refuse"'))
    (step,) = run(spark, path)
    assert step.is_refused
    assert not step.delta
    assert facts(spark, tmp_path, "price") == taken
    assert run(spark, path) == []


def test_a_large_file_with_bad_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Sorted on the cluster: the same rows are bad, and those that have one key twice."""
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    text = '[sources.price]\nkind = "changes"\nformat = "csv"\npath = "incoming"\n'
    path = project(tmp_path, 'bad_rows = "quarantine"\n' + text)
    (incoming / "1.csv").write_text("op,node,euros\n+,1,1.5\n+,2,2.5\n")
    spark.conf.set("spark.deltalog.driver_rows_max", "2")
    try:
        run(spark, path)
        lines = [
            "-,1,1.5",
            "+,1,1.75",
            "+,2,9",
            "+,3,x",
            "?,4,4",
            "+,5,5",
            "+,5,6",
            "+,6,6",
            "+,6,6",
        ]
        (incoming / "2.csv").write_text(
            "\n".join(["op,node,euros", *lines, "set,7,7", "set,8", ",9,9"])
        )
        (step,) = run(spark, path)
    finally:
        spark.conf.unset("spark.deltalog.driver_rows_max")
    prices = {1: "1.75", 2: "2.5", 6: "6", 7: "7"}
    assert facts(spark, tmp_path, "price") == {(n, step_price(p)) for n, p in prices.items()}
    assert step.delta.counts == {"price": (3, 1)}
    bad = {(each.line, each.op): each for each in step.refused}
    assert len(bad) == len(step.refused) == 7
    assert bad[4, "+"].reason == "price(2, 2.5) already has this key"
    assert json.loads(bad[4, "+"].row) == {"node": 2, "euros": 9}
    twice = "another row of this batch has the same key and different values"
    assert bad[7, "+"].reason == bad[8, "+"].reason == twice
    assert "`euros`, which is decimal" in bad[5, "+"].reason
    assert "`?` is not an operation" in bad[6, "?"].reason
    assert "cannot be read" in bad[12, None].reason
    (missing,) = (each for each in step.refused if each.line == 13)
    assert missing.reason.startswith("there is no operation; use one of")
    assert {each.file for each in step.refused} == {str(incoming / "2.csv")}


def step_price(text: str) -> object:
    from decimal import Decimal

    return Decimal(text)


def test_the_example_as_a_command(spark: SparkSession, tmp_path: Path) -> None:
    """The story of the demo; the command takes the session that is there."""
    folder = tmp_path / "catalogue"
    shutil.copytree(ROOT / "examples/catalogue", folder)
    shutil.move(folder / "batches", folder / "incoming")
    command = ["pipeline", "run", str(folder / "project.toml"), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["version"] for record in records] == [1, 2, 3, 4, 4]
    assert records[1]["counts"]["offer"] == [1, 0]
    assert records[2]["counts"]["offer"] == [3, 3]
    assert [len(record["refused"]) for record in records] == [0, 0, 0, 0, 2]
    assert records[3]["sinks"] == ["offer"]
    for record in records[1:]:
        metrics = record["metrics"]
        assert metrics["rows"] == sum(map(sum, record["counts"].values()))
        assert 0 < metrics["seconds"] < 600
        assert metrics["jobs"] == 0
    offers = facts(spark, folder, "offer")
    assert offers == {
        ("bike", "Touring bike", 17610),
        ("cargo", "Cargo bike", 57510),
        ("wheel", "Wheel", 4710),
    }
    import duckdb

    found = duckdb.sql(f"SELECT * FROM '{folder}/out/offer/*.parquet'").fetchall()
    assert set(found) == offers

    shown = CliRunner().invoke(app, ["pipeline", "status", str(folder / "project.toml")])
    assert "version 4" in shown.stdout
    assert "rows in quarantine: 2" in shown.stdout
    state = json.loads(
        CliRunner().invoke(app, [*command[:1], "status", command[2], "--json"]).stdout
    )
    assert [each["rows"] for each in state["metrics"]] == [r["metrics"]["rows"] for r in records]
    assert [each["jobs"] for each in state["metrics"][1:]] == [0, 0, 0, 0]
    assert "price_changes: 4 batches, the last `4-a-bad-batch.csv`" in shown.stdout


def test_a_database_and_a_table_going_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are compared with what is known, again and again, until somebody interrupts."""
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"

    def put(*edges: tuple[int, int]) -> None:
        data = spark.createDataFrame(edges, "src long, dst long")
        data.write.mode("overwrite").jdbc(url, "edges")

    def price(text: str) -> None:
        data = spark.createDataFrame([(1, text)], "node long, euros string")
        data.createOrReplaceTempView("prices")

    path = project(
        tmp_path,
        f"""
[sources.edge]
kind = "snapshot"
format = "jdbc"
options = {{ url = "{url}", dbtable = "edges" }}
columns = {{ SRC = "src", DST = "dst" }}
[sources.price]
kind = "snapshot"
format = "table"
table = "prices"
""",
    )
    put((1, 2), (2, 3))
    price("1.5")
    happenings = iter([lambda: put((1, 2), (3, 1)), lambda: price("2.25"), None])

    def sleep(seconds: float) -> None:
        assert seconds == 7
        happens = next(happenings)
        if happens is None:
            raise KeyboardInterrupt
        happens()

    monkeypatch.setattr("deltalog.cli.pipeline.sleep", sleep)
    command = ["pipeline", "run", str(path), "--continuous", "--seconds", "7", "--json"]
    done = CliRunner().invoke(app, command)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["counts"] for record in records] == [
        {"edge": [2, 0], "path": [3, 0], "price": [1, 0]},
        {"edge": [1, 1], "path": [2, 2]},
        {"price": [1, 1]},
    ], done.output
    assert done.exit_code == 130
    assert facts(spark, tmp_path, "path") == {(1, 2), (3, 1), (3, 2)}


def test_csv_is_that_of_rfc_4180(spark: SparkSession, tmp_path: Path) -> None:
    """Quotes are doubled inside quotes, and lines may end there, as Python writes them."""
    texts = ['x,"y', "two\nlines", "plain", 'a ""b"" c', "back\\slash"]
    with (tmp_path / "note.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *enumerate(texts)])
    source = '[sources.note]\nkind = "load"\nformat = "csv"\npath = "note.csv"\n'
    path = project(tmp_path, source)
    (tmp_path / "graph.dl").write_text("base note(id: int, text: str).\n")
    run(spark, path)
    assert facts(spark, tmp_path, "note") == set(enumerate(texts))
