"""Limits: every loop has one, and reaching it rolls back and names it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Integral, Real
from pathlib import Path

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.catalogue import Entry
from deltalog.diagnostics.report import LimitError

FOREVER = 2**62
"""More than any count, and than any clock in nanoseconds; the sum of two of them is a word."""
MEMORY_SHARE = 2
"""Facts may fill this part of the memory: a half; indexes and the rest of the machine have the
other."""
MEMORY_UNKNOWN = 8 * 2**30
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Limits:
    """How much one evaluation may do before it is stopped.

    Without `facts_max` it is what fits into half of the memory of this machine, by the engine's
    measure. Rules that count on for ever derive one fact a round: `rounds_max` stops these sooner,
    and is more than chains in data have links. `firings_max` is how often active rules may be
    executed in one transaction, each for all its instances at once.
    """

    rounds_max: int = 10_000_000
    facts_max: int | None = None
    seconds_max: float = 3_600.0
    firings_max: int = 1_000

    @cached_property
    def bounds(self) -> dict[int, tuple[int, int, int]]:
        """Results of `bounds_of` for facts of each size, which every transaction needs."""
        return {}

    def __post_init__(self) -> None:
        for name, kind, what in (
            ("rounds_max", Integral, "a whole number"),
            ("facts_max", Integral, "a whole number"),
            ("seconds_max", Real, "a number"),
            ("firings_max", Integral, "a whole number"),
        ):
            value = getattr(self, name)
            if value is None and name == "facts_max":
                continue
            is_number = isinstance(value, kind) and not isinstance(value, bool)
            check_argument(
                is_number and value >= 0, f"Limits.{name}", value, f"it is {what}, 0 or more"
            )


UNLIMITED = Limits(FOREVER, FOREVER, float("inf"))
"""For what must not stop half-way, and is known to end."""


@cache
def memory_bytes() -> int:
    """The memory of this machine, or of the container that this process runs in."""
    found = [MEMORY_UNKNOWN]
    with suppress(OSError, ValueError, AttributeError):  # unknown to this system
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, ValueError):  # no container, or one without a limit
        found.append(int(CGROUP_LIMIT.read_text(encoding="ascii")))
    return min(found)


def bounds_of(limits: Limits, fact_bytes: int) -> tuple[int, int, int]:
    """Rounds, facts and nanoseconds at most, as words, for facts of this size."""
    fitting = memory_bytes() // MEMORY_SHARE // fact_bytes
    facts = fitting if limits.facts_max is None else limits.facts_max
    nanoseconds = int(min(limits.seconds_max, 2e9) * 1e9)
    return min(limits.rounds_max, FOREVER), min(facts, FOREVER), nanoseconds


class Meter:
    """The resources that one evaluation has used so far, checked after every round."""

    __slots__ = ("bounds", "facts", "limits", "rounds", "started")

    def __init__(self, limits: Limits, fact_bytes: int) -> None:
        self.limits = limits
        try:
            self.bounds = limits.bounds[fact_bytes]
        except KeyError:
            self.bounds = limits.bounds[fact_bytes] = bounds_of(limits, fact_bytes)
        self.started = time.monotonic_ns()
        self.rounds = 0
        self.facts = 0

    def check(self, growing: Iterable[str] = ()) -> None:
        """Raise a `LimitError` if a limit is reached."""
        rounds_max, facts_max, _ = self.bounds
        if self.facts > facts_max:
            raise _limit_error(catalogue.FACTS_LIMIT, "facts_max", facts_max, growing)
        if self.rounds >= rounds_max:
            raise _limit_error(catalogue.ROUNDS_LIMIT, "rounds_max", rounds_max, growing)
        self.look(growing)

    @property
    def rest(self) -> tuple[int, int, int, int, int]:
        """Rounds so far and at most, facts so far and at most, when time is up (monotonic_ns)."""
        rounds_max, facts_max, nanoseconds = self.bounds
        return self.rounds, rounds_max, self.facts, facts_max, self.started + nanoseconds

    def look(self, growing: Iterable[str] = ()) -> None:
        """See whether time is up; also asked in the middle of a round."""
        if time.monotonic_ns() - self.started > self.bounds[2]:
            seconds = self.limits.seconds_max
            raise _limit_error(catalogue.SECONDS_LIMIT, "seconds_max", seconds, growing)


def _limit_error(entry: Entry, name: str, limit: float, growing: Iterable[str]) -> LimitError:
    option = f"--{name.replace('_', '-')}"
    hint = f"`Limits({name}=…)` or `{option}` raises the limit"
    written = {"" if name.startswith("answer__") else name.split("__")[0] for name in growing}
    if written == {""}:
        hint = f"the query itself has too many answers; ask for fewer, or {hint}"
    elif written:
        names = ", ".join(f"`{name}`" for name in sorted(written - {""}))
        hint = f"still growing: {names}; if no rule computes new values without end, {hint}"
    return LimitError([entry.at(None, limit=limit, hint=hint)])
