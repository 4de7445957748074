"""Only what belongs here is committed, and a run of the tests that leaves files behind fails."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT

KNOWN = [
    r"\.ci/(run|setup\.py)",
    r"\.gitignore|\.importlinter|LICENSE|Makefile|constraints\.txt|pyproject\.toml",
    r"(README|ARCHITECTURE|CONTRIBUTING|CHANGELOG)\.md",
    r"src/(deltalog|pyspark_deltalog)/([a-z_]+/)*[a-z_0-9]+\.py",
    r"src/deltalog/(py\.typed|language/(amosql/)?grammar\.lark)",
    r"src/deltalog/web/(service/)?[a-z_]+\.(css|html|js|svg)",
    r"src/deltalog/web/vendor/(README\.md|[a-zA-Z-]+(\.LICENSE|(\.iife|\.umd)?(\.min)?\.(js|css)))",
    r"tests/([a-z_]+/)*[a-z_0-9]+\.py",
    r"tests/service/npm/([a-z_]+\.mjs|package(-lock)?\.json)",
    r"tests/cases/([a-z_]+/)+[\w-]+\.(case|dl|amosql|err|printed)",
    r"bench/([a-z_]+/)*[a-z_0-9]+\.(py|md)",
    r"bench/([a-z_]+/)*(src/[a-z_]+\.rs|Cargo\.(lock|toml)|rustfmt\.toml)",
    r"docs/([a-z_]+/)*[\w-]+\.(md|svg|png)",
    r"examples/([a-z_-]+/)*[\w-]+\.(py|md|dl|amosql|csv|jsonl|toml)",
]
SIZE_MAX = 200_000
"""Bytes: data to measure with is generated or given, not committed."""


def tracked() -> list[str]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def test_only_known_paths_are_tracked() -> None:
    is_known = re.compile("|".join(KNOWN)).fullmatch
    assert [name for name in tracked() if not is_known(name)] == []


def test_large_files_are_not_tracked() -> None:
    ours = [name for name in tracked() if "/vendor/" not in name]
    assert [name for name in ours if (ROOT / name).stat().st_size > SIZE_MAX] == []


def test_what_is_not_looked_at_is_ignored_by_git() -> None:
    names = runpy.run_path(str(ROOT / "tests" / "conftest.py"))
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {f"{name}/" for name in names["CACHES"] | names["KNOWN"]} <= {*ignored, ".git/"}


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["alone", "xdist"])
@pytest.mark.parametrize(
    ("line", "code"), [("Path('left').mkdir()", 1), ("Path('__pycache__').mkdir()", 0)]
)
def test_a_run_that_leaves_files_behind_fails(
    tmp_path: Path, options: list[str], line: str, code: int
) -> None:
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    text = f"from pathlib import Path\ndef test_it(): {line}\n"
    (tmp_path / "tests" / "test_it.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "tests"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert ("  left\n" in done.stdout) == (code == 1)
