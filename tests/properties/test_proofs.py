"""Every proof of random programs is right, and none is higher than it must be."""

from __future__ import annotations

import random

import pytest
from effort import effort
from hypothesis import given
from hypothesis import strategies as st
from programs import Scenario, scenarios
from proof_checker import check_proof, least_heights

import deltalog
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.why import instances
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.sets import SetProof

PROVED_MAX = 12
"""Facts of a program that are proved."""


@pytest.fixture(autouse=True)
def _whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "CONTRIBUTORS_MAX", 10**6)


def _database(scenario: Scenario, materialize: bool) -> deltalog.MemoryDatabase:
    return deltalog.connect(program=scenario.program, facts=scenario.facts, materialize=materialize)


@given(scenarios(), st.booleans(), st.randoms(use_true_random=False))
@effort(quick=40, fuzz=1000)
def test_every_proof_is_right_and_none_is_too_high(
    scenario: Scenario, materialize: bool, random: random.Random
) -> None:
    db = _database(scenario, materialize)
    state = {name: db.facts(name) for name in db.relations}
    heights = least_heights(scenario.program, db.relations, state)
    facts = sorted((name, row) for name, rows in state.items() for row in rows)
    for fact in random.sample(facts, min(len(facts), PROVED_MAX)):
        proof = db.why(fact_text(*fact))
        assert isinstance(proof, Proof)
        assert (proof.relation, proof.row) == fact
        check_proof(proof, scenario.program, db.relations, state)
        assert proof.height == heights[fact], str(proof)


@given(scenarios(), st.randoms(use_true_random=False))
@effort(quick=20, fuzz=300)
def test_all_derivations_have_every_proof(scenario: Scenario, random: random.Random) -> None:
    """Each step is right, and every one of its premises that is derived has a step, too."""
    db = _database(scenario, True)
    facts = sorted((n, row) for n in db.model.views for row in db.facts(n))
    for fact in random.sample(facts, min(len(facts), 3)):
        found = db.why(fact_text(*fact), every=True)
        assert isinstance(found, Derivations)
        assert found.is_complete
        proved = {step.conclusion for step in found.steps}
        premises = {
            p.conclusion for step in found.steps for p in step.premises if p.kind == "derived"
        }
        assert premises <= proved
        lowest = db.why(fact_text(*fact))
        assert isinstance(lowest, Proof)
        shown = {(s.conclusion, tuple(p.conclusion for p in s.premises)) for s in found.steps}
        for step in lowest.steps():
            if step.rule is not None:
                assert (step.conclusion, tuple(p.conclusion for p in step.premises)) in shown


@given(scenarios(), st.randoms(use_true_random=False))
@effort(quick=20, fuzz=300)
def test_the_proof_of_a_set_is_that_of_its_facts(scenario: Scenario, random: random.Random) -> None:
    db = _database(scenario, True)
    name = random.choice(db.model.views)
    rows = db.facts(name)
    arity = db.relations[name].arity
    if not rows or not arity:
        return
    text = f"{name}({', '.join(f'X{i}' for i in range(arity))})"
    found = db.why(text)
    assert isinstance(found, SetProof)
    assert found.count == found.proved == len(rows)
    single = [db.why(fact_text(name, row)) for row in rows]
    assert found.height == max(proof.height for proof in single if isinstance(proof, Proof))
    used = {
        step.relation
        for proof in single
        if isinstance(proof, Proof)
        for step in proof.steps()
        if step.row is not None
    }
    assert {table.relation for table in found.tables} == used
