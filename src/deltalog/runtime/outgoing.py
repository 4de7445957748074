"""An Arrow table as a table of another package. None is imported before it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray


def to_pandas(table: pyarrow.Table) -> Any:
    """Return a DataFrame; a column of ints with nulls is of pandas' type `Int64`, so none changes.

    As floats, which pandas makes of them otherwise, those beyond 2^53 would be other numbers.
    """
    import pyarrow

    pandas = _import_package("to_pandas", "pandas", "deltalog[pandas]")
    frame = table.to_pandas()
    for position, column in enumerate(table.columns):
        if column.null_count and pyarrow.types.is_integer(column.type):
            exact = column.to_pandas(types_mapper=lambda _: pandas.Int64Dtype())
            frame.isetitem(position, exact)
    return frame


def to_polars(table: pyarrow.Table) -> Any:
    return _import_package("to_polars", "polars", "polars").from_arrow(table)


def _import_package(method: str, package: str, installed: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        hint = f"install it with `pip install '{installed}'`"
        wrong = catalogue.PACKAGE_NEEDED.at(None, name=method, needed=package, hint=hint)
        raise DataError([wrong]) from error


def to_numpy(table: pyarrow.Table) -> NDArray[Any]:
    """Return an array of two dimensions, of objects if the columns are of several types."""
    import numpy

    vectors = [_column_array(column) for column in table.columns]
    types = {vector.dtype for vector in vectors}
    if len(types) > 1:
        vectors = [_object_array(column) for column in table.columns]
    found = numpy.empty((table.num_rows, len(vectors)), vectors[0].dtype if vectors else object)
    for position, vector in enumerate(vectors):
        found[:, position] = vector
    return found


def to_structured(table: pyarrow.Table) -> NDArray[Any]:
    """Return an array with a field for each column, each of its own type."""
    import numpy

    vectors = [_column_array(column) for column in table.columns]
    fields = [(n, v.dtype) for n, v in zip(table.column_names, vectors, strict=True)]
    found = numpy.empty(table.num_rows, fields)
    for name, vector in zip(table.column_names, vectors, strict=True):
        found[name] = vector
    return found


def _column_array(column: pyarrow.ChunkedArray) -> NDArray[Any]:
    """Return a column as an array; null is NaT, or None among objects."""
    import pyarrow

    types = pyarrow.types
    if types.is_date(column.type):
        days: NDArray[Any] = column.to_numpy().astype("datetime64[D]")
        return days
    is_object = types.is_string(column.type) or types.is_decimal(column.type)
    if is_object or (column.null_count and not types.is_timestamp(column.type)):
        return _object_array(column)
    found: NDArray[Any] = column.to_numpy()
    return found


def _object_array(column: pyarrow.ChunkedArray) -> NDArray[Any]:
    import numpy

    found = numpy.empty(len(column), object)
    found[:] = column.to_pylist()
    return found
