"""View updates of a state in tables: asked by probes, with the answers of a database in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog
from deltalog import Budget

CLOSURE = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Z) :- path(X, Y), edge(Y, Z).
"""
EDGES = [(10 * n + i, 10 * n + j) for n in range(6) for i, j in ((0, 1), (1, 2), (0, 2), (2, 3))]


@pytest.mark.parametrize("request_", ["-path(10, 13)", "-path(10, 12)", "+path(13, 21)"])
def test_realizations_are_those_of_a_database_in_memory(
    request_: str, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.deltalog.driver_rows_max", "4")
    budget = Budget(changes=1 if request_[0] == "+" else 2, new_values=0, answers=4)
    memory = deltalog.connect(program=CLOSURE, facts={"edge": EDGES})
    expected = [str(each) for each in memory.realize(request_, budget=budget)]
    with deltalog.connect(spark=spark, state=tmp_path / "state", program=CLOSURE) as database:
        database.load({"edge": EDGES})
    with deltalog.connect(spark=spark, state=tmp_path / "state", program=CLOSURE) as database:
        found = list(database.realize(request_, budget=budget))
        assert [str(each) for each in found] == expected != []
        assert len(database.engine.relations["path"]) == 6 * 6
        delta = found[0].apply()
        name, row = "path", tuple(map(int, request_[6:-1].split(", ")))
        assert row in (delta.inserted if request_[0] == "+" else delta.deleted)[name]
