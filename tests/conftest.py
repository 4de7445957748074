"""A run of the tests leaves no files behind in the folder of the project.

Files are compared before and after by path alone. Caches that tools keep are not looked at:
`CACHES` and `KNOWN`, which `.gitignore` lists, too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CACHES = frozenset(
    {
        ".git",
        ".hypothesis",
        ".import_linter_cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
    }
)
KNOWN = frozenset({"bench/results", "bench/target", "build", "demo-catalogue", "dist"})
"""Folders that others may be writing to at the same time, from the root."""
_before = pytest.StashKey[frozenset[str]]()


def files() -> frozenset[str]:
    """Paths of all files and empty folders of the project, without caches and environments."""
    found = set()
    for folder, folders, names in os.walk(ROOT):
        place = Path(folder).relative_to(ROOT)
        folders[:] = [
            name
            for name in folders
            if name not in CACHES
            and not name.startswith(".venv")
            and not name.endswith(".egg-info")
            and (place / name).as_posix() not in KNOWN
        ]
        found.update((place / name).as_posix() for name in names)
        if not folders and not names:
            found.add(place.as_posix())
    return frozenset(found)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # with xdist, only where all workers report to
        session.config.stash[_before] = files()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    before = session.config.stash.get(_before, None)
    if before is None or os.environ.get("DELTALOG_UPDATE_CASES"):
        return
    left = sorted(files() - before)
    if left:
        print(f"\nthe tests left files behind in {ROOT}:", *left, sep="\n  ")
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
