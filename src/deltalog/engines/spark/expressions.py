"""Scalars as Spark columns, where Spark computes exactly what `engines/scalars.py` says.

Null is "no value" in both, so what is left is to keep Spark from raising errors or rounding: ints
are added by `try_add`, which is null when 64 bits do not suffice, and must be in the range of
`int`, which is one less; floats must stay finite. Whatever
is not listed here (division, decimals, text in other letters, dates) is computed by
`engines/scalars.py` itself in a Python function on the cluster. Exactness first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from deltalog.engines.scalars import HALF, function_value
from deltalog.engines.spark.columns import SPARK_TYPES, decode_value, encode_value, literal_column
from deltalog.language.functions import find_signature
from deltalog.language.values import INT_MAX, INT_MIN
from deltalog.plan.nodes import Compute, Fixed, Operand, Slot, Test

FLOAT_MAX = sys.float_info.max
HALF_BITS = HALF.bit_length() - 1
Types = Mapping[int, str]
"""The type of each slot that has a value."""


def slot_name(index: int) -> str:
    return f"s{index}"


def type_of(operand: Operand, types: Types) -> str:
    if isinstance(operand, Slot):
        return types[operand.index]
    if isinstance(operand, Fixed):
        return operand.type
    found = find_signature(
        operand.function, tuple(type_of(inner, types) for inner in operand.operands)
    )
    assert found is not None, f"no function {operand.function} of {operand.type}"
    return found.result


def column_of(operand: Operand, types: Types) -> Column:
    """The operand as a column over the slots; null where it has no value."""
    if isinstance(operand, Slot):
        return F.col(slot_name(operand.index))
    if isinstance(operand, Fixed):
        return literal_column(operand.value, operand.type)
    native = _NATIVE.get((operand.function, operand.type))
    if native is not None and len(operand.operands) == native[0]:
        return native[1](*(column_of(inner, types) for inner in operand.operands))
    return _compute_in_python(operand, types)


def test_column(test: Test, types: Types) -> Column:
    """Whether a comparison holds; nothing holds of an expression without a value."""
    left, right = column_of(test.left, types), column_of(test.right, types)
    conditions = [
        column_of(side, types).isNotNull()
        for side in (test.left, test.right)
        if isinstance(side, Compute)
    ]
    compared = _COMPARISONS[test.operator](left, right)
    return reduce(Column.__and__, [*conditions, compared])


def _compute_in_python(operand: Compute, types: Types) -> Column:
    """Computed in Python, on the cluster."""
    inner = operand.operands
    given = [type_of(each, types) for each in inner]
    result = type_of(operand, types)
    function, type_ = operand.function, operand.type

    def call(*values: Any) -> Any:
        operands = [decode_value(value, each) for value, each in zip(values, given, strict=True)]
        return encode_value(function_value(function, type_, operands), result)

    as_column = F.udf(call, SPARK_TYPES[result])
    return as_column(*(column_of(each, types) for each in inner))


def _null_if_not_finite(value: Column) -> Column:
    """The float, or null if it is not finite (NaN is above all others); zero has no sign."""
    kept = F.when(F.abs(value) <= FLOAT_MAX, value)
    return F.when(kept == 0.0, F.lit(0.0)).otherwise(kept)


def _null_if_int_min(value: Column) -> Column:
    """The int, or null if it is the one that has no negative."""
    return F.when(value >= INT_MIN, value)


def _join_halves(high: Column, low: Column) -> Column:
    """The sum of which these are the halves, or null if it is not in the range of int."""
    total = high.cast("decimal(19,0)") * F.lit(HALF).cast("decimal(10,0)") + low.cast(
        "decimal(19,0)"
    )
    return F.when(total.between(INT_MIN, INT_MAX), total.cast("bigint"))


_NATIVE: dict[tuple[str, str], tuple[int, Callable[..., Column]]] = {
    ("+", "int"): (2, lambda a, b: _null_if_int_min(F.try_add(a, b))),
    ("-", "int"): (2, lambda a, b: _null_if_int_min(F.try_subtract(a, b))),
    ("*", "int"): (2, lambda a, b: _null_if_int_min(F.try_multiply(a, b))),
    ("mod", "int"): (2, F.try_mod),
    ("high__", "int"): (1, lambda a: F.shiftright(a, HALF_BITS)),
    ("low__", "int"): (1, lambda a: a.bitwiseAND(F.lit(HALF - 1))),
    ("whole__", "int"): (2, lambda high, low: _join_halves(high, low)),
    ("+", "float"): (2, lambda a, b: _null_if_not_finite(a + b)),
    ("-", "float"): (2, lambda a, b: _null_if_not_finite(a - b)),
    ("*", "float"): (2, lambda a, b: _null_if_not_finite(a * b)),
    ("float", "int"): (1, lambda a: a.cast("double")),
    ("int", "int"): (1, lambda a: a),
}
_NATIVE |= {
    (part, "date"): (1, lambda a, take=take: take(a).cast("bigint"))
    for part, take in (("year", F.year), ("month", F.month), ("day", F.day))
}

_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda a, b: a.eqNullSafe(b),
    "!=": lambda a, b: ~a.eqNullSafe(b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "contains": lambda a, b: a.contains(b),
    "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b),
}
