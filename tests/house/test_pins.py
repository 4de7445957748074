"""`constraints.txt` pins all that is installed, within the ranges of `pyproject.toml`."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LINES = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS: dict[str, str] = dict(line.split("==") for line in LINES)
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
DIRECT = [
    *PROJECT["project"]["dependencies"],
    *(line for lines in EXTRAS.values() for line in lines),
    *PROJECT["build-system"]["requires"],
    "uv",  # by which the rest is installed
]
PRIVATE = ("llvmlite", "numba")
"""Packages of which more than the stable interface is used: a new release may break it."""


def test_pins_are_names_and_versions() -> None:
    assert sorted(LINES) == LINES
    assert len(PINS) == len(LINES)
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[a-z0-9.]+", line), line


@pytest.mark.parametrize("line", sorted(set(DIRECT)))
def test_a_direct_dependency_is_pinned_within_its_range(line: str) -> None:
    wanted = Requirement(line)
    pin = PINS[canonicalize_name(wanted.name)]
    assert wanted.specifier.contains(pin, prereleases=True), f"{wanted} but {pin}"


def test_indirect_dependencies_are_pinned() -> None:
    assert sorted(closure(DIRECT) - set(PINS)) == []


def closure(lines: list[str]) -> set[str]:
    """Names of all distributions that are installed because of some requirements."""
    found: set[str] = set()
    asked: set[str] = set()
    waiting = list(lines)
    while waiting:
        line = waiting.pop()
        wanted = Requirement(line)
        if line in asked or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        asked.add(line)
        try:
            needs = distribution(wanted.name).requires or []
        except PackageNotFoundError:  # needed for builds only
            continue
        found.add(canonicalize_name(wanted.name))
        for need in map(Requirement, needs):
            extras = wanted.extras or {""}
            if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras):
                need.marker = None
                waiting.append(str(need))
    return found


def test_what_is_imported_is_declared() -> None:
    declared = {canonicalize_name(Requirement(line).name) for line in DIRECT}
    distributions = packages_distributions()
    for path in sorted((ROOT / "src").rglob("*.py")):
        for package in imported(path) - {*sys.stdlib_module_names, "deltalog"}:
            names = {canonicalize_name(name) for name in distributions.get(package, [package])}
            assert names & declared, f"{path.relative_to(ROOT)} imports {package}"


def imported(path: Path) -> set[str]:
    """Top-level packages that a module imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_used_beyond_its_interface_has_an_upper_bound(name: str) -> None:
    (line,) = [each for each in PROJECT["project"]["dependencies"] if each.startswith(name)]
    assert any(each.operator == "<" for each in Requirement(line).specifier)


SETUP = runpy.run_path(str(ROOT / ".ci" / "setup.py"))


@pytest.mark.parametrize(
    ("listed", "variables"),
    [
        ("", {}),
        ("global.timeout='5'\n", {}),
        (
            "global.index-url='https://a.test/simple'\n:env:.index-url='https://b.test/simple'\n",
            {"UV_DEFAULT_INDEX": "https://b.test/simple"},
        ),
        (
            "install.extra-index-url='\\nhttps://c.test/x\\nhttps://d.test/y'\n",
            {
                "UV_INDEX": "https://c.test/x https://d.test/y",
                "UV_INDEX_STRATEGY": "unsafe-best-match",
            },
        ),
        (
            "global.cert='/etc/ca.pem'\n:env:.find-links='a b'\nfreeze.cert='no'\n",
            {"UV_FIND_LINKS": "a,b", "SSL_CERT_FILE": "/etc/ca.pem"},
        ),
    ],
)
def test_uv_looks_where_pip_looks(
    listed: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in SETUP["UV_NAMES"].values():
        monkeypatch.delenv(name, raising=False)
    assert SETUP["uv_variables"](listed) == variables


def test_variables_of_uv_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.test/simple")
    assert "UV_DEFAULT_INDEX" not in SETUP["uv_variables"]("global.index-url='https://a.test'\n")
