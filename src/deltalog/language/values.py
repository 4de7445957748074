"""Values and their types: the canonical form, reading from text, writing as text.

Set semantics needs one representation per value: floats are finite and have no negative zero,
timestamps are UTC without a zone and have microseconds, decimals are exact with at most 20 digits
before the point and 18 after it (what Spark calls DECIMAL(38, 18)), text is valid Unicode. Ints lie
between -(2^63 - 1) and 2^63 - 1: each has its negative, and of 64-bit words one is left for null.
"""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

from deltalog.language.ast import Constant, Value

PlainTypes: TypeAlias = tuple[type | None, ...]

INT_MAX = 2**63 - 1
INT_MIN = -INT_MAX
DECIMAL_LIMIT = Decimal(10) ** 20
DECIMAL_STEP = Decimal(1).scaleb(-18)
DECIMALS = Context(prec=60, rounding=ROUND_HALF_EVEN)

TYPE_HINTS = {
    "int": "an int is a whole number from -(2^63 - 1) to 2^63 - 1",
    "float": "a float is finite and written like `2.5` or `1e-3`",
    "bool": "a bool is `true` or `false`",
    "date": "a date is written like `2026-01-31`",
    "timestamp": "a timestamp is written like `2026-01-31 12:30:00`, in UTC or with `+02:00`",
    "decimal": "a decimal has at most 20 digits before the point and 18 after it",
}

VALUE_ERRORS = (ValueError, TypeError, OverflowError, InvalidOperation)


def canonical_value(value: Any, type_: str) -> Value:
    """The one representation of `value` as a `type_`; raises one of VALUE_ERRORS if it has none.

    >>> canonical_value(-0.0, "float"), str(canonical_value(2.50, "decimal"))
    (0.0, '2.5')
    """
    return _CANONICAL[type_](value)


def is_null(value: Any) -> bool:
    """Whether a single value is None, or what NumPy and pandas have for a moment that is not."""
    if value is None:
        return True
    kind = type(value).__name__
    return kind == "NaTType" or (kind == "datetime64" and bool(value != value))


def is_canonical(rows: Sequence[Sequence[Any]], classes: PlainTypes) -> bool:
    """Whether rows are tuples of ints, text, bools and dates of these classes, as they are stored.

    Quick, and allowed to say no: what it does not know is looked at value by value.
    """
    if len(rows) == 1:
        (row,) = rows
        if type(row) is not tuple or tuple(map(type, row)) != classes:
            return False
        for value in row:
            if type(value) is int:
                if not INT_MIN <= value <= INT_MAX:
                    return False
            elif type(value) is str and not value.isascii():
                return False
        return True
    if None in classes or set(map(type, rows)) - {tuple} or set(map(len, rows)) - {len(classes)}:
        return False
    for position, expected in enumerate(classes):
        column = [row[position] for row in rows]
        if set(map(type, column)) - {expected}:
            return False
        if expected is int and column and not (min(column) >= INT_MIN and max(column) <= INT_MAX):
            return False
        if expected is str and not all(map(str.isascii, column)):
            return False
    return True


def plain_types(types: Iterable[str | None]) -> PlainTypes:
    """The Python types of plain values of these types; None for a type that has no plain ones."""
    return tuple([_PLAIN.get(type_ or "") for type_ in types])


_PLAIN: dict[str, type] = {"int": int, "str": str, "bool": bool, "date": date}


def type_of(value: Value) -> str | None:
    """Return the type of a canonical value; null has none.

    >>> type_of(True), type_of(datetime(2026, 1, 31)), type_of(date(2026, 1, 31)), type_of(None)
    ('bool', 'timestamp', 'date', None)
    """
    return _TYPES.get(type(value))


_TYPES: dict[type, str] = {
    int: "int",
    float: "float",
    str: "str",
    bool: "bool",
    date: "date",
    datetime: "timestamp",
    Decimal: "decimal",
}


def parse_value(text: str, type_: str) -> Value:
    """A value written as text, as in a CSV field or a literal."""
    return _CANONICAL[type_](_READERS[type_](text.strip() if type_ != "str" else text))


def print_value(value: Value, type_: str | None = None) -> str:
    """The value as a literal of the language.

    >>> print_value("a\\"b"), print_value(date(2026, 1, 31)), print_value(None)
    ('"a\\\\"b"', 'date"2026-01-31"', 'null')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(_escape_character(character) for character in value) + '"'
        case datetime():
            return f'timestamp"{value.isoformat(sep=" ")}"'
        case date():
            return f'date"{value.isoformat()}"'
        case Decimal():
            return f'decimal"{value:f}"'
        case Fraction():
            return f'exact"{value}"'
        case _:
            return repr(value)


def value_in_message(value: Value) -> str:
    """The value in a message: as a person writes it, and null by its name."""
    return "null" if value is None else plain_text(value)


def plain_text(value: Value) -> str:
    """The value as a person would write it outside a program: in a table or a CSV field."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
        case _:
            return str(value)


def sort_key(row: tuple[Value, ...]) -> tuple[Any, ...]:
    """Order for showing rows: null first, then the type's own order."""
    return tuple((value is not None, value) if value is not None else (False,) for value in row)


def constant_of(value: Value, type_: str) -> Constant:
    return Constant(value, "null" if value is None else type_)


def _int_of_any_size(value: Any) -> int:
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's, too
        raise TypeError("a bool is not an int")
    return operator.index(value)


def _canonical_int(value: Any) -> int:
    number = _int_of_any_size(value)
    if not INT_MIN <= number <= INT_MAX:
        raise OverflowError("an int lies between -(2^63 - 1) and 2^63 - 1")
    return number


def _canonical_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError("not a float")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a float is finite")
    return number + 0.0


def _canonical_str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    value.encode("utf-8")
    return str.__str__(value)


def _canonical_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if type(value).__name__ == "bool":  # numpy's
        return bool(value)
    raise TypeError("not a bool")


def _canonical_date(value: Any) -> date:
    if type(value).__name__ == "datetime64":  # of NumPy; days, not seconds, are a date
        value = value.item()
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError("not a date")
    return date(value.year, value.month, value.day)


def _canonical_timestamp(value: Any) -> datetime:
    if type(value).__name__ == "datetime64" and isinstance(value.item(), datetime | int):
        value = value.astype("datetime64[us]").item()  # rounded down, as columns are
    if not isinstance(value, datetime):
        raise TypeError("not a timestamp")
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    v = value
    return datetime(v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond)


def _canonical_decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        exact = value
    elif isinstance(value, float):
        exact = Decimal(repr(float(value)))
    else:
        exact = Decimal(_int_of_any_size(value))
    rounded = rounded_decimal(exact)
    if rounded != exact:
        raise ValueError("a decimal has at most 18 digits after the point")
    return rounded


def rounded_decimal(value: Decimal) -> Decimal:
    """Rounded half-even to 18 places, without trailing zeros; raises when out of range."""
    if not value.is_finite() or value.copy_abs() >= DECIMAL_LIMIT:
        raise OverflowError("a decimal has at most 20 digits before the point")
    rounded = value.quantize(DECIMAL_STEP, context=DECIMALS)
    if rounded.copy_abs() >= DECIMAL_LIMIT:
        raise OverflowError("a decimal has at most 20 digits before the point")
    rounded = rounded.normalize(DECIMALS)
    if rounded == 0:
        return Decimal(0)
    exponent = rounded.as_tuple().exponent
    if isinstance(exponent, int) and exponent > 0:
        return rounded.quantize(Decimal(1), context=DECIMALS)
    return rounded


_CANONICAL: dict[str, Callable[[Any], Value]] = {
    "int": _canonical_int,
    "float": _canonical_float,
    "str": _canonical_str,
    "bool": _canonical_bool,
    "date": _canonical_date,
    "timestamp": _canonical_timestamp,
    "decimal": _canonical_decimal,
}

_INT = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def _require_match(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError("not in the expected form")
    return text


def _read_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("a bool is true or false")
    return text.lower() == "true"


_READERS: dict[str, Callable[[str], Any]] = {
    "int": lambda text: int(_require_match(_INT, text)),
    "float": lambda text: float(_require_match(_FLOAT, text)),
    "str": lambda text: text,
    "bool": _read_bool,
    "date": lambda text: date.fromisoformat(_require_match(_DATE, text)),
    "timestamp": lambda text: datetime.fromisoformat(_require_match(_TIMESTAMP, text)),
    "decimal": lambda text: Decimal(_require_match(_DECIMAL, text)),
}

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escape_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\u{{{ord(character):X}}}"
