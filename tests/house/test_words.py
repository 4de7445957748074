"""Names and prose use the words of the field, and files stay small.

The words below once were a private dialect; `CONTRIBUTING.md` says what to write instead. A room
that still uses one is listed with it. These lists only ever get shorter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import DOCS, ROOT

SOURCE = ROOT / "src" / "deltalog"

WORDS = {
    "told": "lazy, deferred, reported",
    "tells": "returns, has",
    "handful": "batch, prefetch_window",
    "inbox": "input_buffer",
    "outbox": "output_buffer",
    "news": "effective_change",
    "gone": "deleted",
    "fruitful": "productive",
    "impatient": "may_abort",
    "wordy": "RawInt64Engine",
    "keeper": "CommitWriter",
    "doubt": "mark_stale",
    "agree": "resync",
    "look_once": "factor_rederivation",
    "ways": "shared_prefix",
    "assembler": "llvm_codegen",
}
"""Words that no identifier contains, each with what is written instead."""

PHRASES = {
    r"\bso many\b": "at most n, this many",
    r"\bof no use\b": "unused",
    r"\bat hand\b": "available, current",
    r"\bin the end\b": "finally",
    r"\bis told\b": "is reported, is passed",
    r"\b(?:it|which|call|function|method) (?:answers|tells)\b": "returns, reports",
    r"\banswers with\b": "returns",
    r"\breally (?:new|gone)\b": "inserted, deleted",
    r"\b(?:come|came|comes) (?:and|or) (?:go|goes|gone|went)\b": "inserted and deleted",
    r"\bwhat is so already\b": "no-op",
    r"\bgoes over the head\b": "overrides",
    r"\bhandful\b": "batch",
}
"""Phrases that neither pages nor docstrings contain, each with what is written instead."""

OPENING = re.compile(r"What\b|Whatever\b|Tells?\b|Says?\b|Answers?\b")
"""A docstring begins with a verb or a noun of the field, not with one of these."""

NAMES_LEFT: dict[str, set[str]] = {}
PHRASES_LEFT: dict[str, set[str]] = {}
OPENINGS_LEFT: dict[str, int] = {}

LINES_MAX = 400
KERNELS = "engines/embedded"
LARGE: dict[str, str] = {}
"""Larger files outside kernels, each with its reason."""


def room_of(path: Path) -> str:
    """
    >>> room_of(SOURCE / "cli" / "run.py"), room_of(SOURCE / "source.py")
    ('cli', 'source.py')
    """
    return path.relative_to(SOURCE).parts[0]


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")


def parts(identifier: str) -> list[str]:
    """
    >>> parts("_net_changes"), parts("CommitWriter"), parts("ROWS_MAX")
    (['net', 'changes'], ['commit', 'writer'], ['rows', 'max'])
    """
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", identifier)
    return [part.lower() for part in found]


def dialect_in(identifier: str) -> set[str]:
    """
    >>> dialect_in("_handfuls"), dialect_in("take_handful"), dialect_in("look_once_more")
    (set(), {'handful'}, {'look_once'})
    """
    joined = f"_{'_'.join(parts(identifier))}_"
    return {word for word in WORDS if f"_{word}_" in joined}


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text
    for statement in tree.body:  # of a constant: below it
        match statement:
            case ast.Expr(ast.Constant(str(text))):
                yield text


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_identifiers_use_the_words_of_the_field(path: Path) -> None:
    allowed = NAMES_LEFT.get(room_of(path), set())
    found = {
        name: WORDS[word]
        for name in {*identifiers(parsed(path)), path.stem}
        for word in dialect_in(name) - allowed
    }
    assert found == {}


def phrases_in(text: str) -> set[str]:
    flat = " ".join(text.split())
    return {phrase for phrase in PHRASES if re.search(phrase, flat, re.IGNORECASE)}


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_docstrings_use_the_words_of_the_field(path: Path) -> None:
    texts = list(docstrings(parsed(path)))
    found = set().union(*map(phrases_in, texts)) - PHRASES_LEFT.get(room_of(path), set())
    assert {phrase: PHRASES[phrase] for phrase in found} == {}


@pytest.mark.parametrize("room", sorted({room_of(path) for path in modules()}))
def test_docstrings_begin_with_a_verb_or_noun(room: str) -> None:
    paths = [path for path in modules() if room_of(path) == room]
    found = [
        f"{path.relative_to(SOURCE)}: {text.splitlines()[0]}"
        for path in paths
        for text in docstrings(parsed(path))
        if OPENING.match(text.lstrip())
    ]
    assert len(found) <= OPENINGS_LEFT.get(room, 0), "\n".join(found)


PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES += [*sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_use_the_words_of_the_field(path: Path) -> None:
    allowed = PHRASES_LEFT.get(path.relative_to(ROOT).as_posix(), set())
    found = phrases_in(path.read_text(encoding="utf-8")) - allowed
    assert {phrase: PHRASES[phrase] for phrase in found} == {}


def test_files_are_small() -> None:
    large = {
        name: lines
        for path in modules()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LINES_MAX
        and not (name := path.relative_to(SOURCE).as_posix()).startswith(KERNELS)
    }
    assert large.keys() - LARGE.keys() == set(), large
