"""Diagnostics, and the exceptions that carry them.

A check collects diagnostics; nothing is raised before a phase has found all it can find.
`raise_if_any` sorts them by place and raises once. Everything a user can cause is a
`DeltalogError`; anything else that escapes is a bug in Deltalog.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from deltalog.source import Span


@dataclass(frozen=True)
class Label:
    """A place in a source and a text about it."""

    span: Span
    text: str = ""


@dataclass(frozen=True)
class Diagnostic:
    """One problem: a stable code, a message, the places it concerns, a note and a hint."""

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    note: str | None = None
    hint: str | None = None

    def sort_key(self) -> tuple[bool, str, int, str, str]:
        if not self.labels:
            return (False, "", 0, self.code, self.message)
        span = self.labels[0].span
        return (True, span.source.name, span.start, self.code, self.message)


class DeltalogError(Exception):
    """A problem caused by user input, with everything needed to fix it."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        unique = dict.fromkeys(diagnostics)
        self.diagnostics = tuple(sorted(unique, key=Diagnostic.sort_key))
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        from deltalog.diagnostics.render import render_diagnostic

        return "\n".join(render_diagnostic(diagnostic) for diagnostic in self.diagnostics)

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(diagnostic.code for diagnostic in self.diagnostics)


class ProgramError(DeltalogError):
    """The program or query itself is wrong; nothing has run."""


class DataError(DeltalogError):
    """The data offered does not fit the program; nothing has changed."""


class LimitError(DeltalogError):
    """A limit was reached; everything has been rolled back."""


class InternalError(Exception):
    """A broken assumption inside Deltalog: a bug, never the user's fault."""


Error = TypeVar("Error", bound=DeltalogError)


def with_diagnostics(error: Error, diagnostics: Iterable[Diagnostic]) -> Error:
    """The same error with other diagnostics; whatever else it carries stays."""
    made = type(error).__new__(type(error))
    made.__dict__.update(error.__dict__)
    made.diagnostics = tuple(sorted(dict.fromkeys(diagnostics), key=Diagnostic.sort_key))
    return made


def raise_if_any(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise one `ProgramError` with all of them, if there are any."""
    found = tuple(diagnostics)
    if found:
        raise ProgramError(found)
