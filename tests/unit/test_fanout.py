"""Where to go on in a join is decided by the data that is there; what is derived is not."""

from __future__ import annotations

import random

import pytest

import deltalog
from deltalog.plan.nodes import Match, Overlay
from deltalog.runtime.fanout import SAMPLE, sampled_fanout

RIGHTS = """
base in_group(u: int, g: int). base grant(g: int, f: int). base under(d: int, f: int).
allow(U, D) :- in_group(U, G), grant(G, F), under(D, F).
"""
FEW, MANY = 2, 40


def facts(groups: int, folders: int) -> dict[str, list[tuple[int, int]]]:
    """Each user is in so many groups, each document under so many folders."""
    draw = random.Random(3)

    def pairs(each: int) -> list[tuple[int, int]]:
        return [(n, m) for n in range(4 * SAMPLE // each) for m in draw.sample(range(100), each)]

    grant = [(g, g) for g in range(0, 100, 9)]
    return {"in_group": pairs(groups), "grant": grant, "under": pairs(folders)}


def second_step(database: deltalog.Database) -> str:
    """From where the search for another derivation of a lost fact goes on."""
    [node] = [each for each in database.propagation.nodes if "allow" in each.choice.predicates]
    plans = [plan for part in node.installed.parts for plan in part.plans]
    [red] = [plan for plan in plans if plan.head == "allow__red"]
    matches = [step for step in (red.initial or red.variants[0]).steps if isinstance(step, Match)]
    relation = matches[1].relation
    return relation.stored if isinstance(relation, Overlay) else relation


@pytest.mark.parametrize("engine", ["embedded", "reference"])
@pytest.mark.parametrize(
    ("groups", "folders", "expected"), [(MANY, FEW, "under"), (FEW, MANY, "in_group")]
)
def test_a_join_goes_on_where_fewest_rows_are(
    groups: int, folders: int, expected: str, engine: str
) -> None:
    given = facts(groups, folders)
    database = deltalog.connect(program=RIGHTS, facts=given, engine=engine)
    gone = given["grant"][3]
    told = database.apply(delete={"grant": [gone]})
    assert second_step(database) == expected
    given["grant"].remove(gone)
    afresh = deltalog.connect(program=RIGHTS, facts=given)
    assert database.facts("allow") == afresh.facts("allow")
    assert told.deleted["allow"]


def test_the_estimate_is_near_what_is_there() -> None:
    database = deltalog.connect(program=RIGHTS, facts=facts(20, 5))
    fanout = sampled_fanout(database.engine, {})
    assert fanout("in_group", (0,)) == pytest.approx(19, rel=0.3)
    assert fanout("under", (0,)) == pytest.approx(4, rel=0.3)
    assert fanout("in_group", ()) == database.engine.size("in_group")


def test_of_few_rows_and_unknown_relations_nothing_is_said() -> None:
    database = deltalog.connect(program=RIGHTS, facts=facts(20, 5))
    fanout = sampled_fanout(database.engine, {})
    assert fanout("grant", (0,)) == fanout("nowhere", (0,)) == 0
