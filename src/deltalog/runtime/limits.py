"""Limits: every loop has one, and reaching it rolls back and names it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import LimitError

FOREVER = 2**62
"""More than any count, and than any clock in nanoseconds; the sum of two of them is a word."""


@dataclass(frozen=True)
class Limits:
    """How much one evaluation may do before it is stopped."""

    rounds_max: int = 100_000
    facts_max: int = 50_000_000
    seconds_max: float = 3_600.0

    @cached_property
    def bounds(self) -> tuple[int, int, int]:
        """Rounds, facts and nanoseconds at most, as words."""
        nanoseconds = int(min(self.seconds_max, 2e9) * 1e9)
        return min(self.rounds_max, FOREVER), min(self.facts_max, FOREVER), nanoseconds


UNLIMITED = Limits(10**12, 10**15, float("inf"))
"""For what must not stop half-way, and is known to end."""


class Meter:
    """What one evaluation has used so far, checked after every round."""

    __slots__ = ("facts", "limits", "rounds", "started")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = time.monotonic_ns()
        self.rounds = 0
        self.facts = 0

    def count(self, new: dict[str, int]) -> None:
        """Count a round; raises a `LimitError` that names the limit and what was still growing."""
        self.rounds += 1
        self.facts += sum(new.values())
        self.check(new)

    def check(self, growing: Iterable[str]) -> None:
        """Raise a `LimitError` if a limit is reached."""
        hint = _growing(growing)
        if self.facts > self.limits.facts_max:
            raise LimitError(
                [catalogue.FACTS_LIMIT.at(None, limit=self.limits.facts_max, hint=hint)]
            )
        if self.rounds >= self.limits.rounds_max:
            raise LimitError(
                [catalogue.ROUNDS_LIMIT.at(None, limit=self.limits.rounds_max, hint=hint)]
            )
        self.look(hint)

    @property
    def rest(self) -> tuple[int, int, int, int, int]:
        """Rounds so far and at most, facts so far and at most, when time is up (monotonic_ns)."""
        rounds_max, facts_max, nanoseconds = self.limits.bounds
        return self.rounds, rounds_max, self.facts, facts_max, self.started + nanoseconds

    def look(self, hint: str | None = None) -> None:
        """See whether time is up; also asked in the middle of a round."""
        if time.monotonic_ns() - self.started > self.limits.bounds[2]:
            raise LimitError(
                [catalogue.SECONDS_LIMIT.at(None, limit=self.limits.seconds_max, hint=hint)]
            )


def _growing(new: Iterable[str]) -> str:
    written = {name.split("__")[0] for name in new}
    names = ", ".join(f"`{name}`" for name in sorted(written))
    return f"still growing: {names}; does a rule compute ever new values?"
