"""View updates at a cost that does not follow unrelated data."""

from __future__ import annotations

import pytest

import deltalog
from deltalog import Budget

GRAPH = """
    base edge(src: int, dst: int).
    virtual view path.
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""


@pytest.mark.parametrize("request_", ["-path(1, 4)", "+path(4, 6)"])
def test_unrelated_data_costs_nothing(request_: str) -> None:
    """State is asked by Magic Sets: a hundred times the data, and as many facts."""
    counts = []
    for size in (20, 2_000):
        seen: list[int] = []
        unrelated = [(i, i + 1) for i in range(1000, 1000 + size)]
        db = deltalog.connect(
            program=GRAPH,
            facts={"edge": [(1, 2), (2, 4), (1, 3), (3, 4), (5, 6), *unrelated]},
            engine="reference",
            watch=lambda rounds, facts, seen=seen: seen.append(facts),  # type: ignore[misc]
        )
        seen.clear()
        (first, *_) = db.realize(request_, budget=Budget(answers=1, new_values=0))
        assert len(first) <= 2
        counts.append(sum(seen))
    assert counts[0] == counts[1] > 0
