"""Tables have the verbs of every database (`tests/database_verbs.py`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from test_table_database import replay

import deltalog
from database_verbs import (
    OTHER_PROGRAM,
    PROGRAM,
    PROGRAM_OF_RULES,
    PROGRAM_OF_VIEWS,
    check_reasons,
    check_rules,
    check_verbs,
    check_wanted_views,
)
from deltalog.pipeline import garbage
from deltalog.pipeline.state_journal import StateJournal
from deltalog.runtime.deliveries import Target, dispatch_to
from deltalog.runtime.messages import Message


def test_tables_have_the_verbs_of_every_database(spark: SparkSession, tmp_path: Path) -> None:
    check_verbs(deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state"))


@pytest.mark.parametrize("rows_max", [100, 1])
def test_reasons_know_of_earlier_versions_and_programs(
    spark: SparkSession, tmp_path: Path, rows_max: int
) -> None:
    db = deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state")
    db.engine.settings = replace(db.engine.settings, driver_rows_max=rows_max)
    check_reasons(db, has_history=True)


@pytest.mark.parametrize("rows_max", [100, 1])
def test_only_wanted_views_are_propagated(
    spark: SparkSession, tmp_path: Path, rows_max: int
) -> None:
    state = tmp_path / "state"
    with deltalog.connect(spark=spark, program=PROGRAM_OF_VIEWS, state=state) as db:
        db.engine.settings = replace(db.engine.settings, driver_rows_max=rows_max)
        check_wanted_views(db, is_recorded=True)
        frame = spark.createDataFrame([(5, 6), (6, 5)], "src long, dst long")
        delta = db.apply(insert={"edge": frame}, views=["kept"])
        assert delta.counts == {"edge": (2, 0), "kept": (2, 0)}
        assert db.changes("both", after=delta.version - 1).count() == 2
        left = db.what_if(delete={"edge": frame}, views=["both"])
        assert left.deleted["both"] == {(5, 6), (6, 5)}
        assert left.relations == ("both", "edge")


@pytest.mark.parametrize("rows_max", [100, 1])
def test_constraints_and_rules_hold(spark: SparkSession, tmp_path: Path, rows_max: int) -> None:
    state = tmp_path / "state"
    with deltalog.connect(spark=spark, program=PROGRAM_OF_RULES, state=state) as db:
        db.engine.settings = replace(db.engine.settings, driver_rows_max=rows_max)
        check_rules(db)
        states, messages = db.rules(), db.messages()
        frame = spark.createDataFrame(
            [("rim", "wheel"), ("wheel", "rim")], "whole string, part string"
        )
        with pytest.raises(deltalog.ConstraintError) as caught:
            db.apply(insert={"part": frame})
        assert {each.fact for each in caught.value.violations} == {("rim",), ("wheel",)}
        with pytest.raises(deltalog.ConstraintError):
            db.load("part", frame)
        assert db.facts("part") == {("nut", "thread")}
        db.load("part", [("wheel", "rim")])
    with deltalog.connect(spark=spark, program=PROGRAM_OF_RULES, state=state) as db:
        assert db.rules() == states
        assert db.messages() == messages
        assert [letter.recipient for letter in db.dead_letters()] == ["second"]
        assert db.facts("part") == {("nut", "thread"), ("wheel", "rim")}
        assert not db.audit(engine="reference")


def test_tables_have_history_and_upkeep(spark: SparkSession, tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy"
    with deltalog.connect(spark=spark, program=PROGRAM, state=state) as db:
        _history: deltalog.History = db  # types are checked, too
        _upkeep: deltalog.Upkeep = db
        db.apply(insert={"edge": [(2, 3)]})
        db.apply(insert={"edge": [(3, 4)]}, delete={"edge": [(1, 2)]})
        assert db.version == 3
        assert db.facts("path", 2) == {(1, 2), (2, 3), (1, 3)}
        assert set(db.query("path(1, Y)", version=2)) == {(2,), (3,)}
        assert db.delta(3, 2).inserted["path"] == {(1, 2), (1, 3)}
        assert [commit.version for commit in db.commits(1)] == [2, 3]
        assert {tuple(row) for row in deltalog.read(spark, state, "path", version=2).collect()} == {
            (1, 2),
            (2, 3),
            (1, 3),
        }
        change = db.change_program(OTHER_PROGRAM)
        assert change.inserted["path"] == {(3, 2), (4, 3), (2, 2), (3, 3)}
        assert db.relations_at(3)["path"].arity == 2
        assert [version for version, *_ in db.programs()] == [1, 4]
        assert db.register("ann") == 4
        db.apply(insert={"edge": [(4, 5)]})
        assert db.verify(engine="reference").is_clean
        db.fold()
        assert db.compact(deltalog.Retention(versions=0)).versions == 4
        assert db.first_version == 4
        with pytest.raises(deltalog.DataError, match="E0909"):
            db.facts("path", 2)
        facts = db.facts("path")
        db.backup(copy)
        db.acknowledge("ann", 5)
        db.unregister("ann")
        assert db.readers == {}
    with deltalog.connect(spark=spark, program=OTHER_PROGRAM, state=copy) as db:
        assert db.version == 5
        assert db.readers == {"ann": 4}
        assert db.facts("path") == facts
        assert db.audit(engine="reference") == ()
    with pytest.raises(deltalog.DataError, match="E1002"):
        deltalog.connect(spark=spark, program=PROGRAM, state=state)


ALTERED = """
base edge(src: int, dst: int).
path(X, Y, 1) :- edge(X, Y).
view path(src: int, dst: int, hops: int).
first(float(X)) :- edge(X, _).
view first(number: float).
"""
BEFORE = """
base edge(src: int, dst: int).
path(X, Y) :- edge(X, Y).
view path(src: int, dst: int).
first(X) :- edge(X, _).
view first(number: int).
"""


@pytest.mark.parametrize("freshness", ["commit", "demand"])
def test_feeds_and_versions_over_altered_columns(
    spark: SparkSession, tmp_path: Path, freshness: Any
) -> None:
    """A feed has the columns of all its versions; a version has the columns of its program."""
    state = tmp_path / "state"
    with deltalog.connect(spark=spark, program=BEFORE, state=state, freshness=freshness) as db:
        db.apply(insert={"edge": [(1, 2)]})
        db.apply(insert={"edge": [(2, 3)]})
        db.fold()
        db.apply(delete={"edge": [(1, 2)]})
        before = {version: db.facts("path", version) for version in (1, 2, 3)}
        db.change_program(ALTERED)
        db.apply(insert={"edge": [(3, 4)]})
        feed = db.changes("path")
        assert feed.columns[:3] == ["src", "dst", "hops"]
        assert replay(feed) == db.facts("path") == {(2, 3, 1), (3, 4, 1)}
        source = spark.read.format("deltalog").option("relation", "path").load
        for version, facts in before.items():
            assert db.facts("path", version) == facts
            frames = [
                db.frame("path", version),
                deltalog.read(spark, state, "path", version=version),
                spark.read.format("deltalog")
                .option("relation", "path")
                .option("version", version)
                .load(str(state)),
            ]
            for frame in frames:
                assert frame.columns == ["src", "dst"]
                assert {tuple(row) for row in frame.collect()} == facts, version
        whole = spark.read.format("deltalog").option("relation", "path")
        assert replay(whole.option("readChangeFeed", "true").load(str(state))) == db.facts("path")
        assert {tuple(row) for row in source(str(state)).collect()} == db.facts("path")
        assert replay(db.changes("first")) == db.facts("first")
        assert db.verify(engine="reference").is_clean


def test_a_closed_database_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    with deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state") as db:
        delta = db.apply(insert={"edge": [(7, 8)]})
    verbs: list[Callable[[], object]] = [
        lambda: db.facts("edge"),
        lambda: db.rows("edge"),
        lambda: db.frame("edge"),
        lambda: db.query("path(1, X)"),
        lambda: db.changes("path"),
        lambda: db.delta(0),
        lambda: db.commits(),
        lambda: db.explain(),
        lambda: db.audit(),
        lambda: db.verify(),
        lambda: db.quarantine(),
        lambda: db.readers,
    ]
    for verb in verbs:
        with pytest.raises(deltalog.DataError, match="E1006"):
            verb()
    assert db.version == 2
    assert delta.inserted["edge"].count() == 1  # it reads the state, not the database


def test_files_that_nobody_can_name_are_removed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What killed runs and rewritten tables leave; what a version needs stays."""
    monkeypatch.setattr(garbage, "RETENTION_HOURS", 0)
    state = tmp_path / "state"
    spark.conf.set("spark.deltalog.driver_rows_max", "2")
    try:
        with deltalog.connect(spark=spark, program=PROGRAM, state=state, freshness="commit") as db:
            frame = spark.createDataFrame([(n, n + 1) for n in range(9)], "src long, dst long")
            db.apply(insert={"edge": frame})
            db.apply(delete={"edge": frame})
            for number in range(5):
                db.apply(insert={"edge": [(number, number)]})
            lost = [state / "changes/path/abc/part-0.parquet", state / "tables/edge/x.parquet"]
            for path in lost:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"")
            versions = range(db.first_version, db.version + 1)
            facts = {version: db.facts("path", version) for version in versions}
            before = len(list(state.rglob("*.parquet")))
            db.compact()
            assert not any(path.exists() for path in lost)
            assert len(list(state.rglob("*.parquet"))) < before
            assert {version: db.facts("path", version) for version in versions} == facts
            assert replay(db.changes("path")) == db.facts("path")
            between = len(list(state.rglob("*.parquet")))
            db.compact(deltalog.Retention(versions=0))
            assert len(list(state.rglob("*.parquet"))) < between
            assert db.verify(engine="reference").is_clean
            live = {
                f"{t.relative}/{f}" for t in db._writer.stored.values() for f in t._rows_per_file()
            }
            found = {str(path.relative_to(state)) for path in state.rglob("*.parquet")}
            rest = found - live
            assert all(path.startswith(("log/", "tables/edge/_", "tables/path/_")) for path in rest)
    finally:
        spark.conf.unset("spark.deltalog.driver_rows_max")


def test_tables_are_registered_in_a_catalogue(spark: SparkSession, tmp_path: Path) -> None:
    state, schema = tmp_path / "it's a state", "deltalog_test"
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path / 'schema'}'")
    try:
        with deltalog.connect(spark=spark, program=PROGRAM, state=state, freshness="commit") as db:
            db.apply(insert={"edge": [(7, 8)]})
            names = deltalog.register_tables(spark, state, schema)
            assert names == [f"{schema}.{name}" for name in ("edge", "path", "weight")]
            assert names == deltalog.register_tables(spark, state, schema)
            db.apply(insert={"edge": [(8, 9)]})
            found = {tuple(row) for row in spark.table(f"{schema}.path").drop("rank__").collect()}
            assert found == db.facts("path")
        other = tmp_path / "other"
        with deltalog.connect(spark=spark, program=PROGRAM, state=other, freshness="commit") as db:
            db.apply(insert={"edge": [(7, 8)]})
            with pytest.raises(deltalog.DataError, match="E0711"):
                deltalog.register_tables(spark, other, schema)
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


def test_messages_of_a_state_are_delivered_beside_its_writer(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without the session: a dispatcher reads table and log as they are."""
    state = tmp_path / "state"
    program = """
        base stock(item: str key, amount: int).
        rule low for I when stock(I, N), N < 10 do emit low(I).
    """
    with deltalog.connect(spark=spark, program=program, state=state) as db:
        db.apply(insert={"stock": [("nut", 5)]})
        db.apply(insert={"stock": [("bolt", 500)]})
        db.fold()
        db.apply(insert={"stock": [("screw", 7)]})
        found: list[Message] = []
        journal = StateJournal(str(state))
        try:
            assert dispatch_to(journal, Target("shop"), found.append).delivered == 2
            assert found == db.messages()
            db.apply(insert={"stock": [("nail", 7)]})
            assert dispatch_to(journal, Target("shop"), found.append).delivered == 1
            with pytest.raises(deltalog.DataError, match="E1602"):
                db.dispatch(print)
        finally:
            journal.close()
        assert found == db.messages()
        assert [rule.undelivered for rule in db.rules()] == [0]


PROGRAM_OF_WARNINGS = """
base n(x: int).
deny warn immediate low(X) :- n(X), X < 0 say "{X} is low".
deny warn large(X) :- n(X), X > 9 say "{X} is large".
"""


def test_warnings_of_operations_of_commits_and_as_errors(
    spark: SparkSession, tmp_path: Path
) -> None:
    db = deltalog.connect(spark=spark, program=PROGRAM_OF_WARNINGS, state=tmp_path / "state")
    tx = db.transaction()
    with pytest.warns(deltalog.ConstraintWarning) as found:
        tx.insert("n", [(-1,), (12,)])
    assert [str(each.message) for each in found] == ["-1 is low"]
    tx.delete("n", [(-1,)])
    with pytest.warns(deltalog.ConstraintWarning) as found:
        tx.commit()
    assert [str(each.message) for each in found] == ["12 is large"]
    db.engine.settings = replace(db.engine.settings, driver_rows_max=1)
    with pytest.warns(deltalog.ConstraintWarning) as found:
        db.apply(insert={"n": spark.createDataFrame([(-3,), (-4,), (13,)], "x long")})
    expected = ["-3 is low", "-4 is low", "13 is large"]
    assert sorted(str(each.message) for each in found) == expected
    db.engine.settings = replace(db.engine.settings, driver_rows_max=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(deltalog.ConstraintWarning, match="-5 is low"):
            db.apply(insert={"n": [(-5,)]})
        with pytest.raises(deltalog.ConstraintWarning, match="14 is large"):
            db.apply(insert={"n": [(14,)]})
        db.apply(insert={"n": [(3,)]})
    assert (db.version, len(db.facts("n"))) == (4, 6)
