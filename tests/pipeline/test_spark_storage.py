"""A state that only Spark reaches: the same verbs and tables, and one writer at a time.

The driver is told that it does not reach the storage, and delta-rs and Arrow fail if it tries.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from test_table_database import PROGRAM, RING, check, replay, rows

import deltalog
from database_verbs import PROGRAM as VERBS
from database_verbs import check_verbs
from deltalog.pipeline import log_table, spark_storage, stored_table
from deltalog.pipeline.location import STORAGE, Location
from deltalog.pipeline.log import current_time
from deltalog.pipeline.state import State


@pytest.fixture
def away(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session whose storage the driver does not reach."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the driver reads or writes where it must not")

    monkeypatch.setattr(log_table, "DeltaTable", fail)
    monkeypatch.setattr(log_table, "write_deltalake", fail)
    monkeypatch.setattr(stored_table, "DeltaTable", fail)
    spark.conf.set(STORAGE, "spark")
    yield spark
    spark.conf.unset(STORAGE)


def test_a_state_is_loaded_changed_and_opened_again(away: SparkSession, tmp_path: Path) -> None:
    state = tmp_path / "state"

    def opened() -> Any:
        return deltalog.connect(spark=away, program=PROGRAM, state=state, freshness="demand")

    with opened() as db:
        frame = away.createDataFrame(RING, "src long, dst long")
        db.load({"edge": frame, "weight": [(1, 10), (4, 5)]})
        delta = db.apply(insert={"edge": [(4, 5)]}, delete={"edge": [(2, 3)]})
        assert rows(delta.inserted["path"]) == {(4, 5), (3, 5)}
        db.fold()
        check(state, db)
        assert not (state / "lock").exists()
    with opened() as db:
        assert db.version == 2
        db.apply(insert={"edge": [(2, 3)]}, batch=("api", "1"))
        assert not db.apply(insert={"edge": [(9, 9)]}, batch=("api", "1"))
        assert db.facts("path", 1) == set(rows(deltalog.read(away, str(state), "path", version=1)))
        assert replay(db.changes("path")) == db.facts("path")
        assert db.register("ann") == 3
        db.apply(delete={"edge": [(2, 3)]})
        db.fold()
        check(state, db)
        db.compact(deltalog.Retention(versions=0))
        assert db.first_version == 3
        assert db.verify(engine="reference").is_clean
        with pytest.raises(deltalog.DataError, match="E0711"):
            db.backup(tmp_path / "copy")


def test_it_has_the_verbs_of_every_database(away: SparkSession, tmp_path: Path) -> None:
    check_verbs(deltalog.connect(spark=away, program=VERBS, state=tmp_path / "state"))


def test_large_changes_and_merges(
    away: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every table too large to be rewritten, and rows on the cluster."""
    monkeypatch.setattr(spark_storage, "REWRITTEN_ROWS_MAX", 3)
    away.conf.set("spark.deltalog.driver_rows_max", "6")
    state = tmp_path / "state"
    try:
        with deltalog.connect(spark=away, program=PROGRAM, state=state, freshness="commit") as db:
            db.load({"edge": [(n, n + 1) for n in range(12)], "weight": [(9, 1)]})
            db.apply(delete={"edge": [(5, 6)]}, insert={"edge": [(20, 3)]})
            db.apply(insert={"edge": [(5, 6)]})
            more = away.createDataFrame([(n, 50) for n in range(12)], "src long, dst long")
            db.apply(insert={"edge": more})
            db.apply(delete={"edge": more})
            check(state, db)
        with deltalog.connect(spark=away, program=PROGRAM, state=state, freshness="commit") as db:
            db.apply(delete={"edge": [(0, 1)]})
            check(state, db)
    finally:
        away.conf.unset("spark.deltalog.driver_rows_max")


@pytest.mark.parametrize("kinds", [("spark", "spark"), ("driver", "spark"), ("spark", "driver")])
def test_the_second_of_two_writers_gets_the_error(
    spark: SparkSession, tmp_path: Path, kinds: tuple[str, str]
) -> None:
    """Whoever writes for them; an address has no lock."""
    address, program = f"file://{tmp_path}/state", "base n(x: int)."

    def opened(kind: str) -> Any:
        spark.conf.set(STORAGE, kind)
        try:
            return deltalog.connect(spark=spark, program=program, state=address)
        finally:
            spark.conf.unset(STORAGE)

    with opened(kinds[0]) as first:
        first.apply(insert={"n": [(1,)]})
        second = opened(kinds[1])
        second.apply(insert={"n": [(2,)]})
        with pytest.raises(deltalog.DataError, match="E1001"):
            first.apply(insert={"n": [(3,)]})
        second.apply(insert={"n": [(4,)]})
        second.close()
    with opened("spark") as third:
        assert third.facts("n") == {(1,), (2,), (4,)}


def test_of_many_writers_at_once_one_commits(away: SparkSession, tmp_path: Path) -> None:
    """Plain appends of Delta would all succeed."""
    address = f"file://{tmp_path}/state"
    with deltalog.connect(spark=away, program="base n(x: int).", state=address) as db:
        db.apply(insert={"n": [(1,)]})
    writers = [State(away, address) for _ in range(4)]
    for each in writers:
        each.open()
    won: list[int] = []
    lost: list[str] = []

    def commit(number: int) -> None:
        try:
            record = writers[number].last
            writers[number].commit(type(record)(version=2, at=current_time(), kind=f"by {number}"))
            won.append(number)
        except deltalog.DataError as error:
            lost.extend(error.codes)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert lost == ["E1001"] * 3
    found = State(away, address)
    found.open()
    assert found.last.kind == f"by {won[0]}"
    assert [each.sequence for each in found.records] == list(range(1, len(found.records) + 1))


def test_the_address_says_who_writes(spark: SparkSession) -> None:
    reached = {"state": True, "s3://b/state": True, "file:///state": True}
    away = {"hdfs://name:9000/state": False, "dbfs:/state": False, "viewfs:///state": False}
    for address, is_reached in {**reached, **away}.items():
        assert Location.of(address, spark).is_reached == is_reached, address
    assert Location.of("dbfs:/state/", spark).path("log") == "dbfs:/state/log"
    assert Location.of("hdfs://name/state", spark).folder is None


def test_writers_of_both_kinds_go_on_with_one_state(spark: SparkSession, tmp_path: Path) -> None:
    """A table says its version to both, so neither folds a commit again."""
    state = tmp_path / "state"
    try:
        for number, storage in enumerate(("driver", "spark", "driver", "spark", "driver")):
            spark.conf.set(STORAGE, storage)
            with deltalog.connect(
                spark=spark, program=PROGRAM, state=state, freshness="commit"
            ) as db:
                if not number:
                    db.load({"edge": RING, "weight": [(1, 10), (4, 5)]})
                assert {db.table_versions[name] for name in ("edge", "path")} == {db.version}
                db.apply(insert={"edge": [(10 + number, 1)]})
                db.apply(delete={"edge": [(10 + number, 1)]}, insert={"edge": [(20 + number, 1)]})
                check(state, db)
    finally:
        spark.conf.unset(STORAGE)
