"""The sequence of an engine that has none of its own: one round after the other.

It applies the soft consequence operator (Behrend & Manthey 2004, Def. 2): always fire the lowest
part that still yields something new. On a stratification that is the iterated fixpoint.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from deltalog.engines.base import Part, RunResult

if TYPE_CHECKING:
    from deltalog.engines.base import Engine


class SteppedSequence:
    """Parts run by `Engine.run_round`; if it `is_naive`, each round reads everything again."""

    def __init__(
        self, engine: Engine, parts: Iterable[Part], is_soft: bool, is_naive: bool = False
    ) -> None:
        self._engine = engine
        self._parts = tuple(parts)
        self._is_soft = is_soft
        self._is_naive = is_naive
        self._number = 0

    def run(
        self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int
    ) -> RunResult:
        """Run until a round derived something, or until none does."""
        ran = 0
        while self._number < len(self._parts):
            part = self._parts[self._number]
            if self._is_naive:
                part.rewind()
            new = self._engine.run_round(part)
            ran += 1
            if new:
                self._number = 0 if self._is_soft else self._number
                rounds, made = rounds + 1, sum(new.values())
                is_over = rounds >= rounds_max or facts + made > facts_max
                is_stopped = is_over or time.monotonic_ns() > until
                return RunResult(False, is_stopped, ran, rounds, made, new.copy, tuple(new))
            self._number += 1
        self._number = 0
        return RunResult(True, False, ran, rounds)

    def rewind(self) -> None:
        self._number = 0
        for part in self._parts:
            part.rewind()
