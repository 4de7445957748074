"""What `make setup` runs, with nothing installed: uv where it can be had, else pip."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT

PINS = ROOT / "constraints.txt"


class Machine:
    """Notes commands instead of running them; those with certain words in them fail."""

    def __init__(self, folder: Path, pins: Path | None) -> None:
        self.names = runpy.run_path(str(ROOT / ".ci" / "setup.py"))
        self.environment: Any = self.names["Environment"](folder, pins)
        self.names["stage"].__globals__["run"] = self.run
        self.failing: Callable[[list[str]], bool] = lambda _: False
        self.commands: list[list[str]] = []

    def run(self, *command: str | Path, variables: dict[str, str] | None = None) -> str:
        words = [str(word) for word in command]
        self.commands.append(words)
        if self.failing(words):
            raise self.names["StageError"]("first\nlast")
        return "uv 1.2 (a platform)\n" if words[-1] == "--version" else ""

    @property
    def last(self) -> str:
        return " ".join(self.commands[-1])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, PINS)


def test_uv_installs_by_the_pins(machine: Machine) -> None:
    assert machine.environment.find_installer() == "uv 1.2"
    machine.environment.install_package()
    assert machine.commands[-1][0].endswith("uv")
    assert f"--constraint {PINS} --build-constraints {PINS} --editable ." in machine.last
    machine.environment.install_tools()
    assert "pyspark==" in machine.last
    assert "--editable" not in machine.last


def test_pip_does_where_there_is_no_uv(machine: Machine) -> None:
    machine.failing = lambda words: words[-1] == "uv"
    assert machine.environment.find_installer().startswith("pip")
    assert machine.environment.install_package().endswith(", by pip")
    assert f"install --constraint {PINS} --editable ." in machine.last


def test_pip_goes_on_where_uv_fails(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.environment.find_installer()
    machine.failing = lambda words: words[0].endswith("uv")
    assert machine.environment.install_package().endswith(", by pip")
    assert capsys.readouterr().out == "uv failed, going on with pip: last\n"
    count = len(machine.commands)
    machine.environment.install_tools()
    assert len(machine.commands) == count + 1


def test_the_newest_releases_have_no_pins(tmp_path: Path) -> None:
    machine = Machine(tmp_path, None)
    machine.environment.find_installer()
    machine.environment.install_tools()
    assert "--upgrade" in machine.last
    assert str(PINS) not in machine.last


def test_what_fails_is_shown(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.failing = lambda _: True
    with pytest.raises(SystemExit, match=r"first\nlast\nkernels failed"):
        machine.names["stage"]("kernels", machine.environment.compile_kernels)
    machine.names["stage"]("spark", machine.environment.prepare_spark)
    assert capsys.readouterr().out.startswith("spark         0 s  last")
