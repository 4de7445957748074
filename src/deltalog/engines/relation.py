"""A relation as plain Python: a list of rows in the order they came, and where each one stands.

A deleted row leaves a gap, so positions do not change and "how far a rule has read" is a number.
Indexes are dictionaries, made when a bound-column set is first looked up. An index has exactly the
rows that are there, however late it was made: it is built from `position`, which has no deleted
row; a row that is added or removed afterwards is added to every index or removed from it; one that
returns is a new row at a new position; and compaction, which moves rows, drops all indexes. A clock
shared by all relations of an engine stamps every row, so that "added before" can be asked across
relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from deltalog.language.ast import Row, Value

Key = tuple[Value, ...]


class Ticking(Protocol):
    """The source of ranks: the next one, and how many were used."""

    now: int

    def __next__(self) -> int: ...


class Clock:
    """Counts the rows that are added."""

    def __init__(self) -> None:
        self.now = 0

    def __next__(self) -> int:
        self.now += 1
        return self.now - 1


class Relation:
    def __init__(self, clock: Ticking) -> None:
        self.clock = clock
        self.log: list[Row | None] = []
        self.stamps: list[int] = []
        self.position: dict[Row, int] = {}
        self.indexes: dict[tuple[int, ...], dict[Key, list[int]]] = {}

    def __len__(self) -> int:
        return len(self.position)

    def __contains__(self, row: object) -> bool:
        return row in self.position

    def __iter__(self) -> Iterator[Row]:
        return iter(self.position)

    @property
    def end(self) -> int:
        """The position the next row will get."""
        return len(self.log)

    def add(self, row: Row) -> bool:
        if row in self.position:
            return False
        self.position[row] = len(self.log)
        for columns, index in self.indexes.items():
            index.setdefault(tuple(row[c] for c in columns), []).append(len(self.log))
        self.log.append(row)
        self.stamps.append(next(self.clock))
        return True

    def rank(self, row: Row) -> int:
        """When the row was added, comparable between relations of one engine."""
        return self.stamps[self.position[row]]

    def load(self, rank: int, row: Row) -> bool:
        """Append a row that has a rank already."""
        self.clock.now = rank
        is_new = self.add(row)
        self.clock.now = rank + 1
        return is_new

    def remove(self, row: Row) -> bool:
        position = self.position.pop(row, None)
        if position is None:
            return False
        self.log[position] = None
        for columns, index in self.indexes.items():
            key = tuple(row[c] for c in columns)
            index[key].remove(position)
            if not index[key]:
                del index[key]
        return True

    def compact(self) -> None:
        """Close the gaps when there are more of them than rows; not while a rule is reading."""
        if len(self.log) > 2 * len(self.position) + 64:
            rows = [(row, self.stamps[at]) for row, at in self.position.items()]
            self.clear()
            self.log, self.stamps = [row for row, _ in rows], [stamp for _, stamp in rows]
            self.position = {row: at for at, (row, _) in enumerate(rows)}

    def clear(self) -> None:
        self.log.clear()
        self.stamps.clear()
        self.position.clear()
        self.indexes.clear()

    def between(self, start: int, end: int) -> Iterable[Row]:
        """Rows at positions from `start` up to `end`, in order."""
        if start == 0 and end == len(self.log):
            return list(self.position)
        return [row for row in self.log[start:end] if row is not None]

    def matching(self, columns: tuple[int, ...], key: Key, start: int, end: int) -> Iterable[Row]:
        """Rows between two positions that have these values in these columns."""
        if not columns:
            return self.between(start, end)
        if columns not in self.indexes:
            self._build_index(columns)
        found = self.indexes[columns].get(key, ())
        rows = (self.log[position] for position in found if start <= position < end)
        return [row for row in rows if row is not None]

    def _build_index(self, columns: tuple[int, ...]) -> None:
        index: dict[Key, list[int]] = {}
        for row, position in self.position.items():
            index.setdefault(tuple(row[c] for c in columns), []).append(position)
        self.indexes[columns] = index
