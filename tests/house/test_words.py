"""Names and prose use the words of the field, and files stay small.

A reader from this field never stops at a word. Each word that is refused has its replacement beside
it. Rooms that still use some are listed with them; these lists only get shorter. Kernels are a room
of their own here: whoever edits one compiles for minutes, so words change there with the code.
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

KERNELS = "engines/embedded/kernels"
NAMES_LEFT = {
    KERNELS: {"gone"},
    "engines/embedded/llvm_codegen.py": {"gone"},  # `layout.GONE` of the kernels
}
"""Words that identifiers of a room, or of a file, still contain."""
PHRASES_LEFT = {KERNELS: 4}
OPENINGS_LEFT = {KERNELS: 1}
"""How many docstrings of a room still have a phrase, or an opening, of the dialect."""

LINES_MAX = 400
LARGE = {
    "engines/embedded/kernels/matching.py": (
        "one step: which rows it reads, in which batches, and what it prefetches, all on one "
        "frame; a hundred of its lines import names of layouts"
    ),
    "engines/embedded/kernels/relation_memory.py": (
        "one invariant: an index has every row that the hash has; every function that adds, "
        "removes or moves rows keeps it, so they stand together"
    ),
}
"""Larger files, each with its reason."""


def room_of(path: Path) -> str:
    """
    >>> room_of(SOURCE / "cli" / "run.py"), room_of(SOURCE / "source.py")
    ('cli', 'source.py')
    >>> room_of(SOURCE / "engines" / "base.py"), room_of(SOURCE / KERNELS / "wave.py") == KERNELS
    ('engines', True)
    """
    name = name_of(path)
    return KERNELS if name.startswith(f"{KERNELS}/") else name.split("/")[0]


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


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
    for statement in tree.body[1:]:  # that of a constant stands below it
        match statement:
            case ast.Expr(ast.Constant(str(text))):
                yield text


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_identifiers_use_the_words_of_the_field(path: Path) -> None:
    allowed = NAMES_LEFT.get(room_of(path), set()) | NAMES_LEFT.get(name_of(path), set())
    found = {
        name: WORDS[word]
        for name in {*identifiers(parsed(path)), path.stem}
        for word in dialect_in(name) - allowed
    }
    assert found == {}


def phrases_in(text: str) -> set[str]:
    flat = " ".join(text.split())
    return {phrase for phrase in PHRASES if re.search(phrase, flat, re.IGNORECASE)}


ROOMS = sorted({room_of(path) for path in modules()})


def docstrings_of(room: str) -> Iterator[tuple[str, str]]:
    """Docstrings of a room, each with its file."""
    for path in modules():
        if room_of(path) == room:
            for text in docstrings(parsed(path)):
                yield name_of(path), text


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_use_the_words_of_the_field(room: str) -> None:
    found = [f"{name}: {each}" for name, text in docstrings_of(room) for each in phrases_in(text)]
    assert len(found) <= PHRASES_LEFT.get(room, 0), "\n".join(found)


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_begin_with_a_verb_or_noun(room: str) -> None:
    openings = ((name, text.lstrip().splitlines()[0]) for name, text in docstrings_of(room))
    found = [f"{name}: {text}" for name, text in openings if OPENING.match(text)]
    assert len(found) <= OPENINGS_LEFT.get(room, 0), "\n".join(found)


PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES += [*sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_use_the_words_of_the_field(path: Path) -> None:
    found = phrases_in(path.read_text(encoding="utf-8"))
    assert {phrase: PHRASES[phrase] for phrase in found} == {}


def test_files_are_small() -> None:
    large = {
        name_of(path): lines
        for path in modules()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LINES_MAX
    }
    assert large.keys() == LARGE.keys(), large
    assert all(LARGE.values())
