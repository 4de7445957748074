"""Rows as a person gives them, one by one: checked, and in canonical form.

    [(1, "a"), {"name": "b", "id": 2}]  ->  [(1, "a"), (2, "b")]

A row is a sequence of values, by position, or a mapping, by the names of the columns. A name that
is left out means null, where the column may be null. Rows are counted from 1 in messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Column, Row
from deltalog.language.values import VALUE_ERRORS, canonical, is_canonical, is_null, print_value

FORMS = "facts are a list of tuples or dicts, a table or a DataFrame"


def checked_rows(relation: Relation, rows: Iterable[Any]) -> list[Row]:
    """Return the rows in canonical form; all are checked before anything is done."""
    given = rows.copy() if type(rows) is list else _iterated(relation, rows)
    if is_canonical(given, relation.types):
        return given
    if len(given) == relation.arity > 1 and not any(map(_is_row, given)):
        hint = f"one fact is given in a list: `[{tuple(given)!r}]`"
        raise DataError([wrong_arity(relation, repr(given[0])[:80], "is not a tuple", hint)])
    if len(given) == 1:
        return [checked_row(relation, given[0])]
    return [checked_row(relation, row, number) for number, row in enumerate(given, 1)]


def _is_row(row: Any) -> bool:
    if isinstance(row, str | bytes | bytearray | memoryview):
        return False
    return isinstance(row, Mapping | Sequence)


def checked_row(relation: Relation, row: Any, number: int | None = None) -> Row:
    """Return the row in canonical form, or raise a `DataError` that says what does not fit."""
    if isinstance(row, Mapping):
        row = _by_name(relation, row, number)
    elif not _is_row(row):
        hint = "a fact is a tuple; write `(value,)` for a single value"
        raise DataError([wrong_arity(relation, repr(row)[:80], "is not a tuple", hint)])
    if len(row) != relation.arity:
        shown = f"({', '.join(shown_value(value) for value in row)})"[:120]
        raise DataError([wrong_arity(relation, shown, f"has {len(row)}", None)])
    try:
        return tuple(
            [
                None if column.nullable and is_null(value) else canonical(value, str(column.type))
                for value, column in zip(row, relation.columns, strict=True)
            ]
        )
    except VALUE_ERRORS:
        raise DataError(list(_misfits(relation, row, number))) from None


def _misfits(relation: Relation, row: Sequence[Any], number: int | None) -> Iterator[Diagnostic]:
    for value, column in zip(row, relation.columns, strict=True):
        if column.nullable and is_null(value):
            continue
        try:
            canonical(value, str(column.type))
        except VALUE_ERRORS:
            yield misfit(relation, column, value, number)


def _by_name(relation: Relation, row: Mapping[Any, Any], number: int | None) -> list[Any]:
    names = [column.name for column in relation.columns]
    unknown = [str(name) for name in row if name not in names]
    missing = [c.name for c in relation.columns if c.name not in row and not c.nullable]
    if unknown or missing:
        where = "a row" if number is None else f"row {number}"
        raise DataError([columns_differ(relation, where, unknown, missing)])
    return [row.get(name) for name in names]


def columns_differ(
    relation: Relation, what: str, unknown: Sequence[str], missing: Sequence[str]
) -> Diagnostic:
    """Say which names of columns are not known and which are missing."""
    names = [column.name for column in relation.columns]
    reasons = [f"there is no `{name}`" for name in unknown]
    reasons += [f"`{name}` is missing" for name in missing]
    near = (did_you_mean(name, missing or names) for name in unknown)
    hint = next((each for each in near if each), None)
    return catalogue.COLUMNS_DIFFER.at(
        None,
        what=what,
        name=relation.name,
        reason=", ".join(reasons),
        hint=hint or (f"its columns are {', '.join(names)}" if names else "it has no columns"),
    )


def _iterated(relation: Relation, rows: Iterable[Any]) -> list[Any]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError([wrong_arity(relation, repr(rows)[:80], "is not a list", FORMS)])
    try:
        return list(rows)
    except TypeError:  # an array without dimensions, or an iterator that fails
        raise DataError([wrong_arity(relation, repr(rows)[:80], "is not a list", FORMS)]) from None


def misfit(relation: Relation, column: Column, value: Any, number: int | None) -> Diagnostic:
    """Say that a value, that of a row with this number, does not fit its column."""
    return catalogue.VALUE_MISFIT.at(
        None,
        value=shown_value(value)[:80] + ("" if number is None else f" in row {number}"),
        column=column.name,
        name=relation.name,
        type=column.type,
        hint=None if value is None else _hint(value, str(column.type)),
    )


def _hint(value: Any, type_: str) -> str:
    is_far = type(value).__name__ == "datetime64" and type_ in ("date", "timestamp")
    return PYTHON_HINTS[type_] + (", of the years 1 to 9999" if is_far else "")


PYTHON_HINTS = {
    "int": "use an int from -(2^63 - 1) to 2^63 - 1",
    "float": "use a finite float",
    "str": "use a str",
    "bool": "use True or False",
    "date": "use a datetime.date",
    "timestamp": "use a datetime.datetime",
    "decimal": "use a decimal.Decimal with at most 20 digits before the point and 18 after it",
}


def wrong_arity(relation: Relation, row: str, has: str, hint: str | None) -> Diagnostic:
    """Say that something is no row of a relation."""
    return catalogue.ROW_ARITY.at(
        None, name=relation.name, wanted=_values(relation.arity), row=row, has=has, hint=hint
    )


def shown_value(value: Any) -> str:
    """A value as it would be written in a program, or as Python shows it."""
    known = value is None or isinstance(value, bool | int | float | str | date | Decimal)
    return print_value(value) if known else repr(value)


def _values(number: int) -> str:
    return f"{number} value{'' if number == 1 else 's'}"
