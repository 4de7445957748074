"""Tables have the verbs of every database (`tests/database_verbs.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog
from database_verbs import OTHER_PROGRAM, PROGRAM, check_refused, check_verbs


def test_tables_have_the_verbs_of_every_database(spark: SparkSession, tmp_path: Path) -> None:
    check_verbs(deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state"))


def test_tables_have_no_history_and_no_upkeep(spark: SparkSession, tmp_path: Path) -> None:
    with deltalog.connect(spark=spark, program=PROGRAM, state=tmp_path / "state") as db:
        check_refused(db, "in tables")
        with pytest.raises(deltalog.DataError, match="E0725"):
            db.change_program(OTHER_PROGRAM)
