"""Algorithm 1 of Behrend & Manthey 2007: its worked examples, round by round."""

from __future__ import annotations

import pytest

import deltalog
from deltalog import Budget, Database, DataError

SECTION_4_1 = """
    base r1(x: int). base r2(x: int). base s(x: int).
    p(X) :- q1(X).  p(X) :- q2(X).
    q1(X) :- r1(X), s(X).  q2(X) :- r2(X), not s(X).
    au(X) :- q2(X), not q1(X).
    ic(2) :- not au(2).
    require ic(2).
"""
SECTION_4_2 = """
    base p(x: str). base q(x: str).
    h(X) :- p(X), q(X), i().
    i() :- p(X), not q(X).
"""
SECTION_5 = """
    base e(x: str, y: str).
    h() :- e(X, Y), not i().
    i() :- e(Y, X), e(Z, X), not eq(Y, Z).
    i() :- e(X, Y), not j(X).
    i() :- e(X, Y), not j(Y).
    j(X) :- e(X, Y), e(X, Z), not eq(Y, Z).
    eq(X, X) :- e(X, _).
    eq(Y, Y) :- e(_, Y).
"""
ONE_LEVEL = "the first level that has realizations, with one new value in each round"
Facts = dict[str, list[tuple[object, ...]]]
FORMS = [("reference", True), ("embedded", True), ("embedded", False)]


def connected(
    program: str, facts: Facts, engine: str = "embedded", materialize: bool = True
) -> Database:
    return deltalog.connect(program=program, facts=facts, engine=engine, materialize=materialize)


def texts(found: object) -> list[str]:
    return [str(each) for each in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_section_4_1_both_repairs_of_the_constraint_are_false(form: tuple[str, bool]) -> None:
    db = connected(SECTION_4_1, {"r2": [(2,)], "s": [(2,)]}, *form)
    found = db.realize("+p(2)", mode="first_level", trace=True)
    assert texts(found) == ["Realization(+r1(2,))"]
    assert (
        "\n".join(map(str, found.rounds))
        == """\
round 1
  ∇r1⁺(2) ∨ ∇s⁻(2)
  alternative 1: ∇q1⁺(2), ∇r1⁺(2) ⇒ Δr1⁺(2), Δq1⁺(2), Δp⁺(2): a realization
  alternative 2: ∇q2⁺(2), ∇s⁻(2) ⇒ Δs⁻(2), Δq2⁺(2), Δp⁺(2), Δau⁺(2), Δic⁻(2) ⇒ ∇ic⁺(2)
round 2, after the search has stopped
  alternative 2.1: ∇au⁻(2), ∇q2⁻(2): false
  alternative 2.2: ∇au⁻(2), ∇q1⁺(2), ∇r1⁺(2), ∇s⁺(2): false"""
    )


def test_without_a_trace_it_stops_at_the_first_level_with_a_realization() -> None:
    db = connected(SECTION_4_1, {"r2": [(2,)], "s": [(2,)]})
    found = db.realize("+p(2)", mode="first_level")
    assert len(list(found)) == 1
    assert len(found.rounds) == 1
    assert not found.is_complete
    assert list(found.reasons) == [ONE_LEVEL]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_section_4_2_compensates_a_side_effect_in_the_second_round(form: tuple[str, bool]) -> None:
    db = connected(SECTION_4_2, {"p": [("1",)]}, *form)
    found = db.realize('+h("1")', mode="first_level", trace=True)
    (only,) = found
    assert str(only) == "Realization(+p('new1',), +q('1',))"
    assert only.new_values == ("new1",)
    assert (
        "\n".join(map(str, found.rounds))
        == """\
round 1
  ∇q⁺("1")
  alternative 1: ∇q⁺("1") ⇒ Δq⁺("1"), Δi⁻ ⇒ ∇i⁺
round 2
  ∇p⁺("new1") ∨ ∇q⁻("1")
  alternative 1.1: ∇q⁻("1"): false
  alternative 1.2: ∇p⁺("new1") ⇒ Δp⁺("new1"), Δi⁺, Δh⁺("1"): a realization"""
    )
    only.apply({"new1": "2"})
    assert db.facts("h") == {("1",)}


def test_section_5_stops_at_its_budget() -> None:
    db = connected(SECTION_5, {})
    found = db.realize("+h()", mode="first_level", budget=Budget(nodes=200))
    assert list(found) == []
    assert list(found.reasons) == ["the budget of 200 nodes is spent", ONE_LEVEL]
    assert (
        str(found.rounds[0])
        == """\
round 1
  ∇e⁺("new1", "new1")
  alternative 1: ∇e⁺("new1", "new1") ⇒ Δe⁺("new1", "new1"), Δeq⁺("new1", "new1"), Δi⁺ ⇒ ∇i⁻"""
    )
    rounds = [str(each) for each in found.rounds]
    assert ["new1" in rounds[0], "new2" in rounds[0], "new2" in rounds[1]] == [True, False, True]
    assert "new3" not in rounds[1]
    assert "new3" in rounds[2]


def test_deletions_selections_keys_and_fixed_relations() -> None:
    program = """
        base stock(item: str key, amount: int).
        base banned(item: str).
        offer(I) :- stock(I, A), A > 3, not banned(I).
    """
    db = connected(program, {"stock": [("pen", 5), ("ink", 1)]})
    deleted = db.realize('-offer("pen")', mode="first_level")
    assert set(texts(deleted)) == {
        "Realization(-stock('pen', 5))",
        "Realization(+banned('pen',))",
    }
    kept = db.realize('-offer("pen")', mode="first_level", fixed=["stock"])
    assert texts(kept) == ["Realization(+banned('pen',))"]
    inserted = texts(db.realize('+offer("ink")', mode="first_level"))
    assert inserted == [
        "Realization(-stock('ink', 1), +stock('ink', 5))",
        "Realization(-stock('ink', 1), +stock('ink', 6))",
    ]


def test_a_denial_is_repaired() -> None:
    program = """
        base member(person: str, team: str).
        base rival(team: str, other: str).
        deny torn(P) :- member(P, T), member(P, U), rival(T, U).
        in_red(P) :- member(P, "red").
    """
    db = connected(program, {"member": [("ann", "blue")], "rival": [("red", "blue")]})
    found = texts(db.realize('+in_red("ann")', mode="first_level"))
    assert found == [
        "Realization(-member('ann', 'blue'), +member('ann', 'red'))",
        "Realization(+member('ann', 'red'), -rival('red', 'blue'))",
    ]


def test_recursion_and_deletion_of_all_derivations() -> None:
    program = """
        base edge(src: int, dst: int).
        path(X, Y) :- edge(X, Y).
        path(X, Y) :- edge(X, Z), path(Z, Y).
    """
    db = connected(program, {"edge": [(1, 2), (2, 4), (1, 3), (3, 4)]})
    cuts = {frozenset(e.deleted["edge"]) for e in db.realize("-path(1, 4)", mode="first_level")}
    assert cuts == {frozenset({a, b}) for a in ((1, 2), (2, 4)) for b in ((1, 3), (3, 4))}
    first = texts(db.realize("+path(4, 1)", mode="first_level", budget=Budget(seconds=20)))
    assert "Realization(+edge(4, 1))" in first


def test_what_is_no_mode_and_a_trace_of_nothing() -> None:
    db = connected(SECTION_4_2, {})
    with pytest.raises(DataError, match="did you mean `first_level`"):
        db.realize('+h("1")', mode="first_levl")
    with pytest.raises(DataError, match="has rounds"):
        db.realize('+h("1")', trace=True)


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_an_expression_of_a_helper_has_a_type(engine: str) -> None:
    """Branches and expressions give a helper columns that no relation of the program has."""
    program = """
        base b0(x: int). base b1(x: int).
        v(X, Y) :- b1(Y), X = 1.
        v(X, Y) :- v(X, Y), (b1(Y), Z = Y ; b0(Z)), B = Z / Z, B <= 1.
    """
    db = connected(program, {"b0": [(2,)]}, engine)
    found = list(db.realize("+v(1, 3)", mode="first_level"))
    assert [dict(each.inserted) for each in found] == [{"b1": {(3,)}}]
