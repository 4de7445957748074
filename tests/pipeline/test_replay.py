"""Rows in quarantine know where they were written, and are taken back in once they are mended."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import deltalog
from deltalog.cli.main import app
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline

PROGRAM = """
base price(node: int key, euros: decimal).
base stock(node: int key, pieces: int).
view dear(node: int).
dear(N) :- price(N, E), E > 5.
"""
SOURCE = '[sources.{0}]\nkind = "changes"\nformat = "{1}"\npath = "{0}"\n'


def project(folder: Path, bad_rows: str) -> Path:
    (folder / "shop.dl").write_text(PROGRAM)
    for name in ("price", "stock"):
        (folder / name).mkdir()
    head = f'program = "shop.dl"\nstate = "state"\nbad_rows = "{bad_rows}"\n'
    text = head + SOURCE.format("price", "csv") + SOURCE.format("stock", "json")
    (folder / "project.toml").write_text(text)
    return folder / "project.toml"


def command(*words: str) -> Result:
    return CliRunner().invoke(app, ["pipeline", *words])


def facts(spark: SparkSession, path: Path, name: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in deltalog.read(spark, path.parent / "state", name).collect()}


def test_rows_are_mended_and_taken_once(spark: SparkSession, tmp_path: Path) -> None:
    path = project(tmp_path, "quarantine")
    (tmp_path / "price/1.csv").write_text('op,node,euros\n+,1,1.5\n+,2,x\n+,1,9\n-,3,"a\nb"\n+,4\n')
    (tmp_path / "stock/1.json").write_text('{"op": "set", "node": 1, "pieces": "5"}\nnonsense\n')
    assert command("run", str(path)).exit_code == 0
    with Pipeline(read_project(path), spark) as pipeline:
        rows = [row.asDict() for row in pipeline.database.quarantine().collect()]
    keys = ("source", "batch", "line", "op")
    found = {tuple(row[key] for key in keys): json.loads(row["row"]) for row in rows}
    assert found == {
        ("price", "1.csv", 3, "+"): {"node": "2", "euros": "x"},
        ("price", "1.csv", 4, "+"): {"node": "1", "euros": "9"},
        ("price", "1.csv", 5, "-"): {"node": "3", "euros": "a\nb"},
        ("price", "1.csv", 7, None): "+,4",
        ("stock", "1.json", 1, "set"): {"node": 1, "pieces": "5"},
        ("stock", "1.json", 2, None): "nonsense",
    }
    assert all(row["file"].endswith(row["batch"]) for row in rows)

    out = tmp_path / "mended.jsonl"
    done = command("replay", str(path), "--write", str(out))
    assert "6 rows written" in done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["line"] for line in lines] == [3, 4, 5, 7, 1, 2]
    lines[0]["row"]["euros"] = "7.5"
    lines[1]["op"] = "set"
    lines[4]["row"]["pieces"] = 5
    out.write_text("".join(json.dumps(line) + "\n" for line in lines[:5]))
    done = command("replay", str(path), "--file", str(out), "--json")
    assert done.exit_code == 0, done.stderr
    (record,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert record["counts"] == {"dear": [2, 0], "price": [2, 1], "stock": [1, 0]}
    assert "3 rows in quarantine" in done.stderr
    assert facts(spark, path, "price") == {(1, Decimal(9)), (2, Decimal("7.5"))}

    lines[0]["row"]["euros"] = "100"
    out.write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))
    assert command("replay", str(path), "--file", str(out), "--json").stdout == ""
    assert facts(spark, path, "price") == {(1, Decimal(9)), (2, Decimal("7.5"))}
    status = command("status", str(path)).stdout
    assert "rows in quarantine: 3" in status


def test_files_that_were_refused_are_read_again(spark: SparkSession, tmp_path: Path) -> None:
    """With those of the same transaction, which had no bad row."""
    path = project(tmp_path, "refuse")
    (tmp_path / "price/1.csv").write_text("op,node,euros\n+,1,1.5\n+,2,x\n")
    (tmp_path / "stock/1.json").write_text('{"op": "+", "node": 1, "pieces": 5}\n')
    assert command("run", str(path)).exit_code == 0
    assert facts(spark, path, "price") == facts(spark, path, "stock") == set()
    done = command("replay", str(path))
    assert done.exit_code == 1
    assert "1.csv:3:1" in done.stderr
    (tmp_path / "price/1.csv").write_text("op,node,euros\n+,1,1.5\n+,2,3\n")
    assert command("run", str(path), "--json").stdout == ""
    assert command("replay", str(path)).exit_code == 0
    assert facts(spark, path, "price") == {(1, Decimal("1.5")), (2, Decimal(3))}
    assert facts(spark, path, "stock") == {(1, 5)}
    (tmp_path / "price/1.csv").write_text("op,node,euros\nset,1,99\n")
    assert command("replay", str(path), "--json").stdout == ""
    assert "rows in quarantine: 0" in command("status", str(path)).stdout


def test_a_mended_file_that_is_still_wrong(spark: SparkSession, tmp_path: Path) -> None:
    path = project(tmp_path, "quarantine")
    (tmp_path / "price/1.csv").write_text("op,node,euros\n+,2,x\n")
    command("run", str(path))
    out = tmp_path / "mended.jsonl"
    command("replay", str(path), "--write", str(out))
    path.write_text(path.read_text().replace("quarantine", "fail"))
    done = command("replay", str(path), "--file", str(out))
    assert done.exit_code == 1
    assert "mended.jsonl:1:1" in done.stderr
    out.write_text("{}\n")
    done = command("replay", str(path), "--file", str(out))
    assert "line 1: this is not a row of the quarantine" in done.stderr
