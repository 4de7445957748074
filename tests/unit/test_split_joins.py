"""Where joins are split, and that nobody sees it from outside."""

from __future__ import annotations

import pytest

import deltalog
from treatments import helpers

POINTS_TO = """
    base alloc(variable: int, object: int).
    base load(variable: int, pointer: int).
    pt(V, O) :- alloc(V, O).
    pt(V, O) :- load(V, P), pt(P, Q), pt(Q, O).
"""
FACTS = {"alloc": [(1, 2), (2, 3), (3, 1)], "load": [(4, 1), (5, 4)]}


@pytest.mark.parametrize(
    ("strategy", "is_stored", "is_split"),
    [
        ("auto", True, True),
        ("rederive", True, True),
        ("recompute", True, True),
        ("delta", True, True),  # not for recursion, so it is kept as under auto
        ("magic", True, False),
        ("demand", True, False),
        ("auto", False, False),
    ],
)
def test_where_joins_are_split(strategy: str, is_stored: bool, is_split: bool) -> None:
    db = deltalog.connect(program=POINTS_TO, strategy=strategy, materialize=is_stored, facts=FACTS)
    assert ("pt__join1" in db.model.stored) == is_split
    assert db.facts("pt") == {(1, 2), (2, 3), (3, 1), (4, 3), (5, 1)}


def test_helpers_are_not_seen_from_outside() -> None:
    db = deltalog.connect(program=POINTS_TO, facts=FACTS)
    assert db.statistics.generated["pt__join1"] == 2
    assert set(db.relations) == {"alloc", "load", "pt"}
    assert db.model.views == ("pt",)
    delta = db.apply(insert={"load": [(4, 2)]}, delete={"alloc": [(1, 2)]})
    assert delta.relations == ("alloc", "load", "pt")
    assert db.audit() == ()
    with pytest.raises(deltalog.DataError):
        db.facts("pt__join1")


def test_ranks_reach_through_helpers() -> None:
    """A cycle through a helper does not keep itself alive."""
    db = deltalog.connect(program=POINTS_TO, facts={"alloc": [(0, 0)], "load": [(0, 1), (1, 0)]})
    assert db.facts("pt") == {(0, 0), (1, 0)}
    db.apply(delete={"alloc": [(0, 0)]})
    assert db.facts("pt") == set()
    assert helpers(db) == {"pt__join1": set()}
