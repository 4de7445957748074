"""What a database file costs: commits beside a bare SQLite insert of the same rows, and loading.

Three take turns, transaction by transaction: a bare SQLite file (`apsw`, the same checksums, the
same durability, one prepared insert for each row and table), a database in memory, and a database
in a file. What the file adds is the difference of the last two; it should be at most twice what
SQLite takes for the rows alone, though it also keeps the change log. Transactions insert 1 or 1,000
facts, once of a relation alone, once with a view of the same size, whose rows are written, too.

Under `normal` nobody waits for the disk, and processor time is compared: on a machine that others
use, the longer of two pieces of work is interrupted more often. Under `full` it is the time that
passes.

A group writes 1,000 transactions of one fact with one commit of SQLite; the bare one does the same.

Loading is measured in a process of its own: a closure, names and counts, as much as asked for.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
from rich.console import Console
from rich.table import Table

import deltalog
from bench.charts import dot_plot
from bench.contenders import Gap
from bench.figures import NOTHING, compact
from bench.measure import UNAVAILABLE, BenchError
from bench.settings import Progress, Settings
from deltalog.store.sqlite import open_connection

RATIO_MAX = 2.0
DURABILITIES = ("normal", "full")
SECONDS_EACH = 3.0
GROUP = 1_000
FACTS = 5_000_000
ALONE = "base edge(src: int, dst: int)."
WITH_VIEW = f"{ALONE} back(Y, X) :- edge(X, Y)."
CLOCKS = {"normal": time.process_time, "full": time.perf_counter}
LOADED = """
    base edge(src: int, dst: int).
    base name(id: int, text: str).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    degree(X, count()) :- edge(X, _).
"""
CHAIN = 40
"""Nodes in each of the chains whose closure is loaded."""

Rows = list[tuple[int, int]]


@dataclass(frozen=True)
class Commit:
    """Medians in microseconds for one kind of transaction."""

    durability: str
    facts: int
    has_view: bool
    is_grouped: bool
    transactions: int
    bare: float
    memory: float
    file: float

    @property
    def added(self) -> float:
        return max(self.file - self.memory, 0.0)

    @property
    def ratio(self) -> float:
        """What the file adds, by what SQLite takes for the same rows."""
        return self.added / self.bare

    @property
    def whole_ratio(self) -> float:
        return self.file / self.bare

    @property
    def kind(self) -> str:
        ending = " and a view" if self.has_view else ""
        ending += f", {GROUP:,} in a group" if self.is_grouped else ""
        return f"{self.facts:,} fact{'' if self.facts == 1 else 's'}{ending}"

    def as_json(self) -> dict[str, object]:
        return {
            "durability": self.durability,
            "facts": self.facts,
            "has_view": self.has_view,
            "is_grouped": self.is_grouped,
            "transactions": self.transactions,
            "bare_microseconds": round(self.bare, 2),
            "memory_microseconds": round(self.memory, 2),
            "file_microseconds": round(self.file, 2),
            "file_adds_by_bare": round(self.ratio, 3),
            "file_by_bare": round(self.whole_ratio, 3),
            "commits_per_second": round(1e6 / self.file, 1),
        }


@dataclass(frozen=True)
class Load:
    """A file, and what it takes to load it."""

    facts: int
    megabytes: float
    seconds: float
    scan_seconds: float
    resident_megabytes: float

    def as_json(self) -> dict[str, object]:
        return {name: round(value, 3) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Durability:
    """Commits and a load."""

    commits: tuple[Commit, ...]
    load: Load | None
    gaps: tuple[Gap, ...] = ()

    def show(self, console: Console) -> None:
        title = f"Commits; a file should add at most {RATIO_MAX:g} bare inserts under `normal`"
        table = Table(title=title, title_justify="left", header_style="bold", box=None)
        table.add_column("durability")
        table.add_column("transaction")
        for heading in (
            "bare µs",
            "in memory µs",
            "in a file µs",
            "adds, by bare",
            "whole, by bare",
        ):
            table.add_column(heading, justify="right")
        table.add_column("target")
        for each in self.commits:
            figures = (each.bare, each.memory, each.file, each.ratio, each.whole_ratio)
            table.add_row(each.durability, each.kind, *map(compact, figures), _verdict(each))
        console.print(table)
        console.print()
        if self.load is not None:
            load = self.load
            console.print(
                f"Loading {load.facts:,} facts, {compact(load.megabytes)} MB: "
                f"{compact(load.seconds)} s ({compact(load.scan_seconds)} s for SQLite and Python "
                f"to read the rows alone), {compact(load.resident_megabytes)} MB resident"
            )
            console.print()

    def charts(self) -> dict[str, str]:
        rows = [
            (
                f"{each.kind}, {each.durability}",
                {
                    "bare": each.bare / 1_000,
                    "memory": each.memory / 1_000,
                    "file": each.file / 1_000,
                },
            )
            for each in self.commits
        ]
        names = ["bare", "memory", "file"]
        subtitle = "a transaction, beside a bare SQLite insert of the same rows"
        return {"durability.svg": dot_plot("Commits: ms", subtitle, rows, names)}

    def as_json(self) -> dict[str, object]:
        return {
            "commits": [each.as_json() for each in self.commits],
            "load": self.load.as_json() if self.load is not None else NOTHING,
        }


def _verdict(each: Commit) -> str:
    if each.durability != "normal" or each.is_grouped:
        return ""
    mark = "[green]✓[/]" if each.ratio <= RATIO_MAX else "[red]✗[/]"
    return f"{mark} ≤{RATIO_MAX:g}"


# --- commits --------------------------------------------------------------------------------------


@contextmanager
def _three(folder: Path, durability: str, engine: str, has_view: bool) -> Iterator[_Three]:
    program = WITH_VIEW if has_view else ALONE
    path = folder / f"{durability}.db"
    bare = open_connection(folder / f"bare-{durability}.db", is_writable=True, is_created=True)
    memory = deltalog.connect(program=program, engine=engine)
    file = deltalog.connect(path, program=program, engine=engine, durability=durability)
    bare.pragma("journal_mode", "wal")
    bare.pragma("synchronous", durability)
    for name in ("edge", "back"):
        bare.execute(
            f"CREATE TABLE {name} (src INTEGER NOT NULL, dst INTEGER NOT NULL, "
            "rank__ INTEGER PRIMARY KEY) STRICT"
        )
    try:
        yield _Three(bare, memory, file, has_view, CLOCKS[durability])
    finally:
        bare.close()
        file.close()
        for each in folder.glob(f"*{durability}.db*"):
            each.unlink()


@dataclass
class _Three:
    """The bare file and both databases, which take turns."""

    bare: apsw.Connection
    memory: deltalog.MemoryDatabase
    file: deltalog.FileDatabase
    has_view: bool
    clock: Callable[[], float]
    made: int = 0

    def rows(self, facts: int) -> Rows:
        self.made += facts
        return [(self.made - n, n) for n in range(facts)]

    def measured(self, facts: int, seconds_max: float, is_grouped: bool) -> list[list[float]]:
        """Microseconds of each, until the time is over."""
        acts: tuple[Callable[[list[Rows]], None], ...] = (
            self._grouped if is_grouped else self._alone,
            lambda work: self._applied(self.memory, work),
            self._in_group if is_grouped else (lambda work: self._applied(self.file, work)),
        )
        times: list[list[float]] = [[], [], []]
        until = time.perf_counter() + seconds_max
        while time.perf_counter() < until or len(times[0]) < 3:
            work = [self.rows(facts) for _ in range(GROUP if is_grouped else 1)]
            for act, taken in zip(acts, times, strict=True):
                started = self.clock()
                act(work)
                taken.append((self.clock() - started) * 1e6 / len(work))
        return times

    def _alone(self, work: list[Rows]) -> None:
        for rows in work:
            self.bare.execute("BEGIN IMMEDIATE")
            self._insert(rows)
            self.bare.execute("COMMIT")

    def _grouped(self, work: list[Rows]) -> None:
        self.bare.execute("BEGIN IMMEDIATE")
        for rows in work:
            self._insert(rows)
        self.bare.execute("COMMIT")

    def _insert(self, rows: Rows) -> None:
        self.bare.executemany("INSERT INTO edge VALUES (?, ?, NULL)", rows)
        if self.has_view:
            self.bare.executemany("INSERT INTO back VALUES (?, ?, NULL)", rows)

    @staticmethod
    def _applied(database: deltalog.MemoryDatabase, work: list[Rows]) -> None:
        for rows in work:
            database.apply(insert={"edge": rows})

    def _in_group(self, work: list[Rows]) -> None:
        with self.file.group():
            self._applied(self.file, work)


KINDS = (
    (1, False, False),
    (1_000, False, False),
    (1, True, False),
    (1_000, True, False),
    (1, False, True),
)
"""How many facts, with a view or alone, in a group or not."""


def _commit(
    durability: str, engine: str, kind: tuple[int, bool, bool], seconds: float, folder: Path
) -> Commit:
    facts, has_view, is_grouped = kind
    with _three(folder, durability, engine, has_view) as three:
        three.measured(facts, seconds / 10, is_grouped)
        gc.collect()
        times = three.measured(facts, seconds, is_grouped)
        bare, memory, file = (statistics.median(taken) for taken in times)
        if three.file.facts("edge") != three.memory.facts("edge"):
            raise BenchError("the database in a file is not what the one in memory is")
    count = len(times[0]) * (GROUP if is_grouped else 1)
    return Commit(durability, facts, has_view, is_grouped, count, bare, memory, file)


# --- loading --------------------------------------------------------------------------------------

_LOAD = """
import json, sys, time
import deltalog
from deltalog.store.schema import read_tables
deltalog.connect(program="base a(x: int).", engine=sys.argv[2])
started = time.perf_counter()
database = deltalog.connect(sys.argv[1], engine=sys.argv[2], read_only=True)
seconds = time.perf_counter() - started
facts = sum(map(database.engine.size, database.model.stored))
with open("/proc/self/statm") as file:
    resident = int(file.read().split()[1]) * 4096 / 1e6
started = time.perf_counter()
for table in read_tables(database._connection).values():
    for row in database._connection.execute(table.select):
        pass
print(json.dumps([facts, seconds, time.perf_counter() - started, resident]))
"""


def _load(facts: int, engine: str, folder: Path) -> Load:
    """Make a file of about so many facts, and load it in a process of its own."""
    path = folder / "load.db"
    chains = max(1, facts // (CHAIN * (CHAIN + 1) // 2 + 3 * CHAIN + 100))
    edges = [(c * 1_000 + n, c * 1_000 + n + 1) for c in range(chains) for n in range(CHAIN)]
    names = [(n, f"name {n % 100_000}") for n in range(100 * chains)]
    deltalog.connect(
        path,
        program=LOADED,
        engine=engine,
        facts={"edge": edges, "name": names},
        durability="normal",
    ).close()
    size = path.stat().st_size / 1e6
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, str(path), engine],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    held, seconds, scanned, resident = json.loads(done.stdout)
    return Load(held, size, seconds, scanned, resident)


def durability(settings: Settings, progress: Progress) -> Durability:
    """Commits in both modes, then a load, on the fastest engine that is asked for."""
    engine = settings.side_by_side[0]
    wanted = 200_000 if settings.is_quick else FACTS
    facts = int(FACTS * settings.scale) if settings.scale is not None else wanted
    found: list[Commit] = []
    gaps: list[Gap] = []
    load = None
    with tempfile.TemporaryDirectory() as folder:
        try:
            wanted_kinds = [(each, kind) for each in DURABILITIES for kind in KINDS]
            total = len(wanted_kinds) + 1
            for number, (each, kind) in enumerate(wanted_kinds, start=1):
                progress.say("durability", each, number, total)
                seconds = min(settings.seconds_max, SECONDS_EACH) * (settings.scale or 1.0)
                found.append(_commit(each, engine, kind, seconds, Path(folder)))
            progress.say("durability", f"loading {facts:,} facts", total, total)
            load = _load(facts, engine, Path(folder))
        except UNAVAILABLE as error:
            gaps.append(Gap(f"durability on {engine}", str(error)))
    return Durability(tuple(found), load, tuple(gaps))
