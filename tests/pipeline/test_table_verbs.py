"""Tables have the verbs of every database (`tests/database_verbs.py`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog
from database_verbs import (
    OTHER_PROGRAM,
    PROGRAM,
    PROGRAM_OF_RULES,
    PROGRAM_OF_VIEWS,
    check_rules,
    check_verbs,
    check_wanted_views,
)


def test_tables_have_the_verbs_of_every_database(spark: SparkSession, tmp_path: Path) -> None:
    check_verbs(deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state"))


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
        assert db.facts("part") == {("nut", "thread"), ("wheel", "rim")}
        assert not db.audit()


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
        assert db.verify().is_clean
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
        assert db.audit() == ()
    with pytest.raises(deltalog.DataError, match="E1002"):
        deltalog.connect(spark=spark, program=PROGRAM, state=state)
