"""Active rules, where they were wrong once: found by the walks and by the reference interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltalog
from deltalog.runtime.engine_choice import ENGINES

COUNTED = "base a(x: int, y: int). base b(x: int). rule r for X {} when a(X, Y) do insert b(X) {}."


def opened(program: str, **options: object) -> deltalog.MemoryDatabase:
    made = deltalog.connect(program=program, engine="reference", **options)  # type: ignore[call-overload]
    assert isinstance(made, deltalog.MemoryDatabase)
    return made


@pytest.mark.parametrize("engine", ENGINES)
def test_else_of_an_event_runs_for_each_activation_without_the_condition(engine: str) -> None:
    program = """
        base a(x: int). base b(x: int, y: int). base c(x: int, y: int).
        rule r(L) on insert a(X) when X > L do insert b(X, L) else insert c(X, L).
    """
    db = deltalog.connect(program=program, engine=engine)
    for limit in (1, 5):
        db.activate("r", L=limit)
    delta = db.apply(insert={"a": [(3,), (9,)]})
    assert delta.firings == [("r", (1, 3)), ("r", (1, 9)), ("r", (5, 9))]
    assert delta.inserted["b"] == {(3, 1), (9, 1), (9, 5)}
    assert delta.inserted["c"] == {(3, 5)}


def test_else_of_a_nervous_rule_waits_until_the_condition_holds_in_no_way() -> None:
    db = opened(COUNTED.format("nervous", "else delete b(X)"))
    db.apply(insert={"a": [(1, 1), (1, 2)]})
    db.apply(delete={"a": [(1, 1)]})
    assert db.facts("b") == {(1,)}
    db.apply(delete={"a": [(1, 2)]})
    assert db.facts("b") == set()


def test_a_what_if_ends_where_an_immediate_rule_calls() -> None:
    db = opened("""
        base a(x: int). base b(x: int). base c(x: int).
        rule r immediate on insert a(X) do call f(X).
        rule s on insert b(X) do insert c(X).
    """)
    delta = db.what_if(insert={"a": [(1,)], "b": [(2,)]})
    assert delta.firings == [("r", (1,))]
    assert list(delta) == [("+", "a", (1,)), ("+", "b", (2,))]


@pytest.mark.parametrize("words", ["", "immediate"])
def test_a_what_if_says_that_a_rule_rejects(words: str) -> None:
    db = opened(f"""
        base a(x: int). base b(x: int).
        rule r priority 1 {words} on insert a(X) when X < 0 do insert b(X), reject "no {{X}}".
        rule s on insert b(X) do insert a(X + 10).
    """)
    delta = db.what_if(insert={"a": [(-1,), (1,)]})
    assert delta.firings == [("r", (-1,))]
    assert [(each.constraint, each.message) for each in delta.rejections] == [("r", "no -1")]
    assert delta.inserted["b"] == {(-1,)}
    assert not db.what_if(insert={"a": [(1,)]}).rejections
    with pytest.raises(deltalog.ConstraintError, match="no -1"):
        db.apply(insert={"a": [(-1,), (1,)]})
    assert db.facts("a") == set()


def test_a_message_of_else_has_the_variables_of_the_event() -> None:
    db = opened("""
        base a(x: int, y: int). base ok(x: int).
        rule r for X on insert a(X, Y) when ok(X) do delete ok(X) else reject "{X} without {Y}".
    """)
    with pytest.raises(deltalog.ConstraintError, match="1 without 2"):
        db.apply(insert={"a": [(1, 2)]})


EMITTING = "base a(x: int). rule r on insert a(X) do emit a(X)."


def test_what_rules_keep_for_themselves_is_in_no_change(tmp_path: Path) -> None:
    """Neither in that of another program, nor in what a reader refreshes by."""
    path = tmp_path / "rules.db"
    with deltalog.connect(path, program=EMITTING, engine="reference") as db:
        with deltalog.connect(path, read_only=True, engine="reference") as reader:
            db.apply(insert={"a": [(1,)]})
            db.deactivate("r")
            assert list(reader.refresh()) == [("+", "a", (1,))]
            assert not reader.rules()[0].is_active
        db.dispatch(lambda message: None)
        assert not db.change_program("base a(x: int).")


def test_a_rule_that_comes_back_is_a_new_one() -> None:
    other = "base a(x: int). rule other on insert a(X) do emit a(X)."
    db = opened(f"{EMITTING} rule other on insert a(X) do emit a(X).")
    db.apply(insert={"a": [(1,)]})
    db.deactivate("r")
    db.change_program(other)
    assert [(rule.name, rule.firings) for rule in db.rules()] == [("other", 1)]
    db.change_program(EMITTING)
    assert [(rule.name, rule.is_active, rule.firings) for rule in db.rules()] == [("r", True, 0)]


def test_a_parameter_of_another_type_begins_without_activations() -> None:
    first = "base n(x: int). base s(x: str). rule r(L) when n(L) do delete n(L)."
    db = opened(first)
    db.activate("r", L=1)
    db.change_program(first.replace("n(L)", "s(L)"))
    assert db.rules()[0].parameters == ()
    db.activate("r", L="x")
    assert db.apply(insert={"s": [("x",)]}).firings == [("r", ("x",))]


def test_a_rule_without_the_parameter_that_it_had_is_active() -> None:
    first = "base n(x: int). rule r(L) when n(L) do delete n(L)."
    db = opened(first)
    db.activate("r", L=1)
    db.change_program(first.replace("r(L)", "r"))
    assert db.apply(insert={"n": [(2,)]}).firings == [("r", (2,))]
    db.deactivate("r")
    db.change_program(first)
    assert (db.rules()[0].is_active, db.rules()[0].parameters) == (False, ())


def test_a_program_may_begin_with_rules_that_are_not_active() -> None:
    db = opened("base a(x: int).")
    db.change_program(EMITTING, inactive=["r"])
    assert db.version == 1
    assert not db.rules()[0].is_active
    assert not db.apply(insert={"a": [(1,)]}).firings
    with pytest.raises(deltalog.DataError, match="E1206"):
        db.change_program("base a(x: int).", inactive=["r"])
    db.activate("r")
    assert db.apply(insert={"a": [(2,)]}).firings == [("r", (2,))]


def test_a_rule_that_is_inactive_already_makes_no_version() -> None:
    program = "base a(x: int). base b(x: int). rule up on insert a(X) do insert b(X)."
    db = deltalog.connect(program=program)
    for _ in range(2):
        db.change_program(program, inactive=(name for name in ["up"]))
        assert db.version == 1
    with pytest.raises(deltalog.DataError, match="E1206"):
        db.change_program(program, inactive=["upp"])
