"""Rows under the columns of another program: `n(1)` is `n(1.0)` where `n` has a float now.

A program may give a relation other types. Values that are equal are the same value then, as they
are to `change_program`; what no equal value of the other type exists for is not a row there.
"""

from __future__ import annotations

from decimal import Decimal

from deltalog.analysis.columns import Relation
from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import VALUE_ERRORS, canonical_value


class _UnfitError(ValueError):
    """No value of the column is equal."""


def fitting_row(relation: Relation, row: Row) -> Row | None:
    """The row with equal values of the types of a relation; None if it has none."""
    if len(row) != relation.arity:
        return None
    return fitting_values(relation.columns, row)


def fitting_values(columns: tuple[Column, ...], values: Row) -> Row | None:
    """Values for some columns, of the types of these."""
    try:
        return tuple(_fitting_value(v, column) for v, column in zip(values, columns, strict=True))
    except (_UnfitError, *VALUE_ERRORS):
        return None


def _fitting_value(value: Value, column: Column) -> Value:
    if value is None or column.type is None:
        if value is None and not column.nullable:
            raise _UnfitError
        return value
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if column.type == "int" and is_number:
        made: Value = int(value)  # type: ignore[arg-type]
    else:
        made = canonical_value(value, column.type)
    is_equal = made == value or made != made  # NaN is not equal to itself
    if not is_equal or isinstance(made, bool) != isinstance(value, bool):
        raise _UnfitError
    return made
