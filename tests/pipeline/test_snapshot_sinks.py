"""A snapshot is the same files to a reader, whether the driver or the cluster writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline

PROGRAM = """
base r(id: int key, f: float?, t: str?, b: bool?, d: date?, at: timestamp?, e: decimal?).
virtual view same.
same(Id, F, T, count()) :- r(Id, F, T, _, _, _, _).
"""
SOURCES = """
[sources.r]
kind = "changes"
format = "csv"
path = "incoming"
[sinks.r]
kind = "snapshot"
path = "out/r"
[sinks.same]
kind = "snapshot"
path = "out/same"
"""


def test_driver_and_cluster_write_the_same(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "r.dl").write_text(PROGRAM)
    head = 'program = "r.dl"\nstate = "state"\nfreshness = "commit"\n'
    (tmp_path / "project.toml").write_text(head + SOURCES)
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    lines = ["op,id,f,t,b,d,at,e", "+,1,2.5,é,true,2026-01-31,2026-01-31 12:30:00.000001,1.25"]
    lines += ["+,2,,,,,,", '+,3,0,"",false,0001-01-01,9999-12-31 23:59:59,-0.000000000000000001']
    (incoming / "1.csv").write_text("\n".join(lines))

    def run() -> list[int | None]:
        with Pipeline(read_project(tmp_path / "project.toml"), spark) as pipeline:
            return [step.metrics.jobs for step in pipeline.steps()]

    def shown(name: str) -> tuple[Any, ...]:
        data = spark.read.parquet(str(tmp_path / "out" / name))
        rows = sorted(tuple(map(str, row)) for row in data.collect())
        return data.schema, rows

    assert run() == [0]
    files = list((tmp_path / "out/r").iterdir())
    assert len(files) == 1
    by_driver = {name: shown(name) for name in ("r", "same")}
    names = ["id", "f", "t", "count"]
    assert by_driver["same"][0].names == names
    spark.conf.set("spark.deltalog.driver_rows_max", "1")
    try:
        (incoming / "2.csv").write_text("op,id,f,t,b,d,at,e\n+,4,,,,,,\n")
        run()
        (incoming / "3.csv").write_text("op,id\n-,4\n")
        run()
    finally:
        spark.conf.unset("spark.deltalog.driver_rows_max")
    assert files[0] not in (tmp_path / "out/r").iterdir()
    assert {name: shown(name) for name in ("r", "same")} == by_driver
