"""Markdown pages: their fenced blocks, found and put back.

A block begins with three backticks and a word for its language, perhaps more words:

    ```deltalog more

`more` means that the block goes on where the `deltalog` block before it ended.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES += [ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
PAGES += sorted((ROOT / "examples").rglob("*.md"))
UPDATE = bool(os.environ.get("DELTALOG_UPDATE_CASES"))

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is where its text begins."""

    path: Path
    number: int
    language: str
    words: tuple[str, ...]
    text: str
    line: int
    start: int
    end: int

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}"


def blocks(path: Path) -> list[Block]:
    page = path.read_text(encoding="utf-8")
    return [
        Block(
            path,
            number,
            found[1],
            tuple(found[2].split()),
            found[3],
            page.count("\n", 0, found.start(3)) + 1,
            found.start(3),
            found.end(3),
        )
        for number, found in enumerate(_BLOCK.finditer(page))
    ]


def check_block(block: Block, actual: str) -> None:
    """The block says what came out; or, when updating, it is made to say it."""
    if UPDATE:
        page = block.path.read_text(encoding="utf-8")
        current = blocks(block.path)[block.number]
        page = page[: current.start] + actual + page[current.end :]
        block.path.write_text(page, encoding="utf-8")
        block = blocks(block.path)[block.number]
    assert actual == block.text, f"{block.place} should say\n{actual}"


def table_rows(path: Path, heading: str) -> Iterator[list[str]]:
    """The cells of the first table under a heading, without its own heading."""
    section = path.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def check_page(path: Path, expected: str) -> None:
    """A generated page says what is generated now; or, when updating, it is made to say it."""
    if UPDATE:
        path.write_text(expected, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; `make update-cases` writes it"
    assert path.read_text(encoding="utf-8") == expected, "`make update-cases` writes it anew"
