"""Potential changes: a superset of the exact change of a virtual view, for fewer facts."""

from __future__ import annotations

import pytest
from effort import effort
from hypothesis import given
from programs import Features, Scenario, scenarios

import deltalog
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from treatments import LIMITS

PATHS = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""


class Follower:
    """Keeps the last change that it was called with, and of which views it was exact."""

    def __init__(self, views: frozenset[str], potential: frozenset[str]) -> None:
        self.views = views
        self.potential = potential
        self.change = ChangeSet({}, {})
        self.exact: frozenset[str] = frozenset()

    def committed(
        self,
        version: int,
        kind: str,
        change: ChangeSet,
        views: frozenset[str],
        estimated: frozenset[str] = frozenset(),
    ) -> None:
        assert not views & estimated
        self.change, self.exact = change, views


def followed(database: MemoryDatabase, is_potential: bool) -> Follower:
    views = frozenset(database.model.views)
    database.follower = made = Follower(views, views if is_potential else frozenset())
    return made


@pytest.mark.parametrize("engine", ["embedded", "reference"])
@pytest.mark.parametrize("strategy", ["auto", "demand", "differencing"])
def test_a_superset_that_holds(strategy: str, engine: str) -> None:
    """Also: insertions hold afterwards, deletions held before, and `apply` returns none of it."""

    @effort(quick=6, fuzz=2_000)
    @given(scenarios(Features(view_declarations=False)))
    def run(scenario: Scenario) -> None:
        exact, estimating = (
            deltalog.connect(
                program=scenario.program,
                strategy=strategy,
                materialize=False,
                engine=engine,
                limits=LIMITS,
                facts={name: sorted(rows) for name, rows in scenario.facts.items()},
            )
            for _ in range(2)
        )
        follower = followed(estimating, True)
        for number, (inserts, deletes) in enumerate(scenario.transactions):
            follower.potential = follower.views if number % 3 < 2 else frozenset()
            plus = {name: sorted(rows) for name, rows in inserts.items()}
            minus = {name: sorted(rows) for name, rows in deletes.items()}
            before = {name: exact.facts(name) for name in follower.views}
            true = exact.apply(insert=plus, delete=minus)
            follower.change = ChangeSet({}, {})
            assert not set(estimating.apply(insert=plus, delete=minus, views=()).relations) & (
                follower.views
            )
            for name in follower.views:
                inserted, deleted = follower.change.inserted[name], follower.change.deleted[name]
                assert true.inserted[name] <= inserted <= exact.facts(name)
                assert true.deleted[name] <= deleted <= before[name]
                if name in follower.exact:
                    assert (true.inserted[name], true.deleted[name]) == (inserted, deleted)
                assert estimating.facts(name) == exact.facts(name)

    run()


@pytest.mark.parametrize("strategy", ["auto", "demand"])
def test_fewer_facts_are_generated(strategy: str) -> None:
    chains = [(n, n + 1) for n in range(0, 40, 2)] + [(n, n + 1) for n in range(1, 40, 2)]
    totals = {}
    for is_potential in (False, True):
        database = deltalog.connect(
            program=PATHS, facts={"edge": chains}, materialize=False, strategy=strategy
        )
        follower = followed(database, is_potential)
        counts = []
        for side, row in (("insert", (40, 41)), ("delete", (20, 21)), ("insert", (20, 21))):
            database.apply(**{side: {"edge": [row]}}, views=())
            counts.append(database.statistics.total)
            changed = len(follower.change.inserted["path"]) + len(follower.change.deleted["path"])
            counts.append(changed)
        totals[is_potential] = counts
    for exact, potential in zip(totals[False][::2], totals[True][::2], strict=True):
        assert potential * 1.2 < exact, totals
    assert totals[False][1::2] == totals[True][1::2], "here every potential change is one"


def test_an_exact_change_where_somebody_needs_it() -> None:
    """The caller of a commit, a view that reads this one, and what is stored get exact changes."""
    program = PATHS + "ends(Y) :- path(0, Y)."
    edges = [(0, 1), (1, 2), (0, 2)]
    for views, exact in ((("path",), {"path"}), ((), set())):
        database = deltalog.connect(program=program, facts={"edge": edges}, materialize=False)
        follower = followed(database, True)
        follower.views = follower.potential = frozenset({"path"})
        database.apply(delete={"edge": [(0, 2)]}, views=views)
        assert follower.exact == exact
        deleted = set() if exact else {(0, 2)}
        assert follower.change.deleted["path"] == deleted
    database = deltalog.connect(program=program, facts={"edge": edges}, materialize=False)
    follower = followed(database, True)
    database.apply(delete={"edge": [(0, 2)]}, views=())
    assert follower.exact == {"path"}
    assert follower.change.deleted["path"] == set()
    assert database.last_change is not None
    assert "ends" not in database.last_change.relations
