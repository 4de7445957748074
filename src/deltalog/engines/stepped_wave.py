"""The wave of an engine that leaves every station to its caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from deltalog.engines.base import Changed, RunResult, Sides, Station

if TYPE_CHECKING:
    from deltalog.engines.base import Engine


class SteppedWave:
    """Knows which station is due next, and brings those that ran to their end."""

    def __init__(self, engine: Engine, stations: int) -> None:
        self._engine = engine
        self._due = bytearray(stations)
        self._stations: dict[int, Station] = {}
        self._flows: dict[int, tuple[int, ...]] = {}
        self._ran: list[int] = []
        self._is_over = False
        self._bound: Sides = {}, {}

    def place(self, number: int, station: Station) -> None:
        self._stations[number] = station

    def run(
        self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int
    ) -> RunResult:
        due = self._due.find(1)
        if due >= 0:
            self._due[due] = 0
        return RunResult(due < 0, False, 0, rounds, asked=due)

    def flows(self, number: int) -> tuple[int, ...]:
        return self._flows[number]

    def bind(self, number: int, inserted: Changed, deleted: Changed) -> None:
        self.enter(number)
        ((name, *sides),) = self._stations[number].shown
        for side, rows, bound in zip(sides, (inserted, deleted), self._bound, strict=True):
            if rows:
                self._engine.insert(side, rows)
                bound[name] = rows
        self.leave(number)

    def enter(self, number: int) -> None:
        if self._is_over:
            self._is_over = False
            self._ran.clear()
            self._bound = {}, {}
        station = self._stations[number]
        self._flows[number] = tuple(self._engine.size(name) for name in station.flows)
        self._ran.append(number)

    def leave(self, number: int) -> None:
        station = self._stations[number]
        for name, reader in station.made:
            if self._engine.size(name):
                self._due[reader] = 1
        self._engine.clear_all(station.forgotten)

    def ran(self) -> tuple[int, ...]:
        return tuple(self._ran)

    def changes(self) -> Sides:
        found = inserted, deleted = self._bound
        for number in self._ran:
            for name, *sides in self._stations[number].shown:
                if name not in inserted and name not in deleted:
                    for side, known in zip(sides, found, strict=True):
                        if rows := self._engine.copied(side):
                            known[name] = rows
        return found

    def lazy_changes(self) -> Callable[[], Sides] | None:
        found = inserted, deleted = self.changes()
        return (lambda: found) if inserted or deleted else None

    def end(self, is_applied: bool) -> None:
        if self._is_over:  # nothing has begun since
            return
        self._is_over = True
        for number in self._ran:
            station = self._stations[number]
            if is_applied:
                self._engine.clear_all(station.replaced)
                if station.moves:
                    self._engine.move(station.moves)
            self._engine.clear_all(station.outlasting)
        self._due = bytearray(len(self._due))
