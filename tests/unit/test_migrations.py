"""Changes of rules that went wrong once: ranks that no longer compare, helpers left behind."""

from __future__ import annotations

import pytest

import deltalog
from deltalog.runtime.engine_choice import ENGINES

SPREAD = """base e(a: int, b: int). base start(a: int).
p(X) :- start(X). p(Y) :- p(X), e(X, Y). q(X) :- p(X).
"""
REACH = """base e(a: int, b: int). base f(a: int, b: int). base start(a: int).
reach(X) :- start(X). reach(Y) :- reach(X), e(X, Y). reach(Y) :- reach(X), f(X, Y).
"""
COUNT = """base e(a: int, b: int). base s(a: int).
p(X, Y) :- e(X, Y). n(X, count()) :- p(X, Y).
"""


def test_components_that_grow_together_are_ranked_anew() -> None:
    db = deltalog.connect(program=SPREAD)
    db.apply(insert={"start": [(1,)], "e": [(1, 2), (2, 3)]})
    db.apply(insert={"e": [(3, 2), (1, 3)]})
    db.apply(delete={"e": [(1, 2)]})
    db.change_program(SPREAD + "p(X) :- q(X).\n")
    db.apply(delete={"e": [(1, 3)]})
    assert db.audit() == ()
    assert db.facts("p") == {(1,)}


def test_a_migration_does_not_trust_ranks() -> None:
    old = SPREAD + "base f(a: int, b: int). p(Y) :- p(X), f(X, Y).\n"
    db = deltalog.connect(program=old)
    db.apply(insert={"start": [(1,)], "e": [(1, 2), (2, 3)]})
    db.apply(insert={"e": [(3, 2)], "f": [(1, 3)]})
    db.apply(delete={"e": [(1, 2)]})
    new = old.replace("p(Y) :- p(X), e(X, Y).", "p(X) :- q(X).").replace(
        "p(Y) :- p(X), f(X, Y).", ""
    )
    db.change_program(new)
    assert db.audit() == ()


def test_a_view_that_was_never_ranked() -> None:
    db = deltalog.connect(program=REACH, strategy="magic")
    db.apply(insert={"start": [(1,)], "e": [(1, 2), (2, 3)]})
    db.apply(insert={"e": [(3, 2)], "f": [(1, 3)]})
    db.apply(delete={"e": [(1, 2)]})
    delta = db.change_program(REACH.replace("reach(Y) :- reach(X), f(X, Y).", ""))
    assert delta.deleted["reach"] == {(2,), (3,)}


def test_group_state_follows_a_change_of_rules() -> None:
    for strategy in ("auto", "recompute", "magic"):
        db = deltalog.connect(
            program=COUNT,
            strategy=strategy,
            facts={"e": [(1, 1), (1, 2)], "s": [(1,), (3,)]},
        )
        delta = db.change_program(COUNT + "p(X, Y) :- s(X), s(Y), e(X, X).\n")
        assert delta.inserted["n"] == {(1, 3)}
        db.apply(insert={"e": [(1, 9)]})
        assert db.facts("n") == {(1, 4)}
        assert db.audit() == ()


def test_a_changed_aggregate_starts_from_new_group_state() -> None:
    db = deltalog.connect(program=COUNT, facts={"e": [(1, 1), (1, 2), (2, 1)]})
    db.change_program(COUNT.replace("n(X, count()) :- p(X, Y)", "n(Y, count()) :- p(X, Y)"))
    assert db.facts("n") == {(1, 2), (2, 1)}
    db.apply(insert={"e": [(3, 2)]})
    assert db.facts("n") == {(1, 2), (2, 2)}
    assert db.audit() == ()


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_group_state_of_ints_gives_way_to_that_of_floats(engine: str) -> None:
    ints = "base paid(who: str, whole: int, part: float). mean(avg(A)) :- paid(_, A, _).\n"
    floats = ints.replace("paid(_, A, _)", "paid(_, _, A)")
    facts = {"paid": [("ann", 2**63 - 1, 0.5), ("bob", 2**63 - 1, 1.0)]}
    db = deltalog.connect(program=ints, facts=facts, engine=engine)
    for program, mean in ((floats, 0.75), (ints, 2.0**63), (floats, 0.75)):
        db.change_program(program)
        assert db.facts("mean") == {(mean,)}
        assert db.audit() == ()
    db.apply(delete={"paid": [("ann", 2**63 - 1, 0.5)]})
    assert db.facts("mean") == {(1.0,)}
    assert db.audit() == ()


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_sum_without_a_value_survives_a_change_of_rules(engine: str) -> None:
    program = "base paid(who: str, amount: int). total(sum(A)) :- paid(_, A).\n"
    facts = {"paid": [("ann", 2**63 - 1), ("bob", 1)]}
    db = deltalog.connect(program=program, facts=facts, engine=engine)
    db.change_program(program + "payee(W) :- paid(W, _).\n")
    assert db.facts("total") == set()
    assert db.apply(delete={"paid": [("ann", 2**63 - 1)]}).inserted["total"] == {(1,)}
    assert db.audit() == ()


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("base member(who: str, team: str, since: str?).", "E0703"),
        ("base member(who: int, team: str).", "E0704"),
        ("base member(who: str key, team: str).", "E0705"),
    ],
)
def test_stored_facts_that_do_not_fit_a_program(program: str, code: str) -> None:
    db = deltalog.connect(program="base member(who: str, team: str).", engine="reference")
    db.apply(insert={"member": [("ann", "red"), ("ann", "blue")]})
    with pytest.raises(deltalog.DataError) as caught:
        db.change_program(program)
    assert caught.value.codes == (code,)
    assert "facts of base relations stay when the program changes" in str(caught.value)
    assert len(db.facts("member")) == 2


def test_a_change_of_program_respects_keys() -> None:
    program = "base pay(who: str key, much: int). rich(X) :- pay(X, Y), Y > 1.\n"
    db = deltalog.connect(program=program, facts={"pay": [("ann", 2)]})
    with pytest.raises(deltalog.DataError) as caught:
        db.change_program(program + 'pay("ann", 3).\n')
    assert caught.value.codes == ("E0705",)
    assert db.facts("pay") == {("ann", 2)}
