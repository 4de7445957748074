"""A transaction with its rules, before it is committed: rehearsed as a whole, or step by step.

    whole      propagate +n(0)   propagate +n(0) +n(1)   propagate +n(0) +n(1) +n(2)   …
    advanced   propagate +n(0), make it   propagate +n(1), make it   …   undo all, commit once

A transaction that executes few rules is propagated as a whole each time, and nothing is made before
the last propagation, which is the commit. From `WHOLE_MAX` executions on, what is known so far is
made in the engine, and each execution propagates only what it adds: a cascade costs what its steps
cost. Before the commit, or if the transaction is refused, all of it is undone: every row has the
rank it had, so a file and its memory still agree. So participants, persistence and constraints see
one change from the state before, however it came about.

A function that a rule calls reads the state before the transaction: if it reads, the steps are
undone for it and made again. An engine without ranks rehearses as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from deltalog.engines.extensions import RankedEngine, is_ranked
from deltalog.language.ast import Row
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.outcome import Propagated, Replaced

if TYPE_CHECKING:
    from deltalog.runtime.check_phase import CheckPhase
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.transaction import Transaction

Run = Callable[[ChangeSet, "CheckPhase | None"], ChangeSet]
"""Propagates a change and commits it, unless the phase finds a rule that is triggered by it."""
WHOLE_MAX = 8
"""Executions before the rehearsal goes on step by step."""


class Rehearsal:
    """The changes of a transaction so far; a context, after which nothing of them is made."""

    def __init__(self, database: MemoryDatabase, base: ChangeSet) -> None:
        self._database = database
        self._engine = database.engine  # which a file replaces when it is loaded again
        self._base = base
        self._transaction: Transaction | None = None
        self._executions = 0
        self._made: list[list[Replaced]] = []
        self._total: dict[str, dict[Row, bool]] | None = None
        self._outer: Rehearsal | None = None
        self.is_reading_before = False
        """Whether others may read meanwhile: a function is called, or the end was interrupted."""

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_reading_before = True
        self.rewind()
        if self._database.rehearsed is self:
            self._database.rehearsed = self._outer

    @property
    def is_advanced(self) -> bool:
        """Whether the changes so far are made in the engine."""
        return self._total is not None

    @property
    def transaction(self) -> Transaction:
        """The transaction that an execution adds to: all changes so far, or a step of its own."""
        if self._transaction is None:
            begun = NO_CHANGE if self.is_advanced else self._base
            self._transaction = self._database.rehearsal(begun)
        return self._transaction

    def unmade(self) -> ChangeSet:
        """The changes so far that are not made in the engine, net, before an execution."""
        if not self.is_advanced:
            if self._transaction is None:  # so far there may be no-ops among them
                self._base = self.transaction.net()
            if self._executions >= WHOLE_MAX and is_ranked(self._engine):
                self._advance_database()
        self._executions += 1
        return NO_CHANGE if self.is_advanced else self._base

    def propagate(self, phase: CheckPhase, run: Run) -> ChangeSet:
        """Propagate what is not made yet: `phase` knows then whether a rule is triggered.

        If none is and the changes were propagated as a whole, they are committed.
        """
        step = self._take_step()
        if not self.is_advanced:
            if step:
                return run(step, phase)
            phase.is_triggered(None)  # rules have undone all of it: some may be triggered by that
        elif step:
            self._make_step(step, phase)
        else:
            phase.is_triggered(None, is_step=True)
        return NO_CHANGE

    def _take_step(self) -> ChangeSet:
        """The changes that are to be propagated, with those of the last execution."""
        if self._transaction is None:
            return NO_CHANGE if self.is_advanced else self._base
        step = self._transaction.net()
        if self.is_advanced:
            self._compose_step(step)
            self._transaction = None
        else:
            self._base = step
        return step

    def commit(self, run: Run) -> ChangeSet:
        """Undo what is made, and commit the changes so far as one; nothing is triggered by that."""
        self._take_step()
        self.rewind()
        return run(self.base, None)

    @property
    def base(self) -> ChangeSet:
        """The net change of base relations that has been propagated so far."""
        if self._total is None:
            return self._base
        inserted = {n: {r for r, holds in rows.items() if holds} for n, rows in self._total.items()}
        return ChangeSet(
            inserted, {n: rows.keys() - inserted[n] for n, rows in self._total.items()}
        )

    # --- step by step

    def _advance_database(self) -> None:
        """Make the changes so far, which can be taken back with their ranks."""
        self._total, self._transaction = {}, None
        self._outer, self._database.rehearsed = self._database.rehearsed, self
        self._compose_step(self._base)
        if self._base:
            self._make_step(self._base, None)

    def _compose_step(self, step: ChangeSet) -> None:
        assert self._total is not None
        for rows_of, holds in ((step.deleted, False), (step.inserted, True)):
            for name, rows in rows_of.items():
                known = self._total.setdefault(name, {})
                for row in rows:
                    if known.get(row, holds) is holds:
                        known[row] = holds
                    else:
                        del known[row]

    def _make_step(self, step: ChangeSet, phase: CheckPhase | None) -> None:
        database, network = self._database, self._database.propagation
        arguments = network, step, database.limits, database.watch, False
        with Propagated(*arguments, network.route_to(frozenset())) as outcome:
            if phase is not None and not phase.is_triggered(outcome, is_step=True):
                return
            self._made.append(list(outcome.replaced()))
            outcome.apply()

    def rewind(self) -> None:
        """Undo what is made; if that is interrupted, the next verb of the database goes on."""
        engine = cast("RankedEngine", self._engine)
        while self._made:
            for relation, deleted, inserted in reversed(self._made[-1]):
                engine.delete(relation, inserted)
                if deleted:
                    engine.load(relation, deleted)
            self._made.pop()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Whoever reads the database inside has it undone; then all changes are made again."""
        self.is_reading_before = True
        yield
        self.is_reading_before = False
        if not self._made and (base := self.base):
            self._make_step(base, None)
