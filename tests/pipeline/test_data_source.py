"""`format("deltalog")`: relations at any version, feeds, streams, and what filters save."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo
from test_table_database import replay, rows

import deltalog
from deltalog.pipeline.data_source import BoundReader, Read
from deltalog.pipeline.read import opened_state
from deltalog.pipeline.relation_parts import contents_at
from deltalog.pipeline.state_tables import known_table
from deltalog.pipeline.table_database import TableDatabase

PROGRAM = """
base edge(src: int, dst: int).
base name(node: int key, text: str?, at: date?).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
view cyclic().
cyclic() :- path(X, X).
virtual view hop(src: int, dst: int).
hop(X, Z) :- edge(X, Y), edge(Y, Z).
"""
REACH = """
base edge(src: int, dst: int).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
view reach(src: int, number: int).
reach(X, count()) :- path(X, _).
"""
CHAIN = [(n, n + 1) for n in range(6)]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def opened(spark: SparkSession, state: Path, **options: Any) -> TableDatabase:
    return deltalog.connect(spark=spark, program=PROGRAM, state=state, **options)


def read(spark: SparkSession, state: Path, relation: str, **options: object) -> DataFrame:
    reader = spark.read.format("deltalog").option("relation", relation)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(state))


@pytest.mark.parametrize("freshness", ["commit", "demand"])
def test_a_relation_is_read_at_every_version(
    spark: SparkSession, state: Path, freshness: str
) -> None:
    """Before and after the version of the table, with rows in files and rows in the log."""
    with opened(spark, state, freshness=freshness) as db:
        db.load({"edge": CHAIN, "name": [(1, None, None), (2, "b", None)]})
        db.apply(delete={"edge": [(2, 3)]}, set={"name": [(1, "a", None)]})
        db.fold()
        db.apply(insert={"edge": [(2, 3), (9, 9)]})
        db.apply(delete={"edge": [(0, 1), (9, 9)], "name": [(2, "b", None)]})
        for name in ("edge", "name", "path", "hop"):
            for version in range(1, 5):
                found = rows(read(spark, state, name, version=version))
                assert found == db.facts(name, version), (name, version)
            assert rows(read(spark, state, name)) == db.facts(name)
            feed = read(spark, state, name, readChangeFeed=True)
            assert rows(feed) == rows(db.changes(name))
            assert replay(feed) == db.facts(name)
        assert [read(spark, state, "cyclic", version=v).count() for v in (2, 3, 4)] == [0, 1, 0]
        late = read(spark, state, "path", readChangeFeed=True, startingVersion=3, endingVersion=3)
        assert {row[3] for row in rows(late)} == {3}
        assert late.columns[2:] == ["_change_type", "_commit_version", "_commit_timestamp"]


def test_large_commits_are_read_from_their_files(spark: SparkSession, state: Path) -> None:
    spark.conf.set("spark.deltalog.driver_rows_max", "2")
    try:
        with opened(spark, state, freshness="demand") as db:
            frame = spark.createDataFrame(CHAIN, "src long, dst long")
            db.load("edge", frame)
            db.apply(insert={"edge": spark.createDataFrame([(7, 8), (8, 9), (9, 7)], frame.schema)})
            db.apply(delete={"edge": [(7, 8)]})
            db.apply(delete={"edge": frame})
            for name in ("edge", "path", "hop"):
                for version in range(1, 5):
                    found = rows(read(spark, state, name, version=version))
                    assert found == db.facts(name, version), (name, version)
                assert replay(read(spark, state, name, readChangeFeed=True)) == db.facts(name)
    finally:
        spark.conf.unset("spark.deltalog.driver_rows_max")


def test_filters_are_bindings(spark: SparkSession, state: Path) -> None:
    """They reach the source, and what they exclude is neither read nor derived."""
    with opened(spark, state, freshness="commit") as db:
        db.load("edge", CHAIN)
        db.apply(insert={"edge": [(1, 9)]})
    plain = read(spark, state, "path").where("src = 3 AND dst IN (4, 6, 77)")
    assert rows(plain) == {(3, 4), (3, 6)}  # Spark filters
    deltalog.register_format(spark)
    found = read(spark, state, "path").where("src = 3 AND dst IN (4, 6, 77)")
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "src" in plan
    assert "= 3" not in plan  # Spark leaves it to the source
    assert rows(found) == {(3, 4), (3, 6)}
    assert rows(read(spark, state, "hop").where("src = 1")) == {(1, 3)}
    assert rows(read(spark, state, "hop").where("src = 1 AND dst = 3")) == {(1, 3)}
    assert rows(read(spark, state, "hop", bindings='{"src": 1}')) == {(1, 3)}
    feed = read(spark, state, "edge", readChangeFeed=True).where("dst = 9")
    assert [tuple(row)[:4] for row in feed.collect()] == [(1, 9, "insert", 2)]
    opened_ = opened_state(str(state))
    table = known_table(opened_, "edge")
    assert not contents_at(opened_, table, "edge", 2, {"src": (100,)})  # no file can have it
    reader = BoundReader(Read.of({"path": str(state), "relation": "hop"}))
    assert not list(reader.pushFilters([EqualTo(("src",), 1)]))
    ((batch,),) = [list(reader.read(part)) for part in reader.partitions()]
    assert batch.num_rows == 1


def test_a_stream_follows_its_state(spark: SparkSession, state: Path, tmp_path: Path) -> None:
    """Every change once, over restarts; the log waits for the reader."""
    got: list[tuple[object, ...]] = []

    def run() -> None:
        stream = spark.readStream.format("deltalog").option("relation", "path")
        stream = stream.option("reader", "billing").option("readChangeFeed", "true")
        query = (
            stream.load(str(state))
            .writeStream.foreachBatch(lambda data, _: got.extend(map(tuple, data.collect())))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with opened(spark, state, freshness="commit") as db:
        db.load("edge", CHAIN)
        run()
        assert set(got) == rows(db.changes("path"))
        assert db.readers == {"billing": 0}  # the next batch says that this one is done
        db.apply(insert={"edge": [(6, 0)]})
        run()
        db.apply(delete={"edge": [(6, 0)]})
        assert len(got) == len(set(got))
        run()
        assert set(got) == rows(db.changes("path"))
        assert len(got) == len(set(got))
        held = db.readers["billing"]
        assert 0 < held < 3
        db.compact(deltalog.Retention(versions=0))
        assert db.first_version == held
        db.unregister("billing")
        db.compact(deltalog.Retention(versions=0))
        assert db.first_version == 3
        whole = read(spark, state, "path", readChangeFeed=True)
        assert replay(whole) == db.facts("path")  # it begins with what the log has dropped


def test_a_feed_is_merged_into_a_table(spark: SparkSession, state: Path, tmp_path: Path) -> None:
    """The example of `docs/spark.md`, which stands for an Auto CDC flow: by key, over restarts."""
    target = str(tmp_path / "reach")
    spark.createDataFrame([], "src long, number long").write.format("delta").save(target)

    def merge(changes: DataFrame, number: int) -> None:
        order = F.struct("_commit_version", "_change_type")  # a deletion, then an insertion
        last = changes.groupBy("src").agg(F.max_by(F.struct("*"), order).alias("row"))
        (
            DeltaTable.forPath(spark, target)
            .alias("t")
            .merge(last.select("row.*").alias("s"), "t.src = s.src")
            .whenMatchedDelete("s._change_type = 'delete'")
            .whenMatchedUpdate(set={"number": "s.number"})
            .whenNotMatchedInsert(
                "s._change_type = 'insert'", values={"src": "s.src", "number": "s.number"}
            )
            .execute()
        )

    def run() -> None:
        stream = spark.readStream.format("deltalog").option("relation", "reach")
        query = (
            stream.option("readChangeFeed", "true")
            .load(str(state))
            .writeStream.foreachBatch(merge)
            .option("checkpointLocation", str(tmp_path / "merged"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with deltalog.connect(spark=spark, program=REACH, state=state) as db:
        db.load("edge", [(1, 2), (2, 3), (7, 8)])
        run()
        merge(db.changes("reach"), 0)  # given again, it changes nothing
        assert rows(spark.read.format("delta").load(target)) == db.facts("reach")
        db.apply(insert={"edge": [(3, 4)]}, delete={"edge": [(7, 8)]})
        db.apply(insert={"edge": [(4, 5)]}, delete={"edge": [(1, 2)]})
        run()
        assert rows(spark.read.format("delta").load(target)) == db.facts("reach")


def refusals(state: Path) -> Iterator[tuple[Callable[[SparkSession], object], str]]:
    yield lambda s: read(s, state, "pth"), "E0701"
    yield lambda s: read(s, state, "path", version=9).count(), "E0909"
    yield lambda s: read(s, state, "path", startingversion=-1), "E0710"
    yield lambda s: read(s, state, "path", verson=1), "did you mean"
    yield lambda s: read(s, state / "nobody", "path"), "E0707"
    yield lambda s: read(s, state, "path", bindings='{"scr": 1}').count(), "E0710"


def test_errors_say_what_is_wrong(spark: SparkSession, state: Path) -> None:
    with opened(spark, state) as db:
        db.load("edge", CHAIN)
    for action, words in refusals(state):
        with pytest.raises(Exception, match=words):
            action(spark)


def test_a_reader_beside_the_writer_is_no_writer(spark: SparkSession, tmp_path: Path) -> None:
    """What a reader acknowledges takes a version of the log, and the writer goes on."""
    address = f"file://{tmp_path}/state"
    program = "base n(x: int)."
    with deltalog.connect(spark=spark, program=program, state=address) as db:
        db.apply(insert={"n": [(1,)]})
        other = opened_state(address)
        other.log.note_reader("ann", 1)
        db.apply(insert={"n": [(2,)]})
        assert db.readers == {"ann": 1}
        second = deltalog.connect(spark=spark, program=program, state=address)
        second.apply(insert={"n": [(3,)]})
        with pytest.raises(deltalog.DataError, match="E1001"):
            db._state.log.drop(0)  # files are rearranged behind a commit of somebody else
        second.close()
