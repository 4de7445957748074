"""Scalars: every signature is implemented, everything is exact, and what has no value has none."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.engines.scalars import aggregate_value, comparison_holds, function_value
from deltalog.language.ast import Value
from deltalog.language.functions import AGGREGATE_OPERANDS, FUNCTIONS, Signature, aggregate_result
from deltalog.language.values import INT_MAX, INT_MIN, canonical_value

checked = settings(derandomize=True, deadline=None, max_examples=300)

SAMPLES: dict[str, Value] = {
    "int": 2,
    "float": 1.5,
    "str": "12",
    "bool": True,
    "date": date(2026, 1, 31),
    "timestamp": datetime(2026, 1, 31, 12, 30),
    "decimal": Decimal("2.5"),
}
PYTHON_TYPES = {name: type(value) for name, value in SAMPLES.items()}
SIGNATURES = [
    pytest.param(function, signature, id=f"{function} {' '.join(signature.operands)}")
    for function, signatures in FUNCTIONS.items()
    for signature in signatures
]
ints = st.integers(INT_MIN, INT_MAX)
floats = st.floats(allow_nan=False, allow_infinity=False)


def operand_type(signature: Signature) -> str:
    """The type an operation carries: its distinct operand types."""
    return ",".join(dict.fromkeys(signature.operands))


# --- functions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "signature"), SIGNATURES)
def test_every_signature_computes_a_value_of_its_result_type(
    function: str, signature: Signature
) -> None:
    operands = [SAMPLES[type_] for type_ in signature.operands]
    if (function, signature.operands) == ("date", ("str",)):
        operands = ["2026-01-31"]
    result = function_value(function, operand_type(signature), operands)
    assert type(result) is PYTHON_TYPES[signature.result]
    assert canonical_value(result, signature.result) == result


@pytest.mark.parametrize(("function", "signature"), SIGNATURES)
def test_a_null_operand_leaves_no_value(function: str, signature: Signature) -> None:
    for position in range(len(signature.operands)):
        operands = [SAMPLES[type_] for type_ in signature.operands]
        operands[position] = None
        assert function_value(function, operand_type(signature), operands) is None


@pytest.mark.parametrize(
    ("function", "type_", "operands"),
    [
        ("+", "int", (INT_MAX, 1)),
        ("-", "int", (INT_MIN, 1)),
        ("-", "int", (-1, INT_MAX)),
        ("*", "int", (2**31, -(2**32))),
        ("*", "int", (INT_MAX, 2)),
        ("/", "int", (1, 0)),
        ("mod", "int", (1, 0)),
        ("+", "float", (1.7e308, 1.7e308)),
        ("-", "float", (-1.7e308, 1.7e308)),
        ("*", "float", (1e200, 1e200)),
        ("/", "float", (1.0, 0.0)),
        ("/", "float", (1e308, 1e-308)),
        ("round", "float", (9.3e18,)),
        ("int", "float", (-9.3e18,)),
        ("int", "float", (-(2.0**63),)),
        ("round", "decimal", (Decimal("-9223372036854775807.5"),)),
        ("int", "decimal", (Decimal("9223372036854775808"),)),
        ("+", "decimal", (Decimal("99999999999999999999"), Decimal(1))),
        ("*", "decimal", (Decimal(10) ** 11, Decimal(10) ** 11)),
        ("/", "decimal", (Decimal(1), Decimal(0))),
        ("/", "decimal", (Decimal(0), Decimal(0))),
        ("decimal", "float", (1e20,)),
        ("int", "str", ("1.5",)),
        ("int", "str", ("",)),
        ("int", "str", ("9223372036854775808",)),
        ("int", "str", ("-9223372036854775808",)),
        ("float", "str", ("nan",)),
        ("float", "str", ("1e999",)),
        ("decimal", "str", ("1e5",)),
        ("date", "str", ("2026-02-30",)),
        ("substring", "str,int", ("abc", 0, 1)),
        ("substring", "str,int", ("abc", 1, -1)),
        ("+", "date,int", (date(9999, 12, 31), 1)),
        ("-", "date,int", (date(1, 1, 1), 1)),
        ("+", "date,int", (date(2026, 1, 1), INT_MAX)),
    ],
)
def test_what_is_undefined_or_out_of_range_has_no_value(
    function: str, type_: str, operands: tuple[Any, ...]
) -> None:
    assert function_value(function, type_, operands) is None


@pytest.mark.parametrize(
    ("function", "type_", "operands", "expected"),
    [
        ("+", "int", (INT_MAX, 0), INT_MAX),
        ("-", "int", (0, INT_MAX), INT_MIN),
        ("-", "int", (INT_MIN,), INT_MAX),
        ("abs", "int", (INT_MIN,), INT_MAX),
        ("*", "int", (INT_MAX, -1), INT_MIN),
        ("/", "int", (INT_MIN, 1), INT_MIN),
        ("/", "int", (INT_MIN, -1), INT_MAX),
        ("int", "float", (-(2.0**63) + 1024,), -(2**63) + 1024),
        ("/", "int", (-7, 2), -3),
        ("/", "int", (7, -2), -3),
        ("mod", "int", (-7, 2), -1),
        ("mod", "int", (7, -2), 1),
        ("mod", "int", (INT_MIN, -1), 0),
        ("round", "float", (2.5,), 2),
        ("round", "float", (-3.5,), -4),
        ("round", "decimal", (Decimal("0.5"),), 0),
        ("int", "float", (-2.9,), -2),
        ("int", "decimal", (Decimal("2.9"),), 2),
        ("-", "float", (0.0,), 0.0),
        ("*", "float", (0.0, -1.0), 0.0),
        ("/", "decimal", (Decimal(1), Decimal(3)), Decimal("0.333333333333333333")),
        ("/", "decimal", (Decimal(2), Decimal(3)), Decimal("0.666666666666666667")),
        ("decimal", "float", (0.1,), Decimal("0.1")),
        ("float", "int", (2**53 + 1,), 2.0**53),
        ("substring", "str,int", ("héllo", 2, 3), "éll"),
        ("substring", "str,int", ("abc", 3, 100), "c"),
        ("substring", "str,int", ("abc", 9, 1), ""),
        ("replace", "str", ("aaa", "", "b"), "aaa"),
        ("replace", "str", ("aXbX", "X", ""), "ab"),
        ("trim", "str", ("\t a b \n",), "a b"),
        ("length", "str", ("😀é",), 2),
        ("str", "decimal", (Decimal("1E-7"),), "0.0000001"),
        ("str", "bool", (False,), "false"),
        ("str", "float", (1e100,), "1e+100"),
        ("-", "date", (date(2026, 3, 1), date(2026, 2, 1)), 28),
        ("year", "timestamp", (datetime(2026, 1, 31),), 2026),
    ],
)
def test_values_at_the_edges(
    function: str, type_: str, operands: tuple[Any, ...], expected: Value
) -> None:
    result = function_value(function, type_, operands)
    assert result == expected
    assert str(result) == str(expected)


@checked
@given(ints, ints)
def test_quotient_and_remainder_belong_together(left: int, right: int) -> None:
    quotient, remainder = (
        function_value("/", "int", (left, right)),
        function_value("mod", "int", (left, right)),
    )
    if right == 0:
        assert quotient is None
        return
    assert isinstance(quotient, int)
    assert isinstance(remainder, int)
    assert quotient * right + remainder == left
    assert abs(remainder) < abs(right)
    assert remainder == 0 or (remainder < 0) == (left < 0)


# --- comparisons --------------------------------------------------------------------------------


def test_null_equals_only_itself_and_has_no_order() -> None:
    assert comparison_holds("=", None, None)
    assert comparison_holds("!=", None, 1)
    assert not comparison_holds("=", 1, None)
    assert not comparison_holds("!=", None, None)
    for operator in ("<", "<=", ">", ">=", "contains", "starts_with", "ends_with"):
        assert not comparison_holds(operator, None, None)
        assert not comparison_holds(operator, None, "a")
        assert not comparison_holds(operator, "a", None)


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        ("Z", "<", "a"),
        ("a", "<", "é"),
        ("\uffff", "<", "\U00010000"),
        ("abc", "contains", ""),
        ("abc", "starts_with", "ab"),
        ("abc", "ends_with", "c"),
        (date(2026, 1, 1), "<=", date(2026, 1, 1)),
        (2**53 + 1, ">", 2**53),
    ],
)
def test_comparisons_that_hold(left: Value, operator: str, right: Value) -> None:
    assert comparison_holds(operator, left, right)


# --- aggregates ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "type_"),
    [(function, type_) for function, types in AGGREGATE_OPERANDS.items() for type_ in types],
)
def test_every_aggregate_has_a_value_of_its_type(function: str, type_: str) -> None:
    result = aggregate_value(function, type_, [SAMPLES[type_], None, SAMPLES[type_]])
    expected = aggregate_result(function, type_)
    assert expected is not None
    assert type(result) is PYTHON_TYPES[expected]


def test_nulls_are_counted_and_otherwise_passed_over() -> None:
    assert aggregate_value("count", None, [None, 1, None]) == 3
    assert aggregate_value("sum", "int", [None, 1, 2]) == 3
    assert aggregate_value("avg", "int", [None, 1, 2]) == 1.5
    assert aggregate_value("min", "str", [None, "b", "a"]) == "a"
    for function in ("sum", "avg", "min", "max"):
        assert aggregate_value(function, "int", [None, None]) is None


@checked
@given(st.lists(floats, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_a_sum_of_floats_is_exact_and_has_no_order(values: list[float], random: Any) -> None:
    exact = sum(map(Fraction, values), Fraction())
    total = aggregate_value("sum", "float", values)
    random.shuffle(values)
    assert aggregate_value("sum", "float", values) == total
    try:
        assert total == float(exact)
    except OverflowError:
        assert total is None


def test_large_floats_that_cancel_out_leave_the_small_one() -> None:
    assert aggregate_value("sum", "float", [1e308, 1e308, 1.0, -1e308, -1e308]) == 1.0
    assert aggregate_value("sum", "float", [0.1] * 10) == 1.0
    assert aggregate_value("avg", "float", [1e308] * 3) == 1e308


def test_a_sum_is_checked_only_at_its_end() -> None:
    assert aggregate_value("sum", "int", [INT_MAX, INT_MAX, -INT_MAX]) == INT_MAX
    assert aggregate_value("sum", "int", [INT_MAX, 1]) is None
    assert aggregate_value("avg", "int", [INT_MAX, INT_MAX]) == float(INT_MAX)
    assert aggregate_value("avg", "int", [1, 2, 2]) == 5 / 3


@checked
@given(st.lists(ints, min_size=1, max_size=20))
def test_the_halves_of_ints_give_their_sum_and_their_average(values: list[int]) -> None:
    highs, lows = _halves(values)
    assert function_value("whole__", "int", (highs, lows)) == aggregate_value("sum", "int", values)
    mean = function_value("ratio__", "int", (highs, lows, len(values)))
    assert (
        mean == aggregate_value("avg", "int", values) == float(Fraction(sum(values), len(values)))
    )


def _halves(values: list[int]) -> tuple[Value, Value]:
    return (
        aggregate_value(
            "sum", "int", [function_value("high__", "int", (value,)) for value in values]
        ),
        aggregate_value(
            "sum", "int", [function_value("low__", "int", (value,)) for value in values]
        ),
    )


@pytest.mark.parametrize("value", [0, 1, -1, 2**32 - 1, 2**32, -(2**32), INT_MAX, INT_MIN])
def test_halves_are_within_their_bounds(value: int) -> None:
    high, low = function_value("high__", "int", (value,)), function_value("low__", "int", (value,))
    assert isinstance(high, int)
    assert -(2**31) <= high < 2**31
    assert isinstance(low, int)
    assert 0 <= low < 2**32
    assert function_value("whole__", "int", (high, low)) == value


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [
        (2**31 - 1, 2**32 - 1, INT_MAX),
        (2**31, 0, None),
        (2**31 - 1, 2**32, None),
        (2**31 - 2, 2**33 - 1, INT_MAX),
        (-(2**31), 1, -INT_MAX),
        (-(2**31) - 1, 2**32 + 1, -INT_MAX),
        (-(2**31) - 1, 2**32 - 1, None),
        (-(2**62), 2**63 - 2**33, None),
    ],
)
def test_a_whole_has_a_value_if_it_fits(high: int, low: int, expected: int | None) -> None:
    assert function_value("whole__", "int", (high, low)) == expected


def test_averages_of_halves_are_rounded_once() -> None:
    highs, lows = _halves([2**53, 1])
    assert (
        function_value("ratio__", "int", (highs, lows, 2)) == 2**52
    )  # the tie goes to the even one
    highs, lows = _halves([2**53, 3])
    assert function_value("ratio__", "int", (highs, lows, 2)) == 2**52 + 2
    count = 2**31 - 1
    largest = (2**31 - 1) * count, (2**32 - 1) * count  # of so many times 2^63 - 1
    assert function_value("ratio__", "int", (*largest, count)) == 2.0**63


def test_sums_of_decimals_are_exact_and_averages_round_half_to_even() -> None:
    step = Decimal("0.000000000000000001")
    wide = Decimal("99999999999999999999.999999999999999999")
    assert aggregate_value("sum", "decimal", [wide, wide, wide.copy_negate()]) == wide
    assert aggregate_value("sum", "decimal", [wide, step]) is None
    assert aggregate_value("avg", "decimal", [wide, wide]) == wide
    assert aggregate_value("avg", "decimal", [step, Decimal(0)]) == 0
    assert aggregate_value("avg", "decimal", [step * 3, Decimal(0)]) == step * 2


def test_a_sum_of_floats_is_never_negative_zero() -> None:
    total = aggregate_value("sum", "float", [-0.0, 0.0])
    assert isinstance(total, float)
    assert math.copysign(1.0, total) == 1.0
