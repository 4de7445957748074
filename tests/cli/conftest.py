"""Two ways to call the command: in this process (quick), and as a person would (a real process)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, GRAPH, Call
from typer.testing import CliRunner

from deltalog.cli.main import app
from waiting import HANG_SECONDS


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in a directory of its own with `graph.dl` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    Path("graph.dl").write_text(GRAPH)
    Path("edges.csv").write_text("src,dst\n1,2\n2,3\n")


@pytest.fixture
def invoke() -> Call:
    """Call the command in this process; the result has `stdout`, `stderr` and `exit_code`."""

    def call(*arguments: str, given: str | None = None) -> Any:
        result = CliRunner().invoke(app, list(arguments), input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture
def command() -> Call:
    """Run the installed command; the result has `stdout`, `stderr` and `returncode`."""

    def call(*arguments: str, given: str | bytes = "", **options: Any) -> Any:
        data = given.encode() if isinstance(given, str) else given
        process = subprocess.run(
            [COMMAND, *arguments], input=data, capture_output=True, timeout=HANG_SECONDS, **options
        )
        process.stdout, process.stderr = process.stdout.decode(), process.stderr.decode()
        assert "Traceback" not in process.stderr
        return process

    return call
