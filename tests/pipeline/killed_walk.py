"""Processes that change a state until they are killed.

One has a JVM of its own, which dies with it; works with one that stays (`spark_sessions.py`), so
that jobs it has begun go on; or is the driver of a cluster, or a client of Spark Connect.

Batches have numbers and follow from them, so a batch that was not taken is taken again by the next
process. Rules fire and emit, a constraint refuses. Between batches the process loads, folds,
compacts, activates rules and goes over to another program. Every step is reported when it is done;
a process that dies at a write says where.

What is large is so in few rounds: a load of more rows than the driver takes (`DRIVER_ROWS`) does
not meet other edges, so that the cluster computes and writes it without many small jobs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from killed_processes import Say, make_deadly
from killed_run import WRITES

import deltalog
from deltalog.pipeline.table_database import TableDatabase
from spark_sessions import delta_session

STEPS_MAX = 40
SOURCE = "walk"
NODES, LARGE = 5, 70
DRIVER_ROWS = (60, 1000, 1000)
"""How many rows the driver takes: less than a large batch has, or more."""
STORAGES = (*["driver"] * 5, "spark")
"""Who writes small commits: processes of both kinds go on with one state."""
PROGRAM = """
base edge(src: int, dst: int).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
view reach(src: int, number: int).
reach(X, count()) :- path(X, _).
base looped(src: int).
deny large(X) :- edge(X, _), X > 900 say "{X} is large".
rule loops for X when path(X, X) do insert looped(X), emit loop(X)
  else delete looped(X), emit open(X).
rule checked priority 1 on insert looped(X) do call heard(X).
"""
OTHER = PROGRAM.replace("path(X, Y), edge(Y, Z)", "edge(X, Y), path(Y, Z)").replace(
    "reach(src: int, number: int).\nreach(X, count())", "reach(src: int).\nreach(X)"
)
PROGRAMS = (PROGRAM, OTHER)
Edges = set[tuple[int, int]]


def batch(number: int) -> tuple[Edges, Edges]:
    """The rows that a batch inserts and deletes; some are more than the driver takes."""
    rng = random.Random(number)
    if number % 7 == 3:
        return {(200 + number, 1000 + node) for node in range(LARGE)}, set()
    drawn = [(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(3)]
    inserted = {*drawn[:2], (100 + number, rng.randrange(NODES))}
    gone = (100 + rng.randrange(number + 1), rng.randrange(NODES))
    return inserted, {drawn[2], gone} - inserted


def opened(spark: Any, state: str) -> TableDatabase:
    """The state, with the program that it has."""
    freshness: Any = random.choice(("commit", "demand", 0.5))
    for program in PROGRAMS:
        try:
            db = deltalog.connect(spark=spark, state=state, program=program, freshness=freshness)
            db.action("heard")(lambda rows: None)
            return db
        except deltalog.DataError as error:
            if "E1002" not in error.codes:
                raise
    raise AssertionError("the program of the state is none of these")


def take(db: TableDatabase) -> str:
    """The next batch that has not been taken."""
    number = max((int(name) for _, name in db.batches), default=-1) + 1
    inserted, deleted = batch(number)
    named = ((SOURCE, str(number)),)
    if len(inserted) == LARGE:
        db.load({"edge": sorted(inserted)}, batches=named)
    else:
        db.apply(insert={"edge": inserted}, delete={"edge": deleted}, batches=named)
    return f"batch {number}"


def change_program(db: TableDatabase) -> str:
    is_first = "number" in [column.name for column in db.relations["reach"].columns]
    db.change_program(PROGRAMS[is_first])
    return "program"


def violate(db: TableDatabase) -> str:
    """A batch that a constraint refuses, with what its rules would have done."""
    before = db.version, db.messages(), db.rules()
    try:
        db.apply(insert={"edge": [(950, 1), (7, 7)]}, batches=((SOURCE, "bad"),))
    except deltalog.ConstraintError:
        assert before == (db.version, db.messages(), db.rules())
        return "refused"
    raise AssertionError("it was not refused")


def activation(db: TableDatabase) -> str:
    """Deactivated and activated again, so that nothing is missed between."""
    db.deactivate("checked")
    db.activate("checked")
    return "activation"


def compact(db: TableDatabase) -> str:
    db.compact(deltalog.Retention(versions=2))
    return "compaction"


def fold(db: TableDatabase) -> str:
    db.fold()
    return "fold"


STEPS: tuple[Callable[[TableDatabase], str], ...] = (
    *[take] * 5,
    *[fold] * 2,
    compact,
    change_program,
    violate,
    activation,
)


def walk(say: Say, state: str, seed: int, last: int, when: str) -> None:
    """Take steps, and die before or after this write, if it is not 0."""
    rng = random.Random(seed)
    spark = delta_session()
    spark.conf.set("spark.deltalog.driver_rows_max", str(rng.choice(DRIVER_ROWS)))
    spark.conf.set("spark.deltalog.storage", rng.choice(STORAGES))
    make_deadly(WRITES, last, when, say)
    with opened(spark, state) as db:
        say("open")
        for _ in range(STEPS_MAX):
            say(rng.choice(STEPS)(db))
