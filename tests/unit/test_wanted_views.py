"""Only what somebody wants is propagated: shown by counts of generated facts."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.rewrites import names
from deltalog.runtime.engine_choice import ENGINES
from deltalog.runtime.propagation import ROUTES_MAX

CHAIN = """
    base edge(src: int, dst: int).
    virtual view link.
    virtual view back.
    virtual view both.
    virtual view lonely.
    link(X, Y) :- edge(X, Y), X != Y.
    back(Y, X) :- link(X, Y).
    both(X, Y) :- link(X, Y), back(X, Y).
    kept(X) :- link(X, _).
    lonely(X) :- edge(X, _), not kept(X).
"""
PAPER = """
    base quantity(item: str key, amount: int).
    base uses(item: str key, amount: int).
    virtual view threshold.
    virtual view low.
    threshold(I, T) :- uses(I, U), T = U * 2.
    low(I) :- quantity(I, Q), threshold(I, T), Q < T.
"""


def opened(
    engine: str = "embedded", program: str = CHAIN, **options: Any
) -> deltalog.MemoryDatabase:
    return deltalog.connect(program=program, engine=engine, **options)


def made_for(database: deltalog.MemoryDatabase, views: Iterable[str]) -> dict[str, int]:
    """How many facts were generated for each of the views, whatever their rules are called."""
    generated = database.statistics.generated
    return {
        view: sum(n for name, n in generated.items() if name.split("__")[0] == view)
        for view in views
    }


VIEWS = ("link", "back", "both", "kept", "lonely")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strategy", ["auto", "magic", "demand", "differencing"])
def test_a_view_that_nobody_wants_generates_nothing(engine: str, strategy: str) -> None:
    database = opened(engine, strategy=strategy)
    change = database.apply(insert={"edge": [(1, 2), (2, 1)]}, views=[])
    assert change.relations == ("edge",)
    made = made_for(database, VIEWS)
    assert made["kept"] > 0  # it is stored
    assert made["back"] == made["both"] == made["lonely"] == 0
    assert database.facts("kept") == {(1,), (2,)}
    change = database.apply(insert={"edge": [(2, 3), (3, 2)]}, views=["back"])
    assert change.relations == ("back", "edge")
    assert change.inserted["back"] == {(3, 2), (2, 3)}
    made = made_for(database, VIEWS)
    assert made["back"] > 0
    assert made["both"] == made["lonely"] == 0
    assert database.facts("both") == {(1, 2), (2, 1), (2, 3), (3, 2)}
    everything = database.apply(delete={"edge": [(3, 2)]})
    assert everything.relations == ("back", "both", "edge", "kept", "link")
    assert not database.audit()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_change_by_every_way(engine: str) -> None:
    rows = [(1, 2), (2, 1), (4, 4)]
    expected = opened(engine).apply(insert={"edge": rows})
    for views in ((), ("kept",), ("both", "lonely"), VIEWS):
        database = opened(engine)
        wanted = expected.without(*(set(VIEWS) - set(views)))
        assert database.what_if(insert={"edge": rows}, views=views) == wanted
        with database.transaction(views=views) as transaction:
            transaction.insert("edge", rows)
        assert transaction.delta == wanted
        assert not database.audit()


def test_changes_that_nobody_needs_any_more_are_released() -> None:
    """Both virtual views are only on the way, and the second can do without the first."""
    database = opened(
        program="""
        base item(x: int).
        virtual view a.
        virtual view b.
        a(X) :- item(X), X > 0.
        b(X) :- a(X), X > 0.
        c(X) :- b(X), X > 0.
    """
    )
    rows = {"item": [(number,) for number in range(1, 11)]}
    database.what_if(insert=rows)
    assert database.statistics.peak == 40
    database.what_if(insert=rows, views=["c"])
    assert database.statistics.peak == 30  # of `item`, which stays, and of two of the views
    database.apply(insert=rows, views=["a", "c"])
    assert database.statistics.peak == 40
    assert database.apply(delete={"item": [(1,)]}, views=["c"]).deleted["c"] == {(1,)}
    assert database.statistics.peak == 3


def test_nothing_is_differentiated_in_a_flat_network_that_nothing_reads() -> None:
    database = opened(program=PAPER, strategy="differencing", network="flat")
    changes = {"quantity": [("nut", 1)], "uses": [("nut", 3)]}
    change = database.apply(insert=changes, views=["low"])
    assert change.inserted["low"] == {("nut",)}
    assert made_for(database, ["threshold"]) == {"threshold": 0}
    bushy = opened(program=PAPER, strategy="differencing")
    assert bushy.apply(insert=changes, views=["low"]) == change
    assert made_for(bushy, ["threshold"])["threshold"] > 0
    assert bushy.statistics.generated[names.plus_name("threshold")] == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "strategy", ["magic", "demand", "differencing", {"hop": "demand", "*": "magic"}], ids=str
)
def test_released_changes_are_not_missed(engine: str, strategy: str | dict[str, str]) -> None:
    """`top` asks for the new state of `far`, and if that is done by magic, for that of `hop`."""
    program = """
        base edge(src: int, dst: int).
        hop(X, Y) :- edge(X, Z), edge(Z, Y).
        far(X, Y) :- hop(X, Z), hop(Z, Y).
        near(X) :- far(X, _), not hop(X, X).
        top(X) :- near(X), not far(X, X).
    """
    database = opened(engine, program, strategy=strategy, materialize=False)
    edges = [(x, y) for x in range(4) for y in range(4)]
    rng = random.Random(7)
    for _ in range(40):
        row = rng.choice(edges)
        operation = "delete" if row in database.facts("edge") else "insert"
        before = database.facts("top")
        change = database.apply(**{operation: {"edge": [row]}}, views=["top"])
        after = database.facts("top")
        assert (change.inserted["top"], change.deleted["top"]) == (after - before, before - after)


def test_a_file_records_every_view(tmp_path: Path) -> None:
    with deltalog.connect(tmp_path / "chain.db", program=CHAIN) as database:
        change = database.apply(insert={"edge": [(1, 2), (2, 1)]}, views=["kept"])
        assert change.relations == ("edge", "kept")
        assert database.what_if(delete={"edge": [(1, 2)]}, views=[]).relations == ("edge",)
        assert made_for(database, ["both"]) == {"both": 0}
        assert database.delta(0, 1).inserted["both"] == {(1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("kep", "did you mean `kept`?"), ("edge", "`edge` is a base relation"), ("nothing", "")],
)
def test_only_views_can_be_wanted(name: str, hint: str) -> None:
    database = opened("reference")
    for call in (database.apply, database.what_if, database.transaction):
        with pytest.raises(deltalog.DeltalogError, match=f"unknown view `{name}`") as caught:
            call(views=[name])
        assert hint in str(caught.value)


def test_many_wishes_are_not_all_remembered() -> None:
    views = [f"v{number}" for number in range(8)]
    rules = "".join(f"virtual view {v}.\n{v}(X) :- a(X), X > {i}.\n" for i, v in enumerate(views))
    database = opened(program=f"base a(x: int).\n{rules}")
    for number in range(ROUTES_MAX + 10):
        wanted = [view for bit, view in enumerate(views) if number >> bit & 1]
        change = database.apply(insert={"a": [(100 + number,)]}, views=wanted)
        assert change.relations == ("a", *wanted)
    assert database.apply(insert={"a": [(1,)]}).relations == ("a", "v0")
