"""Cursors: what keeps caches between client and server from serving one empty answer for ever.

A cursor is the number of a time interval. A client sends the last one back, so that its requests
have other addresses as time goes on; whoever is ahead of the clock gets one further ahead (Durable
Streams protocol, section 8.1).
"""

from __future__ import annotations

import random
from datetime import UTC, datetime

EPOCH = datetime(2024, 10, 9, tzinfo=UTC)
INTERVAL_SECONDS = 20
JITTER_SECONDS_MAX = 3_600
_DIGITS_MAX = 15


def next_cursor(sent: str | None) -> str:
    """The cursor for an answer to a client that has sent one, or none."""
    now = int((datetime.now(UTC) - EPOCH).total_seconds() // INTERVAL_SECONDS)
    if sent is None or not sent.isascii() or not sent.isdigit() or len(sent) > _DIGITS_MAX:
        return str(now)
    if int(sent) < now:
        return str(now)
    jitter = random.randint(1, JITTER_SECONDS_MAX) // INTERVAL_SECONDS
    return str(int(sent) + max(jitter, 1))
