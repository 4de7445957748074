"""Constraints: what is refused, what is only reported, and why it came about."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.rewrites.strategies import STRATEGIES

GRAPH = """
base e(x: int, y: int).
p(X, Y) :- e(X, Y).
p(X, Y) :- e(X, Z), p(Z, Y).
"""
# Behrend & Manthey 2007, section 2.1; the print leaves out h(1, 3)
PAPER = (
    GRAPH
    + """
h(X, Y) :- p(X, Y), not e(X, Y).
require ic1 :- p(_, _).
require ic2 :- not p(3, 3).
e(1, 2). e(1, 4). e(2, 3).
"""
)


def opened(program: str, **options: Any) -> deltalog.MemoryDatabase:
    made = deltalog.connect(program=program, engine="reference", **options)
    assert isinstance(made, deltalog.MemoryDatabase)
    return made


def refused(db: deltalog.MemoryDatabase, **change: Any) -> deltalog.ConstraintError:
    """A change is refused, and nothing has changed."""
    before = {name: db.facts(name) for name in db.relations}, db.version
    with pytest.raises(deltalog.ConstraintError) as caught:
        db.apply(**change)
    assert ({name: db.facts(name) for name in db.relations}, db.version) == before
    return caught.value


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("materialize", [True, False])
def test_the_example_of_the_paper(strategy: str, materialize: bool) -> None:
    if not materialize and strategy in ("delta", "rederive"):
        pytest.skip("it keeps stored views only")
    options = {"p": "auto", "*": strategy}  # not all of them take recursive views
    db = opened(PAPER, strategy=options, materialize=materialize)
    assert db.facts("p") == {(1, 2), (1, 4), (2, 3), (1, 3)}
    assert db.facts("h") == {(1, 3)}
    assert db.violations() == ()
    cyclic = refused(db, insert={"e": [(3, 1), (7, 8)]})
    (violation,) = cyclic.violations
    assert (violation.constraint, violation.fact) == ("ic2", ())
    assert violation.causes == (("+", "e", (3, 1)),)
    emptied = refused(db, delete={"e": [(1, 2), (1, 4), (2, 3)]})
    (violation,) = emptied.violations
    assert violation.constraint == "ic1"
    assert violation.causes[0][:2] == ("-", "e")
    assert db.apply(insert={"e": [(7, 8)]})


def test_a_violation_is_machine_readable() -> None:
    db = opened(GRAPH + 'deny cycle(X) :- p(X, X) say "{X} is in a {{cycle}}".')
    db.apply(insert={"e": [(1, 2), (2, 3)]})
    error = refused(db, insert={"e": [(3, 1), (5, 6)]})
    assert (error.code, error.constraint, error.total) == ("E1101", "cycle", 3)
    assert isinstance(error, deltalog.DeltalogError)
    first = error.violations[0]
    assert (first.fact, first.message) == ((1,), "1 is in a {cycle}")
    assert first.to_json() == {
        "constraint": "cycle",
        "relation": "cycle",
        "fact": [1],
        "message": "1 is in a {cycle}",
        "causes": [["+", "e", [3, 1]]],
    }
    assert str(first.derivation) == (
        "cycle(1)\n  p(1, 1)\n    e(1, 2)\n    p(2, 1)\n      e(2, 3)\n      p(3, 1)\n"
        "        e(3, 1)"
    )
    assert "^^^^^^^^" in str(error)


def test_violations_are_bounded_and_counted() -> None:
    db = opened("base n(x: int). deny n_is_large(X) :- n(X), X > 10.")
    error = refused(db, insert={"n": [(i,) for i in range(1_000)]})
    assert error.total == 989
    assert len(error.violations) == 100
    assert "979 more violations" in str(error)


CAUSES = [
    # deletion under negation, through a view
    (
        "base a(x: int). base b(x: int). v(X) :- b(X). deny bad(X) :- a(X), not v(X).",
        {"a": [(1,)], "b": [(1,)]},
        {"delete": {"b": [(1,)]}},
        {("-", "b", (1,))},
    ),
    # a sum grows by one row and loses none
    (
        "base s(d: int, n: int). t(D, sum(N)) :- s(D, N). deny over(D) :- t(D, S), S > 10.",
        {"s": [(1, 4), (1, 5)]},
        {"insert": {"s": [(1, 6), (2, 3)]}},
        {("+", "s", (1, 6))},
    ),
    # a count falls
    (
        "base s(d: int, n: int). t(D, count()) :- s(D, _). deny few(D) :- t(D, C), C < 2.",
        {"s": [(1, 4), (1, 5)]},
        {"delete": {"s": [(1, 5)]}},
        {("-", "s", (1, 5))},
    ),
    # two changes together
    (
        "base a(x: int). base b(x: int). deny both(X) :- a(X), b(X).",
        {"a": [(3,)]},
        {"insert": {"a": [(1,)], "b": [(1,)]}},
        {("+", "a", (1,)), ("+", "b", (1,))},
    ),
    # what is inserted takes away what is required
    (
        "base a(x: int). base b(x: int). v(X) :- a(X), not b(X). require v(1).",
        {"a": [(1,)]},
        {"insert": {"b": [(1,), (2,)]}},
        {("+", "b", (1,))},
    ),
    # an expression and a disjunction
    (
        "base a(x: int). base b(x: int). deny bad(X * 2) :- (a(X) ; b(X)), X + 1 > 5.",
        {"a": [(1,)]},
        {"insert": {"b": [(7,), (2,)]}},
        {("+", "b", (7,))},
    ),
]


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize(("program", "facts", "change", "causes"), CAUSES)
def test_causes(program: str, facts: Any, change: Any, causes: Any, materialize: bool) -> None:
    db = opened(program, facts=facts, materialize=materialize)
    error = refused(db, **change)
    assert {cause for each in error.violations for cause in each.causes} == causes
    assert all(each.derivation is not None for each in error.violations)


def test_a_warning_lets_the_change_pass() -> None:
    db = opened('base n(x: int). deny warn large(X) :- n(X), X > 9 say "{X} is large".')
    with pytest.warns(deltalog.ConstraintWarning, match="12 is large"):
        db.apply(insert={"n": [(12,)]})
    assert [each.message for each in db.violations("large")] == ["12 is large"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db.apply(insert={"n": [(3,)]})
        db.apply(delete={"n": [(12,)]})
    assert db.violations() == ()


class VersionsHeard:
    """A follower that keeps the versions it hears of."""

    views = potential = frozenset[str]()

    def __init__(self) -> None:
        self.versions: list[int] = []

    def committed(self, version: int, *_: object) -> None:
        self.versions.append(version)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_warning_that_is_raised_comes_after_all_of_the_commit(kind: str, tmp_path: Path) -> None:
    program = """
        base n(x: int). base m(x: int).
        deny warn large(X) :- n(X), X > 9 say "{X} is large".
        rule copied for X when n(X) do insert m(X).
    """
    path = tmp_path / "numbers.db"
    place = () if kind == "memory" else (path,)
    db = deltalog.connect(*place, program=program, engine="reference")
    db.follower = heard = VersionsHeard()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(deltalog.ConstraintWarning, match="12 is large"):
            db.apply(insert={"n": [(12,)]})
        assert (db.version, heard.versions, db.facts("m")) == (1, [1], {(12,)})
        db.apply(insert={"n": [(3,)]})
    assert (heard.versions, db.facts("m"), db.audit()) == ([1, 2], {(3,), (12,)}, ())
    db.close()
    if kind == "file":
        with deltalog.connect(path, engine="reference") as again:
            assert (again.version, again.facts("m")) == (2, {(3,), (12,)})


def test_violations_as_a_view_are_watched_and_worked_off() -> None:
    db = opened("""
        base n(x: int, y: int).
        deny view large(X) :- n(X, Y), Y > 9.
        deny view negative(X) :- n(X, Y), Y < 0.
        deny view lonely(X) :- n(X, Y), not n(Y, _).
    """)
    assert db.apply(insert={"n": [(1, 12), (12, -1)]}).inserted["large"] == {(1,)}
    mended = db.what_if(delete={"n": [(12, -1)]})
    assert mended.deleted["negative"] == {(12,)}
    assert mended.inserted["lonely"] == {(1,)}
    assert {each.constraint for each in db.violations()} == {"large", "negative", "lonely"}
    with pytest.raises(deltalog.DataError, match="unknown constraint `larger`"):
        db.violations("larger")


def test_deferred_and_immediate() -> None:
    program = "base n(x: int). deny {} odd(X) :- n(X), X mod 2 = 1."
    later = opened(program.format(""))
    with later.transaction() as tx:
        tx.insert("n", [(1,)])
        tx.delete("n", [(1,)])
    now = opened(program.format("immediate"))
    tx = now.transaction()
    with pytest.raises(deltalog.ConstraintError) as caught:
        tx.insert("n", [(1,)])
    assert caught.value.violations[0].causes == (("+", "n", (1,)),)
    with pytest.raises(deltalog.DataError, match="E0712"):
        tx.insert("n", [(2,)])
    assert now.facts("n") == set()


def test_an_immediate_warning_comes_after_the_operation_and_once() -> None:
    db = opened('base n(x: int). deny warn immediate odd(X) :- n(X), X mod 2 = 1 say "{X} is odd".')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with db.transaction() as tx:
            tx.insert("n", [(1,), (3,)])
            assert [str(each.message) for each in caught] == ["1 is odd", "3 is odd"]
            tx.delete("n", [(1,)])
        db.what_if(insert={"n": [(5,)]})
    assert len(caught) == 2
    assert [each.message for each in db.violations()] == ["3 is odd"]


def test_many_warnings_have_their_number() -> None:
    db = opened("base n(x: int). deny warn large(X) :- n(X), X > 9.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        db.apply(insert={"n": [(number,) for number in range(10, 1510)]})
    assert len(caught) == 101
    assert str(caught[-1].message) == "there are 1,400 more violations"


def test_a_what_if_shows_a_violation_and_does_not_raise() -> None:
    db = opened(GRAPH + "deny cycle(X) :- p(X, X).")
    assert db.what_if(insert={"e": [(1, 1)]}).inserted["cycle"] == {(1,)}


def test_only_wanted_views_are_returned_but_all_constraints_are_checked() -> None:
    db = opened(GRAPH + "virtual view cycle. deny cycle(X) :- p(X, X). far(X) :- p(X, 9).")
    delta = db.apply(insert={"e": [(1, 9)]}, views=["far"])
    assert delta.relations == ("e", "far")
    with pytest.raises(deltalog.ConstraintError):
        db.apply(insert={"e": [(9, 9)]}, views=["far"])


def test_a_violating_initial_state_is_refused(tmp_path: Path) -> None:
    program = "base n(x: int). deny large(X) :- n(X), X > 9."
    with pytest.raises(deltalog.ConstraintError):
        opened(program, facts={"n": [(12,)]})
    path = tmp_path / "n.db"
    with pytest.raises(deltalog.ConstraintError):
        deltalog.connect(path, program=program, facts={"n": [(12,)]}, engine="reference")
    assert not path.exists()


def test_a_file_keeps_its_constraints(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    program = GRAPH + 'deny cycle(X) :- p(X, X) say "{X}".\nview q(x: int key, y: int).\n'
    with deltalog.connect(path, program=program + "q(X, Y) :- e(X, Y).", engine="reference") as db:
        db.apply(insert={"e": [(1, 2)]})
    with deltalog.connect(path, engine="reference") as db:
        refused(db, insert={"e": [(2, 1)]})
        refused(db, insert={"e": [(1, 3)]})
        assert [commit.version for commit in db.commits()] == [1]
        db.apply(insert={"e": [(2, 3)]})
        assert db.version == 2
        assert db.audit() == ()


def test_a_change_of_rules_respects_constraints() -> None:
    db = opened(GRAPH, facts={"e": [(1, 2), (2, 1)]})
    with pytest.raises(deltalog.ConstraintError) as caught:
        db.change_program(GRAPH + "deny cycle(X) :- p(X, X).")
    assert {each.fact for each in caught.value.violations} == {(1,), (2,)}
    assert db.version == 0
    db.change_program(GRAPH + "deny warn cycle(X) :- p(X, X).")
    with pytest.raises(deltalog.ConstraintError):
        db.change_program(GRAPH + "deny cycle(X) :- p(X, X).")
    with pytest.raises(deltalog.ConstraintError):
        db.change_program(GRAPH + "require p(3, 3).")
    db.change_program("base e(x: int, y: int). view p(x: int key, y: int). p(X, Y) :- e(X, Y).")
    with pytest.raises(deltalog.ConstraintError):
        db.change_program("base e(x: int, y: int). view p(x: int key, y: int). p(1, Y) :- e(X, Y).")
    assert db.audit() == ()


def test_eighty_integrity_views_cost_what_a_change_touches() -> None:
    relations = "".join(
        f"base r{i}(x: int). deny view bad{i}(X) :- r{i}(X), X < 0.\n" for i in range(80)
    )
    db = opened(relations)
    db.apply(insert={"r7": [(-1,)]})
    assert {name.split("__")[0] for name in db.statistics.generated} == {"bad7"}
