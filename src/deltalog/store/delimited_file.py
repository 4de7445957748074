"""CSV and TSV. The csv module cannot tell an empty field from a quoted one, so it is not used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import VALUE_ERRORS, parse_value, plain_text
from deltalog.store.records import (
    EMPTY,
    Converter,
    EmptyField,
    Place,
    column_type,
    name_faults,
    numbered_lines,
    record_row,
)

_Field = str | EmptyField
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')
_CLOSING = re.compile(r'(?:[^"]++|"")*+"')
_UNQUOTED = {mark: re.compile(rf"(?:(?!\r?\n)[^{mark}])*") for mark in (",", "\t")}


def read_delimited(path: Path, columns: Sequence[Column], delimiter: str) -> Iterator[Row]:
    return (row for _, row in delimited_rows(path, columns, delimiter))


def delimited_rows(
    path: Path, columns: Sequence[Column], delimiter: str
) -> Iterator[tuple[int, Row]]:
    """The rows, each with its line."""
    converters = [_from_field(column) for column in columns]
    blank_is_null = len(columns) == 1 and columns[0].nullable
    records = (
        record for record in _read_records(path, delimiter) if blank_is_null or record[1] != [EMPTY]
    )
    first = next(records, None)
    if first is None:
        return
    order = _header_places(path, columns, *first)
    if order is None:
        hint = "add a header with the column names: " + ", ".join(column.name for column in columns)
        place = Place(path, "line", first[0], hint)
        yield first[0], record_row(place, columns, converters, first[1])
        order = list(range(len(columns)))
    for number, fields in records:
        if len(fields) == len(order):
            fields = [fields[position] for position in order]
        yield number, record_row(Place(path, "line", number), columns, converters, fields)


def _header_places(
    path: Path, columns: Sequence[Column], number: int, fields: list[_Field]
) -> list[int] | None:
    """Where the header has each column, or None when the record is a fact."""
    names = [field.strip() if isinstance(field, str) else "" for field in fields]
    known = {column.name.casefold() for column in columns}
    if not any(name.casefold() in known for name in names):
        return None
    faults = name_faults(names, columns)
    if not faults:
        return [names.index(column.name) for column in columns]
    if _is_surely_fact(columns, fields):
        return None
    hint = "if this line is a fact, put a header before it"
    raise Place(path, "line", number).wrong(f"in the header, {faults}", hint)


def _is_surely_fact(columns: Sequence[Column], fields: list[_Field]) -> bool:
    """Whether it fits and a column that is not text says so: any header would fit text columns."""
    if len(fields) != len(columns) or all(column.type == "str" for column in columns):
        return False
    try:
        for column, field in zip(columns, fields, strict=True):
            _from_field(column)(field)
    except VALUE_ERRORS:
        return False
    return True


def _from_field(column: Column) -> Converter:
    type_, nullable = column_type(column), column.nullable
    is_text = type_ == "str"

    def convert(field: _Field) -> Value:
        if isinstance(field, str):
            if field or is_text:
                return parse_value(field, type_)
        elif is_text and not nullable:
            return ""
        if not nullable:
            raise ValueError("nothing there")
        return None

    return convert


def _read_records(path: Path, delimiter: str) -> Iterator[tuple[int, list[_Field]]]:
    lines = numbered_lines(path)
    for number, line in lines:
        if '"' in line:
            yield number, _quoted_record(Place(path, "line", number), line, lines, delimiter)
        else:
            text = line.removesuffix("\n").removesuffix("\r")
            yield number, [field or EMPTY for field in text.split(delimiter)]


def _quoted_record(
    place: Place, text: str, lines: Iterator[tuple[int, str]], delimiter: str
) -> list[_Field]:
    """The fields of a record with quotes in it, drawing more lines while a quote is open."""
    unquoted = _UNQUOTED[delimiter]
    fields: list[_Field] = []
    position = 0
    while True:
        if text.startswith('"', position):
            if (match := _QUOTED.match(text, position)) is None:
                text += _read_open_field(place, lines)
                match = _QUOTED.match(text, position)
            assert match is not None
            fields.append(match[1].replace('""', '"'))
        else:
            match = unquoted.match(text, position)
            assert match is not None  # it matches the empty text too
            fields.append(match[0] or EMPTY)
        position = match.end()
        if not text.startswith(delimiter, position):
            break
        position += 1
    if text[position:] not in ("", "\n", "\r\n"):
        raise place.wrong("there is text after a closing quote")
    return fields


def _read_open_field(place: Place, lines: Iterator[tuple[int, str]]) -> str:
    """The lines up to the one where the open field ends."""
    taken = []
    for _, line in lines:
        taken.append(line)
        if _CLOSING.match(line):
            return "".join(taken)
    raise place.wrong("a quote is opened and never closed")


def write_delimited(
    file: BinaryIO, columns: Sequence[Column], rows: Iterable[Row], delimiter: str
) -> int:
    special = re.compile(f'["\r\n{delimiter}]')

    def field(value: Value) -> str:
        text = plain_text(value)
        if value == "" or special.search(text):
            return '"' + text.replace('"', '""') + '"'
        return text

    names = tuple(column.name for column in columns)
    count = -1  # the header is not a row
    for row in chain([names], rows):
        file.write((delimiter.join(map(field, row)) + "\n").encode("utf-8"))
        count += 1
    return count
