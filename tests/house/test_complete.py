"""Nothing is left out: codes have cases, modules have words, and no machine has left its traces."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from documents import DOCS, ROOT
from error_reference import cases_of

from casefiles import CASES, find
from deltalog.diagnostics.catalogue import ENTRIES

MODULES = sorted((ROOT / "src").rglob("*.py"))
TEXTS = sorted(
    path
    for folder in ("src", "tests", "docs", "examples", "bench", ".ci", ".")
    for path in ((ROOT / folder).glob("*") if folder == "." else (ROOT / folder).rglob("*"))
    if path.is_file()
    and path.name != ".git"  # of a linked worktree, git's own
    and not {"__pycache__", "deltalog.egg-info", "vendor"} & {p.name for p in path.parents}
)


@pytest.mark.parametrize("code", ENTRIES)
def test_a_code_has_a_case_and_a_section(code: str) -> None:
    assert cases_of(code), f"no case shows {code}"
    assert f"\n### {code}\n" in (DOCS / "errors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", find("errors", "e*.err"), ids=lambda path: path.stem)
def test_a_case_is_named_after_what_it_shows(path: Path) -> None:
    assert f"error[{path.stem[:5].upper()}]" in path.read_text(encoding="utf-8")


def test_cases_of_errors_have_known_codes() -> None:
    for path in [*(CASES / "errors").glob("e*"), *(CASES / "run_time").glob("*")]:
        assert path.stem[:5].upper() in ENTRIES, path.name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if text.strip() or path.name != "__init__.py":
        assert ast.get_docstring(ast.parse(text)), "a module opens with its idea"


TRACES = [
    ("the home of a person", re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt)/\w")),
    ("a drive", re.compile(r"\b[A-Z]:\\\\?Users\b")),
    ("an unfinished thought", re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")),
]


@pytest.mark.parametrize("what", [name for name, _ in TRACES])
def test_no_traces(what: str) -> None:
    pattern = dict(TRACES)[what]
    for path in TEXTS:
        if path == Path(__file__):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found = pattern.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found and found[0]}"
