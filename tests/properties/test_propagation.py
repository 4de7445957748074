"""Update propagation: every strategy = recomputation, after each transaction."""

from __future__ import annotations

import pytest
from effort import effort
from hypothesis import given
from programs import Features, Scenario, applied, scenarios

import deltalog
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.engine_choice import ENGINES
from treatments import LIMITS, helpers, naive

TREATMENTS = [
    (strategy, materialize)
    for strategy in STRATEGIES
    for materialize in (True, False)
    if materialize or strategy in ("auto", "magic", "demand", "differencing")
]

LONGER_JOINS = Features(longer_joins=True, aggregates=False)


def _state(database: MemoryDatabase) -> dict[str, set[tuple[object, ...]]]:
    return {name: database.facts(name) for name in database.relations}


def check(scenario: Scenario, strategy: str, materialize: bool, engine: str) -> None:
    """Deltas and states are those of recomputation on the naive evaluator, step by step."""
    database, fresh = (
        deltalog.connect(
            program=scenario.program,
            strategy=strategy,
            materialize=materialize,
            engine=each,
            limits=LIMITS,
        )
        for each in (engine, "reference")
    )
    database.apply(insert={name: sorted(rows) for name, rows in scenario.facts.items()})
    facts = {name: set(rows) for name, rows in scenario.facts.items()}
    before = naive(scenario.program, facts)
    assert _state(database) == before
    for number, (inserts, deletes) in enumerate(scenario.transactions, start=1):
        facts = applied(facts, (inserts, deletes))
        after = naive(scenario.program, facts)
        expected = ChangeSet(
            {name: after[name] - before[name] for name in after},
            {name: before[name] - after[name] for name in after},
        )
        plus = {name: sorted(rows) for name, rows in inserts.items()}
        minus = {name: sorted(rows) for name, rows in deletes.items()}
        assert database.what_if(insert=plus, delete=minus) == expected, f"what-if of step {number}"
        assert database.apply(insert=plus, delete=minus) == expected, f"delta of step {number}"
        assert _state(database) == after, f"state after step {number}"
        before = after
    fresh.apply(insert={name: sorted(rows) for name, rows in facts.items()})
    assert helpers(database) == helpers(fresh), "what is stored beside the views"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("strategy", "materialize"), TREATMENTS)
def test_strategy(strategy: str, materialize: bool, engine: str) -> None:
    @effort(quick=8, fuzz=700)
    @given(scenarios(Features(view_declarations=not materialize)))
    def run(scenario: Scenario) -> None:
        check(scenario, strategy, materialize, engine)

    run()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strategy", ["auto", "recompute"])
def test_longer_joins(strategy: str, engine: str) -> None:
    @effort(quick=10, fuzz=700)
    @given(scenarios(LONGER_JOINS))
    def run(scenario: Scenario) -> None:
        check(scenario, strategy, True, engine)

    run()


@pytest.mark.parametrize("network", ["bushy", "flat"])
def test_nervous_reports_too_much_but_never_too_little(network: str) -> None:
    @effort(quick=12, fuzz=3_000)
    @given(scenarios(Features(view_declarations=False)))
    def run(scenario: Scenario) -> None:
        strict, nervous = (
            deltalog.connect(
                program=scenario.program,
                strategy="differencing",
                materialize=False,
                network=network,
                nervous=is_nervous,
                engine="reference",
                limits=LIMITS,
                facts={name: sorted(rows) for name, rows in scenario.facts.items()},
            )
            for is_nervous in (False, True)
        )
        for inserts, deletes in scenario.transactions:
            plus = {name: sorted(rows) for name, rows in inserts.items()}
            minus = {name: sorted(rows) for name, rows in deletes.items()}
            exact = strict.apply(insert=plus, delete=minus)
            reported = nervous.apply(insert=plus, delete=minus)
            for name in exact.relations:
                assert exact.inserted[name] <= reported.inserted[name]
                assert exact.deleted[name] <= reported.deleted[name]
            assert _state(nervous) == _state(strict)

    run()
