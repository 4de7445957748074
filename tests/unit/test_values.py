"""Values: one representation each, and text that reads back as the same value."""

from __future__ import annotations

import enum
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.language.ast import Constant, Value
from deltalog.language.parser import parse_text
from deltalog.language.values import (
    DECIMALS,
    INT_MAX,
    INT_MIN,
    VALUE_ERRORS,
    canonical_value,
    parse_value,
    plain_text,
    print_value,
    rounded_decimal,
    sort_key,
)

checked = settings(derandomize=True, deadline=None, max_examples=300)

decimals = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-18, DECIMALS))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(INT_MIN, INT_MAX),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "str": st.text(),
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "decimal": decimals,
}
typed_values = st.sampled_from(sorted(VALUES)).flatmap(
    lambda type_: VALUES[type_].map(lambda value: (type_, value))
)


def is_same(left: Value, right: Value) -> bool:
    """Equal, of the same type, and with the same digits."""
    return type(left) is type(right) and left == right and str(left) == str(right)


@checked
@given(typed_values)
def test_the_canonical_form_is_the_same_value_and_final(example: tuple[str, Any]) -> None:
    type_, value = example
    once = canonical_value(value, type_)
    assert once == value
    assert is_same(canonical_value(once, type_), once)


@checked
@given(typed_values)
def test_plain_text_reads_back(example: tuple[str, Any]) -> None:
    type_, value = example
    kept = canonical_value(value, type_)
    assert is_same(parse_value(plain_text(kept), type_), kept)


@checked
@given(typed_values)
def test_a_literal_reads_back(example: tuple[str, Any]) -> None:
    type_, value = example
    kept = canonical_value(value, type_)
    (fact,) = parse_text(f"p({print_value(kept)}).").facts
    (term,) = fact.arguments
    assert isinstance(term, Constant)
    assert term.type == type_
    assert is_same(term.value, kept)


@checked
@given(typed_values)
def test_equal_values_are_equal_whatever_their_form(example: tuple[str, Any]) -> None:
    type_, value = example
    other = parse_value(plain_text(canonical_value(value, type_)), type_)
    assert hash(other) == hash(canonical_value(value, type_))


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (-0.0, "float", 0.0),
        (3, "float", 3.0),
        (2, "decimal", Decimal(2)),
        (0.1, "decimal", Decimal("0.1")),
        (Decimal("1.500"), "decimal", Decimal("1.5")),
        (Decimal("-0"), "decimal", Decimal(0)),
        (Decimal("1E+3"), "decimal", Decimal(1000)),
        (-(2**63) + 1, "int", INT_MIN),
        (2**63 - 1, "int", INT_MAX),
    ],
)
def test_numbers_have_one_form(value: Any, type_: str, expected: Value) -> None:
    assert is_same(canonical_value(value, type_), expected)


def test_timestamps_are_utc_without_a_zone() -> None:
    in_berlin = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=1)))
    assert canonical_value(in_berlin, "timestamp") == datetime(2026, 1, 31, 11)
    assert canonical_value(datetime(2026, 1, 31, tzinfo=UTC), "timestamp") == datetime(2026, 1, 31)
    assert parse_value("2026-01-31T12:00+01:00", "timestamp") == datetime(2026, 1, 31, 11)


MISFITS: list[tuple[Any, str]] = [
    (True, "int"),
    (1.0, "int"),
    ("1", "int"),
    (2**63, "int"),
    (-(2**63), "int"),
    (numpy.int64(-(2**63)), "int"),
    (None, "int"),
    (True, "float"),
    (float("nan"), "float"),
    (float("-inf"), "float"),
    (10**400, "float"),
    ("1.5", "float"),
    (Decimal("1.5"), "float"),
    (1j, "float"),
    (1, "str"),
    (b"text", "str"),
    ("\udc80", "str"),
    (1, "bool"),
    ("true", "bool"),
    (datetime(2026, 1, 31), "date"),
    ("2026-01-31", "date"),
    (date(2026, 1, 31), "timestamp"),
    (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "timestamp"),
    (True, "decimal"),
    ("1.5", "decimal"),
    (Decimal("NaN"), "decimal"),
    (Decimal("Infinity"), "decimal"),
    (Decimal(10) ** 20, "decimal"),
    (Decimal("1E-19"), "decimal"),
    (1e-19, "decimal"),
]


@pytest.mark.parametrize(("value", "type_"), MISFITS, ids=repr)
def test_what_has_no_canonical_form_is_refused(value: Any, type_: str) -> None:
    with pytest.raises(VALUE_ERRORS):
        canonical_value(value, type_)


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (numpy.int64(7), "int", 7),
        (numpy.uint8(7), "int", 7),
        (Level.HIGH, "int", 3),
        (numpy.float64(1.5), "float", 1.5),
        (numpy.float32(1.5), "float", 1.5),
        (numpy.str_("x"), "str", "x"),
        (numpy.bool_(True), "bool", True),
        (pandas.Timestamp("2026-01-31 12:00"), "timestamp", datetime(2026, 1, 31, 12)),
    ],
    ids=repr,
)
def test_values_of_numpy_and_pandas_become_plain_ones(
    value: Any, type_: str, expected: Value
) -> None:
    assert is_same(canonical_value(value, type_), expected)


@pytest.mark.parametrize("type_", ["int", "float", "str", "bool", "date", "timestamp", "decimal"])
@pytest.mark.parametrize("missing", [pandas.NaT, pandas.NA, numpy.nan], ids=repr)
def test_what_pandas_calls_missing_is_not_a_value(missing: Any, type_: str) -> None:
    with pytest.raises(VALUE_ERRORS):
        canonical_value(missing, type_)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("", "int"),
        ("1_000", "int"),
        ("0x10", "int"),
        ("9223372036854775808", "int"),
        ("-9223372036854775808", "int"),
        ("²", "int"),
        ("٣", "int"),
        ("nan", "float"),
        ("1e999", "float"),
        ("inf", "float"),
        ("1,5", "float"),
        ("yes", "bool"),
        ("2026-02-30", "date"),
        ("20260131", "date"),
        ("2026-1-31", "date"),
        ("2026-01-31 25:00", "timestamp"),
        ("noon", "timestamp"),
        ("1e3", "decimal"),
        ("NaN", "decimal"),
        ("100000000000000000000", "decimal"),
        ("0.0000000000000000001", "decimal"),
    ],
)
def test_text_that_is_no_value_is_refused(text: str, type_: str) -> None:
    with pytest.raises(VALUE_ERRORS):
        parse_value(text, type_)


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        (" 42 ", "int", 42),
        ("+7", "int", 7),
        (".5", "float", 0.5),
        ("1.", "float", 1.0),
        ("-0.0", "float", 0.0),
        ("TRUE", "bool", True),
        (" a ", "str", " a "),
        ("007.50", "decimal", Decimal("7.5")),
        ("2026-01-31", "timestamp", datetime(2026, 1, 31)),
    ],
)
def test_text_is_read_as_people_write_it(text: str, type_: str, expected: Value) -> None:
    assert is_same(parse_value(text, type_), expected)


def test_text_is_escaped_where_it_would_not_show() -> None:
    assert print_value('a"b\\c\n\t\r\0\u200b') == '"a\\"b\\\\c\\n\\t\\r\\u{0}\\u{200B}"'
    assert print_value("é😀") == '"é😀"'


@pytest.mark.parametrize(
    ("exact", "rounded"),
    [
        ("0.0000000000000000005", "0"),
        ("0.0000000000000000015", "0.000000000000000002"),
        ("0.0000000000000000025", "0.000000000000000002"),
        ("-0.0000000000000000005", "0"),
        ("99999999999999999999.9999999999999999994", "99999999999999999999.999999999999999999"),
    ],
)
def test_decimals_round_half_to_even_at_18_places(exact: str, rounded: str) -> None:
    assert is_same(rounded_decimal(Decimal(exact)), Decimal(rounded))


@pytest.mark.parametrize("text", ["99999999999999999999.9999999999999999995", "1E+20", "1E+999999"])
def test_a_decimal_that_does_not_fit_after_rounding_is_refused(text: str) -> None:
    with pytest.raises(OverflowError):
        rounded_decimal(Decimal(text))


def test_null_comes_first_and_rows_compare_column_by_column() -> None:
    rows: list[tuple[Value, ...]] = [(2, None), (None, "b"), (1, "b"), (1, None), (None, None)]
    assert sorted(rows, key=sort_key) == [
        (None, None),
        (None, "b"),
        (1, None),
        (1, "b"),
        (2, None),
    ]
