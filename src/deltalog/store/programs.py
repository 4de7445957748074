"""The program of a database file: one text that needs no other file.

What a person wrote is kept to the letter, comments and all, unless it includes other files; then it
is kept as it is printed, which reads back as the same program.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from deltalog.checks.program import CheckedProgram, check_program
from deltalog.diagnostics.report import ProgramError
from deltalog.language.ast import Program
from deltalog.language.parser import parse_program
from deltalog.language.printer import print_program
from deltalog.runtime.read_program import read_program
from deltalog.source import Source


def program_and_text(program: str | Path | Program) -> tuple[Program, str]:
    """A program, and a text that is read as the same program without any other file."""
    if isinstance(program, Program):
        return program, print_program(program)
    source = read_program(program)
    parsed = parse_program(source)
    try:
        alone = parse_program(Source("<text>", source.text), no_file)
    except ProgramError:  # it includes others
        return parsed, print_program(parsed)
    return parsed, source.text if alone == parsed else print_program(parsed)


def no_file(name: str, including: Source) -> Source:
    """Refuse to read any other file that a program includes."""
    raise OSError(f"{including.name} includes {name}")


def stored_program(text: str) -> CheckedProgram:
    """The program that a file holds; it was valid when it was written, so else it is damaged."""
    try:
        return check_program(parse_program(Source("<text>", text), no_file))
    except ProgramError as error:
        raise apsw.CorruptError("its program cannot be read") from error
