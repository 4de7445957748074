"""Diagnostics on standard error: the plain text of `diagnostics/render.py`, coloured.

The first line's code is red, the gutter blue, the caret red, a second caret blue: what the eye
looks for, in the order in which it looks.
"""

from __future__ import annotations

import re

from rich.text import Text

from deltalog.cli.terminal import counted_noun, write_message
from deltalog.diagnostics.render import render_diagnostic
from deltalog.diagnostics.report import DeltalogError, Diagnostic

_TITLE = re.compile(r"(error\[\w+\])(: .*)")
_SOURCE_LINE = re.compile(r"( *\d+ \|)(.*)")
_CARET_LINE = re.compile(r"( +\|)(?: *)([\^-]+)(.*)")
_GUTTER = re.compile(r" *(?:-->|\||=)")


PROBLEMS_SHOWN_MAX = 50


def report_error(error: DeltalogError) -> None:
    for diagnostic in error.diagnostics[:PROBLEMS_SHOWN_MAX]:
        write_message(colour_diagnostic(diagnostic))
    left = len(error.diagnostics) - PROBLEMS_SHOWN_MAX
    if left > 0:
        write_message(f"… and {counted_noun(left, 'more problem')}")


def colour_diagnostic(diagnostic: Diagnostic) -> Text:
    return Text("\n").join(_colour_line(line) for line in render_diagnostic(diagnostic).split("\n"))


def _colour_line(line: str) -> Text:
    text = Text(line)
    if title := _TITLE.fullmatch(line):
        text.stylize("bold red", *title.span(1))
        text.stylize("bold", *title.span(2))
    elif source := _SOURCE_LINE.match(line):
        text.stylize("bold blue", *source.span(1))
    elif caret := _CARET_LINE.match(line):
        style = "bold red" if caret[2].startswith("^") else "bold blue"
        text.stylize("bold blue", *caret.span(1))
        text.stylize(style, *caret.span(2))
        text.stylize(style, *caret.span(3))
    elif gutter := _GUTTER.match(line):
        text.stylize("bold blue", *gutter.span())
    return text
