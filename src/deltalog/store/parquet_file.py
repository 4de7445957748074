"""Parquet: columns by name, or by position when no name matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from deltalog.language.arrow import arrow_schema, arrow_table
from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import VALUE_ERRORS, canonical_value
from deltalog.store.records import (
    Converter,
    Place,
    column_type,
    field_count,
    name_faults,
    opened_file,
    record_row,
    unreadable_file,
)

BATCH_ROWS = 16_384


def read_parquet(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    converters = [_from_arrow(column) for column in columns]
    number = 0
    with opened_file(path) as file:
        try:
            # Old Spark writes INT96, which as nanoseconds would end in the year 2262.
            source = parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
            order = _arrow_order(path, columns, source.schema_arrow.names)
            for batch in source.iter_batches(BATCH_ROWS):
                vectors = [_cells_of_array(batch.column(position)) for position in order]
                for cells in zip(*vectors, strict=True):
                    number += 1
                    yield record_row(Place(path, "row", number), columns, converters, cells)
        except (pyarrow.ArrowException, OSError) as error:
            raise unreadable_file(path, "it is broken or not a Parquet file") from error


def _arrow_order(path: Path, columns: Sequence[Column], names: list[str]) -> list[int]:
    """Where the file has each column: by name, or by position when no name is known."""
    if not {column.name for column in columns} & set(names):
        if len(names) == len(columns):
            return list(range(len(names)))
        raise unreadable_file(
            path, f"it has {field_count(len(names))} and no column of the relation by name"
        )
    faults = name_faults(names, columns)
    if faults:
        raise unreadable_file(path, faults)
    return [names.index(column.name) for column in columns]


class _Valueless(NamedTuple):
    """A cell that Python has no value for: a date after the year 9999, text that is not UTF-8."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _cells_of_array(array: Any) -> list[Any]:
    array = _simplify_array(array)
    try:
        return list(array.to_pylist())
    except VALUE_ERRORS:
        return [_cell_of_scalar(scalar) for scalar in array]


def _cell_of_scalar(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except VALUE_ERRORS:
        return _Valueless(f"an unreadable {scalar.type}")


def _simplify_array(array: Any) -> Any:
    """Dictionaries decoded, timestamps without a zone (their values are UTC) and nanoseconds."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pyarrow.types.is_timestamp(array.type):
        unit = array.type.unit
        array = array.cast(pyarrow.timestamp(unit))
        if unit == "ns":
            array = compute.floor_temporal(array, unit="microsecond").cast(pyarrow.timestamp("us"))
    return array


def _from_arrow(column: Column) -> Converter:
    type_, nullable = column_type(column), column.nullable

    def convert(cell: Any) -> Value:
        return None if cell is None and nullable else canonical_value(cell, type_)

    return convert


def write_parquet(file: BinaryIO, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    from pyarrow import parquet

    count = 0
    remaining = iter(rows)
    with parquet.ParquetWriter(file, arrow_schema(columns)) as writer:
        while batch := list(islice(remaining, BATCH_ROWS)):
            writer.write_table(arrow_table(columns, batch))
            count += len(batch)
    return count
