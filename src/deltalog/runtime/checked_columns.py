"""Whole columns checked and brought to the canonical form of `language/values.py`, as Arrow.

    int64 [1, 2]                      for an int column   ->  int64 [1, 2]
    float64 [-0.0, nan]               for a float column  ->  row 2 does not fit
    dictionary<string> ["a", "b"]     for a str column    ->  string ["a", "b"]

A column of another Arrow type than the relation's is converted where each value of it stands for
one value of the wanted type, as `canonical_value` does with single values: ints of any width for
int; ints and floats for float; text for str; dates of any unit for date; timestamps of any unit and
zone for timestamp, rounded down to the microsecond; decimals, ints and floats for decimal. A bool
is no int, a timestamp no date.

Null is what the source calls null. For pandas that is also NaN, NaT and None in its own columns and
in columns of objects; and since pandas has no ints there when some are missing, whole numbers in a
column of floats with missing values are ints. For NumPy it is None, NaT and what is masked. NaN is
otherwise a value, which fits no column.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.language.arrow import arrow_type
from deltalog.language.ast import Column, Value
from deltalog.language.values import INT_MAX, INT_MIN, VALUE_ERRORS, canonical_value

if TYPE_CHECKING:
    import pyarrow

DAY_MIN = date.min.toordinal() - date(1970, 1, 1).toordinal()
DAY_MAX = date.max.toordinal() - date(1970, 1, 1).toordinal()
MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
PER_DAY = 86_400_000_000
EXACT_FLOAT_MAX = 2.0**53
_PLAIN: dict[str, type] = {"int": int, "str": str, "bool": bool, "date": date}


class Vector(NamedTuple):
    """A column as it is given; pandas has its own idea of null."""

    values: Any
    is_pandas: bool = False


class Checked(NamedTuple):
    """The column, or where the first value stands that does not fit, and that value."""

    values: Any = None
    wrong_at: int | None = None
    wrong: Any = None


class _MisfitError(Exception):
    """Where the first value stands that does not fit."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def checked_column(vector: Vector, column: Column) -> Checked:
    """Check a column and convert it to the Arrow type of the relation's column."""
    import pyarrow

    type_ = column.type or "int"
    array = _arrow_values(vector)
    if isinstance(array, list):
        return _checked_values(array, type_, column.nullable)
    array = _decode_array(_owned_copy(array))
    if array.null_count and not column.nullable:
        return Checked(None, _first_true(array.is_null()), None)
    if array.null_count == len(array):
        return Checked(pyarrow.chunked_array([pyarrow.nulls(len(array), arrow_type(type_))]))
    if vector.is_pandas and type_ == "int" and array.null_count:
        array = _whole_numbers(array)
    try:
        return Checked(_FITTING[type_](array))
    except _MisfitError as error:
        return Checked(None, error.at, _shown_scalar(array[error.at]))


def _owned_copy(array: pyarrow.Array | pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Return a copy in memory of its own: the caller may write to what they gave later on."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({"column": array})
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pyarrow.ipc.open_stream(sink.getvalue()).read_all().column(0)


def _decode_array(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Return plain values for those of an extension type, of runs, or of a dictionary."""
    import pyarrow
    import pyarrow.compute

    if isinstance(array.type, pyarrow.BaseExtensionType):
        is_bool = isinstance(array.type, pyarrow.Bool8Type)
        array = array.cast(pyarrow.bool_() if is_bool else array.type.storage_type)
    if pyarrow.types.is_run_end_encoded(array.type):
        array = pyarrow.compute.run_end_decode(array)
    if pyarrow.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    return array


def _shown_scalar(scalar: Any) -> Any:
    """A value to be shown; bytes for text, and NumPy's form of dates, that Python does not have."""
    try:
        return scalar.as_py()
    except UnicodeError:
        return scalar.as_buffer().to_pybytes()
    except (ValueError, OverflowError):
        return _numpy_moment(scalar)


def _numpy_moment(scalar: Any) -> Any:
    """Return a date or timestamp that Python does not have as one of NumPy."""
    import numpy
    import pyarrow

    if pyarrow.types.is_date32(scalar.type):
        return numpy.datetime64(scalar.value, "D")
    unit = "ms" if pyarrow.types.is_date64(scalar.type) else scalar.type.unit
    return numpy.array(scalar.value).astype(f"datetime64[{unit}]")[()]


def _first_true(wrong: pyarrow.ChunkedArray) -> int:
    """Where the first true value is."""
    import pyarrow.compute

    return int(pyarrow.compute.index(wrong, True).as_py())


# Columns as they are given


def _arrow_values(vector: Vector) -> Any:
    """The column as Arrow, or a list of values to be looked at one by one."""
    import pyarrow

    values = vector.values
    if isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        return values
    if vector.is_pandas:
        return _from_pandas(values)
    if type(values).__module__ == "numpy" or hasattr(values, "__array_interface__"):
        return _from_numpy(values)
    if hasattr(values, "__arrow_c_stream__"):
        return pyarrow.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pyarrow.array(values)
    return list(values)


def _from_pandas(series: Any) -> Any:
    import pyarrow

    if series.dtype != object:
        try:
            return pyarrow.array(series, from_pandas=True)
        except (pyarrow.ArrowException, TypeError, ValueError):
            pass
    missing = series.isna().tolist()
    return [None if is_null else v for v, is_null in zip(series.tolist(), missing, strict=True)]


def _from_numpy(values: Any) -> Any:
    import numpy
    import pyarrow

    mask = numpy.ma.getmaskarray(values) if isinstance(values, numpy.ma.MaskedArray) else None
    plain = numpy.ascontiguousarray(numpy.asarray(values))
    plain = plain.astype(plain.dtype.newbyteorder("="), copy=False)
    kind = plain.dtype.kind
    if kind == "M":
        unit = numpy.datetime_data(plain.dtype)[0]
        if unit in ("Y", "M", "W"):
            plain = plain.astype("datetime64[D]")
        elif unit in ("h", "m"):
            plain = plain.astype("datetime64[s]")
    try:
        if kind in "iufbMU":
            return pyarrow.array(plain, mask=mask)
    except (pyarrow.ArrowException, TypeError, ValueError):
        pass
    listed = plain.tolist() if kind in "OUSmV" else list(plain)
    if mask is None:
        return listed
    return [None if hidden else v for v, hidden in zip(listed, mask.tolist(), strict=True)]


def _checked_values(values: list[Any], type_: str, is_nullable: bool) -> Checked:
    """Check values one by one; quickly, if they are of one plain type."""
    import pyarrow

    wanted = arrow_type(type_)
    kinds = set(map(type, values))
    if kinds <= {_PLAIN.get(type_)} or (is_nullable and kinds <= {_PLAIN.get(type_), type(None)}):
        try:
            return Checked(_FITTING[type_](pyarrow.chunked_array([pyarrow.array(values, wanted)])))
        except (_MisfitError, pyarrow.ArrowException, OverflowError, UnicodeError):
            pass  # the first one that does not fit is found below
    found: list[Value] = []
    for at, value in enumerate(values):
        try:
            if value is None and is_nullable:
                found.append(None)
            else:
                found.append(canonical_value(value, type_))
        except VALUE_ERRORS:
            return Checked(None, at, value)
    return Checked(pyarrow.chunked_array([pyarrow.array(found, wanted)]))


def _whole_numbers(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Ints of which pandas has made floats, as ints again."""
    import pyarrow
    import pyarrow.compute as compute

    if not pyarrow.types.is_floating(array.type):
        return array
    is_small = compute.less_equal(compute.abs(array), EXACT_FLOAT_MAX)
    is_whole = compute.and_(compute.equal(compute.floor(array), array), is_small)
    if not compute.all(is_whole).as_py():
        return array
    return array.cast(pyarrow.int64())


# Columns of each type, or a `_MisfitError`


def _require_type(array: pyarrow.ChunkedArray, fits: bool) -> None:
    """No value fits if the type does not."""
    if not fits:
        raise _MisfitError(_first_true(array.is_valid()))


def _refuse_any(wrong: pyarrow.ChunkedArray) -> None:
    """None of the values may be wrong."""
    import pyarrow.compute as compute

    if compute.any(wrong).as_py():
        raise _MisfitError(_first_true(wrong))


def _fit_int(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow
    import pyarrow.compute as compute

    _require_type(array, pyarrow.types.is_integer(array.type))
    if pyarrow.types.is_uint64(array.type):
        _refuse_any(compute.greater(array, pyarrow.scalar(2**63 - 1, pyarrow.uint64())))
    values = array.cast(pyarrow.int64())
    _refuse_outside(values, INT_MIN, INT_MAX)
    return values


def _fit_float(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow
    import pyarrow.compute as compute

    types = pyarrow.types
    _require_type(array, types.is_floating(array.type) or types.is_integer(array.type))
    values = array.cast(pyarrow.float64(), safe=False)
    _refuse_any(compute.invert(compute.is_finite(values)))
    return compute.add(values, 0.0)  # no negative zero


def _fit_str(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    types = pyarrow.types
    known = (types.is_string, types.is_large_string, types.is_string_view)
    _require_type(array, any(is_text(array.type) for is_text in known))
    try:
        array.validate(full=True)
    except pyarrow.ArrowException:
        raise _MisfitError(next(at for at, text in enumerate(array) if _is_broken(text))) from None
    return array.cast(pyarrow.string())


def _is_broken(text: Any) -> bool:
    try:
        text.as_py()
    except UnicodeError:
        return True
    return False


def _fit_bool(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    _require_type(array, pyarrow.types.is_boolean(array.type))
    return array


def _fit_date(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    _require_type(array, pyarrow.types.is_date(array.type))
    if pyarrow.types.is_date64(array.type):  # milliseconds
        days = _floor_divide(array.cast(pyarrow.int64()), PER_DAY // 1_000)
    else:
        days = array.cast(pyarrow.int32()).cast(pyarrow.int64())
    _refuse_outside(days, DAY_MIN, DAY_MAX)
    return days.cast(pyarrow.int32()).cast(pyarrow.date32())


def _fit_timestamp(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow
    import pyarrow.compute as compute

    _require_type(array, pyarrow.types.is_timestamp(array.type))
    ticks = array.cast(pyarrow.int64())
    if array.type.unit == "ns":
        ticks = _floor_divide(ticks, 1_000)
    scale = MICROSECONDS.get(array.type.unit, 1)
    per_day = PER_DAY // scale
    _refuse_outside(ticks, DAY_MIN * per_day, (DAY_MAX + 1) * per_day - 1)
    return compute.multiply(ticks, scale).cast(pyarrow.timestamp("us"))


def _floor_divide(array: pyarrow.ChunkedArray, divisor: int) -> pyarrow.ChunkedArray:
    """Divided and rounded down, which Arrow's division does for positive numbers only."""
    import pyarrow.compute as compute

    quotient = compute.divide(array, divisor)
    is_above = compute.greater(compute.multiply(quotient, divisor), array)
    return compute.subtract(quotient, is_above.cast("int64"))


def _refuse_outside(array: pyarrow.ChunkedArray, low: int, high: int) -> None:
    import pyarrow.compute as compute

    found = compute.min_max(array).as_py()
    if found["min"] is not None and (found["min"] < low or found["max"] > high):
        _refuse_any(compute.or_(compute.less(array, low), compute.greater(array, high)))


def _fit_decimal(array: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    types = pyarrow.types
    is_exact = types.is_decimal(array.type) or types.is_integer(array.type)
    _require_type(array, is_exact or types.is_floating(array.type))
    if is_exact:
        try:
            exact = array if types.is_decimal(array.type) else array.cast(pyarrow.decimal128(20, 0))
            return exact.cast(arrow_type("decimal"))
        except pyarrow.ArrowInvalid:
            pass  # which of them it was is found below
    checked = _checked_values(array.to_pylist(), "decimal", is_nullable=True)
    if checked.wrong_at is not None:
        raise _MisfitError(checked.wrong_at)
    return checked.values


_FITTING: dict[str, Callable[[Any], Any]] = {
    "int": _fit_int,
    "float": _fit_float,
    "str": _fit_str,
    "bool": _fit_bool,
    "date": _fit_date,
    "timestamp": _fit_timestamp,
    "decimal": _fit_decimal,
}
