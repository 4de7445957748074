"""Requests per second of each caller: a bucket that fills steadily and is emptied by requests."""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic

from deltalog.diagnostics import service_catalogue
from deltalog.service.problems import http_problem

CALLERS_MAX = 10_000
"""Callers that are remembered; the one that has been quiet for longest is forgotten first."""


class RateLimit:
    """Allows `per_second` requests in the long run, and as many at once."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, caller: str, now: float | None = None) -> None:
        """Count a request; raises 429 if there were too many."""
        now = monotonic() if now is None else now
        full = max(self._per_second, 1.0)
        left, last = self._buckets.pop(caller, (full, now))
        left = min(full, left + (now - last) * self._per_second)
        is_allowed = left >= 1.0
        self._buckets[caller] = (left - 1.0 if is_allowed else left, now)
        if len(self._buckets) > CALLERS_MAX:
            self._buckets.popitem(last=False)
        if not is_allowed:
            raise http_problem(
                429,
                service_catalogue.TOO_MANY_REQUESTS,
                limit=self._per_second,
                headers={"Retry-After": "1"},
            )
