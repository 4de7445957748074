"""Sums and averages of ints around the ends of their range, continued over random histories."""

from __future__ import annotations

from fractions import Fraction

import pytest
from effort import effort
from hypothesis import given
from hypothesis import strategies as st

import deltalog
from deltalog.language.values import INT_MAX, INT_MIN
from deltalog.runtime.engine_choice import ENGINES

PROGRAM = """
    base paid(who: int key, amount: int).
    total(sum(A), count()) :- paid(_, A).
    mean(avg(A)) :- paid(_, A).
"""
EDGES = (INT_MIN, -(2**62), -(2**32) - 1, -(2**32), -1, 0, 1, 2**32 - 1, 2**32, 2**62, INT_MAX)
amounts = st.sampled_from(EDGES) | st.integers(INT_MIN, INT_MAX)
transactions = st.dictionaries(st.integers(1, 6), amounts | st.none(), min_size=1, max_size=4)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@effort(quick=60, fuzz=3_000)
@given(st.lists(transactions, max_size=8))
def test_sums_and_averages_are_the_true_ones(
    engine: str, history: list[dict[int, int | None]]
) -> None:
    """Each transaction sets what some are paid; with None it is nothing any more."""
    db = deltalog.connect(program=PROGRAM, engine=engine)
    paid: dict[int, int] = {}
    for changes in history:
        gone = [(who, paid.pop(who)) for who in changes if who in paid]
        come = {who: amount for who, amount in changes.items() if amount is not None}
        paid |= come
        db.apply(delete={"paid": gone}, insert={"paid": list(come.items())})
        true_sum, count = sum(paid.values()), len(paid)
        fits = count > 0 and INT_MIN <= true_sum <= INT_MAX
        assert db.facts("total") == ({(true_sum, count)} if fits else set())
        assert db.facts("mean") == ({(float(Fraction(true_sum, count)),)} if paid else set())
    assert db.audit() == ()
