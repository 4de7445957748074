"""Delta tables that Spark deletes from by deletion vectors, as sources: read without Spark."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog
from deltalog.runtime.sourced_database import SourcedDatabase
from deltalog.sources import DeltaLakeTable

CLOSURE = """
base edge(src: str, dst: str, weight: float?, day: date?).
closure(X, Y) :- edge(X, Y, _, _).
closure(X, Y) :- edge(X, Z, _, _), closure(Z, Y).
"""
PLAIN = "'delta.enableDeletionVectors' = true"
PROPERTIES = {
    "vectors": PLAIN,
    "feed": f"{PLAIN}, 'delta.enableChangeDataFeed' = true",
    "mapped columns": f"{PLAIN}, 'delta.columnMapping.mode' = 'name'",
}


def rows_of(spark: SparkSession, path: Path) -> set[tuple[object, ...]]:
    found = spark.read.format("delta").load(str(path)).select("src", "dst", "weight", "day")
    return {tuple(row) for row in found.collect()}


@pytest.mark.parametrize("properties", PROPERTIES)
def test_rows_that_a_vector_deletes_are_not_there(
    spark: SparkSession, tmp_path: Path, properties: str
) -> None:
    path, chance = tmp_path / "edge", random.Random(11)
    spark.sql(
        f"CREATE TABLE delta.`{path}` (src STRING, dst STRING, weight DOUBLE, day DATE, more INT) "
        f"USING delta TBLPROPERTIES ({PROPERTIES[properties]})"
    )
    spark.sql(
        f"INSERT INTO delta.`{path}` SELECT 'o''' || id % 7, 'o''' || (id * 3) % 7, id / 2, "
        "date_add(DATE '2026-01-01', cast(id as int)), 0 FROM range(14)"
    )
    with deltalog.connect(
        program=CLOSURE,
        sources={"edge": DeltaLakeTable(path)},
        materialize=False,
        strategy="demand",
    ) as db:
        assert isinstance(db, SourcedDatabase)
        held = db.facts("closure")
        for number in range(3):
            one, two = f"'o''{chance.randrange(7)}'", f"'o''{chance.randrange(7)}'"
            spark.sql(f"DELETE FROM delta.`{path}` WHERE src = {one} AND weight < 4")
            if number == 1:
                spark.sql(f"UPDATE delta.`{path}` SET dst = {two}, weight = NULL WHERE src = {two}")
            assert db.facts("closure") == held  # rolled back to what was pulled
            delta = db.pull()
            held = (held - delta.deleted["closure"]) | delta.inserted["closure"]
            expected = rows_of(spark, path)
            assert db.facts("edge") == expected
            with deltalog.connect(program=CLOSURE, facts={"edge": list(expected)}) as oracle:
                assert held == db.facts("closure") == oracle.facts("closure")
            for key in [(), ("o'3",)]:
                wanted = {row for row in expected if row[: len(key)] == key}
                (source,) = db._external.sources["edge"]
                assert set(source.find(tuple(range(len(key))), key)) == wanted
        assert source.count() == len(expected)
