"""Where something is written in a project file, for errors that are found after it was read."""

from __future__ import annotations

import re

from deltalog.source import Source, Span

Place = tuple[str, ...]
"""The table of a key: `("sinks", "offer")`, or nothing for the file as a whole."""


def span_in(text: Source, place: Place, key: str | None = None) -> Span | None:
    """Where a key is written, or else the table it belongs to."""
    header = r"\[\s*" + r"\s*\.\s*".join(rf'"?{re.escape(p)}"?' for p in place) + r"\s*\]"
    start, end = 0, len(text.text)
    table: Span | None = None
    if place:
        found = re.search(rf"^\s*({header})", text.text, re.MULTILINE)
        if found is None:
            return None
        table, start = Span(text, *found.span(1)), found.end()
        following = re.compile(r"^\s*\[", re.MULTILINE).search(text.text, start)
        end = following.start() if following is not None else end
    if key is None:
        return table
    words = re.compile(rf'^\s*\[*\s*("?{re.escape(key)}"?)\s*[=.\]]', re.MULTILINE)
    at = words.search(text.text, start, end)
    return table if at is None else Span(text, *at.span(1))
