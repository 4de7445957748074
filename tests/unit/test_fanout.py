"""Where to go on in a join is decided by the data that is there; what is derived is not."""

from __future__ import annotations

import random

import pytest

import deltalog
from deltalog.plan.nodes import Match
from deltalog.runtime.fanout import SAMPLE, Samples

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


def second_steps(database: deltalog.MemoryDatabase) -> dict[str, str]:
    """Of each rule of `allow`, from where it goes on after its first step."""
    [node] = [each for each in database.propagation.nodes if "allow" in each.choice.predicates]
    found = {}
    for plan in (plan for part in node.installed.parts for plan in part.plans):
        steps = (plan.initial or plan.variants[0]).steps
        matches = [step.relation for step in steps if isinstance(step, Match)]
        if len(matches) > 1:
            found[plan.head] = str(getattr(matches[1], "stored", matches[1]))
    return found


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
    assert second_steps(database)["allow__prefix1"] == expected
    assert second_steps(database)["allow__red"] == "allow__prefix1"
    given["grant"].remove(gone)
    afresh = deltalog.connect(program=RIGHTS, facts=given)
    assert database.facts("allow") == afresh.facts("allow")
    assert told.deleted["allow"]


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_ways_with_many_rows_are_walked_only_as_far_as_needed(engine: str) -> None:
    given = facts(80, 80)
    database = deltalog.connect(program=RIGHTS, facts=given, engine=engine)
    database.apply(delete={"grant": given["grant"][:1]})
    steps = second_steps(database)
    assert "allow__prefix1" not in steps
    assert steps["allow__red"] in ("in_group", "under")


def test_the_estimate_is_near_what_is_there() -> None:
    database = deltalog.connect(program=RIGHTS, facts=facts(20, 5))
    fanout = Samples(database.engine).fanout({})
    assert fanout("in_group", (0,)) == pytest.approx(19, rel=0.3)
    assert fanout("under", (0,)) == pytest.approx(4, rel=0.3)
    assert fanout("in_group", ()) == database.engine.size("in_group")


def test_of_few_rows_and_unknown_relations_nothing_is_said() -> None:
    database = deltalog.connect(program=RIGHTS, facts=facts(20, 5))
    fanout = Samples(database.engine).fanout({})
    assert fanout("grant", (0,)) == fanout("nowhere", (0,)) == 0
