"""A database in tables: what it gives, what it keeps, and that both equal recomputation."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import deltalog
from deltalog.engines.spark.lazy_frame import LazyFrame
from deltalog.pipeline import input_facts, sources
from deltalog.pipeline.classify import classify_offers
from deltalog.pipeline.project import Source
from deltalog.pipeline.stored_table import StoredTable
from deltalog.pipeline.table_database import TableDatabase
from deltalog.runtime import checked_rows

PROGRAM = """
base edge(src: int, dst: int).
base weight(node: int key, grams: int).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
view load(node: int, total: int).
load(X, sum(G)) :- path(X, Y), weight(Y, G).
view light(node: int).
light(X) :- edge(X, _), not load(X, _).
view cyclic().
cyclic() :- path(X, X).
"""
RING = [(1, 2), (2, 3), (3, 1), (3, 4)]


def opened(spark: SparkSession, state: Path) -> TableDatabase:
    return deltalog.connect(spark=spark, program=PROGRAM, state=state, freshness="commit")


def rows(frame: DataFrame) -> set[tuple[object, ...]]:
    return {tuple(row) for row in frame.collect()}


def on_disk(state: Path, name: str) -> set[tuple[object, ...]]:
    """A table as anybody sees it; delta-rs reads it without a job."""
    table = DeltaTable(state / "tables" / name).to_pyarrow_table()
    columns = [table[column].to_pylist() for column in table.column_names if column != "rank__"]
    return set(zip(*columns, strict=True))


def check(state: Path, database: TableDatabase) -> None:
    """What is in memory and in tables equals recomputation."""
    assert database.audit(engine="reference") == ()
    for name in ("edge", "path", "load", "light"):
        assert on_disk(state, name) == database.facts(name), name
    assert on_disk(state, "cyclic") == ({(True,)} if database.facts("cyclic") else set())


def test_load_change_reopen(spark: SparkSession, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with opened(spark, state) as database:
        frame = spark.createDataFrame(RING, "src long, dst long")
        delta = database.load({"edge": frame, "weight": [(1, 10), (4, 5)]})
        assert delta.version == 1
        assert delta.counts["path"] == (12, 0)
        assert rows(delta.inserted["load"]) == {(1, 15), (2, 15), (3, 15)}
        assert rows(delta.inserted["cyclic"]) == {(True,)}

        gone = spark.createDataFrame([(2, 3)], "src long, dst long")
        delta = database.apply(insert={"edge": [(4, 5)]}, delete={"edge": gone})
        assert rows(delta.inserted["path"]) == {(4, 5), (3, 5)}
        assert len(rows(delta.deleted["path"])) == 8
        assert rows(delta.deleted["cyclic"]) == {(True,)}
        assert delta.changes.inserted["path"] == {(4, 5), (3, 5)}
        assert rows(delta.inserted["weight"]) == set()
        check(state, database)

    with opened(spark, state) as database:  # nothing is computed: rows are fetched, no more
        assert database.version == 2
        assert set(database.engine.jobs) <= {"load", "collect"}
        database.apply(insert={"edge": [(2, 3)]}, batch=("api", "1"))
        delta = database.apply(delete={"edge": [(1, 2)]}, set={"weight": [(1, 11)]})
        assert delta.changes.inserted["weight"] == {(1, 11)}
        check(state, database)
        feed = database.changes("path").where("_commit_version = 2 AND _change_type = 'insert'")
        assert {row[:2] for row in rows(feed)} == {(4, 5), (3, 5)}
        assert not database.apply(insert={"edge": [(9, 9)]}, batch=("api", "1"))
        assert (9, 9) not in database.facts("edge")

        with pytest.raises(deltalog.DataError) as caught:
            opened(spark, state)
        assert caught.value.codes == ("E1001",)
        assert replay(database.changes("path")) == on_disk(state, "path")


def replay(feed: DataFrame) -> set[tuple[object, ...]]:
    """A relation as its feed of changes tells it; every single change is exact."""
    held: set[tuple[object, ...]] = set()
    listed = [tuple(row) for row in feed.collect()]
    for *row, kind, version, _ in sorted(listed, key=lambda r: (r[-2], r[-3] == "insert")):
        assert (tuple(row) in held) == (kind == "delete"), (version, kind, row)
        (held.discard if kind == "delete" else held.add)(tuple(row))
    return held


def test_what_is_refused_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    state = tmp_path / "state"
    program = "base n(x: int).\nview big(x: int).\nbig(X) :- n(X), X > 10."

    def check(change: deltalog.ChangeSet) -> str | None:
        return "a big number" if change.inserted["big"] else None

    with deltalog.connect(spark=spark, program=program, state=state, check=check) as database:
        database.apply(insert={"n": [(1,)]})
        with pytest.raises(deltalog.DataError, match="a big number"):
            database.apply(insert={"n": [(11,)]})
        wrong = spark.createDataFrame([("x",)], "x string")
        with pytest.raises(deltalog.DataError) as caught:
            database.apply(insert={"n": wrong})
        assert caught.value.codes == ("E1005",)
        other = spark.createDataFrame([(1, 2)], "x long, z long")
        with pytest.raises(deltalog.DataError, match="`z` is unknown"):
            database.load("n", other)
        assert database.version == 1
        database.apply(insert={"n": [(2,)]})
        assert on_disk(state, "n") == {(1,)}  # it may be a minute behind
        assert database.fold() == ["n"]
        assert on_disk(state, "n") == {(1,), (2,)}
    with pytest.raises(deltalog.DataError) as caught:
        database.apply(insert={"n": [(3,)]})
    assert caught.value.codes == ("E1006",)
    with pytest.raises(deltalog.DataError) as caught:
        deltalog.connect(spark=spark, program="base n(x: str).", state=state)
    assert caught.value.codes == ("E1002",)


def test_a_batch_is_checked_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether rows or frames, few or many: nobody checks again what another one has checked."""
    checks: list[str] = []

    def counted(module: object, name: str) -> None:
        check = getattr(module, name)

        def count(*arguments: object) -> object:
            checks.append(name)
            return check(*arguments)

        monkeypatch.setattr(module, name, count)

    counted(checked_rows, "is_canonical")
    counted(checked_rows, "checked_row")
    counted(input_facts, "checked_frame")
    counted(sources, "checked_frame")

    def made() -> list[str]:
        found = checks.copy()
        checks.clear()
        return found

    program = "base weight(node: int key, grams: int)."
    schema = "node long, grams long"
    with deltalog.connect(spark=spark, program=program, state=tmp_path / "state") as database:
        database.apply(insert={"weight": [(1, 1), (2, 2)]})
        assert made() == ["is_canonical"]
        database.apply(set={"weight": spark.createDataFrame([(1, 2), (3, 3)], schema)})
        assert made() == ["checked_frame"]
        database.load("weight", spark.createDataFrame([(4, 4)], schema))
        assert made() == ["checked_frame"]
        settings = replace(database.engine.settings, driver_rows_max=1)
        monkeypatch.setattr(database.engine, "settings", settings)
        database.apply(set={"weight": spark.createDataFrame([(1, 3), (5, 5)], schema)})
        assert made() == ["checked_frame"]

        source = Source("price", "weight", "changes", "csv")
        relation = database.relations["weight"]

        def take(most: int, rows: list[tuple[str, ...]]) -> int:
            """Apply a batch of a source; returns how often the cluster was asked for facts."""
            chosen = replace(settings, driver_rows_max=most)
            monkeypatch.setattr(database.engine, "settings", chosen)
            data = spark.createDataFrame(rows, "op string, node string, grams string")
            offer = sources.of_stream(source, relation, data, 1)
            before = database.engine.jobs["probe"]
            found = classify_offers(database, [offer])
            database.apply(found.insert, found.delete, found.set)
            assert made() == ["checked_frame"]
            return database.engine.jobs["probe"] - before

        take(1, [("+", "6", "6"), ("set", "1", "4"), ("-", "2", "2")])
        probes = take(100, [("+", "7", "6"), ("+", "8", "6")])
        before = database.engine.jobs["probe"]
        database.apply(insert={"weight": [(9, 6), (10, 6)]})
        assert probes == database.engine.jobs["probe"] - before > 0
        nodes = {node for node, _ in database.facts("weight")}
        assert nodes == {1, 3, 4, 5, 6, 7, 8, 9, 10}


def test_a_large_batch_stays_on_the_cluster(spark: SparkSession, tmp_path: Path) -> None:
    """Its net effect is found there, and is what the same rows in a transaction do."""
    state = tmp_path / "state"
    program = """
    base edge(src: int, dst: int).
    base weight(node: int key, grams: int).
    view load(node: int, total: int).
    load(X, sum(G)) :- edge(X, Y), weight(Y, G).
    """
    edges = [(n, n + 1) for n in range(12)]
    weights = [(n, 10 * n) for n in range(12)]
    delete = {"edge": [(2, 3), (5, 6), (5, 6), *((n, n) for n in range(9))]}
    insert = {
        "edge": [(3, 4), (5, 6), (11, 0), *((n, 20) for n in range(8))],
        "weight": [(-1, 3), (0, 0), (-2, 4)],  # of which the first is replaced at once
    }
    put = {"weight": [(n, 7 if n else 0) for n in range(-1, 9)]}
    spark.conf.set("spark.deltalog.driver_rows_max", "6")
    try:
        with deltalog.connect(spark=spark, program=program, state=state) as database:
            database.load({"edge": edges, "weight": weights})
            delta = database.apply(
                insert={
                    "edge": spark.createDataFrame(insert["edge"], "src long, dst long"),
                    "weight": insert["weight"],
                },
                delete={"edge": spark.createDataFrame(delete["edge"], "src long, dst long")},
                set={"weight": spark.createDataFrame(put["weight"], "node long, grams long")},
            )
            assert isinstance(delta.changes.inserted.held["edge"], LazyFrame)
            twin = deltalog.connect(program=program, facts={"edge": edges, "weight": weights})
            with twin.transaction() as transaction:
                transaction.delete("edge", delete["edge"])
                for name, rows_in in insert.items():
                    transaction.insert(name, rows_in)
                for row in put["weight"]:
                    transaction.set("weight", row)
            assert delta.changes == transaction.delta
            assert delta.counts["edge"] == (9, 1)
            assert database.audit(engine="reference") == ()

            taken = spark.createDataFrame([(n, 1) for n in range(8)], "node long, grams long")
            with pytest.raises(deltalog.DataError) as caught:
                database.apply(insert={"weight": taken})
            assert caught.value.codes == ("E0705",)
            twice = taken.unionAll(spark.createDataFrame([(3, 4)], "node long, grams long"))
            with pytest.raises(deltalog.DataError) as caught:
                database.apply(set={"weight": twice})
            assert caught.value.codes == ("E0727",)
            with pytest.raises(deltalog.DataError) as caught:
                database.load("weight", taken)
            assert caught.value.codes == ("E0705",)
            assert database.version == 2
            assert database.audit(engine="reference") == ()
            for name in ("edge", "load"):
                feed = replay(database.changes(name))
                assert feed == on_disk(state, name) == twin.facts(name)
    finally:
        spark.conf.unset("spark.deltalog.driver_rows_max")


def test_two_writers_without_a_lock(spark: SparkSession, tmp_path: Path) -> None:
    """An address has no lock: the one that commits second gets the error, and nothing is mixed."""
    address = f"file://{tmp_path}/state"
    program = "base n(x: int).\nview big(x: int).\nbig(X) :- n(X), X > 10."
    with deltalog.connect(spark=spark, program=program, state=address) as first:
        first.apply(insert={"n": [(1,)]})
        second = deltalog.connect(spark=spark, program=program, state=address)
        second.apply(insert={"n": [(12,)]})
        with pytest.raises(deltalog.DataError) as caught:
            first.apply(insert={"n": [(13,)]})
        assert caught.value.codes == ("E1001",)
        assert second.apply(insert={"n": [(14,)]}).counts == {"n": (1, 0), "big": (1, 0)}
        second.close()
    with deltalog.connect(spark=spark, program=program, state=address) as third:
        assert third.facts("n") == {(1,), (12,), (14,)}
        assert third.facts("big") == {(12,), (14,)}
        assert third.verify(engine="reference").is_clean


def test_others_read_every_table(spark: SparkSession, tmp_path: Path) -> None:
    """Plain Spark, DuckDB on the files, and delta-rs with a filter read what a table stands for."""
    program = "base m(id: int key, at: date, price: decimal?, is_new: bool, name: str)."
    facts = [
        (1, date(2026, 1, 31), Decimal("0.5"), False, "ann"),
        (2, date(2026, 2, 1), None, True, "b" * 100),
        (3, date(2026, 2, 1), Decimal("2"), True, ""),
    ]
    state = tmp_path / "state"
    with deltalog.connect(spark=spark, program=program, state=state, freshness="commit") as db:
        db.apply(insert={"m": facts})
        db.apply(delete={"m": facts[:1]})
        db.apply(insert={"m": facts[:1]})
        assert db.table_versions["m"] == 3
    path = str(state / "tables/m")
    assert rows(spark.read.format("delta").load(path)) == set(facts)
    table = DeltaTable(path)
    listed = duckdb.execute(f"SELECT * FROM read_parquet({table.file_uris()})").fetchall()
    assert len(listed) == 3
    whole = table.to_pyarrow_dataset()
    for name, value, count in (("name", "b" * 100, 1), ("is_new", True, 2), ("id", 3, 1)):
        assert whole.to_table(filter=pc.field(name) == value).num_rows == count
    price = pa.scalar(Decimal("0.5"), pa.decimal128(38, 18))
    assert whole.to_table(filter=pc.field("price") == price).num_rows == 1


def test_a_table_that_cannot_follow_is_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit stands, a warning says why, and the table follows the next time."""
    state = tmp_path / "a state, with ü"
    program = "base n(x: int)."

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with deltalog.connect(spark=spark, program=program, state=state, freshness="commit") as db:
        db.apply(insert={"n": [(1,)]})
        with monkeypatch.context() as patched:
            patched.setattr(StoredTable, "_commit_actions", fail)
            with pytest.warns(UserWarning, match="is behind: the disk is full"):
                assert db.apply(insert={"n": [(2,)]}).counts == {"n": (1, 0)}
        assert on_disk(state, "n") == {(1,)}
        assert rows(deltalog.read(spark, state, "n")) == {(1,), (2,)}
        db.apply(insert={"n": [(3,)]})
        assert on_disk(state, "n") == db.facts("n") == {(1,), (2,), (3,)}
        with pytest.raises(deltalog.DataError, match="E0909"):
            db.frame("n", 9)


def test_what_a_commit_looks_at_does_not_follow_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which tables are behind is known from the commits since the last look."""
    looks: list[int] = []
    is_behind = StoredTable.is_behind

    def counted(table: StoredTable, version: int) -> bool:
        looks.append(version)
        return is_behind(table, version)

    monkeypatch.setattr(StoredTable, "is_behind", counted)
    with deltalog.connect(spark=spark, program="base n(x: int).", state=tmp_path / "state") as db:
        counts = []
        for number in range(20):
            looks.clear()
            db.apply(insert={"n": [(number,)]})
            counts.append(len(looks))
    assert counts[-1] <= counts[3] <= 2
