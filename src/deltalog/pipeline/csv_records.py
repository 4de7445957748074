"""Records of a CSV file with their lines and texts, also of those that are broken.

    1,"two
    lines"          line 1   ["1", "two\\nlines"]
    2,              line 3   ["2", None]
    3,"x"y          line 4   there is text after a closing quote

A field without quotes that is empty is None. The reader of `store/delimited_file.py` ends at the
first record that is wrong; this one goes on with the next, and keeps the text for the quarantine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from deltalog.store.records import opened_file, unreadable_file

Field = str | None
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')
_CLOSING = re.compile(r'(?:[^"]++|"")*+"')
_ENDS = ("", "\n", "\r\n")
NOT_UTF_8 = "this row cannot be read: it is not UTF-8 text"
AFTER_QUOTE = "this row cannot be read: there is text after a closing quote"


class CsvRecord(NamedTuple):
    """The fields of a record, or the reason why there are none."""

    line: int
    fields: list[Field] | None
    text: str
    reason: str | None = None


def csv_records(path: Path, mark: str) -> Iterator[CsvRecord]:
    """The records of a file whose fields are separated by a mark; blank lines do not count."""
    lines = text_lines(path)
    for number, first in lines:
        text = first
        if not text.rstrip("\r\n"):
            continue
        if '"' not in text:
            shown = _without_end(text)
            fields = [field or None for field in shown.split(mark)]
        else:
            found = _quoted_fields(text, lines, mark)
            if found is None:
                reason = f"a quote is opened in line {number} and never closed"
                raise unreadable_file(path, reason)
            text, position, fields = found
            shown = _without_end(text)
            if text[position:] not in _ENDS:
                yield CsvRecord(number, None, escape_undecodable(shown), AFTER_QUOTE)
                continue
        if is_broken(shown):
            yield CsvRecord(number, None, escape_undecodable(shown), NOT_UTF_8)
        else:
            yield CsvRecord(number, fields, shown)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends, bytes that are not UTF-8 as surrogates."""
    with opened_file(path) as file:
        for number, line in enumerate(file, start=1):
            text = line.decode("utf-8", "surrogateescape")
            yield number, text.removeprefix("\ufeff") if number == 1 else text


def is_broken(text: str) -> bool:
    """Whether a text has bytes that are not UTF-8."""
    return not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text)


def escape_undecodable(text: str) -> str:
    """The text with such bytes written as `\\xff`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _quoted_fields(
    text: str, lines: Iterator[tuple[int, str]], mark: str
) -> tuple[str, int, list[Field]] | None:
    """The text of a record, drawing more lines while a quote is open, where it ends, its fields.

    None if a quote is never closed.
    """
    unquoted = _unquoted_field_pattern(mark)
    fields: list[Field] = []
    position = 0
    while True:
        if text.startswith('"', position):
            if (match := _QUOTED.match(text, position)) is None:
                rest = _read_open_field(lines)
                if rest is None:
                    return None
                text += rest
                match = _QUOTED.match(text, position)
            assert match is not None
            fields.append(match[1].replace('""', '"'))
        else:
            match = unquoted.match(text, position)
            assert match is not None  # it matches the empty text too
            fields.append(match[0] or None)
        position = match.end()
        if not text.startswith(mark, position):
            return text, position, fields
        position += len(mark)


@cache
def _unquoted_field_pattern(mark: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?!\r?\n|{re.escape(mark)})[\s\S])*")


def _read_open_field(lines: Iterator[tuple[int, str]]) -> str | None:
    """The lines up to the one where the open field ends."""
    taken = []
    for _, line in lines:
        taken.append(line)
        if _CLOSING.match(line):
            return "".join(taken)
    return None
