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
    PROGRAM_OF_VIEWS,
    check_refused,
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


def test_tables_have_no_history_and_no_upkeep(spark: SparkSession, tmp_path: Path) -> None:
    with deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state") as db:
        check_refused(db, "in tables")
        with pytest.raises(deltalog.DataError, match="E0725"):
            db.change_program(OTHER_PROGRAM)
