"""View updates: the worked examples of Behrend & Manthey 2007, and what users ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltalog
from deltalog import Budget, Database, DataError, ProgramError, Realization

GRAPH = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
PERMISSIONS = """
    base member(person: str, team: str).
    base grant(team: str, document: str).
    base banned(person: str key, reason: str).
    sees(P, D) :- member(P, T), grant(T, D), not banned(P, _).
"""
Facts = dict[str, list[tuple[object, ...]]]


def connected(
    program: str, facts: Facts, engine: str = "reference", materialize: bool = True
) -> Database:
    return deltalog.connect(program=program, facts=facts, engine=engine, materialize=materialize)


def texts(found: object) -> list[str]:
    return [str(each) for each in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize("engine", ["reference", "embedded"])
@pytest.mark.parametrize("materialize", [True, False])
def test_a_fact_that_is_repaired_in_vain_is_no_realization(engine: str, materialize: bool) -> None:
    """Section 4.1: deleting s(2) violates ic(2), which cannot be repaired."""
    program = """
        base r1(x: int). base r2(x: int). base s(x: int).
        p(X) :- q1(X).  p(X) :- q2(X).
        q1(X) :- r1(X), s(X).  q2(X) :- r2(X), not s(X).
        au(X) :- q2(X), not q1(X).
        ic(2) :- not au(2).
        require ic(2).
    """
    db = connected(program, {"r2": [(2,)], "s": [(2,)]}, engine, materialize=materialize)
    found = db.realize("+p(2)")
    assert texts(found) == ["Realization(+r1(2,))"]
    assert found.is_complete


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_a_side_effect_that_undoes_the_request_is_compensated(engine: str) -> None:
    """Section 4.2: +q(1) deletes i, which a new constant brings back."""
    program = """
        base p(x: str). base q(x: str).
        h(X) :- p(X), q(X), i().
        i() :- p(X), not q(X).
    """
    db = connected(program, {"p": [("1",)]}, engine)
    found = db.realize('+h("1")')
    assert texts(found) == ["Realization(+p('new1',), +q('1',))"]
    assert found.is_complete
    (only,) = db.realize('+h("1")')
    assert only.new_values == ("new1",)
    only.apply({"new1": "other"})
    assert db.facts("p") == {("1",), ("other",)}
    assert db.facts("h") == {("1",)}


def test_a_request_with_only_infinite_realizations_ends_at_its_budget() -> None:
    """Section 5."""
    program = """
        base e(x: str, y: str).
        h() :- e(X, Y), not i().
        i() :- e(Y, X), e(Z, X), not eq(Y, Z).
        i() :- e(X, Y), not j(X).
        i() :- e(X, Y), not j(Y).
        j(X) :- e(X, Y), e(X, Z), not eq(Y, Z).
        eq(X, X) :- e(X, _).
        eq(Y, Y) :- e(_, Y).
    """
    found = connected(program, {}).realize("+h()", budget=Budget(nodes=60, new_values=20))
    assert list(found) == []
    assert not found.is_complete
    assert list(found.reasons) == ["the budget of 60 nodes is spent"]


def test_every_edge_that_closes_a_path_and_then_longer_ones() -> None:
    db = connected(GRAPH, {"edge": [(1, 2), (4, 5)]})
    single = set(texts(db.realize("+path(1, 5)", budget=Budget(changes=1))))
    assert single == {f"Realization(+edge({x}, {y}))" for x in (1, 2) for y in (4, 5)}
    longer = texts(db.realize("+path(1, 5)", budget=Budget(changes=2, new_values=1)))
    assert len(longer) == 8
    assert "Realization(+edge(1, 6), +edge(6, 5))" in longer


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_all_ways_to_delete_are_all_cuts(engine: str) -> None:
    db = connected(GRAPH, {"edge": [(1, 2), (2, 4), (1, 3), (3, 4)]}, engine)
    found = db.realize("-path(1, 4)")
    cuts = {frozenset(each.deleted["edge"]) for each in found}
    assert cuts == {frozenset({a, b}) for a in ((1, 2), (2, 4)) for b in ((1, 3), (3, 4))}
    assert found.is_complete


def test_each_realization_has_its_whole_delta_and_can_be_applied() -> None:
    db = connected(GRAPH, {"edge": [(1, 2), (2, 3)]})
    for each in db.realize("-path(1, 3)", budget=Budget(answers=1)):
        assert isinstance(each, Realization)
        assert (1, 3) in each.delta.deleted["path"]
        assert db.what_if(each.inserted, each.deleted) == each.delta
        assert each.apply() == each.delta
    assert (1, 3) not in db.facts("path")


def test_negation_with_an_unnamed_value_and_a_key() -> None:
    facts: Facts = {
        "member": [("ann", "a")],
        "grant": [("a", "plan")],
        "banned": [("bob", "noisy")],
    }
    db = connected(PERMISSIONS, facts)
    assert set(texts(db.realize('-sees("ann", "plan")'))) == {
        "Realization(-member('ann', 'a'))",
        "Realization(-grant('a', 'plan'))",
        "Realization(+banned('ann', 'new1'))",
        "Realization(+banned('ann', 'noisy'))",
    }
    assert texts(db.realize('+sees("bob", "plan")', budget=Budget(new_values=0))) == [
        "Realization(-banned('bob', 'noisy'), +member('bob', 'a'))"
    ]


def test_answers_are_ranked_by_their_side_effects() -> None:
    facts: Facts = {
        "member": [("ann", "a"), ("bob", "a"), ("eve", "a")],
        "grant": [("a", "plan"), ("a", "offer")],
        "banned": [],
    }
    db = connected(PERMISSIONS, facts)
    request = '-sees("ann", "plan")'
    found = db.realize(request, rank="side_effects", budget=Budget(new_values=0))
    shown = [(str(each), each.side_effect_count) for each in found]
    assert shown == [
        ("Realization(-member('ann', 'a'))", 1),
        ("Realization(-grant('a', 'plan'))", 2),
    ]
    (best,) = db.realize(request, rank="side_effects", budget=Budget(answers=1, new_values=0))
    assert str(best.side_effects) == "ChangeSet(-sees('ann', 'offer'))"
    spent = db.realize(request, rank="side_effects", budget=Budget(answers=1))
    assert len(list(spent)) == 1
    assert "the budget of 1 answers is spent" in spent.reasons
    with pytest.raises(DataError, match="cost` or `side_effects"):
        db.realize(request, rank="beauty")
    with pytest.raises(DataError, match="E0726"):
        db.realize(request, rank="side_effects", mode="first_level")


def test_the_change_of_an_answer_is_that_of_the_state_it_was_found_in() -> None:
    db = connected(GRAPH, {"edge": [(1, 2), (2, 3)]})
    first, second = db.realize("-path(1, 3)")
    made = first.apply()
    assert first.delta == made
    with pytest.raises(DataError, match="E1402"):
        assert second.delta


def test_relations_that_must_not_be_touched_and_costs() -> None:
    facts: Facts = {"member": [("ann", "a")], "grant": [("a", "plan")], "banned": []}
    db = connected(PERMISSIONS, facts)
    request = '-sees("ann", "plan")'
    assert texts(db.realize(request, fixed=["grant", "banned"])) == [
        "Realization(-member('ann', 'a'))"
    ]
    costly = db.realize(request, costs={"member": 5, "+banned": 2})
    assert texts(costly) == [
        "Realization(-grant('a', 'plan'))",
        "Realization(+banned('ann', 'new1'))",
        "Realization(-member('ann', 'a'))",
    ]


def test_denials_are_respected_and_repaired() -> None:
    program = GRAPH + "deny cycle(X) :- path(X, X)."
    db = connected(program, {"edge": [(1, 2), (2, 3)]})
    found = texts(db.realize("+path(3, 1)", budget=Budget(changes=2, new_values=0)))
    assert "Realization(+edge(3, 1))" not in found
    assert "Realization(-edge(1, 2), +edge(3, 1))" in found
    for each in db.realize("+path(3, 1)", budget=Budget(changes=2, new_values=0)):
        assert not each.delta.inserted["cycle"]


def test_values_are_computed_backwards_through_sums() -> None:
    program = "base n(x: int). next(Y) :- n(X), Y = X + 1. both(Y) :- n(X), n(Z), Y = X - Z."
    db = connected(program, {"n": [(7,)]})
    found = db.realize("+next(5)")
    assert texts(found) == ["Realization(+n(4,))"]
    assert found.is_complete


def test_what_holds_already_and_base_requests_are_said() -> None:
    db = connected(GRAPH, {"edge": [(1, 2)]})
    found = db.realize("+path(1, 2)", "not edge(5, 6)")
    assert found.already == ("+path(1, 2)", "-edge(5, 6)")
    assert found.hints == ("`edge` is a base relation: `apply` can delete its facts",)
    assert texts(found) == ["Realization()"]
    assert texts(db.realize("-edge(1, 2)")) == ["Realization(-edge(1, 2))"]


def test_aggregates_are_refused_by_name() -> None:
    program = GRAPH + "degree(X, count()) :- edge(X, Y)."
    program += "busy(X) :- degree(X, N), N > 2."
    db = connected(program, {"edge": [(1, 2)]})
    for request in ("+degree(1, 2)", "-degree(1, 1)"):
        with pytest.raises(DataError, match="E1404") as refused:
            db.realize(request)
        assert "`degree` is an aggregate" in str(refused.value)
    found = db.realize("+busy(1)")
    assert list(found) == []
    assert not found.is_complete
    assert "degree(X, count()) :- edge(X, Y)" in next(iter(found.reasons))


@pytest.mark.parametrize(
    ("body", "facts", "expected"),
    [
        ("n(X), X < 10", [50], [{9}]),
        ("n(X), X < 10", [9], [set()]),
        ("n(X), X + 3 >= 10", [], [{7}, {8}]),
        ("n(X), 10 - X > 2", [50], [{7}]),
        ("n(X), X > 5, X < 7", [], [{6}]),
        ("n(X), n(Y), X < Y, Y < 10", [50], [{8, 9}]),
        ("n(X), 12 = X * 3", [50], [{4}]),
    ],
)
def test_comparisons_are_inverted(body: str, facts: list[int], expected: list[set[int]]) -> None:
    db = connected(f"base n(x: int). any() :- {body}.", {"n": [(value,) for value in facts]})
    found = db.realize("+any()", budget=Budget(changes=2))
    assert [{x for (x,) in each.inserted.get("n", ())} for each in found] == expected


def test_values_that_comparisons_need_stand_for_others() -> None:
    db = connected("base n(x: int). any() :- n(X), X < 10.", {"n": [(50,)]})
    found = db.realize("+any()")
    (only,) = found
    assert found.is_complete
    assert only.new_values == (9,)
    only.apply({9: 3})
    assert db.facts("any") == {()}


@pytest.mark.parametrize("type_", ["float", "decimal", "date", "str"])
def test_comparisons_of_every_type(type_: str) -> None:
    bounds = {"float": "1.5", "decimal": 'decimal("1.5")', "str": '"m"'}
    bound = {**bounds, "date": 'date("2020-02-01")'}[type_]
    for operator in ("<", ">", "<=", ">="):
        db = connected(f"base n(x: {type_}). any() :- n(X), X {operator} {bound}.", {})
        first = next(iter(db.realize("+any()")), None)
        assert first is not None, operator
        assert first.apply().inserted["any"] == {()}


def test_an_equation_that_is_not_solved_is_among_the_reasons() -> None:
    found = connected("base n(x: int). square(Y) :- n(X), Y = X * X.", {}).realize("+square(16)")
    assert list(found) == []
    assert list(found.reasons) == [
        "`Y = X * X` is not solved for X, in a rule of `square`: only known values are tried"
    ]


def test_declared_values_are_the_only_ones() -> None:
    db = connected(PERMISSIONS, {"member": [("ann", "a")]})
    found = db.realize('+sees("bob", "plan")', domains={"member.team": ["lab", "hq"]})
    assert set(texts(found)) == {
        f"Realization(+grant('{team}', 'plan'), +member('bob', '{team}'))" for team in ("lab", "hq")
    }
    assert found.is_complete
    for wrong in ({"member.tea": ["x"]}, {"member.team": "lab"}, {"member.team": [3]}):
        with pytest.raises(DataError):
            db.realize('+sees("bob", "plan")', domains=wrong)


def test_a_view_may_be_partly_an_aggregate() -> None:
    program = """
        base edge(src: int, dst: int).
        number(X, count()) :- edge(X, Y).
        number(X, Y) :- edge(X, Y), Y > 5.
    """
    found = connected(program, {"edge": [(1, 2)]}).realize("+number(3, 7)", "-number(1, 1)")
    assert list(found) == []
    assert "`number` is an aggregate" in next(iter(found.reasons))
    (only,) = connected(program, {"edge": [(1, 2)]}).realize("+number(3, 7)")
    assert str(only) == "Realization(+edge(3, 7))"


def test_a_fact_with_the_same_key_is_replaced() -> None:
    program = "base n(id: int key, text: str?). empty(I) :- n(I, null)."
    db = connected(program, {"n": [(2, "x")]})
    (only,) = db.realize("+empty(2)")
    assert str(only) == "Realization(-n(2, 'x'), +n(2, None))"
    only.apply()
    assert db.facts("n") == {(2, None)}


def test_two_new_values_may_come_with_one_fact() -> None:
    program = """
        base b(x: int, y: int). base c(x: int).
        h() :- v(X, Y), not c(X), not c(Y).
        v(X, Y) :- b(X, Y), not b(Y, X).
    """
    found = connected(program, {}).realize("+h()", budget=Budget(changes=1))
    assert texts(found) == ["Realization(+b(1, 2))"]


def test_a_variable_has_the_type_of_the_whole_rule() -> None:
    program = "base name(id: int, first: str). short(F) :- name(_, F), length(F) <= 2."
    found = connected(program, {}).realize('+short("on")')
    assert texts(found) == ["Realization(+name(1, 'on'))"]


def test_a_search_does_not_go_on_in_another_state() -> None:
    db = connected(GRAPH, {"edge": [(1, 2), (2, 3)]})
    found = iter(db.realize("-path(1, 3)"))
    next(found)
    db.apply(insert={"edge": [(7, 8)]})
    with pytest.raises(DataError, match="E1402"):
        next(found)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ("+pth(1, 2)", "E0701"),
        ("+path(1)", "E0703"),
        ('+path("a", 2)', "E07"),
        ("path(X, 2)", "E0102"),
        ("path(1, 2), edge(1, 2)", "E0102"),
        ("", "E0726"),
    ],
)
def test_a_request_that_is_none_is_refused(request_: str, code: str) -> None:
    db = connected(GRAPH, {})
    with pytest.raises((DataError, ProgramError), match=code):
        db.realize(request_)


def test_arguments_that_do_not_fit() -> None:
    db = connected(GRAPH, {})
    with pytest.raises(DataError, match="E1401"):
        db.realize("+path(1, 2)", "-path(1, 2)")
    with pytest.raises(DataError, match="E0726"):
        db.realize()
    with pytest.raises(DataError, match="E0726"):
        Budget(nodes=0)
    with pytest.raises(DataError, match="base relation in `fixed`"):
        db.realize("+path(1, 2)", fixed=["path"])
    with pytest.raises(DataError, match="base relation in `costs`"):
        db.realize("+path(1, 2)", costs={"edgy": 2})


def test_a_database_file_has_it_too(tmp_path: Path) -> None:
    facts: Facts = {"edge": [(1, 2), (2, 3)]}
    with deltalog.connect(tmp_path / "g.db", program=GRAPH, facts=facts) as db:
        first = next(iter(db.realize("-path(1, 3)")))
        first.apply()
    with deltalog.connect(tmp_path / "g.db") as db:
        assert (1, 3) not in db.facts("path")


def test_the_key_of_a_view_is_kept() -> None:
    program = """
        base edge(src: int, dst: int).
        view next(src: int key, dst: int).
        next(X, Y) :- edge(X, Y), X > 1.
        busy(X) :- edge(X, Y), edge(Y, X).
    """
    db = connected(program, {"edge": [(3, 1)]})
    assert set(texts(db.realize("+busy(3)", budget=Budget(new_values=0)))) == {
        "Realization(+edge(1, 3))",
        "Realization(-edge(3, 1), +edge(3, 3))",
    }


def test_an_expression_without_a_value_realizes_nothing() -> None:
    program = "base r(x: int). base p(x: int, y: int). base q(z: int). h(X) :- r(X), p(X, Y), "
    db = deltalog.connect(program=program + "not q(X / Y).", facts={"p": [(1, 0)]})
    found = list(db.realize("+h(1)", budget=deltalog.Budget(answers=3)))
    assert found
    assert all(any(y != 0 for _, y in each.inserted["p"]) for each in found)
    assert db.why_not("h(1)").realization is not None
