"""Waits that do not depend on the speed of the machine: for a condition, or for ever.

No test says how long something may take. What must end is given `HANG_SECONDS`, which only tells a
slow machine from one that hangs; work is bounded by counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_SECONDS = 1_800


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Ask again and again, and let others work in between."""
    until = time.monotonic() + HANG_SECONDS
    while not is_so():
        assert time.monotonic() < until, f"not after {HANG_SECONDS} seconds: {what}"
        time.sleep(0.01)
