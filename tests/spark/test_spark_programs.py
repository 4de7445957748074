"""Every program case on a real local Spark, evaluated and kept true by several strategies."""

from __future__ import annotations

from pathlib import Path

import pytest
from effort import IS_FUZZ
from pyspark.sql import SparkSession

from casefiles import find, identify, read_case
from conformance.test_programs import applied, change_in, check, without_facts
from deltalog import ChangeSet
from deltalog.language.parser import parse_text
from treatments import Upkeep, contents, difference

UPKEEP = {
    "auto": Upkeep("auto", True, engine="spark"),
    "virtual": Upkeep("auto", False, engine="spark"),
    "recompute": Upkeep("recompute", True, engine="spark"),
    "delta": Upkeep("delta", True, engine="spark"),
    "differencing": Upkeep("differencing", False, engine="spark"),
    "demand": Upkeep("demand", False, engine="spark"),
}
SIZES = {"mixed": "4", "cluster": "0"}
"""What may stay on the driver: the smallest relations, or nothing that has columns."""
EVERY_WAY = ("aggregates", "shapes", "types", "1996_closure")
"""Cases that between them have every step and aggregate: under every strategy, and wholly on the
cluster, which takes its time."""
LONG = ("large_sums", "aggregates")
"""One strategy must do, or one place: `make fuzz` has the other, too."""


def treatments(path: Path) -> list[tuple[str, str]]:
    is_short = path.stem not in LONG or IS_FUZZ
    if path.stem in EVERY_WAY:
        return [*(("mixed", upkeep) for upkeep in UPKEEP), *[("cluster", "auto")] * is_short]
    return [("mixed", "auto"), *[("mixed", "virtual")] * is_short]


TREATMENTS = [(path, *treatment) for path in find("programs") for treatment in treatments(path)]


@pytest.mark.parametrize(
    ("path", "size", "upkeep"),
    TREATMENTS,
    ids=[f"{identify(path)}-{size}-{upkeep}" for path, size, upkeep in TREATMENTS],
)
def test_live_program(path: Path, size: str, upkeep: str, spark: SparkSession) -> None:
    """The facts are there from the beginning, every `update` is one transaction."""
    spark.conf.set("spark.deltalog.driver_rows_max", SIZES[size])
    case = read_case(path)
    program, facts = without_facts(parse_text(case.text("program")))
    database = UPKEEP[upkeep].connect(program, facts)
    delta = ChangeSet()
    for section in case.sections:
        if section.name == "update":
            before = contents(database)
            delta = applied(database, change_in(section.text, database.relations))
            assert delta == difference(before, contents(database)).only(*database.model.views)
        elif section.name == "delta":
            assert delta == change_in(section.text, database.relations)
        elif section.words[0] == "expect":
            check(case, section, contents(database))
    assert database.audit(engine="reference") == ()
