"""Batches that violate a constraint: refused or put into quarantine, as `bad_rows` says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import deltalog
from deltalog.cli.main import app
from deltalog.pipeline.problems import PartsFailedError
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline

PROGRAM = """
base part(whole: str, part: str).
base price(part: str key, euros: int).
base alarm(part: str).
view contains(whole: str, part: str).
contains(X, Y) :- part(X, Y).
contains(X, Z) :- contains(X, Y), part(Y, Z).
deny cycle(X) :- contains(X, X) say "{X} contains itself".
rule dear on insert price(P, E) when E > 100 do call told(P), insert alarm(P).
rule never on insert price(P, E) when E < 0 do reject "{P} costs {E}".
"""
SOURCE = '[sources.{0}]\nkind = "changes"\nformat = "csv"\npath = "{0}"\n'
ACTIONS = "def told(rows):\n    if ('bomb',) in rows:\n        raise ValueError('bomb')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts.dl").write_text(PROGRAM)
    (tmp_path / "actions.py").write_text(ACTIONS)
    for name in ("part", "price"):
        (tmp_path / name).mkdir()
    return tmp_path


def project(folder: Path, bad_rows: str, more: str = "") -> Path:
    head = f'program = "parts.dl"\nstate = "state"\nbad_rows = "{bad_rows}"\n'
    (folder / "project.toml").write_text(
        head + SOURCE.format("part") + SOURCE.format("price") + more
    )
    return folder / "project.toml"


def command(verb: str, path: Path, *words: str) -> Result:
    actions = ["--actions", str(path.parent / "actions.py")]
    return CliRunner().invoke(app, ["pipeline", verb, str(path), *actions, *words])


def facts(spark: SparkSession, folder: Path, name: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in deltalog.read(spark, folder / "state", name).collect()}


def fill(folder: Path) -> None:
    (folder / "part/1.csv").write_text("op,whole,part\n+,bike,wheel\n+,wheel,rim\n")
    (folder / "part/2.csv").write_text("op,whole,part\n+,rim,bike\n+,bike,bell\n")
    (folder / "price/2.csv").write_text("op,part,euros\n+,bell,5\n")
    (folder / "part/3.csv").write_text("op,whole,part\n+,bike,lamp\n")
    (folder / "price/4.csv").write_text("op,part,euros\n+,lamp,7\n+,rim,-3\n")


def test_a_violating_batch_fails_and_its_source_waits(spark: SparkSession, folder: Path) -> None:
    path = project(folder, "fail")
    fill(folder)
    done = command("run", path)
    assert done.exit_code != 0
    assert "rim contains itself" in done.stderr
    assert facts(spark, folder, "part") == {("bike", "wheel"), ("wheel", "rim")}
    (folder / "part/2.csv").write_text("op,whole,part\n+,bike,bell\n")
    (folder / "price/4.csv").write_text("op,part,euros\n+,lamp,700\n")
    done = command("run", path)
    assert done.exit_code == 0, done.stderr
    assert facts(spark, folder, "price") == {("bell", 5), ("lamp", 700)}
    assert facts(spark, folder, "alarm") == {("lamp",)}


def quarantined(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    with Pipeline(read_project(path), spark) as pipeline:
        return [row.asDict() for row in pipeline.database.quarantine().collect()]


def test_a_violating_batch_is_refused_with_its_violations(
    spark: SparkSession, folder: Path
) -> None:
    path = project(folder, "refuse")
    fill(folder)
    done = command("run", path)
    assert done.exit_code == 0, done.stderr
    kept = {("bike", "wheel"), ("wheel", "rim"), ("bike", "lamp")}
    assert facts(spark, folder, "part") == kept
    rows = quarantined(spark, path)
    assert [(r["source"], r["batch"], r["line"], r["is_whole"]) for r in rows] == [
        ("part", "2.csv", 2, True),
        ("price", "2.csv", None, True),
        ("price", "4.csv", None, True),
    ]
    assert json.loads(rows[0]["row"]) == {"whole": "rim", "part": "bike"}
    said = "bike contains itself; rim contains itself; wheel contains itself"
    assert [row["reason"] for row in rows] == [
        said,
        "a file of the same transaction was refused",
        "rim costs -3",
    ]
    (folder / "part/2.csv").write_text("op,whole,part\n+,bike,bell\n")
    done = command("replay", path)
    assert "rim costs -3" in done.stderr
    assert [row["batch"] for row in quarantined(spark, path)] == ["4.csv"]
    assert facts(spark, folder, "part") == {*kept, ("bike", "bell")}
    assert facts(spark, folder, "price") == {("bell", 5)}


def test_all_rows_of_a_violating_batch_are_in_quarantine(spark: SparkSession, folder: Path) -> None:
    """A batch is right or wrong as a whole; its rows can be replayed wherever it came from."""
    path = project(folder, "quarantine")
    fill(folder)
    assert command("run", path).exit_code == 0
    rows = quarantined(spark, path)
    assert [(r["batch"], r["line"], r["is_whole"]) for r in rows] == [
        ("2.csv", 2, False),
        ("2.csv", 3, False),
        ("2.csv", 2, False),
        ("4.csv", 2, False),
        ("4.csv", 3, False),
    ]
    assert rows[1]["reason"] == "its batch violates `cycle`"
    out = folder / "mended.jsonl"
    command("replay", path, "--write", str(out))
    lines = out.read_text().splitlines()
    out.write_text("\n".join(lines[1:4]))
    done = command("replay", path, "--file", str(out))
    assert done.exit_code == 0, done.stderr
    assert ("bike", "bell") in facts(spark, folder, "part")
    assert facts(spark, folder, "price") == {("bell", 5), ("lamp", 7)}
    done = command("replay", path)
    assert "rim costs -3" in done.stderr
    assert [row["line"] for row in quarantined(spark, path)] == [2, 3]


def test_what_is_loaded_and_violates_is_an_error(spark: SparkSession, folder: Path) -> None:
    whole = (
        '[sources.first]\nrelation = "part"\nkind = "load"\nformat = "csv"\npath = "first.csv"\n'
    )
    path = project(folder, "quarantine", whole)
    (folder / "first.csv").write_text("whole,part\na,b\nb,a\n")
    (folder / "part/1.csv").write_text("op,whole,part\n+,bike,wheel\n")
    with Pipeline(read_project(path), spark) as pipeline:
        pipeline.database.action("told")(lambda rows: None)
        with pytest.raises(PartsFailedError, match="a contains itself"):
            list(pipeline.steps())
        assert pipeline.database.facts("part") == {("bike", "wheel")}
        (folder / "first.csv").write_text("whole,part\na,b\n")
        list(pipeline.steps())
        assert pipeline.database.facts("part") == {("bike", "wheel"), ("a", "b")}


def watch_reads(patch: pytest.MonkeyPatch, kind: Any, name: str, sizes: list[int]) -> None:
    """Note how many rows come to the driver."""
    read = getattr(kind, name)

    def noted(self: Any) -> Any:
        found = read(self)
        sizes.append(len(found))
        return found

    patch.setattr(kind, name, noted)


def test_violations_of_a_large_batch_are_found_on_the_cluster(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows stay there, but for the first of them."""
    path = project(folder, "refuse")
    (folder / "part/1.csv").write_text("op,whole,part\n+,bike,wheel\n")
    many = "".join(f"+,w{n},{f'w{n}' if n % 2 else 'x'}\n" for n in range(12_000))
    (folder / "part/2.csv").write_text("op,whole,part\n" + many)
    with Pipeline(read_project(path), spark) as pipeline:
        database = pipeline.database
        database.action("told")(lambda rows: None)
        database.engine.settings = replace(database.engine.settings, driver_rows_max=50)
        pipeline.reader.rows_max = 50  # type: ignore[attr-defined]
        sizes: list[int] = []
        kind = type(spark.range(1))
        for name in ("collect", "toArrow"):
            watch_reads(monkeypatch, kind, name, sizes)
        steps = list(pipeline.steps())
        assert [step.is_refused for step in steps] == [False, True]
        assert len(steps[1].refused) == 101
        assert steps[1].refused[-1].reason == "there are 5,900 more violations"
        assert all(size < 1000 for size in sizes), sizes
        assert database.facts("part") == {("bike", "wheel")}


def test_a_function_that_raises_leaves_a_database_that_can_be_used(
    spark: SparkSession, tmp_path: Path
) -> None:
    with deltalog.connect(spark=spark, state=tmp_path / "state", program=PROGRAM) as db:

        @db.action("told")
        def told(rows: list[Any]) -> None:
            if ("bomb",) in rows:
                raise ValueError("bomb")
            if ("stop",) in rows:
                raise KeyboardInterrupt

        db.apply(insert={"price": [("gold", 500)]})
        before = db.version, db.facts("price"), db.rules(), db.messages()
        for part, error in (("bomb", ValueError), ("stop", KeyboardInterrupt)):
            with pytest.raises(error):
                db.apply(insert={"price": [(part, 500)]})
            assert (db.version, db.facts("price"), db.rules(), db.messages()) == before
            with pytest.raises(error), db.transaction() as tx:
                tx.insert("price", [(part, 500)])
        assert db.apply(insert={"price": [("tin", 101)]}).firings == [("dear", ("tin", 101))]
        tried = db.what_if(insert={"price": [("free", -1)]})
        assert [each.message for each in tried.rejections] == ["free costs -1"]
        assert tried.firings == [("never", ("free", -1))]
        assert db.facts("alarm") == {("gold",), ("tin",)}
        assert not db.audit(engine="reference")
