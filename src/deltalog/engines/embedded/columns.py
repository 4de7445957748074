"""Words of many rows from and to Arrow columns, without a Python object for each value.

    [1, 2], ["a", "b"]   <->   1, number of "a", 2, number of "b"

Text and decimals are numbered: each distinct value once, all others by their position among these.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deltalog.engines.base import LazyRows, LazyTable
from deltalog.engines.embedded.codec import Codec, Decoder
from deltalog.engines.extensions import NULL_WORD
from deltalog.language.arrow import arrow_schema, arrow_type
from deltalog.language.ast import Column, Row
from deltalog.language.values import rounded_decimal

if TYPE_CHECKING:
    import pyarrow

Words = NDArray[np.int64]
EPOCH_DAY = date(1970, 1, 1).toordinal()


class CopiedWords(LazyRows):
    """Rows of words, with the decoder of the time when they were copied."""

    __slots__ = ("decoder", "types", "words")

    def __init__(
        self, count: int, words: array[int], types: tuple[str, ...], decoder: Decoder
    ) -> None:
        super().__init__(count, lambda: decoder.decoded(words, types))
        self.words = words
        self.types = types
        self.decoder = decoder

    def first(self, count: int) -> list[Row]:
        return self.decoder.decoded(self.words[: count * len(self.types)], self.types)

    def in_order(self) -> LazyRows:
        if "exact" in self.types:  # which Arrow does not have
            return super().in_order()
        return LazyTable(self.to_arrow(_number_columns(self.types))).in_order()

    def to_arrow(self, columns: tuple[Column, ...]) -> pyarrow.Table:
        import pyarrow

        matrix = np.frombuffer(self.words, np.int64).reshape(-1, len(self.types))
        arrays = [
            _arrow_array(np.ascontiguousarray(matrix[:, position]), type_, self.decoder)
            for position, type_ in enumerate(self.types)
        ]
        return pyarrow.Table.from_arrays(arrays, schema=arrow_schema(columns))


def _number_columns(types: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(Column(f"c{i + 1}", type_, True) for i, type_ in enumerate(types))


def words_of(table: pyarrow.Table, types: Sequence[str], codec: Codec) -> array[int]:
    """Return the words of a table's rows, one row after the other."""
    matrix = np.empty((table.num_rows, len(types)), np.int64)
    for position, (column, type_) in enumerate(zip(table.columns, types, strict=True)):
        start = 0
        for chunk in column.chunks:
            matrix[start : start + len(chunk), position] = _words_of_chunk(chunk, type_, codec)
            start += len(chunk)
    words = array("q")
    words.frombytes(matrix.data.cast("B") if matrix.size else b"")
    return words


def _words_of_chunk(chunk: pyarrow.Array, type_: str, codec: Codec) -> Words:
    if type_ in codec.numberings:
        words = _numbers_of_values(chunk, type_, codec)
    else:
        words = _plain_words(chunk.fill_null(_ZERO.get(type_, 0)) if chunk.null_count else chunk)
    if chunk.null_count:
        words = np.where(_to_numpy(chunk.is_null()), NULL_WORD, words)
    return words


_ZERO: dict[str, Any] = {"bool": False, "date": date(1970, 1, 1)}


def _plain_words(chunk: pyarrow.Array) -> Words:
    """Return the words of values that are their own words, or nearly."""
    import pyarrow

    types = pyarrow.types
    if types.is_floating(chunk.type):
        return np.ascontiguousarray(_to_numpy(chunk)).view(np.int64)
    if types.is_date(chunk.type):
        return _to_numpy(chunk.view(pyarrow.int32())).astype(np.int64) + EPOCH_DAY
    if types.is_timestamp(chunk.type):
        return _to_numpy(chunk.view(pyarrow.int64()))
    return _to_numpy(chunk).astype(np.int64, copy=False)


def _numbers_of_values(chunk: pyarrow.Array, type_: str, codec: Codec) -> Words:
    """Return the numbers of values, null as any of them."""
    encoded = chunk.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if type_ == "decimal":
        values = list(map(rounded_decimal, values))
    numbers = np.array(codec.numberings[type_].words(values) or [0], np.int64)
    indices = encoded.indices
    places = _to_numpy(indices.fill_null(0) if indices.null_count else indices)
    return numbers.take(places)


def _to_numpy(chunk: pyarrow.Array) -> NDArray[Any]:
    found: NDArray[Any] = chunk.to_numpy(zero_copy_only=False)
    return found


def _arrow_array(words: Words, type_: str, decoder: Decoder) -> pyarrow.Array:
    """Return the values of a column of words."""
    import pyarrow

    wanted = arrow_type(type_)
    found = words == NULL_WORD
    nulls = found if found.any() else None
    if type_ in decoder.values:
        return _values_of_numbers(words, nulls, decoder.values[type_], wanted)
    if type_ == "float":
        return pyarrow.array(words.view(np.float64), mask=nulls)
    if type_ == "bool":
        return pyarrow.array(words != 0, mask=nulls)
    if type_ == "date":
        return pyarrow.array((words - EPOCH_DAY).astype(np.int32), mask=nulls).view(wanted)
    return pyarrow.array(words, mask=nulls).view(wanted)


def _values_of_numbers(
    words: Words, nulls: NDArray[np.bool_] | None, values: list[Any], wanted: pyarrow.DataType
) -> pyarrow.Array:
    """Return the values with these numbers: each distinct one is converted once."""
    import pyarrow

    if not values:  # so nothing is there but null
        return pyarrow.nulls(len(words), wanted)
    numbers = words if nulls is None else np.where(nulls, 0, words)
    if 4 * len(numbers) < len(values):
        used, places = np.unique(numbers, return_inverse=True)
    else:
        is_used = np.zeros(len(values), np.bool_)
        is_used[numbers] = True
        used = np.flatnonzero(is_used)
        places = (np.cumsum(is_used) - 1)[numbers]
    distinct = pyarrow.array([values[number] for number in used.tolist()], wanted)
    return distinct.take(pyarrow.array(places, mask=nulls))
