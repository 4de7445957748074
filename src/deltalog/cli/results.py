"""Results on standard output: a table, JSON lines or CSV.

    ? path(1, Y).          {"query": "? path(1, Y).", "row": {"Y": 2}}          Y
    Y                      {"query": "? path(1, Y).", "row": {"Y": 3}}          2
    -                                                                           3
    2
    3
    (2 rows)

A JSON line always has this shape, however many answers there are; CSV separates several by a blank
line. Without columns there is only yes or no: a table says so, JSON has one empty row or none, CSV
a column `holds`. Dates, timestamps and decimals are text in JSON, and null is an empty CSV field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal as OneOf

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from deltalog.analysis.columns import Relations
from deltalog.cli.options import Format
from deltalog.cli.terminal import counted_noun, result_width, visible_text, write_note, write_result
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Column, Query, Row, Value
from deltalog.language.printer import print_query
from deltalog.language.values import plain_text
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.rows import Rows
from deltalog.store.file_database import FileDatabase

GAP = "  "
CELL_WIDTH_MIN = 8
_NUMBERS = ("int", "float", "decimal")
_SPECIAL = re.compile('[",\r\n]')


@dataclass(frozen=True)
class Result:
    """The rows of a relation, or the answers to a query, with the words they are shown under."""

    kind: OneOf["query", "relation"]
    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]


def query_result(query: Query, rows: Rows) -> Result:
    text = print_query(query)
    return Result("query", text, text, rows.columns, rows)


def facts_at(database: MemoryDatabase, name: str, version: int | None) -> set[Row]:
    """The facts of a relation now, or at an earlier version of a database file."""
    if version is None or not isinstance(database, FileDatabase):
        return database.facts(name)
    return database.facts(name, version)


def relations_at(database: MemoryDatabase, version: int | None) -> Relations:
    """The relations that there are now, or were at an earlier version of a database file."""
    if version is None or not isinstance(database, FileDatabase):
        return database.relations
    return database.relations_at(version)


def check_names(known: Collection[str], names: Iterable[str]) -> None:
    """Raise if one of the names is not that of a relation or view."""
    problems = [
        catalogue.NO_SUCH_RELATION.at(None, name=name, hint=did_you_mean(name, known))
        for name in names
        if name not in known
    ]
    if problems:
        raise DataError(problems)


def relation_result(database: MemoryDatabase, name: str, version: int | None = None) -> Result:
    rows = facts_at(database, name, version)  # an unknown name is reported here
    columns = relations_at(database, version)[name].columns
    described = ", ".join(f"{column.name}: {_column_type(column)}" for column in columns)
    title = f"{name}({described})" if columns else name
    return Result("relation", name, title, columns, Rows(columns, rows))


def _column_type(column: Column) -> str:
    return f"{column.type}{'?' if column.nullable else ''}"


def show_results(results: Iterable[Result], format_: Format, limit: int | None = None) -> None:
    """Write all results; `limit` is the most rows of each that are shown."""
    for number, result in enumerate(results):
        if number and format_ is not Format.JSON:
            write_result()
        shown = result.rows if limit is None else result.rows[:limit]
        _WRITERS[format_](result, shown)
        left = len(result.rows) - len(shown)
        if left and format_ is not Format.TABLE:
            write_note(f"{counted_noun(left, 'more row')} of {result.name} not shown")


# --- tables


def _write_table(result: Result, shown: Sequence[Row]) -> None:
    write_result(Text(visible_lines(result.title), style="bold cyan"))
    if not result.columns:
        write_result("true" if result.rows else "false")
        return
    header = [column.name for column in result.columns]
    cells = [[_cell_text(value) for value in row] for row in shown]
    rights = [column.type in _NUMBERS for column in result.columns]
    for line in table_lines(header, cells, rights):
        write_result(line)
    write_result(Text(_row_count_text(len(result.rows), len(shown)), style="dim"))


def table_lines(
    header: Sequence[str], cells: Sequence[Sequence[str]], rights: Sequence[bool]
) -> Iterator[Text]:
    """The header, a rule, and a line for each row; `rights` are the columns of numbers."""
    widths = _column_widths([header, *cells])
    yield Text(_align_cells(header, widths, rights), style="bold")
    yield Text(GAP.join("-" * width for width in widths), style="dim")
    for row in cells:
        yield Text(_align_cells(row, widths, rights))


def visible_lines(text: str) -> str:
    return "\n".join(visible_text(line) for line in text.split("\n"))


def _cell_text(value: Value) -> str:
    return "null" if value is None else visible_text(plain_text(value))


def _row_count_text(total: int, shown: int) -> str:
    if total > shown:
        return f"… {total - shown:,} more ({total:,} rows, {shown:,} shown)"
    return f"({counted_noun(total, 'row')})" if total else "(no rows)"


def _column_widths(lines: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column; on a terminal the widest ones give way until the lines fit."""
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    room = result_width()
    if room is None:
        return widths
    room -= len(GAP) * (len(widths) - 1)
    width_max = min(max(widths), max(room, CELL_WIDTH_MIN))
    while sum(min(width, width_max) for width in widths) > room and width_max > CELL_WIDTH_MIN:
        width_max -= 1
    return [min(width, width_max) for width in widths]


def _align_cells(cells: Sequence[str], widths: Sequence[int], rights: Sequence[bool]) -> str:
    padded = [_pad_cell(*each) for each in zip(cells, widths, rights, strict=True)]
    return GAP.join(padded).rstrip()


def _pad_cell(cell: str, width: int, right: bool) -> str:
    length = len(cell) if cell.isascii() else cell_len(cell)
    if length > width:
        return set_cell_size(cell, width - 1) + "…"
    blanks = " " * (width - length)
    return blanks + cell if right else cell + blanks


# --- JSON lines and CSV


def _write_json(result: Result, shown: Sequence[Row]) -> None:
    names = [column.name for column in result.columns]
    for row in shown:
        record = {result.kind: result.name, "row": dict(zip(names, row, strict=True))}
        write_result(json.dumps(record, ensure_ascii=False, default=plain_text))


def _write_csv(result: Result, shown: Sequence[Row]) -> None:
    if not result.columns:
        write_result("\n".join(("holds", *("true" for _ in islice(shown, 1)))))
        return
    write_result(",".join(csv_field(column.name) for column in result.columns))
    for row in shown:
        write_result(",".join(map(csv_field, row)))


def csv_field(value: Value) -> str:
    text = plain_text(value)
    is_quoted = value == "" or _SPECIAL.search(text)
    return '"' + text.replace('"', '""') + '"' if is_quoted else text


_WRITERS = {Format.TABLE: _write_table, Format.JSON: _write_json, Format.CSV: _write_csv}
