"""A relation in 64-bit words: rows in the order they came, a hash over rows, chained indexes.

The arrays are numpy's; their addresses stand in the engine's table, where kernels find them. Rows
that die stay in place until the relation is compacted, so positions (and with them ranks) keep
their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from deltalog.engines.embedded import kernel
from deltalog.language.ast import Row

if TYPE_CHECKING:
    from deltalog.engines.embedded.engine import EmbeddedEngine

CAPACITY_MIN = 16


class EmbeddedRelation:
    """Walkable (see `engines/interpreter.py`), and known to the kernels by its number."""

    def __init__(self, engine: EmbeddedEngine, number: int, types: tuple[str, ...]) -> None:
        self.engine = engine
        self.number = number
        self.types = types
        self.arity = len(types)
        self.index_of: dict[int, int] = {}
        self.heads: list[np.ndarray] = []
        self.nexts: list[np.ndarray] = []
        self.line = engine.table[number]
        self.line[:] = 0
        self.line[kernel.ARITY] = self.arity
        self._allocate(CAPACITY_MIN)

    def _allocate(self, capacity: int) -> None:
        self.rows = np.empty((capacity, max(self.arity, 1)), np.int64)
        self.stamps = np.empty(capacity, np.int64)
        self._allocate_links(capacity)

    def _allocate_links(self, capacity: int) -> None:
        slots = 4
        while slots < 2 * capacity:
            slots *= 2
        self.hash = np.zeros(slots, np.int32)
        self.heads = [np.zeros(slots // 2, np.int32) for _ in self.index_of]
        self.nexts = [np.empty(capacity, np.int32) for _ in self.index_of]
        self.publish()

    def publish(self) -> None:
        """Write the addresses of the arrays into the table."""
        line = self.line = self.engine.table[self.number]
        line[kernel.ROWS] = self.rows.ctypes.data
        line[kernel.CAPACITY] = len(self.stamps)
        line[kernel.HASH] = self.hash.ctypes.data
        line[kernel.MASK] = len(self.hash) - 1
        line[kernel.STAMPS] = self.stamps.ctypes.data
        line[kernel.INDEXES] = len(self.index_of)
        for columns, number in self.index_of.items():
            base = kernel.INDEX0 + number * kernel.INDEX_WIDTH
            line[base + kernel.COLUMNS] = columns
            line[base + kernel.HEADS] = self.heads[number].ctypes.data
            line[base + kernel.HEADS_MASK] = len(self.heads[number]) - 1
            line[base + kernel.NEXT] = self.nexts[number].ctypes.data

    @property
    def end(self) -> int:
        return int(self.engine.table[self.number, kernel.END])

    def __len__(self) -> int:
        return int(self.engine.table[self.number, kernel.LIVE])

    def index(self, columns: int) -> int:
        """The number of the index on a set of columns, made when it is first wanted."""
        found = self.index_of.get(columns)
        if found is None:
            found = self.index_of[columns] = len(self.index_of)
            assert found < kernel.INDEXES_MAX, "too many indexes on one relation"
            self.heads.append(np.zeros(len(self.hash) // 2, np.int32))
            self.nexts.append(np.empty(len(self.stamps), np.int32))
            self.publish()
            kernel.build_index(self.engine.table, self.number, found)
        return found

    def reserve(self, more: int) -> None:
        """Make room for so many rows; dead ones go first if there are many."""
        if self.end + more <= len(self.stamps):
            return
        keep = self._live()
        capacity = len(self.stamps)
        while capacity < 2 * len(keep) + more:
            capacity *= 2
        rows, stamps = self.rows[keep], self.stamps[keep]
        self._allocate(capacity)
        self.rows[: len(keep)] = rows
        self.stamps[: len(keep)] = stamps
        self._settle(len(keep))

    def grow(self) -> None:
        """Double in place, in the middle of a round: positions must not change."""
        end, capacity = self.end, 2 * len(self.stamps)
        rows, stamps = self.rows, self.stamps
        self._allocate(capacity)
        self.rows[:end] = rows[:end]
        self.stamps[:end] = stamps[:end]
        self._settle(end)

    def _settle(self, end: int) -> None:
        self.line[kernel.END] = end
        self.line[kernel.DIRTY] = 0
        kernel.relink(self.engine.table, self.number)

    def compact(self) -> None:
        """Give dead rows back, when there are more of them than live ones."""
        if self.end > 2 * len(self) + 1024:
            keep = self._live()
            rows, stamps = self.rows[keep], self.stamps[keep]
            self._allocate(max(CAPACITY_MIN, 2 * len(keep)))
            self.rows[: len(keep)] = rows
            self.stamps[: len(keep)] = stamps
            self._settle(len(keep))

    def _live(self) -> np.ndarray:
        out = np.empty(self.end, np.int64)
        return out[: kernel.live_rows(self.engine.table, self.number, out)]

    def clear(self) -> None:
        line = self.line
        if line[kernel.END] == 0:
            return
        if line[kernel.DIRTY] or 4 * line[kernel.END] > len(self.hash):
            self.hash[:] = 0
            for heads in self.heads:
                heads[:] = 0
            line[kernel.END] = line[kernel.LIVE] = line[kernel.DIRTY] = 0
        else:
            kernel.unlink_all(self.engine.table, self.number)

    # --- as rows of values

    def words(self, rows: Iterable[Row]) -> np.ndarray:
        encoded = [self.engine.codec.row(row, self.types) for row in rows]
        if self.arity == 0:
            return np.zeros((len(encoded), 1), np.int64)
        return np.array(encoded, np.int64).reshape(len(encoded), self.arity)

    def decoded(self, positions: np.ndarray) -> list[Row]:
        if self.arity == 0:
            return [()] * len(positions)
        return self.engine.codec.decoded(self.rows[positions].tolist(), self.types)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.decoded(self._live()))

    def find(self, row: Row) -> int:
        return int(kernel.find(self.engine.table, self.number, self.words([row])[0]))

    def __contains__(self, row: object) -> bool:
        assert isinstance(row, tuple)
        return self.find(row) >= 0

    def rank(self, row: Row) -> int:
        return int(self.stamps[self.find(row)])

    def add(self, row: Row) -> bool:
        return self.insert([row]) == 1

    def insert(self, rows: Iterable[Row]) -> int:
        words = self.words(rows)
        self.reserve(len(words))
        added = np.zeros(len(words), np.int8)
        return int(
            kernel.insert_all(self.engine.table, self.number, words, self.engine.clock, added)
        )

    def remove(self, rows: Iterable[Row]) -> int:
        count = int(kernel.remove_all(self.engine.table, self.number, self.words(rows)))
        self.compact()
        return count

    def matching(self, columns: tuple[int, ...], key: Row, start: int, end: int) -> Iterable[Row]:
        if not columns:
            positions = self._live()
            return self.decoded(positions[(positions >= start) & (positions < end)])
        types = tuple(self.types[column] for column in columns)
        words = np.array(self.engine.codec.row(key, types), np.int64)
        number = self.index(sum(1 << column for column in columns))
        at = np.array(columns, np.int64)
        size = 64
        while True:
            out = np.empty(size, np.int64)
            count = int(
                kernel.matching_rows(
                    self.engine.table, self.number, number, at, words, start, end, out
                )
            )
            if count >= 0:
                return self.decoded(np.sort(out[:count]))
            size *= 8
