"""Values as SQLite holds them, and back, exactly.

    int float str      themselves                     bool         0 and 1
    date               2026-01-31                     timestamp    2026-01-31 12:30:00.000001
    decimal            its digits as text: 2.50       exact        1/3, a sum before rounding

Dates and timestamps are what SQLite's own functions understand. Decimals are text, because a
number in SQLite is a 64-bit float. The change log writes the same cells as JSON, but for bools,
which are `true` and `false` there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from operator import methodcaller
from typing import Any

from deltalog.language.ast import Column, Row
from deltalog.language.values import canonical_value

AFFINITIES = {"int": "INTEGER", "bool": "INTEGER", "float": "REAL"}
"""Everything else is TEXT."""

_PYTHON_TYPES: dict[str, type] = {"INTEGER": int, "REAL": float}
_TO_CELL: dict[str, Callable[[Any], Any]] = {
    "date": date.isoformat,
    "timestamp": methodcaller("isoformat", " "),
    "decimal": "{:f}".format,
    "exact": str,
}
_FROM_CELL: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "decimal": Decimal,
    "exact": Fraction,
    "float": float,  # in JSON, 1e22 written by another tool may come without its point
}
_EQUAL: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "decimal": partial(canonical_value, type_="decimal"),
}

Types = tuple[str | None, ...]
Cells = list[tuple[Any, ...]]
Converters = tuple[Callable[[Any], Any] | None, ...]


def to_cells(rows: Iterable[Row], types: Types) -> Cells:
    """The rows as SQLite and JSON take them."""
    return convert_cells(rows, to_cell(types))


def from_cells(rows: Iterable[tuple[Any, ...]], types: Types) -> list[Row]:
    """The rows as they were."""
    return convert_cells(rows, _from_cell(types))


def with_types(rows: Iterable[Row], types: Types) -> set[Row]:
    """Rows whose numbers may be of other types, with equal ones of these types."""
    return set(convert_cells(rows, _converters_needed(_EQUAL, types)))


def check_cells(rows: list[tuple[Any, ...]], columns: Sequence[Column]) -> None:
    """Raise if cells behind the rank are of other types than the columns: a misplaced page."""
    for column, cells in zip(columns, list(zip(*rows, strict=True))[1:], strict=True):
        wanted = _PYTHON_TYPES.get(AFFINITIES.get(column.type or "", ""), str)
        found = set(map(type, cells))
        if not found <= {wanted, type(None)} or (type(None) in found and not column.nullable):
            raise TypeError(f"column {column.name} holds other values")


@lru_cache(maxsize=4096)
def to_cell(types: Types) -> Converters:
    """Functions that make cells of the values in columns of these types."""
    return _converters_needed(_TO_CELL, types)


@lru_cache(maxsize=4096)
def _from_cell(types: Types) -> Converters:
    return _converters_needed(_FROM_CELL, types)


def _converters_needed(converters: dict[str, Callable[[Any], Any]], types: Types) -> Converters:
    """Nothing at all, if all values are what they should be."""
    found = tuple(converters.get(type_ or "") for type_ in types)
    return found if any(found) else ()


def convert_cells(rows: Iterable[tuple[Any, ...]], converters: Converters) -> Cells:
    """The rows with a converter for each column that needs one; None converts nothing."""
    if not converters:
        return rows if isinstance(rows, list) else list(rows)
    return [
        tuple(
            cell if convert is None or cell is None else convert(cell)
            for convert, cell in zip(converters, row, strict=True)
        )
        for row in rows
    ]


def append_ranks(cells: Cells, ranks: Sequence[int]) -> Cells:
    """The cells of rows, each with its rank behind."""
    return [row + (rank,) for row, rank in zip(cells, ranks, strict=True)]  # noqa: RUF005 - slower
