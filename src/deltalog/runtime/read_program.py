"""The text of a program, which a caller names by its path or gives as it is."""

from __future__ import annotations

from pathlib import Path

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Program
from deltalog.source import Source

ProgramLike = str | Path | Program
"""A path, a text, or a parsed program."""


def read_program(program: str | Path) -> Source:
    """A program given as a path, or as text: a single line that ends in `.dl` is a path."""
    hint = "a program is a text, a `Path`, or a parsed `Program`"
    check_argument(isinstance(program, str | Path), "program", program, hint)
    is_path = isinstance(program, Path) or ("\n" not in program and program.strip().endswith(".dl"))
    if not is_path:
        return Source("<text>", str(program))
    name = str(program).strip()
    try:
        return Source(name, Path(name).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeError) else reason
        raise DataError(
            [catalogue.PROGRAM_NOT_FOUND.at(None, name=name, reason=reason.lower())]
        ) from None
