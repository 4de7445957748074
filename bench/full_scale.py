"""One workload at its full size on one engine, in a process of its own.

    python -m bench.full_scale w1_scc --scale 1 --changes 200 --seconds 6

A line of JSON after each stage says all that is known so far, so that what was measured stays even
if the process is stopped. A process of its own, so that its memory is only that of this workload.

Timed is `db.apply(insert=…, delete=…)` as one calls it, and, apart from that, reading every row of
the change it answers. Each kind of change has some seconds; when they are used up the next kind
begins. On closures the *limit* makes the same transactions in turns of some twenty, since a shared
machine has fast and slow minutes. In the end base relations and
views must be what recomputation says, or there is no figure at all. If there are *peers* to run
(`bench/side_by_side.py`), each then makes the same transactions, and must come to the same views.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import deltalog
from bench import duckdb_view, limit, side_by_side
from bench.measure import BenchError, Spread, Transaction
from bench.memory import resident_bytes
from bench.side_by_side import Contents
from bench.workloads import CLOSURE, GROUP_BY, Batch, Fact, Workload, workload

PHASES: Mapping[str, tuple[str, ...]] = {
    "ins": ("insert",),
    "delrei": ("delete", "reinsert"),
    "upd": ("update",),
    "move": ("move",),
    "batch": ("batch",),
}
"""Phases of a workload in their order, and the kinds of change that take turns in them."""
TINY_SCALE = 0.02
TURN = 20
AUDITED_FACTS_MAX = 800_000
WEIGHED_FACTS_MIN = 50_000


@dataclass
class Beside:
    """A peer and the engine: milliseconds for the same transactions, as far as both have come."""

    peer: Spread
    ours: Spread


@dataclass
class Cost:
    """What transactions of one kind cost: milliseconds, and how many facts they changed."""

    count: int
    changed: float
    apply: Spread
    with_rows: Spread
    limit: Spread | None = None
    beside_peers: dict[str, Beside] = field(default_factory=dict)


@dataclass
class Measured:
    """All that is known about one workload; what is not known yet, or cannot be, is None."""

    workload: str
    scale: float
    engine: str
    stage: str = "getting ready"
    base_facts: int = 0
    facts: int | None = None
    load_seconds: float | None = None
    load_bytes: int | None = None
    limit_load_seconds: float | None = None
    peers_load_seconds: dict[str, float] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    duckdb: Spread | None = None
    verified: str | None = None
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def bytes_per_fact(self) -> float | None:
        """Of few facts it says nothing: a process grows and shrinks for other reasons, too."""
        if self.load_bytes is None or self.facts is None or self.facts < WEIGHED_FACTS_MIN:
            return None
        return self.load_bytes / self.facts

    @classmethod
    def of_json(cls, text: str) -> Measured:
        kept = json.loads(text)
        costs = {kind: _cost(cost) for kind, cost in kept.pop("costs").items()}
        return cls(costs=costs, duckdb=_spread(kept.pop("duckdb")), **kept)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _cost(kept: dict[str, Any]) -> Cost:
    spreads = {name: _spread(kept.pop(name)) for name in ("apply", "with_rows", "limit")}
    beside = {
        system: Beside(Spread(**both["peer"]), Spread(**both["ours"]))
        for system, both in kept.pop("beside_peers").items()
    }
    return Cost(**kept, **spreads, beside_peers=beside)  # type: ignore[arg-type]


def _spread(kept: Mapping[str, Any] | None) -> Spread | None:
    return Spread(**kept) if kept is not None else None


@dataclass
class Bench:
    """A workload that is being measured."""

    made: Workload
    found: Measured
    seconds_max: float
    say: Callable[[Measured], None]
    peers: Mapping[str, Path] = field(default_factory=dict)  # executables, by system
    held: dict[str, set[Fact]] = field(default_factory=dict)
    phases: list[list[Transaction]] = field(default_factory=list)  # what was really made
    taken: dict[str, list[float]] = field(default_factory=dict)  # milliseconds, by kind
    grown: int = 0  # facts that came less those that went, since loading

    @property
    def is_closure(self) -> bool:
        return self.made.rules == CLOSURE

    def run(self) -> None:
        gc.collect()
        gc.freeze()  # the facts of the workload are not the engine's: no collection walks them
        try:
            self._run()
        finally:
            gc.unfreeze()

    def _run(self) -> None:
        database = self._load()
        closure = self._load_limit() if self.is_closure else None
        self.held = {name: set(facts) for name, facts in self.made.base.items()}
        for phase, kinds in PHASES.items():
            if phase in self.made.phases:
                self._stage(" and ".join(kinds))
                self._phase(database, closure, phase)
        del closure
        if self.made.rules == GROUP_BY:
            self._stage("recomputing by DuckDB")
            self._compare_with_duckdb(database)
        self._stage("verifying")
        views = {name: database.facts(name) for name in database.relations if name not in self.held}
        self._verify(database, views)
        if self.peers:
            contents = {name: Contents.of(rows) for name, rows in views.items()}
            del database, views
            for system, executable in self.peers.items():
                self._stage(system)
                self._run_peer(system, executable, contents)
        self._stage("done")

    def _stage(self, stage: str) -> None:
        self.found.stage = stage
        self.say(self.found)

    def _load(self) -> deltalog.MemoryDatabase:
        self._stage("loading")
        before = resident_bytes()
        started = time.perf_counter()
        database = self._connect(self.made.base)
        self.found.load_seconds = time.perf_counter() - started
        gc.collect()
        after = resident_bytes()
        if before is None or after is None:
            self.found.missing["memory"] = "the system does not say how much a process holds"
        else:
            self.found.load_bytes = after - before
        return database

    def _connect(self, base: Mapping[str, Any]) -> deltalog.MemoryDatabase:
        return deltalog.connect(program=self.made.program, engine=self.found.engine, facts=base)

    def _load_limit(self) -> limit.Limit:
        self._stage("loading the limit")
        closure = limit.Limit()
        started = time.perf_counter()
        closure.apply(insert=self.made.base["edge"])
        self.found.limit_load_seconds = time.perf_counter() - started
        return closure

    # --- transactions

    def _phase(
        self, database: deltalog.MemoryDatabase, closure: limit.Limit | None, phase: str
    ) -> None:
        """Apply the transactions of a phase; the limit follows, some of them at a time."""
        steps: list[Transaction] = []
        by_limit: dict[str, list[float]] = {}
        behind = 0
        figures: dict[str, list[tuple[float, float, int]]] = {}
        used = 0.0
        offered = 0
        for pair in self._pairs(phase):
            offered += 1
            if used > self.seconds_max:
                continue
            for step in map(self._effective, pair):
                if step is None:
                    continue
                applied, read, changed = self._apply(database, step)
                figures.setdefault(step.kind, []).append((applied, applied + read, changed))
                used += (applied + read) / 1_000
                steps.append(step)
            if closure is not None and len(steps) - behind >= TURN:
                _follow(closure, steps[behind:], by_limit)
                behind = len(steps)
        if closure is not None:
            _follow(closure, steps[behind:], by_limit)
        for kind, taken in figures.items():
            applied_all, read_all, counts = zip(*taken, strict=True)
            mean = sum(counts) / len(counts)
            self.taken[kind] = list(applied_all)
            apply, with_rows = Spread.of(applied_all), Spread.of(read_all)
            assert apply is not None
            assert with_rows is not None
            beside = Spread.of(by_limit.get(kind, []))
            self.found.costs[kind] = Cost(len(taken), mean, apply, with_rows, beside)
            if len(taken) < offered and used > self.seconds_max:
                why = f"stopped after {self.seconds_max:g} s for a kind of change"
                self.found.missing[f"{offered - len(taken)} of {offered} of kind {kind}"] = why
        self.phases.append(steps)

    def _pairs(self, phase: str) -> Iterator[list[tuple[str, Batch]]]:
        """Batches with their kinds; a deletion and its reinsertion stay together."""
        kinds, batches = PHASES[phase], self.made.phases[phase]
        for first in range(0, len(batches), len(kinds)):
            yield list(zip(kinds, batches[first : first + len(kinds)], strict=True))

    def _effective(self, named: tuple[str, Batch]) -> Transaction | None:
        """What really changes something: a phase that was stopped leaves its facts out."""
        kind, batch = named
        left = [
            (op, name, fact) for op, name, fact in batch if (fact in self.held[name]) == (op == "-")
        ]
        for op, name, fact in left:
            (self.held[name].add if op == "+" else self.held[name].discard)(fact)
        return Transaction.of(kind, left) if left else None

    def _apply(
        self, database: deltalog.MemoryDatabase, step: Transaction
    ) -> tuple[float, float, int]:
        """Milliseconds to apply it and to read the change, and how many facts changed."""
        started = time.perf_counter()
        change = database.apply(insert=step.insert, delete=step.delete)
        applied = time.perf_counter()
        new = _read(change.inserted)
        gone = _read(change.deleted)
        read = time.perf_counter()
        self.grown += new - gone
        return (applied - started) * 1_000, (read - applied) * 1_000, new + gone

    # --- comparing

    def _compare_with_duckdb(self, database: deltalog.MemoryDatabase) -> None:
        try:
            milliseconds, rows = duckdb_view.recomputed(self.held)
        except ImportError as error:
            self.found.missing["recomputation by DuckDB"] = str(error)
            return
        self.found.duckdb = Spread.of(milliseconds)
        if rows != database.facts("by_region"):
            raise BenchError(f"{self.made.name}: DuckDB computes another view")
        self.found.verified = "DuckDB"

    def _run_peer(self, system: str, executable: Path, contents: Mapping[str, Contents]) -> None:
        try:
            done = side_by_side.run(system, executable, self.made, self.phases, self.seconds_max)
        except side_by_side.UnavailableError as error:
            self.found.missing[f"{system} in this run"] = str(error)
            return
        for name, expected in contents.items():
            if done.views.get(name) != expected:
                raise BenchError(
                    f"{self.made.name}: {system} computes another view {name}: "
                    f"{done.views.get(name)}, not {expected}"
                )
        (load,) = done.milliseconds["load"]
        self.found.peers_load_seconds[system] = load / 1_000
        for kind, cost in self.found.costs.items():
            theirs = done.milliseconds.get(kind, [])
            peer, ours = Spread.of(theirs), Spread.of(self.taken[kind][: len(theirs)])
            if peer is not None and ours is not None:
                cost.beside_peers[system] = Beside(peer, ours)
            if len(theirs) < cost.count:
                what = f"{cost.count - len(theirs)} of {cost.count} of kind {kind} by {system}"
                self.found.missing[what] = f"stopped after {self.seconds_max:g} s for a phase"

    def _verify(self, database: deltalog.MemoryDatabase, views: Mapping[str, set[Any]]) -> None:
        """Count and compare. A large state is not given to the reference engine: it would not end.

        Closures are compared with those computed by hand, so by other code than the engine's.
        """
        total = 0
        for name, facts in self.held.items():
            total += len(facts)
            if database.facts(name) != facts:
                raise BenchError(f"{self.made.name}: the base relation {name} is not as it should")
        total += sum(map(len, views.values()))
        self.found.facts = total - self.grown
        self.say(self.found)
        if self.is_closure:
            is_right = _is_closure(self.held["edge"], views["path"])
            self.found.verified = "by hand"
        elif self.found.verified:
            is_right = True
        elif total <= AUDITED_FACTS_MAX:
            is_right = not database.audit()
            self.found.verified = "reference"
        else:
            fresh = self._connect(self.held)
            is_right = all(fresh.facts(name) == rows for name, rows in views.items())
            self.found.verified = "loaded afresh"
        if not is_right:
            raise BenchError(f"{self.made.name}: views are not what recomputation says")


def _follow(
    closure: limit.Limit, steps: Sequence[Transaction], taken: dict[str, list[float]]
) -> None:
    """Let the limit make transactions; adds the milliseconds by kind."""
    for step in steps:
        insert, delete = step.insert.get("edge", []), step.delete.get("edge", [])
        started = time.perf_counter()
        closure.apply(insert=insert, delete=delete)
        taken.setdefault(step.kind, []).append((time.perf_counter() - started) * 1_000)


def _read(facts: Mapping[str, frozenset[Any]]) -> int:
    """Look at every row; how many there are."""
    count = 0
    for rows in facts.values():
        for _ in rows:
            count += 1
    return count


def _is_closure(edges: set[Fact], paths: set[Any]) -> bool:
    by_hand = limit.Limit()
    by_hand.apply(insert=sorted(edges))
    found = np.fromiter(((x << 32) + y for x, y in paths), np.int64, len(paths))
    return np.array_equal(np.sort(found), by_hand.keys())


def full_scale(
    name: str,
    scale: float,
    changes: int,
    seconds_max: float,
    engine: str,
    say: Callable[[Measured], None],
    peers: Mapping[str, Path] | None = None,
) -> Measured:
    """Measure one workload here, in this process."""
    found = Measured(name, scale, engine)
    say(found)
    tiny = Bench(workload(name, TINY_SCALE, 2), Measured(name, 0, engine), 1.0, lambda _: None)
    if tiny.is_closure:
        limit.get_ready()
    tiny.run()
    found.stage = "making facts"
    say(found)
    made = workload(name, scale, changes)
    found.base_facts = made.size
    Bench(made, found, seconds_max, say, peers or {}).run()
    return found


def _named_path(text: str) -> tuple[str, Path]:
    system, _, path = text.partition("=")
    return system, Path(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.full_scale", description=__doc__)
    add = parser.add_argument
    add("workload")
    add("--scale", type=float, default=1.0)
    add("--changes", type=int, default=200, help="transactions of each kind")
    add("--seconds", type=float, default=6.0, help="for the transactions of each kind")
    add("--engine", default="embedded")
    add(
        "--peer",
        type=_named_path,
        action="append",
        default=[],
        metavar="SYSTEM=FILE",
        help="a peer and its executable; may be repeated",
    )
    given = parser.parse_args(arguments)
    try:
        full_scale(
            given.workload,
            given.scale,
            given.changes,
            given.seconds,
            given.engine,
            lambda found: print(json.dumps(found.as_json()), flush=True),
            dict(given.peer),
        )
    except BenchError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
