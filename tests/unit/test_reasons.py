"""What blocks a fact and what changed one: how it is worded and drawn, and odd questions."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltalog

PROGRAM = """
base member(person: str, team: str).
base grant(team: str, document: str).
base banned(person: str?, document: str).
reads(P, D) :- member(P, T), grant(T, D), not banned(P, D) say "{P} may read {D}, like {T}".
readers(D, count()) :- reads(_, D) say "{count} people read {D}".
pair(T) :- grant(T, T), member(_, T).
"""
FACTS = {
    "member": [("bob", "lab"), ("eve", "lab")],
    "grant": [("lab", "plan")],
    "banned": [("eve", "plan")],
}
OTHER = PROGRAM.replace(', like {T}"', '"').replace("grant(T, D), not", "grant(T, D), D != T, not")


@pytest.fixture
def db() -> deltalog.MemoryDatabase:
    return deltalog.connect(program=PROGRAM, facts=FACTS)


def test_what_blocks_is_worded_by_the_rule(db: deltalog.MemoryDatabase) -> None:
    assert db.why_not('reads("eve", "plan")').sentences() == [
        'not so: eve may read plan, like lab, since banned("eve", "plan") holds',
        '-banned("eve", "plan") would make it true',
    ]
    assert db.why_not('readers("plan", 2)').sentences() == [
        "not so: 2 people read plan, since count() = 2: it is 1, of 1 row"
    ]
    assert db.why_not('grant("a", "b")').sentences() == [
        'not so: grant("a", "b"), since it is a fact of a base relation, which has no rules'
    ]


def test_a_variable_that_occurs_twice_keeps_its_name(db: deltalog.MemoryDatabase) -> None:
    one = deltalog.connect(program="base b(x: int, y: int). v() :- b(Y, Y).", facts={"b": [(1, 2)]})
    assert one.why_not("v").rules[0].literal == "b(Y, Y)"
    assert db.why_not('pair("lab")').rules[0].literal == 'grant("lab", "lab")'


def test_what_changed_is_worded_by_the_rule(db: deltalog.MemoryDatabase) -> None:
    db.apply(delete={"banned": [("eve", "plan")]})
    assert db.why_changed('reads("eve", "plan")').sentences() == [
        'now: eve may read plan, like lab, since -banned("eve", "plan")'
    ]
    db.apply(delete={"grant": [("lab", "plan")]})
    assert db.why_changed('readers("plan", 2)').sentences()[0] == (
        'no longer: 2 people read plan, since -reads("bob", "plan"), -reads("eve", "plan")'
    )
    assert db.why_changed('grant("lab", "plan")').sentences() == [
        '-grant("lab", "plan") is a change of a base fact'
    ]


def test_sets_and_derivations_are_worded(db: deltalog.MemoryDatabase) -> None:
    assert db.why("reads(X, Y)").sentences() == ["P may read D, like T (1 time)"]
    assert db.why('reads("bob", "plan")', every=True).sentences() == ["bob may read plan, like lab"]


def test_every_answer_has_every_picture(db: deltalog.MemoryDatabase) -> None:
    blocked = db.why_not('reads("eve", "plan")')
    db.change_program(OTHER.replace('D != T, not banned(P, D) say "{P} may read {D}"', "D = T"))
    changed = db.why_changed('reads("bob", "plan")')
    for answer, word in ((blocked, "would make it true"), (changed, "the rule is gone")):
        for form in ("mermaid", "dot", "html"):
            assert word in deltalog.picture(answer, form)
    with pytest.raises(deltalog.DataError, match="E0726"):
        deltalog.picture("reads")  # type: ignore[arg-type]


def test_renamed_variables_and_sentences_are_no_change(db: deltalog.MemoryDatabase) -> None:
    db.change_program(PROGRAM.replace("P", "Who").replace("{P}", "{Who}"))
    with pytest.raises(deltalog.DataError, match="E1505"):
        db.why_changed('reads("bob", "plan")')
    db.change_program(PROGRAM.replace("pair(T) :- grant(T, T)", "pair(T) :- grant(T, _)"))
    found = db.why_changed('pair("lab")')
    assert [each.op for each in found.program] == ["+"]


def test_relations_of_one_program_only(db: deltalog.MemoryDatabase) -> None:
    db.change_program("base grant(team: str, document: str). read(D) :- grant(_, D).")
    assert db.why_changed('member("bob", "lab")').causes == (("-", "member", ("bob", "lab")),)
    assert db.why_changed('read("plan")').op == "+"
    lost = db.why_changed('reads("bob", "plan")')
    assert lost.program[0].op == "-"
    assert lost.causes == (("-", "member", ("bob", "lab")),)
    with pytest.raises(deltalog.DataError, match="E0701"):
        db.why_changed("nobody(1)")


def test_columns_of_other_types_are_causes(tmp_path: Path) -> None:
    before = "base n(x: int). half(X / 2) :- n(X). size(count()) :- n(_)."
    with deltalog.connect(tmp_path / "n.db", program=before, facts={"n": [(1,), (2,)]}) as db:
        db.change_program(before.replace("int", "float"))
        lost, gained = db.why_changed("half(0)"), db.why_changed("half(0.5)")
        assert (lost.op, gained.op) == ("-", "+")
        for found in (lost, gained):
            assert {each.kind for each in found.program} == {"relation"}
            assert {each.text for each in found.program} == {
                "base n(x: int).",
                "base n(x: float).",
            }
        with pytest.raises(deltalog.DataError, match="E1505"):
            db.why_changed("n(1)")
        with pytest.raises(deltalog.DataError, match="E1505"):
            db.why_changed("half(1)")
        db.change_program("base m(x: int).")
        assert db.why_changed("half(0.5)").op == "-"
        assert db.why("half(0)", version=0).conclusion == "half(0)"


def test_versions_are_asked_with_the_types_they_had(tmp_path: Path) -> None:
    before = "base n(x: int). more(X + 1) :- n(X)."
    with deltalog.connect(tmp_path / "n.db", program=before, facts={"n": [(1,)]}) as db:
        db.change_program(before.replace("int", "float"))
        db.apply(insert={"n": [(2.0,)]})
        db.apply(delete={"n": [(1.0,)]})
        assert db.why("more(2)", version=0).conclusion == "more(2)"
        assert db.why_not("more(3)", version=0).rules[0].literal == "3 = 1 + 1"
        assert db.why("more(3)").conclusion == "more(3.0)"
        assert db.why_changed("more(2.0)", 3).causes == (("-", "n", (1.0,)),)


def test_a_test_of_values_alone_is_asked_of_an_earlier_version(tmp_path: Path) -> None:
    """`4 > Y - 1` reads no relation, and only the head says of which type `Y` is."""
    program = "base a(x: int). base c(x: int). v(Y) :- a(Y), 4 > Y - 1, c(Y)."
    with deltalog.connect(tmp_path / "a.db", program=program) as file:
        file.apply(insert={"a": [(2,)]})
        file.apply(insert={"c": [(3,)]}, delete={"a": [(2,)]})
        (blocked,) = file.why_not("v(2)", version=1).rules
        assert (blocked.literal, blocked.holding) == ("c(2)", ("a(2)", "4 > 2 - 1"))
