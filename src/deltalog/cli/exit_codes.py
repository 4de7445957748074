"""Exit codes: one per kind of error, and never a Python traceback.

`exit_codes()` stands around every command. A `DeltalogError` is reported on standard error and
becomes its code; a reader that closes the pipe (`deltalog run … | head`) is not an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from deltalog.cli.messages import report_error
from deltalog.cli.terminal import discard_output, write_message
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, DeltalogError, LimitError


class ExitCode(IntEnum):
    FINE = 0
    WRONG = 1
    USAGE = 2
    LIMIT = 3
    FILE = 4
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.FINE: "success, also if the reader of a pipe closed it early",
    ExitCode.WRONG: "an error in the program, a query or the data, reported on standard error; or "
    "an audit found a difference",
    ExitCode.USAGE: "wrong usage of the command",
    ExitCode.LIMIT: "a limit was reached (rounds, facts, seconds, or memory)",
    ExitCode.FILE: "a file cannot be read or written, or is damaged",
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
}

_FILE_CODES = {
    entry.code
    for entry in (
        catalogue.CANNOT_READ,
        catalogue.CANNOT_WRITE,
        catalogue.PROGRAM_NOT_FOUND,
        catalogue.UNKNOWN_FORMAT,
        catalogue.CANNOT_OPEN,
        catalogue.NOT_A_DATABASE,
        catalogue.FILE_DAMAGED,
        catalogue.FORMAT_TOO_NEW,
        catalogue.FILE_IN_USE,
        catalogue.COMMIT_FAILED,
        catalogue.FILE_EXISTS,
    )
}


def exit_code_of(error: DeltalogError) -> ExitCode:
    if isinstance(error, LimitError):
        return ExitCode.LIMIT
    return ExitCode.FILE if _FILE_CODES & set(error.codes) else ExitCode.WRONG


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn whatever ends the block into an exit code."""
    try:
        with _report_errors():
            yield
    except BrokenPipeError:
        discard_output(sys.stdout)
        raise typer.Exit(ExitCode.FINE) from None


@contextmanager
def _report_errors() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except DeltalogError as error:
        _exit_with(error, exit_code_of(error))
    except KeyboardInterrupt:
        _exit_with("interrupted", ExitCode.INTERRUPTED)
    except MemoryError:
        _exit_with("out of memory; `--facts-max` sets a limit", ExitCode.LIMIT)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        name = error.filename or "standard output"
        _exit_with(
            DataError([catalogue.CANNOT_WRITE.at(None, name=name, reason=reason)]), ExitCode.FILE
        )


def _exit_with(problem: DeltalogError | str, code: ExitCode) -> None:
    if isinstance(problem, DeltalogError):
        report_error(problem)
    else:
        write_message(problem)
    raise typer.Exit(code) from None
