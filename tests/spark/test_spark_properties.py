"""Update propagation on Spark = recomputation, after each transaction, on random programs."""

from __future__ import annotations

from typing import Any

import pytest
from effort import effort
from hypothesis import given
from programs import Features, Scenario, scenarios
from pyspark.sql import SparkSession
from test_check_phase import (
    VIEWS,
    Drawn,
    Operations,
    check_history,
    facts,
    opened,
    rule_sets,
    transactions,
)
from test_propagation import check

from reference_rules import State

EVERY_WORD = (
    Drawn(
        "q0",
        "rule q0 for X priority 1 immediate when c(X, Y), a(Y) do insert b(X) else delete b(X).\n",
        frozenset(),
        False,
    ),
    Drawn(
        "q1",
        "rule q1 for X nervous when path(X, Y), Y > X do emit seen(X), call noted(X, X).\n",
        frozenset(),
        False,
    ),
    Drawn(
        "r2",
        "rule r2(P) on set k(X, Y) when k(X, P) do insert a(X) else delete a(X), set k(X, 3).\n",
        frozenset({1, 2}),
        False,
    ),
    Drawn(
        "q3",
        "rule q3 on delete only_a(X) when number(N), N > 1 do delete c(X, _), emit gone(X).\n",
        frozenset(),
        False,
    ),
)
"""Rules with parameters, priorities, `immediate`, `nervous`, `else`, events on sets and views."""
BEGUN: State = {"a": {(1,)}, "b": set(), "c": {(0, 1), (1, 2)}, "k": {(1, 1), (2, 0)}, "log": set()}
HISTORY: list[Operations] = [
    [("insert", "c", [(2, 1)]), ("set", "k", [(1, 2)])],
    [("insert", "b", [(1,)]), ("delete", "a", [(1,)]), ("set", "k", [(2, 2)])],
    [("delete", "c", [(0, 1)]), ("insert", "a", [(2,), (3,)]), ("insert", "c", [(2, 3), (0, 3)])],
]


@pytest.mark.parametrize(("strategy", "materialize"), [("auto", True), ("auto", False)])
def test_strategy(strategy: str, materialize: bool, spark: SparkSession) -> None:
    spark.conf.set("spark.deltalog.driver_rows_max", "2")

    @effort(quick=2, fuzz=40)
    @given(scenarios(Features(view_declarations=not materialize)))
    def run(scenario: Scenario) -> None:
        check(scenario, strategy, materialize, "spark")

    run()


def test_rules_of_every_kind_fire_what_the_interpreter_says(spark: SparkSession) -> None:
    fire_on_spark(EVERY_WORD, BEGUN, HISTORY)


def test_rules_fire_what_the_interpreter_says(spark: SparkSession) -> None:
    @effort(quick=2, fuzz=40)
    @given(rule_sets, facts, transactions)
    def run(rule_set: tuple[Drawn, ...], begun: State, history: list[Operations]) -> None:
        fire_on_spark(rule_set, begun, history)

    run()


def fire_on_spark(rule_set: tuple[Drawn, ...], begun: State, history: list[Operations]) -> None:
    """In the order of a small interpreter of the check phase, whose engine is another."""
    text = VIEWS + "".join(rule.text for rule in rule_set)
    calls: list[Any] = []
    db = opened(text, begun, calls, None, engine="spark")
    check_history([db], calls, text, rule_set, begun, history)
