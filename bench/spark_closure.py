"""A closure on Spark: our materialisation and single edges beside semi-naive rounds by hand.

    path(X, Y) :- edge(X, Y).        path(X, Z) :- path(X, Y), edge(Y, Z).

The graph is many communities of a hundred nodes, two edges from every node to a drawn one of its
community: cyclic, with some 8,000 facts each. By hand it is the usual loop: what was new is
joined with the edges, which are broadcast, made distinct, and compared with what is known by an
anti-join; lineage is cut every round. It runs at a tenth of the size, too, so that everything is
compiled when the full size is measured, and to see what grows with the facts.

Both must have the same facts, by their number and by two sums over them. After all changes, the
communities that were changed are compared with a closure in Python, fact by fact, and what came and
went adds up to the number of facts.
"""

from __future__ import annotations

import gc
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import deltalog
from bench.measure import BenchError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROGRAM = """
base edge(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
"""
COMMUNITY, DEGREE = 100, 2
FACTS_PER_COMMUNITY = 8_000
SHARES = (0.1, 1.0)
ROUNDS_MAX = 200
KINDS = ("insert", "delete")
WARM_UPS = 4
Sums = tuple[int, int, int]
Edge = tuple[int, int]


@dataclass
class ClosureFound:
    """Seconds of both at each share, facts, rounds by hand, and jobs per kind of change."""

    facts: int = 0
    loaded: list[float] = field(default_factory=list)
    load_jobs: dict[str, int] = field(default_factory=dict)
    by_hand: list[float] = field(default_factory=list)
    by_hand_rounds: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    changed: dict[str, list[int]] = field(default_factory=dict)
    jobs: dict[str, dict[str, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return dict(vars(self))


def edges(spark: SparkSession, communities: int) -> DataFrame:
    nodes = communities * COMMUNITY
    numbers = spark.range(nodes * DEGREE)
    src = f"id div {DEGREE}"
    dst = f"({src}) - ({src}) % {COMMUNITY} + pmod(hash(id), {COMMUNITY}L)"
    return numbers.selectExpr(f"{src} AS src", f"{dst} AS dst").distinct()


def by_hand(edge: DataFrame) -> tuple[DataFrame, int]:
    """The closure by plain semi-naive rounds, and how many there were."""
    step = edge.toDF("mid", "dst").hint("broadcast")
    delta = edge.toDF("src", "mid").localCheckpoint()
    known = delta
    for rounds in range(1, ROUNDS_MAX):
        joined = delta.join(step, "mid").select("src", "dst").distinct().toDF("src", "mid")
        delta = joined.join(known, ["src", "mid"], "left_anti").localCheckpoint()
        if delta.isEmpty():
            return known, rounds
        known = known.unionAll(delta)
    raise BenchError(f"the closure by hand is not complete after {ROUNDS_MAX} rounds")


def sums(data: DataFrame) -> Sums:
    """How many rows there are, and two sums that other rows would hardly have."""
    named = data.toDF("a", "b")
    row = named.selectExpr(
        "count(*)", "coalesce(sum(a * 31 + b), 0)", "coalesce(sum(hash(a, b)), 0)"
    ).first()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def closure(spark: SparkSession, facts: int, changes: int, found: ClosureFound) -> Iterator[str]:
    """Measure; says what comes next."""
    communities = max(10, facts // FACTS_PER_COMMUNITY)
    by_hand(edges(spark, 1))  # compiles what the timed ones find compiled
    for share in SHARES:
        yield f"rounds by hand, {share:.0%}"
        edge = edges(spark, max(1, round(communities * share))).localCheckpoint()
        started = time.perf_counter()
        known, found.by_hand_rounds = by_hand(edge)
        expected = sums(known)
        found.by_hand.append(time.perf_counter() - started)
        del known  # its checkpoints can go
        gc.collect()
        yield f"materialising, {share:.0%}"
        database, seconds = _opened(spark, edge)
        found.loaded.append(seconds)
        if sums(_engine(database).frame("path")) != expected:
            raise BenchError("closure: the view is not what the rounds by hand say")
        if share < 1:
            _drop(database)
    found.load_jobs = dict(_engine(database).jobs)
    found.facts = expected[0]
    touched: set[int] = set()
    for number, change in enumerate(changes_of(edge, communities, changes)):
        kind = KINDS[number % 2]
        yield f"single edges, {kind}"
        _apply(database, kind, change, number >= WARM_UPS * len(KINDS), found)
        touched.add(change[0] // COMMUNITY)
    yield "checking"
    _check(database, touched)
    _drop(database)


def _opened(spark: SparkSession, edge: DataFrame) -> tuple[deltalog.MemoryDatabase, float]:
    started = time.perf_counter()
    database = deltalog.connect(spark=spark, program=PROGRAM, facts={"edge": edge})
    return database, time.perf_counter() - started


def changes_of(edge: DataFrame, communities: int, changes: int) -> Iterator[Edge]:
    """Edges to insert and delete in turn, each in a community of its own; the first warm up."""
    draw = random.Random(7)
    wanted = len(KINDS) * (changes + WARM_UPS)
    chosen = draw.sample(range(communities), min(communities, wanted))
    listed = ", ".join(map(str, chosen))
    held = edge.where(f"src div {COMMUNITY} IN ({listed})").collect()
    by_community: dict[int, list[Edge]] = {}
    for row in held:
        by_community.setdefault(row[0] // COMMUNITY, []).append((row[0], row[1]))
    for number in range(wanted):
        community = chosen[number % len(chosen)]
        there = sorted(by_community[community])
        if number % 2:
            gone = draw.choice(there)
            by_community[community].remove(gone)
            yield gone
        else:
            nodes = range(community * COMMUNITY, (community + 1) * COMMUNITY)
            free = [(a, b) for a in nodes for b in nodes if (a, b) not in set(there)]
            come = draw.choice(free)
            by_community[community].append(come)
            yield come


def _apply(
    database: deltalog.MemoryDatabase, kind: str, edge: Edge, is_counted: bool, found: ClosureFound
) -> None:
    engine = _engine(database)
    before, size = Counter(engine.jobs), engine.size("path")
    started = time.perf_counter()
    change = database.apply(**{kind: {"edge": [edge]}})
    seconds = time.perf_counter() - started
    come, gone = len(change.inserted["path"]), len(change.deleted["path"])
    if engine.size("path") != size + come - gone:
        raise BenchError("closure: what came and went does not add up")
    if is_counted:
        found.seconds.setdefault(kind, []).append(seconds)
        found.changed.setdefault(kind, []).append(come + gone)
        found.jobs[kind] = dict(engine.jobs - before)


def _check(database: deltalog.MemoryDatabase, touched: set[int]) -> None:
    """The communities that were changed, fact by fact."""
    engine = _engine(database)
    listed = ", ".join(map(str, sorted(touched)))
    where = f"c0 div {COMMUNITY} IN ({listed})"
    edge = {tuple(row) for row in engine.frame("edge").where(where).collect()}
    path = {tuple(row) for row in engine.frame("path").where(where).collect()}
    if path != closed(edge):
        raise BenchError("closure: changed communities are not what a closure in Python says")


def closed(edge: Iterable[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    after: dict[int, list[int]] = {}
    for a, b in edge:
        after.setdefault(a, []).append(b)
    path = set()
    for start in after:
        waiting = [start]
        while waiting:
            for node in after.get(waiting.pop(), ()):
                if (start, node) not in path:
                    path.add((start, node))
                    waiting.append(node)
    return path


def _engine(database: deltalog.MemoryDatabase) -> Any:
    return database.engine


def _drop(database: deltalog.MemoryDatabase) -> None:
    for relation in list(_engine(database).relations):
        database.engine.drop(relation)
