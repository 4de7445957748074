"""Values as 64-bit words and back.

Ints, bools, dates and timestamps are themselves, floats their bits; text, decimals and exact
numbers are numbered as they come. Equal values have equal words and null is one word for every
type, so joins compare words and nothing else. Numbers of values that no row and no rule holds any
more are given out again (`Codec.sweep`); words copied before have the `Decoder` of their time.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Any

from deltalog.engines.extensions import NULL_WORD
from deltalog.language.ast import Row, Value

EPOCH = datetime(1970, 1, 1)
INTERNED = ("str", "decimal", "exact")
CHUNK = 1 << 20
SWEEP_MIN = 10_000


EncodeRows = Callable[[Iterable[Row]], list[int | None]]


class Numbering:
    """Values of one type, numbered as they come; numbers that are free go to the next ones."""

    def __init__(self, type_: str, due: set[str]) -> None:
        """When many numbers are taken, its type is `due` to be swept."""
        self.type = type_
        self.due = due
        self.number: dict[Hashable, int] = {}
        self.values: list[Any] = []
        self.free: list[int] = []
        self.pinned: set[int] = set()
        self.room = SWEEP_MIN
        self.texts: Texts | None = None

    def word(self, value: Hashable) -> int:
        found = self.number.get(value)
        return self._number_new_value(value) if found is None else found

    def words(self, values: list[Hashable]) -> list[int]:
        """Return the numbers of distinct values."""
        new = [value for value in values if value not in self.number]
        reused = len(self.free) if self.texts is None else len(new)
        for value in new[:reused]:
            self._number_new_value(value)
        if added := new[reused:]:
            first = len(self.values)
            self.values += added
            self.number.update(zip(added, range(first, len(self.values)), strict=True))
            if len(self.number) > self.room:
                self.due.add(self.type)
        return list(map(self.number.__getitem__, values))

    def _number_new_value(self, value: Hashable) -> int:
        if self.free:
            found = self.free.pop()
            self.values[found] = value
        else:
            found = len(self.values)
            self.values.append(value)
        self.number[value] = found
        if len(self.number) > self.room:
            self.due.add(self.type)
        if self.texts is not None:
            self.texts.put(found, str(value))
        return found

    def sweep(self, marks: array[int]) -> None:
        """Free every number that is not marked; the list of values until now stays as it is."""
        for number in self.pinned:
            marks[number] = 1
        self.values = self.values.copy()
        dropped = [(v, n) for v, n in self.number.items() if not marks[n]]
        for value, number in dropped:
            del self.number[value]
            self.values[number] = None
            self.free.append(number)
        self.room = 2 * len(self.number) + SWEEP_MIN
        self.due.discard(self.type)
        if self.texts is not None:
            self.texts = Texts(self.number)


class Texts:
    """The UTF-8 bytes of every text where kernels can compare them: address and size by number."""

    def __init__(self, number: dict[Hashable, int]) -> None:
        self.table = array("q", bytes(16 * max(1024, 2 * max(number.values(), default=0))))
        self.chunks: list[array[int]] = []
        self.used = CHUNK
        for text, position in number.items():
            self.put(position, str(text))

    def put(self, number: int, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        size = len(data)
        if not self.chunks or self.used + size > CHUNK:  # an empty text needs a place, too
            self.chunks.append(array("b", bytes(max(size, CHUNK))))
            self.used = 0
        memoryview(self.chunks[-1]).cast("B")[self.used : self.used + size] = data
        while 2 * number + 1 >= len(self.table):
            self.table.extend(array("q", bytes(8 * len(self.table))))
        self.table[2 * number] = self.chunks[-1].buffer_info()[0] + self.used
        self.table[2 * number + 1] = size
        self.used += size


def words_to_array(words: list[int | None]) -> array[int]:
    """Words as kernels read them."""
    try:
        return array("q", words)  # type: ignore[arg-type]
    except TypeError:
        return array("q", [NULL_WORD if word is None else word for word in words])


class Decoder:
    """Words back to values: those of words given out before the next sweep, at any later time."""

    def __init__(self, values: Mapping[str, list[Any]]) -> None:
        self.values = values
        self.decoders: dict[str, Callable[[int], Any]] = {
            "int": int,
            "bool": bool,
            "date": date.fromordinal,
            "timestamp": lambda word: EPOCH + timedelta(microseconds=word),
            "float": lambda word: struct.unpack("<d", struct.pack("<q", word))[0],
            **{type_: known.__getitem__ for type_, known in values.items()},
        }

    def decoded(self, words: array[int], types: Sequence[str]) -> list[Row]:
        """The rows of words; a row without columns has no words and is not for this."""
        width = len(types)
        has_nulls = NULL_WORD in words
        if not has_nulls and types.count("int") == width:
            if len(words) == width:  # most changes are small
                return [tuple(words)]
            return list(zip(*[iter(words)] * width, strict=True))
        columns = []
        for position, type_ in enumerate(types):
            column, decode = words[position::width], self.decoders[type_]
            if has_nulls:
                columns.append([None if w == NULL_WORD else decode(w) for w in column])
            elif type_ == "int":
                columns.append(list(column))
            else:
                columns.append([decode(word) for word in column])
        return list(zip(*columns, strict=True))


class Codec:
    """The numberings of an engine, shared by all its relations."""

    def __init__(self) -> None:
        self.due: set[str] = set()
        self.numberings = {type_: Numbering(type_, self.due) for type_ in INTERNED}
        self.texts = self.numberings["str"]
        self.encoders: dict[str, Callable[[Any], int]] = {
            "int": int,
            "bool": int,
            "date": date.toordinal,
            "timestamp": lambda value: (value - EPOCH) // timedelta(microseconds=1),
            "float": lambda value: struct.unpack("<q", struct.pack("<d", value))[0],
            **{type_: self.numberings[type_].word for type_ in INTERNED},
        }
        self.decoder = self._make_decoder()

    def _make_decoder(self) -> Decoder:
        return Decoder({type_: self.numberings[type_].values for type_ in INTERNED})

    def sweep(self, type_: str, marks: array[int]) -> None:
        """Free every number of a type that is not marked."""
        self.numberings[type_].sweep(marks)
        self.decoder = self._make_decoder()

    def word(self, value: Value, type_: str) -> int:
        return NULL_WORD if value is None else self.encoders[type_](value)

    def constant(self, value: Value, type_: str) -> int:
        """The word of a value in a rule: its number is kept for good."""
        word = self.word(value, type_)
        if value is not None and type_ in self.numberings:
            self.numberings[type_].pinned.add(word)
        return word

    def sort_texts(self) -> None:
        """From now on texts can be compared by kernels."""
        if self.texts.texts is None:
            self.texts.texts = Texts(self.texts.number)

    def row_encoder(self, types: Sequence[str]) -> EncodeRows:
        """Makes the words of rows, one row after the other; a null may still be None."""
        if types.count("int") == len(types):
            return _words_of_ints
        encoders = [self.encoders[type_] for type_ in types]
        return lambda rows: [
            NULL_WORD if value is None else encode(value)
            for row in rows
            for encode, value in zip(encoders, row, strict=True)
        ]


def _words_of_ints(rows: Iterable[Row]) -> list[int | None]:
    return list(chain.from_iterable(rows))  # type: ignore[arg-type]
