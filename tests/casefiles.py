"""Case files: data that says what must come out. A new case is a new file, found by glob.

A `.case` file is text in sections; a line `=== name` begins one, and what stands before the first
is the title. With DELTALOG_UPDATE_CASES=1 a runner writes what came out instead of comparing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "cases"
UPDATE = bool(os.environ.get("DELTALOG_UPDATE_CASES"))


@dataclass
class Section:
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return self.name.split()


@dataclass
class Case:
    path: Path
    title: str
    sections: list[Section]

    def text(self, name: str) -> str:
        return next(section.text for section in self.sections if section.name == name)

    def save(self) -> None:
        parts = [self.title.strip() + "\n"] if self.title.strip() else []
        parts += [f"=== {s.name}\n{s.text.strip()}\n" for s in self.sections]
        self.path.write_text("\n".join(parts), encoding="utf-8")


def read_case(path: Path) -> Case:
    title, sections = "", []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("=== "):
            sections.append(Section(line[4:].strip(), ""))
        elif sections:
            sections[-1].text += line
        else:
            title += line
    return Case(path, title, sections)


def find(folder: str, pattern: str = "*.case") -> list[Path]:
    return sorted((CASES / folder).rglob(pattern))


def identify(path: Path) -> str:
    return path.relative_to(CASES).with_suffix("").as_posix()


def compare(case: Case, section: Section, actual: str) -> None:
    """The section says what came out; or, when updating, it is made to say it."""
    if UPDATE:
        section.text = actual + "\n"
        case.save()
    assert actual.strip() == section.text.strip()
