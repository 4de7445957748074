"""Values as 64-bit words and back.

Ints, bools, dates and timestamps are themselves, floats their bits; text, decimals and exact
numbers are numbered in the order they are first seen. Equal values have equal words and null is one
word for every type, so joins compare words and nothing else. The word of null is -2^63,
which is no int.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable
from datetime import date, datetime, timedelta
from typing import Any

from deltalog.language.ast import Row, Value

NULL_WORD = -(2**63)
EPOCH = datetime(1970, 1, 1)
INTERNED = ("str", "decimal", "exact")


class Numbering:
    """Values of one type, numbered as they come."""

    def __init__(self) -> None:
        self.number: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def word(self, value: Hashable) -> int:
        found = self.number.get(value)
        if found is None:
            found = self.number[value] = len(self.values)
            self.values.append(value)
        return found


class Codec:
    """The numberings of an engine, shared by all its relations."""

    def __init__(self) -> None:
        self.numberings = {type_: Numbering() for type_ in INTERNED}
        self.encoders: dict[str, Callable[[Any], int]] = {
            "int": int,
            "bool": int,
            "date": date.toordinal,
            "timestamp": lambda value: (value - EPOCH) // timedelta(microseconds=1),
            "float": lambda value: struct.unpack("<q", struct.pack("<d", value))[0],
            **{type_: self.numberings[type_].word for type_ in INTERNED},
        }
        self.decoders: dict[str, Callable[[int], Any]] = {
            "int": int,
            "bool": bool,
            "date": lambda word: date.fromordinal(word),
            "timestamp": lambda word: EPOCH + timedelta(microseconds=word),
            "float": lambda word: struct.unpack("<d", struct.pack("<q", word))[0],
            **{type_: self.numberings[type_].values.__getitem__ for type_ in INTERNED},
        }

    def word(self, value: Value, type_: str) -> int:
        return NULL_WORD if value is None else self.encoders[type_](value)

    def row(self, row: Row, types: tuple[str, ...]) -> list[int]:
        return [self.word(value, type_) for value, type_ in zip(row, types, strict=True)]

    def decoded(self, words: Iterable[list[int]], types: tuple[str, ...]) -> list[Row]:
        if all(type_ == "int" for type_ in types):
            return [
                tuple(None if w == NULL_WORD else w for w in row)
                if NULL_WORD in row
                else tuple(row)
                for row in words
            ]
        decoders = [self.decoders[type_] for type_ in types]
        return [
            tuple(
                None if word == NULL_WORD else decode(word)
                for word, decode in zip(row, decoders, strict=True)
            )
            for row in words
        ]
