"""How far behind the log a table may be."""

from __future__ import annotations

from typing import Literal

from deltalog.diagnostics.arguments import check_argument

Freshness = float | Literal["commit", "demand"]
"""No commit, a number of seconds, or until somebody asks."""
MINUTE: Freshness = 60.0


def check_freshness(freshness: object) -> None:
    is_number = isinstance(freshness, int | float) and not isinstance(freshness, bool)
    hint = 'give a number of seconds, "commit" or "demand"'
    is_fit = (is_number and freshness >= 0) or freshness in ("commit", "demand")  # type: ignore[operator]
    check_argument(is_fit, "freshness", freshness, hint)
