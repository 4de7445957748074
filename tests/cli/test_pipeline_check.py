"""`deltalog pipeline check`: a project is checked without Spark, also where it is not installed."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from deltalog.cli.main import app

PROGRAM = """
base edge(src: int, dst: int).
base price(node: int key, euros: decimal).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
dear(N, E) :- price(N, E), E > 5.
virtual view far.
far(Start, Z) :- path(Start, Y), path(Y, Z).
total(N, sum(E), count()) :- price(N, E).
"""
PRICES = """
[sources.prices]
relation = "price"
kind = "changes"
format = "csv"
path = "incoming"
"""


def project(folder: Path, text: str) -> Path:
    (folder / "graph.dl").write_text(PROGRAM)
    (folder / "project.toml").write_text(f'program = "graph.dl"\nstate = "state"\n{text}')
    return folder / "project.toml"


def check(path: Path, *options: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["pipeline", "check", str(path), *options])
    return done.exit_code, done.stdout, done.stderr


def test_it_shows_relations_and_views_with_their_columns(tmp_path: Path) -> None:
    code, shown, problems = check(project(tmp_path, ""))
    assert (code, problems) == (0, "")
    lines = [" ".join(line.split()) for line in shown.splitlines()[3:]]
    assert lines == [
        "base edge src: int, dst: int stored",
        "base price node: int key, euros: decimal stored",
        "view dear n: int, e: decimal stored",
        "view far start: int, z: int virtual",
        "view path src: int, dst: int stored",
        "view total n: int, sum_e: decimal, count: int stored",
    ]
    code, shown, _ = check(tmp_path / "project.toml", "--json")
    assert code == 0
    assert [column["name"] for column in json.loads(shown)["far"]["columns"]] == ["start", "z"]


def test_it_runs_without_spark(tmp_path: Path) -> None:
    """Neither imports it: whoever has not installed it can check, and it takes no time."""
    path = project(tmp_path, PRICES)
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming/1.csv").write_text("op,node,euros\n")
    script = (
        "import sys; sys.modules['pyspark'] = sys.modules['delta'] = None\n"
        "from deltalog.cli.main import app\n"
        f"app(['pipeline', 'check', {str(path)!r}])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "price" in done.stdout


def test_every_wrong_part_is_named_with_its_place(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        """
[sources.prices]
relation = "pric"
kind = "load"
format = "csv"
path = "price.csv"

[sources.paths]
relation = "path"
kind = "load"
format = "csv"
path = "path.csv"

[sources.edge]
kind = "load"
format = "csv"
path = "edge.csv"
columns = { from = "source" }

[sinks.copy]
relation = "path"
kind = "merge"
path = "out"
key = ["scr"]

[sinks.call]
relation = "dear"
kind = "function"
function = "nowhere:take"
""",
    )
    code, _, problems = check(path)
    assert code == 1
    for words in (
        "`pric`",
        "did you mean `price`?",
        "`path` is a view",
        "`edge` has no column `source`",
        "`path` has no column `scr`",
        "did you mean `src`?",
        "there is no module `nowhere`",
        "project.toml:26:1",
    ):
        assert words in problems, (words, problems)
    assert problems.count("error[") == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("op,node,euro\n", ("`euros` is missing, `euro` is unknown", "1.csv:1:9", "^^^^")),
        ("", ("1.csv", "it has no header")),
        ("op,node,euros,euros\n", ("`euros` occurs twice",)),
    ],
)
def test_the_columns_of_files(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    path = project(tmp_path, PRICES)
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming/1.csv").write_text(text)
    code, _, problems = check(path)
    assert code in (1, 4)
    for each in words:
        assert each in problems, problems


def test_the_columns_of_other_formats(tmp_path: Path) -> None:
    source = '[sources.{}]\nkind = "load"\nformat = "{}"\npath = "{}"\n'
    path = project(
        tmp_path,
        source.format("edge", "parquet", "edge.parquet") + source.format("price", "json", "p.json"),
    )
    table = pyarrow.table({"src": [1.5], "dst": ["1"], "more": [1]})
    pyarrow.parquet.write_table(table, tmp_path / "edge.parquet")
    code, _, problems = check(path)
    assert code == 4
    assert "`more` is unknown, `src` is double instead of int" in problems
    assert "p.json`: no such file" in problems


def test_a_state_in_use_is_found_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")

    def start(**options: object) -> None:
        raise AssertionError("Spark is started")

    monkeypatch.setattr("deltalog.pipeline.run.active_or_new_session", start)
    path = project(tmp_path, "")
    (tmp_path / "state").mkdir()
    with (tmp_path / "state/lock").open("w+") as file:
        file.write("4711")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        done = CliRunner().invoke(app, ["pipeline", "run", str(path)])
    assert done.exit_code == 1
    assert "error[E1001]: process 4711 is working on the state" in done.stderr


def explained(path: Path) -> dict[str, dict[str, Any]]:
    done = CliRunner().invoke(app, ["pipeline", "explain", str(path), "--json"])
    assert done.exit_code == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def test_it_explains_how_views_are_maintained(tmp_path: Path) -> None:
    words = {
        view: (each["refresh"], each["strategy"], each["is_stored"])
        for view, each in explained(project(tmp_path, "")).items()
    }
    assert words == {
        "path": ("AUTO", "rederive", True),
        "dear": ("AUTO", "rederive", True),
        "far": ("AUTO", "magic", False),
        "total": ("AUTO", "magic", True),
    }
    text = (
        'refresh = "FULL"\n[views.path]\nrefresh = "INCREMENTAL"\n[views.far]\nrefresh = "AUTO"\n'
    )
    found = explained(project(tmp_path, text))
    assert [found[view]["strategy"] for view in ("path", "dear", "far")] == [
        "rederive",
        "recompute",
        "magic",
    ]
    assert found["path"]["recomputed"] == "never"
    assert "recursive" in found["path"]["reason"]
    assert found["dear"]["recomputed"] == "with every change of what it reads"
    shown = CliRunner().invoke(app, ["pipeline", "explain", str(tmp_path / "project.toml")]).stdout
    assert "path: INCREMENTAL, stored in a table" in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('refresh = "ALWAYS"\n', "`ALWAYS` is not a refresh"),
        ('refresh = "FULL"\nstrategy = "magic"\n', "`strategy` and `refresh` exclude each other"),
        ('[views.pth]\nrefresh = "FULL"\n', "did you mean `path`?"),
        ('[views.edge]\nrefresh = "FULL"\n', "`edge` is not a view"),
        ('[views.far]\nrefresh = "FULL"\n', "`far` is virtual, so there is nothing"),
        ('[views.far]\nrefrsh = "FULL"\n', "did you mean `refresh`?"),
    ],
)
def test_wrong_words_of_refresh(tmp_path: Path, text: str, words: str) -> None:
    code, _, problems = check(project(tmp_path, text))
    assert code == 1
    assert words in problems
