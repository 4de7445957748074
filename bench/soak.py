"""`make soak`: a million random single-fact transactions, audited, with memory flat after warm-up.

    python -m bench.soak --transactions 1000000 --seed 1 --engine embedded

The program and its transactions are those of `bench/traffic.py`. Every so often three things must
hold: the audit finds no difference between views and their recomputation; all deltas so far,
applied to sets of our own, give what the database holds; and the database holds the base facts it
was given. Then memory is looked at. After the first quarter, which is warm-up, it must not grow:
the median of the last quarter is compared with that of the second.

A failure names seed and transaction, and how to find the very transaction that went wrong.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import deltalog
from bench.charts import sparks
from bench.memory import resident_bytes
from bench.traffic import PROGRAM, Row, Step, Traffic
from deltalog import ChangeSet
from deltalog.runtime.engine_choice import ENGINES

TRANSACTIONS = 1_000_000
AUDIT_EVERY = 10_000
SEED = 1
ENGINE = "embedded"
GROWTH_SHARE_MAX = 0.03
CLAIM_TRANSACTIONS_MIN = 100_000
CLAIM_AUDITS_MIN = 8
STEPS_PER_TICK = 250
SECONDS_BETWEEN_LINES = 10.0
SHOWN_MAX = 5
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Plan:
    """How long, with what, and how often to look."""

    transactions: int = TRANSACTIONS
    seed: int = SEED
    engine: str = ENGINE
    audit_every: int = AUDIT_EVERY
    audit_after: int = 0

    def replay(self, sound: int, failed: int) -> str:
        """The command that audits each transaction since the last audit that found nothing."""
        return (
            f"python -m bench.soak --engine {self.engine} --seed {self.seed} "
            f"--transactions {failed} --audit-after {sound} --audit-every 1"
        )


class SoakError(Exception):
    """Something is not as it should be; the message says what and where."""


@dataclass
class Soak:
    """A soak under way, and what it found when it is over."""

    plan: Plan
    done: int = 0
    sound: int = 0
    audits: int = 0
    changed: int = 0
    seconds: float = 0.0
    memory: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Transactions per second, audits left out."""
        return self.done / self.seconds if self.seconds else 0.0

    def run(self, tick: Callable[[Soak], None] = lambda _: None) -> None:
        """Make all transactions; raises a `SoakError` at the first difference."""
        plan = self.plan
        database = deltalog.connect(program=PROGRAM, engine=plan.engine)
        followed: dict[str, set[Row]] = {name: database.facts(name) for name in database.relations}
        given: dict[str, set[Row]] = {
            name: set() for name, found in database.relations.items() if found.kind == "base"
        }
        steps = islice(Traffic(plan.seed).steps(), plan.transactions)
        for step in steps:
            self._make(database, step, followed)
            _give(database, given, step)
            if self.done % STEPS_PER_TICK == 0:
                tick(self)
            is_due = self.done % plan.audit_every == 0 or self.done == plan.transactions
            if is_due and self.done > plan.audit_after:
                self._audit(database, followed, given, step)
                tick(self)

    def _make(
        self, database: deltalog.MemoryDatabase, step: Step, followed: dict[str, set[Row]]
    ) -> None:
        started = time.perf_counter()
        try:
            delta = step.apply(database)
        except Exception as error:
            self.done += 1
            raise self._error(step, f"it failed: {error!r}") from error
        self.seconds += time.perf_counter() - started
        self.done += 1
        self.changed += len(delta)
        _follow(followed, delta)

    def _audit(
        self,
        database: deltalog.MemoryDatabase,
        followed: dict[str, set[Row]],
        given: dict[str, set[Row]],
        step: Step,
    ) -> None:
        said = [
            f"view {each.view}: {_shown(each.missing)} missing, {_shown(each.excess)} in excess"
            for each in database.audit()
        ]
        for what, expected in (("all deltas together give", followed), ("it was given", given)):
            for name, rows in expected.items():
                found = database.facts(name)
                if found != rows:
                    lacks, more = _shown(rows - found), _shown(found - rows)
                    said.append(f"{name} is not what {what}: lacks {lacks}, has {more} more")
        if said:
            raise self._error(step, "\n  ".join(said))
        self.audits += 1
        self.sound = self.done
        gc.collect()
        held = resident_bytes()
        if held is not None:
            self.memory.append(held)

    def _error(self, step: Step, what: str) -> SoakError:
        return SoakError(
            f"after transaction {self.done:,} of seed {self.plan.seed} on engine "
            f"{self.plan.engine} ({step.op} {step.relation}{step.row}):\n  {what}\n"
            f"The last audit without a difference was after {self.sound:,}. "
            f"To find the transaction:\n  {self.plan.replay(self.sound, self.done)}"
        )

    # --- memory

    def growth(self) -> float | None:
        """By what share memory grew from the second quarter to the last; None if unknown."""
        if self.done < CLAIM_TRANSACTIONS_MIN or len(self.memory) < CLAIM_AUDITS_MIN:
            return None
        quarter = len(self.memory) // 4
        second, last = self.memory[quarter : 2 * quarter], self.memory[-quarter:]
        return statistics.median(last) / statistics.median(second) - 1

    def check_memory(self) -> None:
        grown = self.growth()
        if grown is not None and grown > GROWTH_SHARE_MAX:
            raise SoakError(
                f"memory is not flat: it grew by {grown:.1%} from the second quarter to the last, "
                f"more than {GROWTH_SHARE_MAX:.0%}; seed {self.plan.seed}, {self.done:,} "
                f"transactions on engine {self.plan.engine}"
            )

    def show(self, console: Console) -> None:
        console.print(
            f"{self.done:,} transactions on engine {self.plan.engine}, seed {self.plan.seed}: "
            f"{self.rate:,.0f} a second, {self.changed:,} facts changed, {self.audits} audits "
            "without a difference."
        )
        if not self.memory:
            console.print("Memory: not measured, the system does not say it.")
            return
        low, high = min(self.memory) / MEGABYTE, max(self.memory) / MEGABYTE
        console.print(f"Memory after each audit, {low:.1f} to {high:.1f} MB: {sparks(self.memory)}")
        grown = self.growth()
        if grown is None:
            least = f"{CLAIM_TRANSACTIONS_MIN:,} transactions and {CLAIM_AUDITS_MIN} audits"
            console.print(f"No claim on memory: that takes {least}.")
        else:
            console.print(
                f"From the second quarter to the last it grew by {grown:+.2%}, by medians; "
                f"allowed are {GROWTH_SHARE_MAX:.0%}."
            )


def _follow(followed: dict[str, set[Row]], delta: ChangeSet) -> None:
    """Apply an exact change to sets."""
    for name, rows in delta.deleted.items():
        followed[name] -= rows
    for name, rows in delta.inserted.items():
        followed[name] |= rows


def _give(database: deltalog.MemoryDatabase, given: dict[str, set[Row]], step: Step) -> None:
    """Apply the transaction itself to sets."""
    rows = given[step.relation]
    if step.op == "set":
        columns = database.relations[step.relation].columns
        keys = [place for place, column in enumerate(columns) if column.key]
        wanted = [step.row[place] for place in keys]
        rows -= {row for row in rows if [row[place] for place in keys] == wanted}
    if step.op == "delete":
        rows.discard(step.row)
    else:
        rows.add(step.row)


def _shown(rows: frozenset[Row] | set[Row]) -> str:
    """Some of the rows, and how many there are."""
    if not rows:
        return "nothing"
    more = f", … of {len(rows)}" if len(rows) > SHOWN_MAX else ""
    return f"{', '.join(map(str, list(rows)[:SHOWN_MAX]))}{more}"


# --- on the terminal ------------------------------------------------------------------------------


@dataclass
class Lines:
    """Progress where there is no terminal: a line now and then."""

    console: Console
    started: float = field(default_factory=time.monotonic)
    due: float = 0.0

    def tick(self, soak: Soak) -> None:
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + SECONDS_BETWEEN_LINES
        left = (now - self.started) / max(soak.done, 1) * (soak.plan.transactions - soak.done)
        self.console.print(
            f"{soak.done:,} of {soak.plan.transactions:,}, {soak.rate:,.0f}/s, "
            f"{_memory(soak)}, {left:.0f} s left"
        )


def _memory(soak: Soak) -> str:
    return f"{soak.memory[-1] / MEGABYTE:.0f} MB" if soak.memory else "– MB"


def _run(soak: Soak, console: Console) -> None:
    if not console.is_terminal:
        soak.run(Lines(console).tick)
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=soak.plan.transactions, said="")

        def tick(soak: Soak) -> None:
            said = f"{soak.rate:,.0f}/s, {soak.audits} audits, {_memory(soak)}"
            progress.update(task, completed=soak.done, said=said)

        soak.run(tick)


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if something differs or memory grew."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--transactions", type=int, default=TRANSACTIONS)
    add("--seed", type=int, default=SEED)
    add("--engine", choices=sorted(ENGINES), default=ENGINE)
    add("--audit-every", type=int, default=AUDIT_EVERY, metavar="N", help="transactions")
    add("--audit-after", type=int, default=0, metavar="N", help="no audits before this one")
    given = parser.parse_args(arguments)
    soak = Soak(
        Plan(given.transactions, given.seed, given.engine, given.audit_every, given.audit_after)
    )
    try:
        _run(soak, Console(stderr=True, highlight=False))
        soak.show(Console(highlight=False))
        soak.check_memory()
    except SoakError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
