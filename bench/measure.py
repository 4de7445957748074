"""Run contenders over the same transactions, time each one, and insist that all agree.

Agreement comes first: the deltas of every contender are compared, transaction by transaction, with
those of the first, and a difference ends the benchmark before any figure is shown. Time is only
that of `apply`; opening the database is timed apart, comparing is not timed. Before the first
transaction counts, it is made and undone once: that builds the indexes which later ones find.

A contender that is stopped early has done a beginning of the same transactions. Ratios are only
taken over what both have done: see `Run.first`.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from bench.contenders import Contender, Gap
from bench.workloads import Batch, Fact, Workload
from deltalog import ChangeSet

KINDS = ("insert", "delete", "reinsert", "update", "move")
UNAVAILABLE = (ImportError, NotImplementedError)


class BenchError(Exception):
    """Something that must hold does not: no figure is worth anything."""


@dataclass(frozen=True)
class Transaction:
    """A transaction and what kind of change it is."""

    kind: str
    insert: Mapping[str, list[Fact]]
    delete: Mapping[str, list[Fact]]

    @classmethod
    def of(cls, kind: str, batch: Batch) -> Transaction:
        sides: dict[str, dict[str, list[Fact]]] = {"+": {}, "-": {}}
        for op, relation, fact in batch:
            sides[op].setdefault(relation, []).append(fact)
        return cls(kind, sides["+"], sides["-"])


def transactions(workload: Workload) -> list[Transaction]:
    """The small changes of a workload, the kinds taking turns.

    They take turns so that a contender that is stopped early has done some of every kind. What
    would change nothing is left out.
    """
    pairs = workload.phases.get("delrei", [])
    turns: Iterable[tuple[list[tuple[str, Batch]], ...]] = zip_longest(
        [[("insert", batch)] for batch in workload.phases.get("ins", [])],
        [
            [("delete", gone), ("reinsert", b)]
            for gone, b in zip(pairs[::2], pairs[1::2], strict=True)
        ],
        [[("update", batch)] for batch in workload.phases.get("upd", [])],
        [[("move", batch)] for batch in workload.phases.get("move", [])],
        fillvalue=[],
    )
    held = {name: set(facts) for name, facts in workload.base.items()}
    done = []
    for group in (group for turn in turns for group in turn if group):
        if any((fact in held[relation]) == (op == "+") for op, relation, fact in group[0][1]):
            continue
        for kind, batch in group:
            for op, relation, fact in batch:
                (held[relation].add if op == "+" else held[relation].discard)(fact)
            done.append(Transaction.of(kind, batch))
    return done


@dataclass(frozen=True)
class Sample:
    """One transaction as a contender did it."""

    kind: str
    milliseconds: float
    generated: Mapping[str, int]
    change: ChangeSet

    @property
    def facts(self) -> int:
        """How many facts were generated."""
        return sum(self.generated.values())


@dataclass(frozen=True)
class Spread:
    """Median and mean of some figures."""

    count: int
    median: float
    mean: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        if not values:
            return None
        return cls(len(values), statistics.median(values), statistics.fmean(values))

    def as_json(self) -> dict[str, float]:
        return {"count": self.count, "median": round(self.median, 4), "mean": round(self.mean, 4)}


@dataclass(frozen=True)
class Run:
    """What one contender did with one workload."""

    contender: Contender
    load_seconds: float
    load_facts: int
    warm_up_milliseconds: float
    samples: tuple[Sample, ...]

    def first(self, count: int) -> Run:
        """The same run as if it had been stopped after so many transactions."""
        return replace(self, samples=self.samples[:count])

    def kinds(self) -> tuple[str, ...]:
        found = {sample.kind for sample in self.samples}
        return tuple(kind for kind in KINDS if kind in found)

    def of(self, kind: str | None) -> list[Sample]:
        """The samples of a kind, or all."""
        return [sample for sample in self.samples if kind is None or sample.kind == kind]

    def milliseconds(self, kind: str | None = None) -> Spread | None:
        return Spread.of([sample.milliseconds for sample in self.of(kind)])

    def facts(self, kind: str | None = None) -> Spread | None:
        return Spread.of([sample.facts for sample in self.of(kind)])

    def changed(self, kind: str | None = None) -> Spread | None:
        """The size of the exact change."""
        return Spread.of([len(sample.change) for sample in self.of(kind)])


def in_common(*runs: Run) -> tuple[Run, ...]:
    """The runs as far as all of them have come."""
    count = min(len(run.samples) for run in runs)
    return tuple(run.first(count) for run in runs)


def run(
    contender: Contender,
    workload: Workload,
    steps: Sequence[Transaction],
    seconds_max: float = float("inf"),
    warm_up: Transaction | None = None,
) -> Run:
    """Open the workload and apply the transactions, until they or the seconds are used up.

    The warm-up is the first transaction, or another one; it is undone before anything counts.
    """
    gc.collect()
    started = time.perf_counter()
    database = contender.open(workload)
    load_seconds = time.perf_counter() - started
    load_facts = database.statistics.total
    started = time.perf_counter()
    for step in [warm_up] if warm_up is not None else steps[:1]:
        database.apply(insert=step.insert, delete=step.delete)
        database.apply(insert=step.delete, delete=step.insert)
    warm_up_seconds = time.perf_counter() - started
    samples: list[Sample] = []
    begun = time.process_time()  # not the clock: a busy machine must not shorten the run
    for step in steps:
        started = time.perf_counter()
        change = database.apply(insert=step.insert, delete=step.delete)
        seconds = time.perf_counter() - started
        generated = dict(database.statistics.generated)
        samples.append(Sample(step.kind, seconds * 1_000, generated, change))
        if time.process_time() - begun > seconds_max:
            break
    return Run(contender, load_seconds, load_facts, warm_up_seconds * 1_000, tuple(samples))


@dataclass
class Comparison:
    """Several contenders on one workload, all in agreement."""

    workload: Workload
    scale: float
    steps: list[Transaction]
    seconds_max: float = float("inf")
    runs: list[Run] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def add(self, contender: Contender) -> Run | None:
        """Measure one more contender; answers nothing if it cannot take part."""
        name = f"{self.workload.name}: {contender.label} on {contender.engine}"
        obstacle = contender.obstacle(self.workload)
        if obstacle is not None:
            self.gaps.append(Gap(name, obstacle))
            return None
        try:
            done = run(contender, self.workload, self.steps, self.seconds_max)
        except UNAVAILABLE as error:
            self.gaps.append(Gap(name, f"{contender.engine} is not available: {error}"))
            return None
        if len(done.samples) < len(self.steps):
            left = len(self.steps) - len(done.samples)
            why = f"stopped after {self.seconds_max:g} s of processor time"
            self.gaps.append(Gap(f"{name}: {left} of {len(self.steps)} transactions", why))
        self._check(done, name)
        self.runs.append(done)
        return done

    def _check(self, done: Run, name: str) -> None:
        """As far as both have come, the exact changes are the same."""
        if not self.runs:
            return
        longest = max(self.runs, key=lambda other: len(other.samples))
        pairs = zip(longest.samples, done.samples, strict=False)
        for number, (expected, found) in enumerate(pairs, start=1):
            if expected.change != found.change:
                differs = (-expected.change) + found.change
                raise BenchError(
                    f"{name}: transaction {number} has another delta than with "
                    f"{longest.contender.label} on {longest.contender.engine}: {differs!r}"
                )

    def is_complete(self, run: Run) -> bool:
        return len(run.samples) == len(self.steps)

    def run_of(self, label: str, engine: str) -> Run | None:
        found = (r for r in self.runs if (r.contender.label, r.contender.engine) == (label, engine))
        return next(found, None)
