"""A base relation whose rows are at sources, where they are probed and never copied.

    relation  =  snapshots of its sources  -  events that are not processed yet  +  own changes

The difference between the snapshots and the relation is a small dictionary on this side: whether a
row holds. It begins as the logical rollback of unprocessed events, so that rules read the state
that was last propagated while a source is already further on. A row is counted: it may be at a
source several times, or at several sources, and holds while one of them has it.

Positions: all rows stand at position 0, since a base relation does not grow while rules run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from deltalog.engines.external.source import Columns, Source
from deltalog.engines.relation import Key, Relation, Ticking
from deltalog.language.ast import Row

OLDEST = -1
"""The rank of every row: they were there before anything that is derived from them."""


class ExternalRelation(Relation):
    """Walkable (see `engines/interpreter.py`) while its sources have a snapshot."""

    def __init__(self, clock: Ticking, sources: Sequence[Source], arity: int) -> None:
        super().__init__(clock)
        self.sources = tuple(sources)
        self.probes = 0
        self._all: Columns = tuple(range(arity))
        self._holds: dict[Row, bool] = {}
        self._found: dict[tuple[Columns, Row], list[Row]] = {}
        self._size: int | None = None

    # --- snapshots

    def roll_back(self) -> None:
        """Take a new snapshot as the state before the events that it contains."""
        self._found.clear()
        self._holds = {row: self._was_there(row, net) for row, net in self._net_events().items()}

    def _net_events(self) -> Counter[Row]:
        net: Counter[Row] = Counter()
        for source in self.sources:
            for is_inserted, row in source.events():
                net[row] += 1 if is_inserted else -1
        return net

    def _was_there(self, row: Row, net: int) -> bool:
        return self._count_in_sources(row) - net > 0

    def _count_in_sources(self, row: Row) -> int:
        """How often the sources have a row."""
        return len(self._probe_sources(self._all, row))

    def announced(self) -> tuple[set[Row], set[Row]]:
        """The rows that unprocessed events inserted and deleted, net."""
        is_there = {row: self._count_in_sources(row) > 0 for row in self._holds}
        inserted = {row for row, now in is_there.items() if now and not self._holds[row]}
        deleted = {row for row, now in is_there.items() if self._holds[row] and not now}
        return inserted, deleted

    def acknowledge(self) -> None:
        """The events are processed: the relation is what its sources hold."""
        for source in self.sources:
            source.acknowledge()
        self._holds = {}

    # --- rows

    def _probe_sources(self, columns: Columns, key: Row) -> list[Row]:
        """The rows of the snapshots with a key, with repetitions; asked for once per snapshot."""
        found = self._found.get((columns, key))
        if found is None:
            self.probes += 1
            found = [row for source in self.sources for row in source.find(columns, key)]
            self._found[columns, key] = found
        return found

    def matching(self, columns: Columns, key: Key, start: int, end: int) -> Iterable[Row]:
        if start > 0 or end < 1:
            return ()
        if not columns:
            return list(self)
        rows = dict.fromkeys(
            row for row in self._probe_sources(columns, key) if row not in self._holds
        )
        own = (row for row, holds in self._holds.items() if holds)
        return [*rows, *(row for row in own if tuple(row[c] for c in columns) == key)]

    def between(self, start: int, end: int) -> Iterable[Row]:
        return self.matching((), (), start, end)

    def __contains__(self, row: object) -> bool:
        assert isinstance(row, tuple)
        holds = self._holds.get(row)
        return self._count_in_sources(row) > 0 if holds is None else holds

    def __iter__(self) -> Iterator[Row]:
        seen = dict.fromkeys(row for source in self.sources for row in source.scan())
        yield from (row for row in seen if row not in self._holds)
        yield from (row for row, holds in self._holds.items() if holds)

    def __len__(self) -> int:
        """About: counted once, since counting reads everything."""
        if self._size is None:
            self._size = sum(source.count() for source in self.sources)
        return self._size

    @property
    def end(self) -> int:
        return 1

    def rank(self, row: Row) -> int:
        return OLDEST

    def add(self, row: Row) -> bool:
        return self._set_whether_holds(row, True)

    def remove(self, row: Row) -> bool:
        return self._set_whether_holds(row, False)

    def _set_whether_holds(self, row: Row, holds: bool) -> bool:
        if (row in self) == holds:
            return False
        self._holds[row] = holds
        return True

    def compact(self) -> None:
        """There are no gaps."""

    def clear(self) -> None:
        raise AssertionError("a relation at a source is not emptied from here")
