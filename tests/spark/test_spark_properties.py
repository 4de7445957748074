"""Update propagation on Spark = recomputation, after each transaction, on random programs."""

from __future__ import annotations

import pytest
from effort import effort
from hypothesis import given
from programs import Features, Scenario, scenarios
from pyspark.sql import SparkSession
from test_propagation import check


@pytest.mark.parametrize(("strategy", "materialize"), [("auto", True), ("auto", False)])
def test_strategy(strategy: str, materialize: bool, spark: SparkSession) -> None:
    spark.conf.set("spark.deltalog.driver_rows_max", "2")

    @effort(quick=2, fuzz=40)
    @given(scenarios(Features(view_declarations=not materialize)))
    def run(scenario: Scenario) -> None:
        check(scenario, strategy, materialize, "spark")

    run()
