"""Rows that were not taken, and the error that shows them where they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Label
from deltalog.pipeline.source_columns import line_span

SHOWN_MAX = 3


class Rejected(NamedTuple):
    """A row that was not taken: why, and where it came from.

    `row` is JSON: an object with the values by column, as they were read, or the text of what could
    not be read. `line` counts from one; Spark's own readers do not know it. If `is_whole`, the rest
    of its batch was not taken either.
    """

    relation: str
    reason: str
    row: str
    op: str | None = None
    file: str | None = None
    line: int | None = None
    source: str = ""
    batch: str = ""
    is_whole: bool = False


Refused = Sequence[Rejected]


def as_whole(bad: Iterable[Rejected]) -> list[Rejected]:
    """The same rows, whose batch is refused as a whole."""
    return [each._replace(is_whole=True) for each in bad]


def bad_rows_error(name: str, batch: str, bad: Refused) -> DataError:
    """The error for rows that cannot be taken, with the first of them."""
    shown = "; ".join(dict.fromkeys(each.reason for each in bad[:SHOWN_MAX]))
    more = f"; and {len(bad) - SHOWN_MAX:,} more" if len(bad) > SHOWN_MAX else ""
    count = f"{len(bad):,} row{'' if len(bad) == 1 else 's'}"
    words = {"count": count, "batch": batch, "name": name, "reason": shown + more}
    places = [place for each in bad[:SHOWN_MAX] if (place := _label_of_row(each)) is not None]
    hint = 'mend them; `bad_rows = "quarantine"` takes the other rows' if places else None
    return DataError([catalogue.BAD_ROWS.at(None, *places, **words, hint=hint)])


def _label_of_row(bad: Rejected) -> Label | None:
    """The line of a row, with the reason beside it."""
    if not bad.file or not bad.line:
        return None
    try:
        with Path(bad.file).open(encoding="utf-8", errors="backslashreplace") as file:
            text = next(islice(file, bad.line - 1, None), "")
    except OSError:
        return None
    return Label(line_span(bad.file, bad.line, text), bad.reason)
