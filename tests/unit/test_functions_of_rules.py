"""What a function that a rule calls may do, and what hostile arguments of verbs lead to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltalog

PROGRAM = """
base a(x: int). base b(x: int).
rule r on insert a(X) do call f(X), emit m(X).
rule low(L) for X when b(X), X < L do insert a(X).
"""
IMMEDIATE = PROGRAM.replace("rule r on", "rule r immediate on")
CHANGE_IN_ACTION, NO_SUCH_RELATION, WRONG_ARGUMENT = "E1208", "E0701", "E0726"

REFUSED: dict[str, Callable[[Any], object]] = {
    "apply": lambda db: db.apply(insert={"b": [(1,)]}),
    "transaction": lambda db: db.transaction(),
    "activate": lambda db: db.activate("low", L=1),
    "deactivate": lambda db: db.deactivate("r"),
    "change_program": lambda db: db.change_program(PROGRAM + "v(X) :- a(X)."),
    "change_program tried": lambda db: db.change_program("base a(x: int).", is_committed=False),
    "dispatch": lambda db: db.dispatch(print),
    "close": lambda db: db.close(),
}
REFUSED_IN_FILES: dict[str, Callable[[Any], object]] = {
    "refresh": lambda db: db.refresh(),
    "compact": lambda db: db.compact(),
    "group": lambda db: db.group().__enter__(),
}


def opened(path: Path | None = None, program: str = PROGRAM) -> deltalog.MemoryDatabase:
    return deltalog.connect(path, program=program, engine="reference")


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("program", [PROGRAM, IMMEDIATE])
def test_a_function_changes_nothing_by_itself(program: str, is_file: bool, tmp_path: Path) -> None:
    db = opened(tmp_path / "f.db" if is_file else None, program)
    for verb, call in {**REFUSED, **(REFUSED_IN_FILES if is_file else {})}.items():
        db.action("f")(lambda _, call=call: call(db) and None)
        before = db.version, db.facts("a"), db.rules(), db.messages()
        with pytest.raises(deltalog.DataError, match=CHANGE_IN_ACTION):
            db.apply(insert={"a": [(1,)]})
        assert before == (db.version, db.facts("a"), db.rules(), db.messages()), verb
    db.action("f")(lambda _: None)
    assert db.apply(insert={"a": [(1,)]}).firings == [("r", (1,))]
    db.close()


@pytest.mark.parametrize("program", [PROGRAM, IMMEDIATE])
def test_nobody_changes_what_rules_keep_for_themselves(program: str) -> None:
    db = opened(None, program)
    db.action("f")(lambda _: None)
    change: dict[str, Any] = {"rules__inactive": [("r",)]}
    for verb in (db.apply, db.what_if):
        for side in ("insert", "delete", "set"):
            with pytest.raises(deltalog.DataError, match=NO_SUCH_RELATION):
                verb(**{side: change})
    db.action("f")(lambda _: {"insert": change})
    with pytest.raises(deltalog.DataError, match=NO_SUCH_RELATION):
        db.apply(insert={"a": [(1,)]})
    db.action("f")(lambda _: None)
    with db.transaction() as tx:
        tx.insert("a", [(1,)])
        with pytest.raises(deltalog.DataError, match=NO_SUCH_RELATION):
            tx.insert("rules__messages", [])
    assert tx.delta.firings == [("r", (1,))]


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.activate(["low"]),
        lambda db: db.deactivate(None),
        lambda db: db.messages(after="1"),
        lambda db: db.messages(after=True),
        lambda db: db.action("f")(3),
        lambda db: db.change_program(PROGRAM, inactive="r"),
    ],
)
def test_arguments_are_checked(call: Callable[[Any], object]) -> None:
    with pytest.raises(deltalog.DataError, match=WRONG_ARGUMENT):
        call(opened())


def test_a_message_names_null() -> None:
    db = deltalog.connect(
        program='base n(x: int?). deny none(X) :- n(X), X = null say "found {X}".',
        engine="reference",
    )
    with pytest.raises(deltalog.ConstraintError) as refused:
        db.apply(insert={"n": [(None,)]})
    assert refused.value.violations[0].message == "found null"


@pytest.mark.parametrize(
    ("action", "wrong"),
    [
        ("insert q(X, 1), insert q(X, 2)", r"E0705.*already contains the fact"),
        ("set q(X, N) where s(N)", "E0727.*rows 1 and 2 set the key"),
        ("call give(X)", "E1209.*has returned 5"),
    ],
)
def test_an_error_of_an_action_shows_the_action(action: str, wrong: str) -> None:
    db = deltalog.connect(
        program=f"""
            base r(x: int). base s(n: int). base q(x: int key, n: int). s(1). s(2).
            rule fill when r(X) do {action}.
        """,
        engine="reference",
    )
    db.action("give")(lambda rows: 5)
    with pytest.raises(deltalog.DataError, match=wrong) as refused:
        db.apply(insert={"r": [(1,)]})
    assert "^ an action of the rule `fill`" in str(refused.value)
    assert db.facts("r") == set()
