"""Limits: what would not end is stopped, the limit is named, and nothing has changed."""

from __future__ import annotations

from typing import Any

import pytest

import deltalog
from deltalog import Database, LimitError, Limits
from deltalog.runtime.limits import bounds_of, memory_bytes

COUNTING = """
    base start(x: int).
    base link(x: int, y: int).
    n(X) :- start(X).
    n(X + 1) :- n(X), X >= 0.
    twice(X, count()) :- n(X), link(X, Y), not start(Y).
    start(-5). link(-5, 1). link(-5, 2).
"""
LIMITS = {
    "E0801": Limits(rounds_max=20),
    "E0802": Limits(facts_max=20),
    "E0803": Limits(seconds_max=0.02),
}


def contents(db: Database) -> dict[str, set[tuple[Any, ...]]]:
    return {name: db.facts(name) for name in db.relations}


def stopped(action: Any, *arguments: Any, **options: Any) -> LimitError:
    with pytest.raises(LimitError) as caught:
        action(*arguments, **options)
    return caught.value


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (
            Limits(rounds_max=10),
            "error[E0801]: stopped after 10 rounds without reaching a fixpoint\n"
            "  = note: the limit is `rounds_max`; nothing has changed\n"
            "  = hint: still growing: `n`; if no rule computes new values without end, "
            "`Limits(rounds_max=…)` or `--rounds-max` raises the limit",
        ),
        (
            Limits(facts_max=10),
            "error[E0802]: stopped after generating more than 10 facts\n"
            "  = note: the limit is `facts_max`; nothing has changed\n"
            "  = hint: still growing: `n`; if no rule computes new values without end, "
            "`Limits(facts_max=…)` or `--facts-max` raises the limit",
        ),
        (
            Limits(seconds_max=0.0),
            "error[E0803]: stopped after 0.0 seconds\n"
            "  = note: the limit is `seconds_max`; nothing has changed\n"
            "  = hint: still growing: `n`; if no rule computes new values without end, "
            "`Limits(seconds_max=…)` or `--seconds-max` raises the limit",
        ),
    ],
    ids=["rounds", "facts", "seconds"],
)
def test_each_limit_says_what_it_is_and_what_was_growing(limits: Limits, text: str) -> None:
    program = "n(0). n(X + 1) :- n(X)."
    assert str(stopped(deltalog.connect, program=program, limits=limits)) == text


@pytest.mark.parametrize("materialize", [True, False], ids=["materialized", "virtual"])
@pytest.mark.parametrize("code", LIMITS)
def test_a_transaction_that_reaches_a_limit_changes_nothing(code: str, materialize: bool) -> None:
    db = deltalog.connect(program=COUNTING, materialize=materialize)
    before = contents(db)
    db.limits = LIMITS[code]
    error = stopped(db.apply, insert={"start": [(0,)]}, delete={"link": [(-5, 1)]})
    assert error.codes == (code,)
    db.limits = Limits()
    assert contents(db) == before


@pytest.mark.parametrize("code", LIMITS)
def test_the_database_is_usable_after_a_limit(code: str) -> None:
    db = deltalog.connect(program=COUNTING)
    db.limits = LIMITS[code]
    stopped(db.apply, insert={"start": [(0,)]})
    db.limits = Limits()
    change = db.apply(insert={"start": [(-7,)]}, delete={"link": [(-5, 1)]})
    assert db.facts("n") == {(-5,), (-7,)}
    assert change.inserted["n"] == {(-7,)}
    assert change.inserted["twice"] == {(-5, 1)}
    assert change.deleted["twice"] == {(-5, 2)}


def test_a_transaction_object_is_over_after_a_limit() -> None:
    db = deltalog.connect(program=COUNTING, limits=LIMITS["E0802"])
    tx = db.transaction()
    tx.insert("start", [(0,)])
    stopped(tx.commit)
    with pytest.raises(deltalog.DataError) as caught:
        tx.commit()
    assert caught.value.codes == ("E0712",)
    assert not tx.delta


@pytest.mark.parametrize("code", LIMITS)
def test_a_query_that_reaches_a_limit_leaves_nothing_behind(code: str) -> None:
    program = "base start(x: int). virtual view n. n(X) :- start(X). n(X + 1) :- n(X). start(1)."
    db = deltalog.connect(program=program)
    db.limits = LIMITS[code]
    relations = set(db.engine.relations)  # type: ignore[attr-defined]
    assert stopped(db.query, "n(X)").codes == (code,)
    assert set(db.engine.relations) == relations  # type: ignore[attr-defined]
    db.limits = Limits()
    assert db.query("start(X)") == [(1,)]


def test_a_limit_that_is_not_reached_does_not_matter() -> None:
    chain = "".join(f"edge({n}, {n + 1}). " for n in range(10))
    program = f"path(X, Y) :- edge(X, Y). path(X, Y) :- path(X, Z), edge(Z, Y). {chain}"
    db = deltalog.connect(program=program, limits=Limits(rounds_max=11, facts_max=55))
    assert len(db.facts("path")) == 55
    assert db.statistics.generated == {"path": 55}
    assert stopped(deltalog.connect, program=program, limits=Limits(facts_max=54)).codes == (
        "E0802",
    )
    assert stopped(deltalog.connect, program=program, limits=Limits(rounds_max=10)).codes == (
        "E0801",
    )


def test_a_chain_may_be_long() -> None:
    """Three times as many rounds as the limit once was."""
    length = 300_000
    program = "base edge(x: int, y: int). reach(0). reach(Y) :- reach(X), edge(X, Y)."
    edges = [(n, n + 1) for n in range(length)]
    db = deltalog.connect(program=program, facts={"edge": edges})
    assert db.engine.size("reach") == length + 1


def test_facts_may_fill_half_of_the_memory() -> None:
    assert bounds_of(Limits(), 64)[1] == memory_bytes() // 2 // 64
    assert bounds_of(Limits(), 64)[1] // 8 == bounds_of(Limits(), 512)[1]
    assert bounds_of(Limits(facts_max=5), 64)[1] == 5


def test_ints_that_leave_their_range_end_a_recursion_by_themselves() -> None:
    db = deltalog.connect(program="n(1). n(X * 2) :- n(X).")
    assert max(db.facts("n")) == (2**62,)
    assert len(db.facts("n")) == 63
