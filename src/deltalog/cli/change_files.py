"""Files of changes, read as transactions one after the other.

JSON Lines: every line is a transaction. What is deleted goes first, then what is inserted, then
what is set; a row is an array, or an object by column names.

    {"insert": {"edge": [[1, 2]]}, "delete": {"edge": [[3, 4]]}, "set": {"salary": [["ann", 5]]}}

CSV, TSV and Parquet: the changes of one relation in the order of the rows, with a column `op`. All
rows are one transaction, unless a column `transaction` groups them. A header is needed.

    op,src,dst              op,src,dst,transaction
    +,1,2                   +,1,2,1
    -,3,4                   -,3,4,2

Values are read by the type of their column, as in files of facts. What is wrong is given in place
of the transaction, so that a reader may go on; only a table ends at a row that cannot be read.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from typing import Literal as OneOf

import typer

from deltalog.analysis.columns import Relation, Relations
from deltalog.cli.opening import STANDARD_INPUT
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import VALUE_ERRORS, parse_value, print_value
from deltalog.runtime.checked_rows import check_set_once, checked_row
from deltalog.runtime.transaction import base_relation
from deltalog.store.files import placed_rows

Kind = OneOf["delete", "insert", "set"]
KINDS: tuple[Kind, ...] = ("delete", "insert", "set")
SIGNS: Mapping[str, Kind] = {"-": "delete", "+": "insert", **{kind: kind for kind in KINDS}}
SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OP, _TRANSACTION = "op", "transaction"


@dataclass(frozen=True)
class Operation:
    kind: Kind
    relation: str
    row: Row


@dataclass(frozen=True)
class Change:
    """A transaction to be made; `place` is where it was found."""

    place: str
    operations: tuple[Operation, ...]


Changes = Iterator[Change | DataError]


def read_changes(path: Path, relations: Relations, relation: str | None = None) -> Changes:
    """The transactions in a file or on standard input; a line is read when it is asked for."""
    suffix = path.suffix.lower()
    if path == STANDARD_INPUT:
        return _from_lines("<stdin>", sys.stdin.buffer, relations)
    if suffix in _DELIMITERS or suffix == ".parquet":
        return _from_table(path, base_relation(relations, relation or path.stem))
    return _from_file(path, relations)


def check_changes(path: Path, file: Path) -> None:
    """Find out before a long evaluation, not after it, that there is nothing to read."""
    if path == STANDARD_INPUT:
        if file == STANDARD_INPUT:
            raise typer.BadParameter("standard input cannot be both the program and the changes")
        return
    try:
        path.stat()
    except OSError as error:
        raise _unreadable_file(path, error) from None
    if path.suffix and path.suffix.lower() not in SUFFIXES:
        hint = f"the known suffixes are {', '.join(SUFFIXES)}"
        raise DataError([catalogue.UNKNOWN_FORMAT.at(None, name=path, hint=hint)])


def _unreadable_file(path: Path, error: OSError) -> DataError:
    reason = (error.strerror or str(error)).lower()
    return DataError([catalogue.CANNOT_READ.at(None, name=path, reason=reason)])


def diagnostics_with_place(place: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The same problems, with where they were found."""
    return [replace(each, message=f"{place}: {each.message}") for each in diagnostics]


def _bad_record(place: str, reason: str, hint: str | None = None) -> DataError:
    return DataError([catalogue.BAD_RECORD.at(None, place=place, reason=reason, hint=hint)])


# JSON Lines


def _from_file(path: Path, relations: Relations) -> Changes:
    try:
        with path.open("rb") as file:
            yield from _from_lines(str(path), file, relations)
    except OSError as error:
        raise _unreadable_file(path, error) from None


def _from_lines(name: str, file: BinaryIO, relations: Relations) -> Changes:
    number = 0
    while line := file.readline():
        number += 1
        if line.isspace():
            continue
        place = f"{name}, line {number}"
        try:
            yield Change(place, _parse_operations(place, line, relations))
        except DataError as error:
            yield error


def _parse_operations(place: str, line: bytes, relations: Relations) -> tuple[Operation, ...]:
    record = _decode_record(place, line)
    problems: list[Diagnostic] = []
    operations: list[Operation] = []
    for kind in record.keys() - set(KINDS):
        hint = did_you_mean(kind, KINDS) or "a transaction has `insert`, `delete` and `set`"
        problems += _bad_record(place, f"`{kind}` is not an operation", hint).diagnostics
    for kind in KINDS:
        try:
            operations += _of_kind(kind, record.get(kind, {}), relations)
        except DataError as error:
            problems += diagnostics_with_place(place, error.diagnostics)
    if problems:
        raise DataError(problems)
    return tuple(operations)


def _decode_record(place: str, line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise _bad_record(place, "this is not UTF-8 text") from None
    hint = 'a transaction is written like {"insert": {"edge": [[1, 2]]}}'
    try:
        record = _DECODER.decode(text)
    except _RepeatedName as error:
        raise _bad_record(place, f"the name `{error}` occurs twice") from None
    except (*VALUE_ERRORS, RecursionError):
        raise _bad_record(place, "this is not JSON", hint) from None
    if not isinstance(record, dict):
        raise _bad_record(place, f"{_format_cell(record)} is not an object", hint)
    return record


class _RepeatedName(Exception):  # noqa: N818 - of use only inside this file
    pass


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedName(next(name for name in names if names.count(name) > 1))
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_of_pairs,
    parse_float=Decimal,  # digit for digit, should the column be a decimal
    parse_constant=_refuse_constant,
)


def _of_kind(kind: Kind, relations_and_rows: Any, relations: Relations) -> Iterator[Operation]:
    hint = f'it is written like "{kind}": {{"edge": [[1, 2], [2, 3]]}}'
    if not isinstance(relations_and_rows, dict):
        reason = f"{_format_cell(relations_and_rows)} does not name relations"
        raise _bad_record(f"`{kind}`", reason, hint)
    problems: list[Diagnostic] = []
    for name, rows in relations_and_rows.items():
        try:
            relation = base_relation(relations, name)
            if not isinstance(rows, list):
                raise _bad_record(
                    f"`{kind}` of `{name}`", f"{_format_cell(rows)} is not an array of rows", hint
                )
        except DataError as error:
            problems += error.diagnostics
            continue
        checked: list[Row] = []
        for row in rows:
            try:
                checked.append(checked_row(relation, _cells_of_row(relation, row)))
            except DataError as error:
                problems += error.diagnostics
        try:
            if kind == "set" and relation.key and len(checked) == len(rows):
                check_set_once(relation, checked)
        except DataError as error:
            problems += error.diagnostics
        yield from (Operation(kind, name, row) for row in checked)
    if problems:
        raise DataError(problems)


def _cells_of_row(relation: Relation, row: Any) -> list[Any]:
    """The values of a row in the order of the columns; whether they fit is checked later."""
    if isinstance(row, dict):
        row = _by_name(relation, row)
    elif not isinstance(row, list):
        hint = "a row is an array of values, even with a single value"
        raise _bad_record(f"`{relation.name}`", f"{_format_cell(row)} is not a row", hint)
    columns = relation.columns if len(row) == relation.arity else ()
    return (
        [_value_of_cell(*each) for each in zip(row, columns, strict=True)] if columns else list(row)
    )


def _by_name(relation: Relation, row: Mapping[str, Any]) -> list[Any]:
    wanted = {column.name for column in relation.columns}
    optional = {column.name for column in relation.columns if column.nullable}
    faults = [f"there is no column `{name}`" for name in row if name not in wanted]
    faults += [f"column `{name}` is missing" for name in sorted(wanted - optional - row.keys())]
    if faults:
        raise _bad_record(f"`{relation.name}`", "; ".join(faults))
    return [row.get(column.name) for column in relation.columns]


def _value_of_cell(cell: Any, column: Column) -> Any:
    if isinstance(cell, str) and column.type in ("date", "timestamp", "decimal"):
        try:
            return parse_value(cell, column.type)
        except VALUE_ERRORS:
            return cell
    if isinstance(cell, Decimal) and column.type != "decimal":
        return float(cell)
    return cell


def _format_cell(cell: Any) -> str:
    text = json.dumps(cell, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"


# CSV, TSV and Parquet


def _from_table(path: Path, relation: Relation) -> Changes:
    """Transactions are read as far as the first row that cannot be read."""
    try:
        extra = _extra_columns(path, relation)
        rows = placed_rows(path, (*relation.columns, *extra))
        if len(extra) == 1:
            numbered = list(rows)
            if numbered:
                yield _change_from_rows(path, str(path), relation, numbered)
            return
        seen: set[Value] = set()
        for value, group in groupby(rows, key=lambda numbered: numbered[1][-1]):
            place = f"{path}, transaction {print_value(value)}"
            numbered = list(group)
            if value in seen:
                yield _bad_record(
                    place, "its rows are not consecutive", "put the rows of a transaction together"
                )
            else:
                yield _change_from_rows(path, place, relation, numbered)
            seen.add(value)
    except DataError as error:
        yield error


def _change_from_rows(
    path: Path, place: str, relation: Relation, numbered: Sequence[tuple[str, Row]]
) -> Change | DataError:
    operations: list[Operation] = []
    problems: list[Diagnostic] = []
    for number, row in numbered:
        word = row[relation.arity]
        kind = SIGNS.get(str(word).strip().lower())
        if kind is None:
            reason, hint = f"{print_value(word)} is not an operation", f"use {' '.join(SIGNS)}"
            problems += _bad_record(f"{path}, {number}, column `{_OP}`", reason, hint).diagnostics
        else:
            operations.append(Operation(kind, relation.name, row[: relation.arity]))
    return DataError(problems) if problems else Change(place, tuple(operations))


def _extra_columns(path: Path, relation: Relation) -> tuple[Column, ...]:
    """The columns beside those of the relation: `op`, and `transaction` if it is there."""
    own = {column.name for column in relation.columns}
    if _OP in own:
        reason = f"`{relation.name}` has a column `{_OP}` itself"
        raise _bad_record(str(path), reason, "write its changes as JSON Lines")
    header = _read_header(path)
    if header and _OP not in header:
        hint = f"the column `{_OP}` of a file of changes contains {' '.join(SIGNS)}"
        raise _bad_record(str(path), f"it has no column `{_OP}`", hint)
    groups = [Column(_TRANSACTION, header[_TRANSACTION], True)] if _TRANSACTION in header else []
    return (Column(_OP, "str"), *(groups if _TRANSACTION not in own else ()))


def _read_header(path: Path) -> dict[str, str]:
    """The columns of a table with their types; nothing if reading it will fail anyway."""
    if path.suffix.lower() == ".parquet":
        return _parquet_header(path)
    with suppress(OSError, UnicodeError, csv.Error):
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=_DELIMITERS[path.suffix.lower()]), [])
        return {name.strip(): "str" for name in names}
    return {}


def _parquet_header(path: Path) -> dict[str, str]:
    import pyarrow
    from pyarrow import parquet

    with suppress(OSError, pyarrow.ArrowException):
        schema = parquet.read_schema(path)
        is_integer = pyarrow.types.is_integer
        return {field.name: "int" if is_integer(field.type) else "str" for field in schema}
    return {}
