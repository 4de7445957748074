"""Diagnostics as text: file, line, source line and caret, every label, note and hint.

error[E0203]: unknown predicate `pth`
  --> graph.dl:3:15
  |
3 | path(X, Y) :- pth(X, Y).
  |               ^^^^^^^^^
  = hint: did you mean `path`?
"""

from __future__ import annotations

import unicodedata

from deltalog.diagnostics.report import Diagnostic, Label

LINE_WIDTH_MAX = 160


def render_diagnostic(diagnostic: Diagnostic) -> str:
    """The full text of one diagnostic, without colour."""
    kind = "warning" if diagnostic.code.startswith("W") else "error"
    lines = [f"{kind}[{diagnostic.code}]: {diagnostic.message}"]
    gutter = _gutter_width(diagnostic)
    previous_source = None
    for number, label in enumerate(diagnostic.labels):
        arrow = "-->" if number == 0 or label.span.source is not previous_source else "..."
        if arrow == "-->":
            lines.append(f"{' ' * gutter}{arrow} {label.span}")
            lines.append(f"{' ' * gutter} |")
        lines += _snippet_lines(label, gutter, "^" if number == 0 else "-")
        previous_source = label.span.source
    if diagnostic.note:
        lines.append(f"{' ' * gutter} = note: {diagnostic.note}")
    if diagnostic.hint:
        lines.append(f"{' ' * gutter} = hint: {diagnostic.hint}")
    return "\n".join(lines)


def _gutter_width(diagnostic: Diagnostic) -> int:
    numbers = [label.span.source.position(label.span.start)[0] for label in diagnostic.labels]
    return len(str(max(numbers, default=1)))


def _snippet_lines(label: Label, gutter: int, mark: str) -> list[str]:
    source = label.span.source
    line_number, column = source.position(label.span.start)
    line = source.line(line_number)
    start = column - 1
    end = min(start + max(label.span.end - label.span.start, 1), max(len(line), start + 1))
    window = 0 if end <= LINE_WIDTH_MAX else max(0, start - LINE_WIDTH_MAX // 2)
    shown = _escape_controls(line[window : window + LINE_WIDTH_MAX])
    before = _terminal_width(_escape_controls(line[window:start]))
    length = max(
        _terminal_width(_escape_controls(line[start : min(end, window + LINE_WIDTH_MAX)])), 1
    )
    caret = " " * before + mark * length + (f" {label.text}" if label.text else "")
    return [
        f"{line_number:>{gutter}} | {shown}".rstrip(),
        f"{' ' * gutter} | {caret}",
    ]


def _escape_controls(text: str) -> str:
    """Tabs as four blanks, anything that would move the cursor as a visible escape."""
    return "".join(
        "    " if c == "\t" else c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in text
    )


def _terminal_width(text: str) -> int:
    """Columns a text takes on a terminal: wide characters two, combining marks none."""
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )
