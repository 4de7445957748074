"""Eighty integrity views over one model, as the 1996 paper has them: watched, and worked off."""

from __future__ import annotations

import pytest

import deltalog
from deltalog.runtime.engine_choice import ENGINES

NUMBER = 80
BASE = "base shift(name: str key, start: int, end: int). base works(name: str, shift: str).\n"
MODEL = BASE + "".join(
    f"base part{n}(x: int key, y: int).\ndeny view small{n}(X) :- part{n}(X, Y), Y < {n}.\n"
    for n in range(NUMBER - 3)
)
SHIFTS = """
deny view empty(N) :- shift(N, F, T), F >= T say "{N} is empty".
deny view long(N) :- shift(N, F, T), T - F > 9 say "{N} is long".
deny view idle(N) :- shift(N, _, _), not works(_, N).
"""
FACTS = {
    "shift": [("early", 6, 6), ("late", 14, 22), ("night", 10, 22)],
    "works": [("ann", "early"), ("bob", "late"), ("eve", "night")],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_commit_costs_what_the_views_cost_that_it_touches(engine: str) -> None:
    db = deltalog.connect(program=MODEL + SHIFTS, facts=FACTS, engine=engine)
    alone = deltalog.connect(
        program="base part3(x: int key, y: int). deny view small3(X) :- part3(X, Y), Y < 3.",
        engine=engine,
    )
    for change in ([(1, 2), (2, 9)], [(1, 5)], [(2, 0), (3, 1)]):
        for each in (db, alone):
            each.apply(set={"part3": change})
        assert dict(db.statistics.generated) == dict(alone.statistics.generated)
        assert db.statistics.rounds == alone.statistics.rounds
    assert {v.constraint for v in db.violations()} == {"empty", "long", "small3"}


def test_correcting_a_violation_shows_what_it_mends_and_breaks() -> None:
    db = deltalog.connect(program=MODEL + SHIFTS, facts=FACTS, engine="reference")
    assert [v.message for v in db.violations()] == ["early is empty", "night is long"]
    tried = db.what_if(set={"shift": [("early", 6, 16)]})
    assert list(tried.only("empty", "long", "idle")) == [
        ("-", "empty", ("early",)),
        ("+", "long", ("early",)),
    ]
    made = db.apply(set={"shift": [("early", 6, 14)]}, delete={"works": [("eve", "night")]})
    assert list(made.only("empty", "long", "idle")) == [
        ("-", "empty", ("early",)),
        ("+", "idle", ("night",)),
    ]
    assert [v.constraint for v in db.violations()] == ["long", "idle"]


def test_an_enforced_constraint_that_is_violated_is_refused_with_its_violations() -> None:
    db = deltalog.connect(program=MODEL + SHIFTS, facts=FACTS, engine="reference")
    strict = (MODEL + SHIFTS).replace("deny view long", "deny long")
    with pytest.raises(deltalog.ConstraintError) as caught:
        db.change_program(strict)
    assert [(v.constraint, v.fact) for v in caught.value.violations] == [("long", ("night",))]
    assert "night is long" in str(caught.value)
    assert db.version == 0
    db.apply(set={"shift": [("night", 14, 22)]})
    db.change_program(strict)
    with pytest.raises(deltalog.ConstraintError):
        db.apply(set={"shift": [("night", 1, 22)]})
    with pytest.raises(deltalog.ConstraintError):
        deltalog.connect(program=strict, facts=FACTS, engine="reference")
