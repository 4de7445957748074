"""Operators, functions, comparisons and aggregates: their meaning for every engine.

A function gives None where it has no value: an operand is null, a divisor is zero, an int leaves
its range, a float stops being finite, a text does not read as a number. A literal whose expression
has no value does not hold. That makes evaluation total and independent of the order in which a body
is evaluated, so every strategy on every engine can agree.

Aggregates are exact: the sum of floats is the correctly rounded true sum, whatever the order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

from deltalog.language.ast import Value
from deltalog.language.values import (
    DECIMALS,
    INT_MAX,
    INT_MIN,
    VALUE_ERRORS,
    canonical_value,
    parse_value,
    plain_text,
    rounded_decimal,
)

Function = Callable[..., Any]
TEXT_MAX = 1_000_000
"""Characters of a text that a function makes; beyond it there is no value."""


def function_value(function: str, type_: str, operands: Sequence[Value]) -> Value:
    """The value of a function, or None where it has none.

    >>> function_value("/", "int", (-7, 2)), function_value("/", "int", (1, 0))
    (-3, None)
    """
    if None in operands:
        return None
    try:
        result: Value = _FUNCTIONS[function, type_](*operands)
    except (*VALUE_ERRORS, ArithmeticError):
        return None
    return result


def comparison_holds(operator: str, left: Value, right: Value) -> bool:
    """Whether a comparison of two values of one type holds; null equals only itself."""
    if operator == "=":
        return left == right
    if operator == "!=":
        return left != right
    if left is None or right is None:
        return False
    return bool(_COMPARISONS[operator](left, right))


def aggregate_value(function: str, type_: str | None, values: Sequence[Value]) -> Value:
    """An aggregate of the values of one group; nulls are passed over, None if nothing is left."""
    if function == "count":
        return len(values)
    present = [value for value in values if value is not None]
    if not present:
        return None
    try:
        result: Value = _AGGREGATES[function](present, str(type_))
    except (*VALUE_ERRORS, ArithmeticError):
        return None
    return result


# --- numbers ------------------------------------------------------------------------------------


def _check_int_range(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise OverflowError
    return value


def _divide_int(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _truncated_remainder(left: int, right: int) -> int:
    remainder = abs(left) % abs(right)
    return remainder if left >= 0 else -remainder


def _check_finite(value: float) -> float:
    if not math.isfinite(value):
        raise OverflowError
    return value + 0.0


def _truncate_to_int(value: float | Decimal) -> int:
    return _check_int_range(int(value))


def _round_to_int(value: float | Decimal) -> int:
    """To the nearest int, halves to the even one."""
    exact = Decimal(value)
    return _check_int_range(int(exact.to_integral_value(rounding=ROUND_HALF_EVEN)))


def _check_results_of(result: Callable[[Any], Any], operation: Function) -> Function:
    return lambda *operands: result(operation(*operands))


_ARITHMETIC: dict[tuple[str, str], Function] = {
    ("+", "int"): _check_results_of(_check_int_range, lambda a, b: a + b),
    ("*", "int"): _check_results_of(_check_int_range, lambda a, b: a * b),
    ("/", "int"): _divide_int,
    ("mod", "int"): _truncated_remainder,
    ("abs", "int"): abs,
    ("+", "float"): _check_results_of(_check_finite, lambda a, b: a + b),
    ("*", "float"): _check_results_of(_check_finite, lambda a, b: a * b),
    ("/", "float"): _check_results_of(_check_finite, lambda a, b: a / b),
    ("abs", "float"): abs,
    ("round", "int"): lambda value: value,
    ("round", "float"): _round_to_int,
    ("+", "decimal"): _check_results_of(rounded_decimal, DECIMALS.add),
    ("*", "decimal"): _check_results_of(rounded_decimal, DECIMALS.multiply),
    ("/", "decimal"): _check_results_of(rounded_decimal, DECIMALS.divide),
    ("abs", "decimal"): Decimal.copy_abs,
    ("round", "decimal"): _round_to_int,
}


def _negate_or_subtract(result: Callable[[Any], Any]) -> Function:
    return lambda left, right=None: result(-left if right is None else left - right)


def _minus_decimal(left: Decimal, right: Decimal | None = None) -> Decimal:
    return rounded_decimal(left.copy_negate() if right is None else DECIMALS.subtract(left, right))


_ARITHMETIC |= {
    ("-", "int"): _negate_or_subtract(_check_int_range),
    ("-", "float"): _negate_or_subtract(_check_finite),
    ("-", "decimal"): _minus_decimal,
}

_ORDERED = ("int", "float", "decimal", "str", "date", "timestamp")
_ARITHMETIC |= {("least", type_): min for type_ in _ORDERED}
_ARITHMETIC |= {("greatest", type_): max for type_ in _ORDERED}


# --- text, dates, conversions -------------------------------------------------------------------


def _substring_from(text: str, start: int, length: int) -> str:
    """`length` characters from position `start`, counted from one."""
    if start < 1 or length < 0:
        raise ValueError
    return text[start - 1 : start - 1 + length]


def _make_limited_text(length: int, made: Callable[[], str]) -> str:
    """A text that functions make has a limit, so that growing ones come to an end."""
    if length > TEXT_MAX:
        raise OverflowError
    return made()


def _replace_text(text: str, old: str, new: str) -> str:
    if not old:
        return text
    longest = len(text) + text.count(old) * max(0, len(new) - len(old))
    return _make_limited_text(longest, lambda: text.replace(old, new))


def _trim_whitespace(text: str) -> str:
    return text.strip(" \t\r\n\f\v")


_TEXT: dict[tuple[str, str], Function] = {
    ("length", "str"): len,
    ("lower", "str"): str.lower,
    ("upper", "str"): str.upper,
    ("trim", "str"): _trim_whitespace,
    ("concat", "str"): lambda a, b: _make_limited_text(len(a) + len(b), lambda: a + b),
    ("replace", "str"): lambda text, old, new: _replace_text(text, old, new),
    ("substring", "str,int"): _substring_from,
}

_DATES: dict[tuple[str, str], Function] = {
    ("+", "date,int"): lambda day, days: day + timedelta(days=days),
    ("-", "date,int"): lambda day, days: day - timedelta(days=days),
    ("-", "date"): lambda a, b: (a - b).days,
    **{
        (part, type_): operator.attrgetter(part)
        for part in ("year", "month", "day")
        for type_ in ("date", "timestamp")
    },
}

_CONVERSIONS: dict[tuple[str, str], Function] = {
    **{(type_, type_): lambda value: value for type_ in ("int", "float", "decimal", "date")},
    ("int", "float"): _truncate_to_int,
    ("int", "decimal"): _truncate_to_int,
    ("int", "str"): lambda text: parse_value(text, "int"),
    ("float", "int"): float,
    ("float", "decimal"): _check_results_of(_check_finite, float),
    ("float", "str"): lambda text: parse_value(text, "float"),
    ("decimal", "int"): lambda value: canonical_value(value, "decimal"),
    ("decimal", "float"): lambda value: rounded_decimal(Decimal(repr(value))),
    ("decimal", "str"): lambda text: parse_value(text, "decimal"),
    ("date", "timestamp"): lambda value: date(value.year, value.month, value.day),
    ("date", "str"): lambda text: parse_value(text, "date"),
    **{
        ("str", type_): plain_text
        for type_ in ("int", "float", "decimal", "bool", "date", "timestamp", "str")
    },
}

_FUNCTIONS = _ARITHMETIC | _TEXT | _DATES | _CONVERSIONS

_COMPARISONS: dict[str, Function] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "contains": lambda a, b: b in a,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
}


# --- sums as they are kept ----------------------------------------------------------------------

HALF = 2**32


def _join_halves(high: int, low: int) -> int:
    """The sum of which these are the halves; it may be beyond the range of int."""
    return high * HALF + low


def _exact_float(value: Fraction) -> float:
    """The float nearest to a rational number."""
    return _check_finite(value.numerator / value.denominator)


def _exact_decimal(value: Fraction) -> Decimal:
    """The decimal of 18 places nearest to a rational number, halves to the even one."""
    return rounded_decimal(Decimal(round(value * 10**18)).scaleb(-18, DECIMALS))


_KEPT: dict[tuple[str, str], Function] = {
    ("high__", "int"): lambda value: value // HALF,
    ("low__", "int"): lambda value: value % HALF,
    ("whole__", "int"): _check_results_of(_check_int_range, _join_halves),
    ("ratio__", "int"): lambda high, low, count: _join_halves(high, low) / count,
    **{("exact__", type_): Fraction for type_ in ("float", "decimal")},
    ("+", "exact"): lambda a, b: a + b,
    ("-", "exact"): lambda a, b: a - b,
    ("float", "exact"): _exact_float,
    ("decimal", "exact"): _exact_decimal,
    ("ratio__", "exact,int"): lambda total, count: _exact_float(total / count),
    ("decimal_ratio__", "exact,int"): lambda total, count: _exact_decimal(total / count),
}
_FUNCTIONS |= _KEPT


# --- aggregates ---------------------------------------------------------------------------------


def _exact_sum(values: list[Any]) -> Fraction:
    return sum(map(Fraction, values), Fraction())


def _sum_values(values: list[Any], type_: str) -> Value:
    if type_ == "int":
        return _check_int_range(sum(values))
    total = _exact_sum(values)
    return total if type_ == "exact" else function_value(type_, "exact", (total,))


def _average_values(values: list[Any], type_: str) -> Value:
    if type_ == "int":
        average: float = sum(values) / len(values)  # of ints, the nearest float
        return average
    function = "decimal_ratio__" if type_ == "decimal" else "ratio__"
    return function_value(function, "exact,int", (_exact_sum(values), len(values)))


_AGGREGATES: dict[str, Callable[[list[Any], str], Value]] = {
    "sum": _sum_values,
    "avg": _average_values,
    "min": lambda values, type_: min(values),
    "max": lambda values, type_: max(values),
}
