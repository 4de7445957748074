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

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.arrow import arrow_schema, arrow_table
from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import (
    TYPE_HINTS,
    VALUE_ERRORS,
    canonical,
    parse_value,
    plain,
    print_value,
)

if TYPE_CHECKING:  # importing pyarrow takes longer than most commands run
    pass

BATCH_ROWS = 16_384
SHOWN_LENGTH_MAX = 60
HOLDS = (Column("holds", "bool"),)
DELIMITERS = {".csv": ",", ".tsv": "\t"}

Converter = Callable[[Any], Value]


def read_rows(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    """The rows in a file, one after the other; a fact may come more than once."""
    format_ = _format(path)
    if columns or format_.keeps_empty_rows:
        return format_.read(path, tuple(columns))
    return (() for row in format_.read(path, HOLDS) if row[0])


def placed_rows(path: Path, columns: Sequence[Column]) -> Iterator[tuple[str, Row]]:
    """The rows of a table with where each stands: `line 3` of a text, `row 3` of a Parquet file."""
    delimiter = DELIMITERS.get(path.suffix.lower())
    if delimiter is None:
        return ((f"row {n}", row) for n, row in enumerate(read_rows(path, columns), start=1))
    return ((f"line {n}", row) for n, row in _delimited_rows(path, tuple(columns), delimiter))


def write_rows(path: Path, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    """Write canonical rows and return how many; the file is there wholly or not at all."""
    format_ = _format(path)
    if not columns and not format_.keeps_empty_rows:
        columns, rows = HOLDS, ((True,) for _ in rows)
    with _replacing(path) as file:
        return format_.write(file, tuple(columns), rows)


# Places and complaints


class _Place(NamedTuple):
    """Where a record stands, and a hint in case it turns out to be wrong."""

    path: Path
    unit: str
    number: int
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.number}"

    def wrong(self, reason: str, hint: str | None = None) -> DataError:
        entry = catalogue.BAD_RECORD
        return DataError([entry.at(None, place=self, reason=reason, hint=hint or self.hint)])


def _row(
    place: _Place, columns: Sequence[Column], converters: list[Converter], cells: Sequence[Any]
) -> Row:
    """The cells of one record as a row, or an error with every cell that does not fit."""
    if len(cells) != len(columns):
        names = ", ".join(column.name for column in columns)
        wanted = f"{len(columns)}: {names}" if names else "none"
        raise place.wrong(f"it has {_fields(len(cells))}, the relation has {wanted}")
    try:
        return tuple([convert(cell) for convert, cell in zip(converters, cells, strict=True)])
    except VALUE_ERRORS:
        _raise_misfits(place, columns, converters, cells)


def _raise_misfits(
    place: _Place, columns: Sequence[Column], converters: list[Converter], cells: Sequence[Any]
) -> NoReturn:
    wrong = []
    for column, convert, cell in zip(columns, converters, cells, strict=True):
        try:
            convert(cell)
        except VALUE_ERRORS:
            hint = place.hint or _hint(column, cell)
            where, reason = (
                f"{place}, column `{column.name}`",
                f"{_shown(cell)} is not {_a(column)}",
            )
            wrong.append(catalogue.BAD_RECORD.at(None, place=where, reason=reason, hint=hint))
    raise DataError(wrong)


def _hint(column: Column, cell: Any) -> str | None:
    if cell is None or cell is _EMPTY:
        return f"a column that may be null is declared `{column.type}?`"
    return TYPE_HINTS.get(_type(column))


def _shown(cell: Any) -> str:
    if cell is _EMPTY:
        return "an empty field"
    if isinstance(cell, list | _Object):
        cell = dict(cell) if isinstance(cell, _Object) else cell
        text = json.dumps(cell, ensure_ascii=False, default=str)
    else:
        text = str(cell) if isinstance(cell, Decimal) else print_value(cell)
    return text if len(text) <= SHOWN_LENGTH_MAX else text[: SHOWN_LENGTH_MAX - 1] + "…"


def _type(column: Column) -> str:
    assert column.type is not None, f"column {column.name} has no type yet"
    return column.type


def _a(column: Column) -> str:
    return f"an {column.type}" if column.type == "int" else f"a {column.type}"


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _name_faults(names: Sequence[str], columns: Sequence[Column]) -> str:
    """What is wrong with these names for these columns; nothing if they are the same set."""
    wanted = [column.name for column in columns]
    faults = {
        "unknown": [name for name in dict.fromkeys(names) if name not in wanted],
        "missing": [name for name in wanted if name not in names],
        "repeated": [name for name in dict.fromkeys(names) if names.count(name) > 1],
    }
    return "; ".join(
        f"{kind} column{'s' * (len(found) > 1)} " + ", ".join(f"`{name}`" for name in found)
        for kind, found in faults.items()
        if found
    )


# Files, lines and atomic replacement


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _unreadable(path, _reason(error)) from error


def _unreadable(path: Path, reason: str) -> DataError:
    return DataError([catalogue.CANNOT_READ.at(None, name=path, reason=reason)])


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends. Only a line feed ends one: JSON text may hold U+2028."""
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise _Place(path, "line", number).wrong("this is not UTF-8 text") from error
            yield number, text.removeprefix("\ufeff") if number == 1 else text


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` once all has gone well."""
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "is a directory")
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        reason = _reason(error)
        raise DataError([catalogue.CANNOT_WRITE.at(None, name=path, reason=reason)]) from error


# CSV and TSV. The csv module cannot tell an empty field from a quoted one, so it is not used.


class _Empty:
    """The one empty field that was not quoted."""


_EMPTY = _Empty()
_Field = str | _Empty
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')
_CLOSING = re.compile(r'(?:[^"]++|"")*+"')
_UNQUOTED = {mark: re.compile(rf"(?:(?!\r?\n)[^{mark}])*") for mark in (",", "\t")}


def _read_delimited(path: Path, columns: Sequence[Column], delimiter: str) -> Iterator[Row]:
    return (row for _, row in _delimited_rows(path, columns, delimiter))


def _delimited_rows(
    path: Path, columns: Sequence[Column], delimiter: str
) -> Iterator[tuple[int, Row]]:
    """The rows, each with its line."""
    converters = [_from_field(column) for column in columns]
    blank_is_null = len(columns) == 1 and columns[0].nullable
    records = (
        record for record in _records(path, delimiter) if blank_is_null or record[1] != [_EMPTY]
    )
    first = next(records, None)
    if first is None:
        return
    order = _header(path, columns, *first)
    if order is None:
        hint = "add a header with the column names: " + ", ".join(column.name for column in columns)
        place = _Place(path, "line", first[0], hint)
        yield first[0], _row(place, columns, converters, first[1])
        order = list(range(len(columns)))
    for number, fields in records:
        if len(fields) == len(order):
            fields = [fields[position] for position in order]
        yield number, _row(_Place(path, "line", number), columns, converters, fields)


def _header(
    path: Path, columns: Sequence[Column], number: int, fields: list[_Field]
) -> list[int] | None:
    """Where the header has each column, or None when the record is a fact."""
    names = [field.strip() if isinstance(field, str) else "" for field in fields]
    known = {column.name.casefold() for column in columns}
    if not any(name.casefold() in known for name in names):
        return None
    faults = _name_faults(names, columns)
    if not faults:
        return [names.index(column.name) for column in columns]
    if _is_surely_fact(columns, fields):
        return None
    hint = "if this line is a fact, put a header before it"
    raise _Place(path, "line", number).wrong(f"in the header, {faults}", hint)


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
    type_, nullable = _type(column), column.nullable
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


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[_Field]]]:
    lines = _lines(path)
    for number, line in lines:
        if '"' in line:
            yield number, _quoted_record(_Place(path, "line", number), line, lines, delimiter)
        else:
            text = line.removesuffix("\n").removesuffix("\r")
            yield number, [field or _EMPTY for field in text.split(delimiter)]


def _quoted_record(
    place: _Place, text: str, lines: Iterator[tuple[int, str]], delimiter: str
) -> list[_Field]:
    """The fields of a record with quotes in it, drawing more lines while a quote is open."""
    unquoted = _UNQUOTED[delimiter]
    fields: list[_Field] = []
    position = 0
    while True:
        if text.startswith('"', position):
            if (match := _QUOTED.match(text, position)) is None:
                text += _continuation(place, lines)
                match = _QUOTED.match(text, position)
            assert match is not None
            fields.append(match[1].replace('""', '"'))
        else:
            match = unquoted.match(text, position)
            assert match is not None  # it matches the empty text too
            fields.append(match[0] or _EMPTY)
        position = match.end()
        if not text.startswith(delimiter, position):
            break
        position += 1
    if text[position:] not in ("", "\n", "\r\n"):
        raise place.wrong("there is text after a closing quote")
    return fields


def _continuation(place: _Place, lines: Iterator[tuple[int, str]]) -> str:
    """The lines up to the one where the open field ends."""
    taken = []
    for _, line in lines:
        taken.append(line)
        if _CLOSING.match(line):
            return "".join(taken)
    raise place.wrong("a quote is opened and never closed")


def _write_delimited(
    file: BinaryIO, columns: Sequence[Column], rows: Iterable[Row], delimiter: str
) -> int:
    special = re.compile(f'["\r\n{delimiter}]')

    def field(value: Value) -> str:
        text = plain(value)
        if value == "" or special.search(text):
            return '"' + text.replace('"', '""') + '"'
        return text

    names = tuple(column.name for column in columns)
    count = -1  # the header is not a row
    for row in chain([names], rows):
        file.write((delimiter.join(map(field, row)) + "\n").encode("utf-8"))
        count += 1
    return count


# JSON Lines


def _read_json_lines(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    converters = [_from_json(column) for column in columns]
    decoder = json.JSONDecoder(
        object_pairs_hook=_Object,
        parse_float=Decimal if any(column.type == "decimal" for column in columns) else float,
        parse_constant=_refuse,
    )
    for number, line in _lines(path):
        if not line.isspace():
            place = _Place(path, "line", number)
            record = _decoded(place, decoder, line)
            cells = _by_name(place, columns, record) if isinstance(record, _Object) else record
            yield _row(place, columns, converters, cells)


class _Object(tuple[tuple[str, Any], ...]):
    """A JSON object as its pairs, so that a repeated name is noticed."""


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _decoded(place: _Place, decoder: json.JSONDecoder, line: str) -> _Object | list[Any]:
    try:
        record = decoder.decode(line)
    except (*VALUE_ERRORS, RecursionError) as error:
        raise place.wrong("this is not JSON", "each line is one JSON array or object") from error
    if not isinstance(record, _Object | list):
        raise place.wrong(f"{_shown(record)} is neither an array nor an object")
    return record


def _by_name(place: _Place, columns: Sequence[Column], record: _Object) -> list[Any]:
    cells = dict(record)
    names = [column.name for column in columns]
    if len(record) == len(names) and all(name in cells for name in names):
        return [cells[name] for name in names]
    absent = {column.name for column in columns if column.nullable} - cells.keys()
    faults = _name_faults([name for name, _ in record] + sorted(absent), columns)
    if faults:
        raise place.wrong(faults)
    return [cells.get(name) for name in names]


def _from_json(column: Column) -> Converter:
    type_, nullable = _type(column), column.nullable
    is_written = type_ in ("date", "timestamp", "decimal")

    def convert(cell: Any) -> Value:
        if cell is None and nullable:
            return None
        if isinstance(cell, str) and is_written:
            return parse_value(cell, type_)
        if isinstance(cell, Decimal) and type_ == "float":
            cell = float(cell)
        return canonical(cell, type_)

    return convert


def _write_json_lines(file: BinaryIO, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    names = [column.name for column in columns]
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=plain).encode
    count = 0
    for row in rows:
        file.write((encode(dict(zip(names, row, strict=True))) + "\n").encode("utf-8"))
        count += 1
    return count


# Parquet


def _read_parquet(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    converters = [_from_arrow(column) for column in columns]
    number = 0
    with _opened(path) as file:
        try:
            # Old Spark writes INT96, which as nanoseconds would end in the year 2262.
            source = parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
            order = _arrow_order(path, columns, source.schema_arrow.names)
            for batch in source.iter_batches(BATCH_ROWS):
                vectors = [_cells(batch.column(position)) for position in order]
                for cells in zip(*vectors, strict=True):
                    number += 1
                    yield _row(_Place(path, "row", number), columns, converters, cells)
        except (pyarrow.ArrowException, OSError) as error:
            raise _unreadable(path, "it is broken or not a Parquet file") from error


def _arrow_order(path: Path, columns: Sequence[Column], names: list[str]) -> list[int]:
    """Where the file has each column: by name, or by position when no name is known."""
    if not {column.name for column in columns} & set(names):
        if len(names) == len(columns):
            return list(range(len(names)))
        raise _unreadable(
            path, f"it has {_fields(len(names))} and no column of the relation by name"
        )
    faults = _name_faults(names, columns)
    if faults:
        raise _unreadable(path, faults)
    return [names.index(column.name) for column in columns]


class _Valueless(NamedTuple):
    """A cell that Python has no value for: a date after the year 9999, text that is not UTF-8."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _cells(array: Any) -> list[Any]:
    array = _simplified(array)
    try:
        return list(array.to_pylist())
    except VALUE_ERRORS:
        return [_cell(scalar) for scalar in array]


def _cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except VALUE_ERRORS:
        return _Valueless(f"an unreadable {scalar.type}")


def _simplified(array: Any) -> Any:
    """Dictionaries decoded, timestamps without a zone (their values are UTC) and nanoseconds."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pyarrow.types.is_timestamp(array.type):
        unit = array.type.unit
        array = array.cast(pyarrow.timestamp(unit))
        if unit == "ns":
            array = compute.floor_temporal(array, unit="microsecond").cast(pyarrow.timestamp("us"))
    return array


def _from_arrow(column: Column) -> Converter:
    type_, nullable = _type(column), column.nullable

    def convert(cell: Any) -> Value:
        return None if cell is None and nullable else canonical(cell, type_)

    return convert


def _write_parquet(file: BinaryIO, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    from pyarrow import parquet

    count = 0
    remaining = iter(rows)
    with parquet.ParquetWriter(file, arrow_schema(columns)) as writer:
        while batch := list(islice(remaining, BATCH_ROWS)):
            writer.write_table(arrow_table(columns, batch))
            count += len(batch)
    return count


# Formats


@dataclass(frozen=True)
class _Format:
    read: Callable[[Path, Sequence[Column]], Iterator[Row]]
    write: Callable[[BinaryIO, Sequence[Column], Iterable[Row]], int]
    keeps_empty_rows: bool = False


def _delimited(delimiter: str) -> _Format:
    return _Format(
        lambda path, columns: _read_delimited(path, columns, delimiter),
        lambda file, columns, rows: _write_delimited(file, columns, rows, delimiter),
    )


_JSON_LINES = _Format(_read_json_lines, _write_json_lines, keeps_empty_rows=True)
_FORMATS = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".json": _JSON_LINES,
    ".parquet": _Format(_read_parquet, _write_parquet),
}


def _format(path: Path) -> _Format:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        hint = "the known suffixes are " + ", ".join(_FORMATS)
        raise DataError([catalogue.UNKNOWN_FORMAT.at(None, name=path, hint=hint)])
    return found
