"""Records of files of facts: where they stand, how they become rows, what is wrong with them."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import TYPE_HINTS, VALUE_ERRORS, print_value

SHOWN_LENGTH_MAX = 60
Converter = Callable[[Any], Value]


class EmptyField:
    """The one empty field that was not quoted."""


EMPTY = EmptyField()


class JsonObject(tuple[tuple[str, Any], ...]):
    """A JSON object as its pairs, so that a repeated name is noticed."""


class Place(NamedTuple):
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


def record_row(
    place: Place, columns: Sequence[Column], converters: list[Converter], cells: Sequence[Any]
) -> Row:
    """The cells of one record as a row, or an error with every cell that does not fit."""
    if len(cells) != len(columns):
        names = ", ".join(column.name for column in columns)
        wanted = f"{len(columns)}: {names}" if names else "none"
        raise place.wrong(f"it has {field_count(len(cells))}, the relation has {wanted}")
    try:
        return tuple([convert(cell) for convert, cell in zip(converters, cells, strict=True)])
    except VALUE_ERRORS:
        _raise_misfits(place, columns, converters, cells)


def _raise_misfits(
    place: Place, columns: Sequence[Column], converters: list[Converter], cells: Sequence[Any]
) -> NoReturn:
    wrong = []
    for column, convert, cell in zip(columns, converters, cells, strict=True):
        try:
            convert(cell)
        except VALUE_ERRORS:
            hint = place.hint or _hint_for_cell(column, cell)
            where, reason = (
                f"{place}, column `{column.name}`",
                f"{shown_cell(cell)} is not {_type_with_article(column)}",
            )
            wrong.append(catalogue.BAD_RECORD.at(None, place=where, reason=reason, hint=hint))
    raise DataError(wrong)


def _hint_for_cell(column: Column, cell: Any) -> str | None:
    if cell is None or cell is EMPTY:
        return f"a column that may be null is declared `{column.type}?`"
    return TYPE_HINTS.get(column_type(column))


def shown_cell(cell: Any) -> str:
    if cell is EMPTY:
        return "an empty field"
    if isinstance(cell, list | JsonObject):
        cell = dict(cell) if isinstance(cell, JsonObject) else cell
        text = json.dumps(cell, ensure_ascii=False, default=str)
    else:
        text = str(cell) if isinstance(cell, Decimal) else print_value(cell)
    return text if len(text) <= SHOWN_LENGTH_MAX else text[: SHOWN_LENGTH_MAX - 1] + "…"


def column_type(column: Column) -> str:
    assert column.type is not None, f"column {column.name} has no type yet"
    return column.type


def _type_with_article(column: Column) -> str:
    return f"an {column.type}" if column.type == "int" else f"a {column.type}"


def field_count(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def name_faults(names: Sequence[str], columns: Sequence[Column]) -> str:
    """Names that are unknown or missing among these columns; nothing if they are the same set."""
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


# --- files, lines and atomic replacement


def _reason_of_error(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()


@contextmanager
def opened_file(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise unreadable_file(path, _reason_of_error(error)) from error


def unreadable_file(path: Path, reason: str) -> DataError:
    return DataError([catalogue.CANNOT_READ.at(None, name=path, reason=reason)])


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends. Only a line feed ends one: JSON text may hold U+2028."""
    with opened_file(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise Place(path, "line", number).wrong("this is not UTF-8 text") from error
            yield number, text.removeprefix("\ufeff") if number == 1 else text


@contextmanager
def replacing_file(path: Path) -> Iterator[BinaryIO]:
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
        reason = _reason_of_error(error)
        raise DataError([catalogue.CANNOT_WRITE.at(None, name=path, reason=reason)]) from error
