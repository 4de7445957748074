"""A relation in native memory, seen from Python; `kernel.py` tells how it is laid out.

The line of words is Python's and never moves, so its address is the relation's identity in code.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from deltalog.engines.base import LazyRows, LazyTable
from deltalog.engines.embedded.codec import Decoder, words_to_array
from deltalog.engines.embedded.columns import CopiedWords, words_of
from deltalog.engines.embedded.kernels import bulk, layout, relation_memory
from deltalog.language.ast import Row

if TYPE_CHECKING:
    from deltalog.engines.embedded.engine import EmbeddedEngine

BLOCK = 1 << 18
"""Rows that are copied or compared at a time."""
_BLANK = bytes(8 * layout.LINE)


class EmbeddedRelation:
    """Walkable (see `engines/interpreter.py`), and known to the kernels by its address."""

    __slots__ = ("address", "arity", "engine", "indexes", "line", "types", "words")

    def __init__(self, engine: EmbeddedEngine, types: tuple[str, ...]) -> None:
        self.engine = engine
        self.types = types
        self.arity = len(types)
        self.words = engine.codec.row_encoder(types)
        self.indexes: dict[int, int] = {}
        self.line = line = array("q", _BLANK)
        line[layout.ARITY] = self.arity
        line[layout.HASH] = line[layout.NOTHING] = engine.nothing
        self.address = line.buffer_info()[0]
        engine.lines[self.address] = line

    def discard(self) -> None:
        if self.engine.lines.pop(self.address, None) is not None:
            relation_memory.discard_relation(self.address)

    @property
    def end(self) -> int:
        return self.line[layout.END]

    def __len__(self) -> int:
        return self.line[layout.LIVE]

    def index(self, columns: Iterable[int]) -> int:
        """The number of the index on a set of columns, made when it is first wanted."""
        bits = sum(1 << column for column in columns if column < layout.INDEXED_COLUMNS)
        found = self.indexes.get(bits)
        if found is None:
            found = self.indexes[bits] = int(relation_memory.add_index(self.address, bits))
        return found

    def clear(self) -> None:
        if self.line[layout.END]:
            relation_memory.clear_relation(self.address)

    # --- as rows of values

    def copied(self) -> array[int]:
        """The words of the live rows, in order."""
        words = array("q", bytes(8 * self.arity * self.line[layout.LIVE]))
        bulk.copy_rows(self.address, 0, self.line[layout.END], words.buffer_info()[0], 0)
        return words

    def _blocks_of_rows(self) -> Iterator[tuple[array[int], int]]:
        """The same in blocks of bounded size, with the number of rows in each."""
        words = array("q", bytes(8 * self.arity * min(BLOCK, self.end)))
        for start in range(0, self.end, BLOCK):
            stop = min(start + BLOCK, self.end)
            yield words, int(bulk.copy_rows(self.address, start, stop, words.buffer_info()[0], 0))

    def copy_from(self, other: EmbeddedRelation) -> None:
        """Add the rows of a relation whose words mean the same."""
        for words, count in other._blocks_of_rows():
            self._insert_packed(words, count)

    def beyond(self, other: EmbeddedRelation) -> list[Row]:
        """The rows that are not in a relation whose words mean the same."""
        found: list[Row] = []
        flags = array("q", bytes(8 * min(BLOCK, self.end)))
        for words, count in self._blocks_of_rows():
            addresses = words.buffer_info()[0], count, flags.buffer_info()[0]
            bulk.find_rows(other.address, *addresses)
            if sum(flags[:count]) < count:
                rows = self.decoded(words[: count * self.arity], count)
                found += [row for row, is_there in zip(rows, flags, strict=False) if not is_there]
        return found

    def sample(self, count: int) -> list[Row]:
        """Rows at random, the same ones each time, as many as wanted but for dead ones."""
        words = array("q", bytes(8 * self.arity * count))
        first, width = words.buffer_info()[0], 8 * self.arity
        taken = 0
        for row in random.Random(0).sample(range(self.end), count):
            taken += int(bulk.copy_rows(self.address, row, row + 1, first + taken * width, 0))
        del words[taken * self.arity :]
        return self.decoded(words, taken)

    def kept(self, count: int, words: array[int], decoder: Decoder) -> LazyRows:
        """Return rows that have been copied, lazy: `decoder` is the one of that time."""
        if self.arity == 0:
            return LazyRows(count, lambda: [()] * count)
        return CopiedWords(count, words, self.types, decoder)

    def encoded(self, rows: Iterable[Row]) -> array[int]:
        if isinstance(rows, LazyTable):
            return words_of(rows.table, self.types, self.engine.codec)
        return words_to_array(self.words(rows))

    def decoded(self, words: array[int], count: int) -> list[Row]:
        if self.arity == 0:
            return [()] * count
        return self.engine.codec.decoder.decoded(words, self.types)

    def __iter__(self) -> Iterator[Row]:
        if not self.line[layout.LIVE]:
            return iter(())
        return iter(self.decoded(self.copied(), self.line[layout.LIVE]))

    def stamped(self) -> Iterator[tuple[int, Row]]:
        """Rows with the rank of their first derivation."""
        count = self.line[layout.LIVE]
        words = array("q", bytes(8 * self.arity * count))
        stamps = array("q", bytes(8 * count))
        addresses = words.buffer_info()[0], stamps.buffer_info()[0]
        bulk.copy_rows(self.address, 0, self.line[layout.END], *addresses)
        return zip(stamps, self.decoded(words, count), strict=True)

    def __contains__(self, row: object) -> bool:
        assert isinstance(row, tuple)
        words = self.encoded((row,))
        return bool(bulk.is_there(self.address, words.buffer_info()[0]))

    def present(self, rows: Collection[Row]) -> list[bool]:
        if not self.line[layout.LIVE]:
            return [False] * len(rows)
        words = self.encoded(rows)
        if len(rows) == 1:
            return [bool(bulk.is_there(self.address, words.buffer_info()[0]))]
        out = array("q", bytes(8 * len(rows)))
        bulk.find_rows(self.address, words.buffer_info()[0], len(rows), out.buffer_info()[0])
        return [word == 1 for word in out]

    def rank(self, row: Row) -> int:
        words = self.encoded((row,))
        return int(bulk.rank_of_row(self.address, words.buffer_info()[0]))

    def ranks(self, rows: Collection[Row]) -> list[int]:
        words = self.encoded(rows)
        first, width = words.buffer_info()[0], 8 * self.arity
        return [int(bulk.rank_of_row(self.address, first + n * width)) for n in range(len(rows))]

    def load(self, ranked: Collection[Row]) -> int:
        """Append rows that begin with their rank; the clock goes along."""
        words = words_to_array(self.engine.codec.row_encoder(("int", *self.types))(ranked))
        machine, address = self.engine.machine_address, words.buffer_info()[0]
        return int(bulk.load_rows(machine, self.address, address, len(ranked)))

    def add(self, row: Row) -> bool:
        return self.insert((row,)) == 1

    def insert(self, rows: Iterable[Row]) -> int:
        rows = rows if isinstance(rows, frozenset | LazyRows) else list(rows)
        return self._insert_packed(self.encoded(rows), len(rows))

    def insert_words(self, words: array[int]) -> int:
        """Rows of columns whose values are their own words, one after the other."""
        return self._insert_packed(words, len(words) // self.arity)

    def _insert_packed(self, words: array[int], count: int) -> int:
        machine, first = self.engine.machine_address, words.buffer_info()[0]
        return int(bulk.insert_rows(machine, self.address, first, count))

    def remove(self, rows: Iterable[Row]) -> int:
        rows = rows if isinstance(rows, LazyRows) else list(rows)
        words = self.encoded(rows)
        return int(bulk.delete_rows(self.address, words.buffer_info()[0], len(rows)))

    def matching(self, columns: tuple[int, ...], key: Row, start: int, end: int) -> list[Row]:
        if len(columns) == self.arity and start == 0 and end >= self.end:
            return [key] if key in self else []
        encoders = self.engine.codec
        keys = array("q")
        for column, value in zip(columns, key, strict=True):
            keys.append(column)
            keys.append(encoders.word(value, self.types[column]))
        number = self.index(columns) if columns else -1
        room = 64
        while True:
            out = array("q", bytes(8 * max(self.arity, 1) * room))
            found = int(
                bulk.matching_rows(
                    self.address,
                    number,
                    keys.buffer_info()[0],
                    len(columns),
                    start,
                    end,
                    out.buffer_info()[0],
                    room,
                )
            )
            if found >= 0:
                del out[found * self.arity :]
                return self.decoded(out, found)[::-1]
            room = max(8 * room, 0)
