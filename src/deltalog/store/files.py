"""Facts in files: rows of one relation read from and written to CSV, TSV, JSON Lines and Parquet.

The suffix names the format. Whatever a file holds, a row comes out in the canonical form of
`language/values.py` or an error names file, line, column, value and the type wanted; and what was
written reads back equal, for every type.

    src,dst            {"src": 1, "dst": 2}
    1,2                [1, 3]                     ->  (1, 2), (1, 3)
    1,3

CSV and TSV: UTF-8, fields in double quotes where needed, a quote inside them doubled. The first
line is a header when it names the columns, in any order; otherwise fields go by position. A line
that names only some of the columns is an error, unless it fits as a fact and has more than text to
prove it. An empty field is null where the column may be null, and "" in a text column that may not;
in a text column that may, only the quoted `""` is text. Blank lines do not count, except that in a
relation of one column that may be null each of them is a null.

JSON Lines: one array (by position) or object (by name) on each line; a name left out is null.
Decimals, dates and timestamps are strings; a decimal may be a number, and is taken digit for digit.

Parquet: by name, or by position when no name matches. Timestamps of any unit and zone become UTC,
rounded down to the microsecond.

A relation without columns is stored as `{}` in JSON Lines, elsewhere as one column `holds` with
the value true when its fact holds. A text file of no bytes holds no facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Column, Row
from deltalog.store.delimited_file import delimited_rows, read_delimited, write_delimited
from deltalog.store.json_lines_file import read_json_lines, write_json_lines
from deltalog.store.parquet_file import read_parquet, write_parquet
from deltalog.store.records import replacing_file

HOLDS = (Column("holds", "bool"),)
DELIMITERS = {".csv": ",", ".tsv": "\t"}


def read_rows(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    """The rows in a file, one after the other; a fact may come more than once."""
    format_ = _format_of_path(path)
    if columns or format_.keeps_empty_rows:
        return format_.read(path, tuple(columns))
    return (() for row in format_.read(path, HOLDS) if row[0])


def placed_rows(path: Path, columns: Sequence[Column]) -> Iterator[tuple[str, Row]]:
    """The rows of a table with where each stands: `line 3` of a text, `row 3` of a Parquet file."""
    delimiter = DELIMITERS.get(path.suffix.lower())
    if delimiter is None:
        return ((f"row {n}", row) for n, row in enumerate(read_rows(path, columns), start=1))
    return ((f"line {n}", row) for n, row in delimited_rows(path, tuple(columns), delimiter))


def write_rows(path: Path, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    """Write canonical rows and return how many; the file is there wholly or not at all."""
    format_ = _format_of_path(path)
    if not columns and not format_.keeps_empty_rows:
        columns, rows = HOLDS, ((True,) for _ in rows)
    with replacing_file(path) as file:
        return format_.write(file, tuple(columns), rows)


@dataclass(frozen=True)
class _Format:
    read: Callable[[Path, Sequence[Column]], Iterator[Row]]
    write: Callable[[BinaryIO, Sequence[Column], Iterable[Row]], int]
    keeps_empty_rows: bool = False


def _delimited_format(delimiter: str) -> _Format:
    return _Format(
        lambda path, columns: read_delimited(path, columns, delimiter),
        lambda file, columns, rows: write_delimited(file, columns, rows, delimiter),
    )


_JSON_LINES = _Format(read_json_lines, write_json_lines, keeps_empty_rows=True)
_FORMATS = {
    ".csv": _delimited_format(","),
    ".tsv": _delimited_format("\t"),
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".json": _JSON_LINES,
    ".parquet": _Format(read_parquet, write_parquet),
}


def _format_of_path(path: Path) -> _Format:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        hint = "the known suffixes are " + ", ".join(_FORMATS)
        raise DataError([catalogue.UNKNOWN_FORMAT.at(None, name=path, hint=hint)])
    return found
