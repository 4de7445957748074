"""The static check of requests (2007, section 5), and repairs of refused changes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import deltalog
from deltalog import Budget, ConstraintError, DataError

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
GRAPH = """
    base edge(src: int, dst: int).
    base mark(node: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
ACYCLIC = f"{GRAPH} deny cycle(X) :- path(X, X)."


def checks(program: str) -> dict[str, deltalog.RequestCheck]:
    found = deltalog.connect(program=program).check_requests()
    return {each.request: each for each in found}


def test_section_5_names_the_cycle() -> None:
    found = checks(SECTION_5)
    assert found["+h"].cycle == ("∇h⁺", "∇e⁺", "Δe⁺", "Δi⁺", "Δh⁻")
    assert not found["+h"].is_guaranteed
    assert str(found["+h"]) == "+h: may go on for ever: ∇h⁺ → ∇e⁺ → Δe⁺ → Δi⁺ → Δh⁻"
    assert found["+eq"].is_guaranteed
    assert str(found["-eq"]) == "-eq: guaranteed to end"


def test_recursion_alone_does_not_go_on_for_ever() -> None:
    assert [each.is_guaranteed for each in checks(GRAPH).values()] == [True, True]


def test_a_constraint_may() -> None:
    found = checks(ACYCLIC)
    assert found["-path"].is_guaranteed
    assert not found["+path"].is_guaranteed
    assert found["+path"].cycle[0].startswith("∇")


def test_an_aggregate_is_refused_by_its_name() -> None:
    program = f"{GRAPH} reach(X, count()) :- path(X, Y). far(X) :- reach(X, N), N > 3."
    assert checks(program)["+far"].aggregate == "reach"
    assert str(checks(program)["+far"]) == "+far: refused, `reach` is an aggregate"


# --- repairs


def refused(db: deltalog.Database, **change: object) -> ConstraintError:
    with pytest.raises(ConstraintError) as caught:
        db.apply(**change)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_the_minimal_additions(engine: str) -> None:
    edges = [(1, 2), (2, 3), (1, 3)]
    db = deltalog.connect(program=ACYCLIC, facts={"edge": edges}, engine=engine)
    found = refused(db, insert={"edge": [(3, 1)]}).repairs()
    additions = {str(each.additions) for each in found}
    assert additions == {
        "ChangeSet(-edge(1, 3), -edge(2, 3))",
        "ChangeSet(-edge(1, 2), -edge(1, 3))",
    }
    assert found.is_complete


def test_a_repair_is_applied_with_the_change(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with deltalog.connect(path, program=ACYCLIC, facts={"edge": [(1, 2)]}) as db:
        (only,) = refused(db, insert={"edge": [(2, 1)]}).repairs()
        assert only.base == deltalog.ChangeSet({"edge": {(2, 1)}}, {"edge": {(1, 2)}})
        only.apply()
        assert db.facts("edge") == {(2, 1)}


def test_required_facts_and_costs() -> None:
    program = """
        base employee(name: str, team: str).
        base team(name: str).
        staffed(T) :- employee(_, T).
        deny empty(T) :- team(T), not staffed(T).
    """
    facts = {"employee": [("ann", "red"), ("bob", "blue")], "team": [("red",), ("blue",)]}
    db = deltalog.connect(program=program, facts=facts)
    error = refused(db, delete={"employee": [("ann", "red")]})
    first = next(iter(error.repairs(costs={"+employee": 5})))
    assert str(first.additions) == "ChangeSet(-team('red',))"
    kept = error.repairs(fixed=["team"], budget=Budget(new_values=0))
    assert [str(each.additions) for each in kept] == ["ChangeSet(+employee('bob', 'red'))"]


def test_where_there_is_nothing_to_repair() -> None:
    db = deltalog.connect(program=ACYCLIC, facts={"edge": [(1, 2)]})
    error = refused(db, insert={"edge": [(2, 1)]})
    with pytest.raises(DataError, match="E1407"):
        pickle.loads(pickle.dumps(error)).repairs()
    db.apply({"mark": [(1,)]})
    with pytest.raises(DataError, match="E1402"):
        list(error.repairs())
