"""Random programs over hundreds of rows: memory grows, indexes are sorted, batches are full.

The reference engine would take too long, so the embedded engine is compared with itself: whatever
the order in which facts come, and by whatever changes a state was reached, views are the same. What
is only wrong when a relation outgrows its memory at a certain row differs between two orders.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import pytest
from effort import effort
from hypothesis import given, note
from hypothesis import strategies as st
from programs import Facts, Features, base_relations, programs

import deltalog
from deltalog import LimitError
from deltalog.language.ast import Declaration, Program
from deltalog.language.printer import print_program
from deltalog.runtime.limits import Limits

LIMITS = Limits(rounds_max=5_000, facts_max=60_000, seconds_max=inf)
DOMAINS = (3, 12, 60, 400)
STEPS = 4


@st.composite
def larger(draw: st.DrawFn, features: Features) -> tuple[Program, tuple[Declaration, ...], int]:
    bases = draw(base_relations())
    return draw(programs(features, bases)), bases, draw(st.integers(0, 10**9))


def random_rows(declaration: Declaration, count: int, rng: random.Random) -> set[tuple[int, ...]]:
    sizes = [rng.choice(DOMAINS) for _ in declaration.columns or ()]
    return {tuple(rng.randrange(size) for size in sizes) for _ in range(count)}


def views(database: deltalog.MemoryDatabase, names: Iterable[str]) -> dict[str, set[Any]]:
    return {name: set(database.facts(name)) for name in names}


class Compared:
    """A program whose state is reached by changes, and compared with fresh loads."""

    def __init__(
        self, program: Program, strategy: str, materialize: bool, rng: random.Random
    ) -> None:
        self.program, self.rng = program, rng
        self.strategy, self.materialize = strategy, materialize
        self.base: Facts = {}

    def load(self, facts: Mapping[str, list[tuple[int, ...]]]) -> deltalog.MemoryDatabase:
        return deltalog.connect(
            program=self.program,
            strategy=self.strategy,
            materialize=self.materialize,
            facts=facts,
            limits=LIMITS,
        )

    def load_shuffled(self) -> deltalog.MemoryDatabase:
        shuffled = {}
        for name, rows in self.base.items():
            shuffled[name] = sorted(rows)
            self.rng.shuffle(shuffled[name])
        return self.load(shuffled)

    def run(self, bases: Iterable[Declaration]) -> None:
        for each in bases:
            self.base[each.predicate] = random_rows(each, self.rng.choice((40, 200, 900)), self.rng)
        database = self.load({name: sorted(rows) for name, rows in self.base.items()})
        names = database.relations
        assert views(database, names) == views(self.load_shuffled(), names)
        for each in [each for each in bases for _ in range(STEPS)]:
            before = views(database, names)
            delta = self.change(database, each)
            after = views(database, names)
            assert after == views(self.load_shuffled(), names)
            for name in names:
                assert set(delta.inserted[name]) == after[name] - before[name]
                assert set(delta.deleted[name]) == before[name] - after[name]

    def change(self, database: deltalog.MemoryDatabase, base: Declaration) -> deltalog.ChangeSet:
        rows = self.base[base.predicate]
        most = self.rng.choice((1, 20, 300))
        deleted = set(self.rng.sample(sorted(rows), min(len(rows), self.rng.randrange(most + 1))))
        inserted = random_rows(base, self.rng.randrange(most + 1), self.rng) - deleted
        self.base[base.predicate] = (rows - deleted) | inserted
        plus, minus = {base.predicate: sorted(inserted)}, {base.predicate: sorted(deleted)}
        promised = database.what_if(insert=plus, delete=minus)
        delta = database.apply(insert=plus, delete=minus)
        assert promised == delta
        return delta


@pytest.mark.parametrize(
    ("strategy", "materialize"), [("auto", True), ("rederive", True), ("magic", False)]
)
def test_orders_and_changes_lead_to_the_same_views(strategy: str, materialize: bool) -> None:
    @effort(quick=4, fuzz=1_000)
    @given(larger(Features(longer_joins=True)))
    def run(example: tuple[Program, tuple[Declaration, ...], int]) -> None:
        program, bases, seed = example
        note(print_program(program))
        try:
            Compared(program, strategy, materialize, random.Random(seed)).run(bases)
        except LimitError:
            return  # more facts than such a test can compare

    run()
