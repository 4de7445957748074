"""How long to wait before the next attempt: twice as long each time, up to a limit, and uneven."""

from __future__ import annotations

import random

SECONDS_FIRST = 0.05
SECONDS_MAX = 10.0


class Backoff:
    """Random, so that the clients of a server that was restarted do not return all at once."""

    def __init__(self, seconds_first: float = SECONDS_FIRST, seconds_max: float = SECONDS_MAX):
        self._first = seconds_first
        self._max = seconds_max
        self._failures = 0

    def succeeded(self) -> None:
        self._failures = 0

    def seconds(self, wanted: float | None = None) -> float:
        """The time to wait after a failure; `wanted` is what the server asked for, at least."""
        longest = min(self._first * 2 ** min(self._failures, 30), self._max)
        self._failures += 1
        return max(random.uniform(longest / 2, longest), wanted or 0.0)
