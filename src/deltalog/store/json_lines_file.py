"""JSON Lines: one array (by position) or object (by name) on each line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import VALUE_ERRORS, canonical_value, parse_value, plain_text
from deltalog.store.records import (
    Converter,
    JsonObject,
    Place,
    column_type,
    name_faults,
    numbered_lines,
    record_row,
    shown_cell,
)


def read_json_lines(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    converters = [from_json(column) for column in columns]
    decoder = json.JSONDecoder(
        object_pairs_hook=JsonObject,
        parse_float=Decimal if any(column.type == "decimal" for column in columns) else float,
        parse_constant=_refuse_constant,
    )
    for number, line in numbered_lines(path):
        if not line.isspace():
            place = Place(path, "line", number)
            record = _decode_line(place, decoder, line)
            cells = by_name(place, columns, record) if isinstance(record, JsonObject) else record
            yield record_row(place, columns, converters, cells)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _decode_line(place: Place, decoder: json.JSONDecoder, line: str) -> JsonObject | list[Any]:
    try:
        record = decoder.decode(line)
    except (*VALUE_ERRORS, RecursionError) as error:
        raise place.wrong("this is not JSON", "each line is one JSON array or object") from error
    if not isinstance(record, JsonObject | list):
        raise place.wrong(f"{shown_cell(record)} is neither an array nor an object")
    return record


def by_name(place: Place, columns: Sequence[Column], record: JsonObject) -> list[Any]:
    cells = dict(record)
    names = [column.name for column in columns]
    if len(record) == len(names) and all(name in cells for name in names):
        return [cells[name] for name in names]
    absent = {column.name for column in columns if column.nullable} - cells.keys()
    faults = name_faults([name for name, _ in record] + sorted(absent), columns)
    if faults:
        raise place.wrong(faults)
    return [cells.get(name) for name in names]


def from_json(column: Column) -> Converter:
    """A function from what a JSON decoder returns to a value of the column."""
    type_, nullable = column_type(column), column.nullable
    is_written = type_ in ("date", "timestamp", "decimal")

    def convert(cell: Any) -> Value:
        if cell is None and nullable:
            return None
        if isinstance(cell, str) and is_written:
            return parse_value(cell, type_)
        if isinstance(cell, Decimal) and type_ == "float":
            cell = float(cell)
        return canonical_value(cell, type_)

    return convert


def write_json_lines(file: BinaryIO, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    names = [column.name for column in columns]
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=plain_text).encode
    count = 0
    for row in rows:
        file.write((encode(dict(zip(names, row, strict=True))) + "\n").encode("utf-8"))
        count += 1
    return count
