"""Words on a terminal: the one place that writes to standard output and standard error.

Results go to standard output, everything else to standard error; each gets colour when it is a
terminal (rich also heeds NO_COLOR and FORCE_COLOR). Text is styled to a string first and written
here, because rich ends the process by itself when a pipe breaks and we have our own exit codes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from typing import TextIO

from rich.console import Console
from rich.text import Text


def write_result(text: str | Text = "") -> None:
    """One line, or several, of what was asked for."""
    _write_line(sys.stdout, text)


def write_message(text: str | Text = "") -> None:
    """One line, or several, of messages; a closed pipe is ignored."""
    try:
        _write_line(sys.stderr, text)
    except BrokenPipeError:  # as in `deltalog check … 2>&1 | head`
        discard_output(sys.stderr)


def discard_output(stream: TextIO) -> None:
    """Let everything that is still to be written go nowhere, also when Python ends."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())


def write_note(text: str) -> None:
    """A remark that is no error: what was written, what was left out."""
    write_message(Text(f"note: {text}", style="dim"))


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def result_width() -> int | None:
    """The columns of the terminal that shows results, or None when a file or pipe takes them."""
    return Console(file=sys.stdout).width if is_terminal(sys.stdout) else None


def counted_noun(number: int, noun: str) -> str:
    """
    >>> counted_noun(1, "fact"), counted_noun(12000, "fact")
    ('1 fact', '12,000 facts')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible_text(text: str) -> str:
    """The text with everything that would move the cursor as an escape: `\\n`, `\\x1b`.

    >>> visible_text("a\\tb")
    'a\\\\tb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _write_line(stream: TextIO, text: str | Text) -> None:
    stream.write((text if isinstance(text, str) else _style_text(text, stream)) + "\n")


@lru_cache(maxsize=2)
def _console_for(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False)


def _style_text(text: Text, stream: TextIO) -> str:
    console = _console_for(stream)
    if console.color_system is None:
        return text.plain
    with console.capture() as captured:
        console.print(text, soft_wrap=True, end="")
    return captured.get()
