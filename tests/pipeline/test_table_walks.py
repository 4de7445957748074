"""Walks over a database in tables: every verb it has, in any order, beside the model of all walks.

A step takes a second or so. `make test` takes a few dozen, `make fuzz` hundreds from fresh seeds.
Rows are given as tuples or as DataFrames; in every second walk more than two rows are too many for
the driver, so changes are computed on the cluster. Every step compares delta and state; at the end
and after opening again the tables are read as anybody reads them, and the feeds of changes must
lead from each version to the next.
"""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path

import pytest
from families import OWN
from pyspark.sql import SparkSession
from table_verbs import VERBS, finish
from table_walker import TableWalker

from deltalog.pipeline.table_database import TableDatabase
from walks import Road, drawn_setting, shrunk, walk_from

IS_FUZZ = bool(os.environ.get("DELTALOG_FUZZ"))
WALKS, STEPS = (40, 20) if IS_FUZZ else (2, 12)
FIRST = time.time_ns() % 10**9 if IS_FUZZ else 3
NAMES = tuple(OWN)
HERE = Path(__file__).parent


@pytest.mark.parametrize("seed", range(FIRST, FIRST + WALKS))
def test_nothing_goes_wrong_on_a_walk(spark: SparkSession, seed: int) -> None:
    rng = random.Random(f"{seed} tables")
    setting = drawn_setting(rng, "tables", "spark", False, OWN[rng.choice(NAMES)])
    road = Road(
        lambda setting, folder: TableWalker(spark, setting, folder), VERBS, finish, STEPS, STEPS
    )
    _, failure = walk_from(rng, seed, setting, road)
    assert failure is None, f"\n{shrunk(failure, replays_max=25)}"


BESIDE = {
    "action": "registered when a walk opens",
    "call_action": "called by rules",
    "registered": "asked by rules",
    "last_program": "read by `why_changed`",
    "load_frames": "`load` of frames",
    "load_rows": "`load` of rows",
    "measured": "test_pipeline_runs.py",
    "model": "what rules are checked with",
    "quarantine": "the frame of `quarantined`",
    "rules": "compared after every step (`check_marks`)",
    "spark": "the session",
    "statistics": "rounds and facts of the last change",
}
"""Public names that walks do not use themselves, and where they are."""


def test_every_verb_is_in_a_walk() -> None:
    walks = HERE.parent / "walks"
    texts = [HERE / "table_walker.py", HERE / "table_verbs.py"]
    texts += [walks / "verbs.py", walks / "reason_verbs.py"]
    used = set(re.findall(r"\bdb\.(\w+)", "".join(path.read_text() for path in texts)))
    names = {name for name in dir(TableDatabase) if not name.startswith("_")}
    assert names - used == BESIDE.keys() & names
    assert BESIDE.keys() <= names | {"spark", "state"}
