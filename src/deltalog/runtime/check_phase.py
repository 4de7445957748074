"""The check phase of a transaction: execute triggered rules, one after the other, until quiet.

    propagate ─▶ which rules are triggered? ─ none ─▶ constraints, persistence: commit
        ▲                  │ the first by priority, then in the order of the program
        └── its changes ◀──┘ is executed for all its instances, in the state of this moment

The transaction is rehearsed (`runtime/rehearsal.py`): only the last propagation, after which
nothing is triggered, is the commit (Risch & Sköld 1999, section 1.4.1). So a transaction that
triggers nothing costs nothing more, and one that is refused leaves no trace. A rule is *checked*
when it is executed and when a phase ends; it is triggered for instances whose condition is true now
and was false then.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from deltalog.analysis.active_rules import MESSAGES, STATISTICS
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import LimitError
from deltalog.language.ast import Row
from deltalog.language.values import sort_key
from deltalog.runtime.active_rules import (
    NO_DELTA,
    ActiveRules,
    Delta,
    PreparedRule,
    compose_deltas,
)
from deltalog.runtime.changes import ChangeSet, Firing, with_firings
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.execution import Execution
from deltalog.runtime.messages import Emitted, add_messages
from deltalog.runtime.rehearsal import Rehearsal, Run
from deltalog.runtime.violations import ConstraintError, Violation

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.outcome import Propagated
    from deltalog.runtime.transaction import Transaction

FACTS_SHOWN = 5


class CheckPhase:
    """The rules that one transaction has triggered and fired so far.

    With `is_tried` nothing is called, emitted or rejected: a what-if ends where a function would be
    called, or where a rule rejects.
    """

    def __init__(self, database: MemoryDatabase, rules: ActiveRules, is_tried: bool) -> None:
        self._database = database
        self._rules = rules
        self._is_tried = is_tried
        self._total: dict[str, Delta] = {}
        self._since: dict[str, Delta] = {}
        self._chosen: tuple[PreparedRule, set[Row], set[Row]] | None = None
        self._executed: list[tuple[str, list[Row]]] = []
        self._pending: list[Emitted] = []
        self._sent = 0
        self.firings: list[Firing] = []
        self.rejections: tuple[Violation, ...] = ()
        self.is_over = False

    # --- which rule is next

    def is_triggered(
        self, outcome: Propagated | None, only_immediate: bool = False, is_step: bool = False
    ) -> bool:
        """Whether a rule is triggered by what has been propagated; it will be executed next.

        That is all changes of the transaction so far, or a step behind those known before.
        """
        self._accumulate_deltas({} if outcome is None else self._watched_deltas(outcome), is_step)
        self._chosen = None
        inactive: set[str] | None = None
        for prepared in self._candidate_rules():
            if only_immediate and not prepared.rule.is_immediate:
                continue
            rose, fell = prepared.triggered(self._since[prepared.name])
            if rose or fell:
                if inactive is None:
                    inactive = self._rules.inactive(self._database.engine)
                if prepared.name not in inactive:
                    self._chosen = prepared, rose, fell
                    if self._database.trace.is_recording:
                        self._database.trace.triggered(self._database.propagation, prepared.watched)
                    return True
        return False

    @property
    def is_waiting(self) -> bool:
        """Whether a rule is triggered and not yet executed."""
        return self._chosen is not None

    def _watched_deltas(self, outcome: Propagated) -> dict[str, Delta]:
        watched = self._rules.by_watched
        return {
            name: (frozenset(outcome.inserted_rows(name)), frozenset(outcome.deleted_rows(name)))
            for name in outcome.reached()
            if name in watched
        }

    def _accumulate_deltas(self, deltas: dict[str, Delta], is_step: bool) -> None:
        """Add to what each rule has not been checked for: (∆now ∪ −∆before) of what it watches."""
        steps = deltas
        if not is_step:
            before, self._total = self._total, deltas
            if before:
                names = before.keys() | deltas.keys()
                undone = {name: before.get(name, NO_DELTA)[::-1] for name in names}
                steps = {n: compose_deltas(undone[n], deltas.get(n, NO_DELTA)) for n in names}
        for watched, delta in steps.items():
            for prepared in self._rules.by_watched[watched]:
                self._since[prepared.name] = compose_deltas(
                    self._since.get(prepared.name, NO_DELTA), delta
                )

    def _candidate_rules(self) -> list[PreparedRule]:
        """Rules whose watched relation has changed since they were last checked."""
        found = (self._rules.by_name[name] for name in self._since)
        return sorted(found, key=lambda each: self._rules.place[each.name])

    def end(self, only_immediate: bool) -> None:
        """All rules of this phase have been checked in the state as it is now."""
        for prepared in self._candidate_rules():
            if prepared.rule.is_immediate or not only_immediate:
                del self._since[prepared.name]

    # --- executing it

    def execute(self, accumulated: Transaction, base: ChangeSet) -> None:
        """Execute the rule that is next; `base` is the net change so far, to which it adds."""
        assert self._chosen is not None
        prepared, rose, fell = self._chosen
        self._chosen = None
        del self._since[prepared.name]
        started = time.perf_counter()
        execution = Execution(self._database, prepared, accumulated, base, self._is_tried)
        fired = sorted(execution.run(rose, fell), key=sort_key)
        self.is_over, self.rejections = execution.is_stopped, execution.rejections
        self.firings += [Firing(prepared.name, instance) for instance in fired]
        self._executed.append((prepared.name, fired))
        if fired and self._database.trace.is_recording:
            self._database.trace.executed(prepared.name, fired, prepared.watched)
        if not self._is_tried:
            self._pending += execution.emitted
        if fired and not self._is_tried:
            self._count_firings(
                accumulated, prepared.name, len(fired), time.perf_counter() - started
            )
        if len(self._executed) >= self._database.limits.firings_max:
            raise self._endless_error()

    @property
    def has_messages(self) -> bool:
        return bool(self._pending)

    def send(self, accumulated: Transaction) -> None:
        """Add the messages emitted so far to the transaction, which is about to commit."""
        if not self._sent:
            accumulated.delete(MESSAGES, self._database.prunable_messages())
        add_messages(accumulated, self._database.version + 1, self._sent, self._pending)
        self._sent += len(self._pending)
        self._pending = []

    def _count_firings(
        self, accumulated: Transaction, name: str, fired: int, seconds: float
    ) -> None:
        before = accumulated._fact_with_key(STATISTICS, (name,))
        total, spent = (0, 0.0) if before is None else before[1:3]
        now = datetime.now(UTC).replace(tzinfo=None)
        accumulated.set(STATISTICS, (name, total + fired, spent + seconds, now))  # type: ignore[operator]

    def _endless_error(self) -> LimitError:
        """Name the rules between the last two executions of the last one, with their facts."""
        names = [name for name, _ in self._executed]
        rest = names[:-1]
        turn = rest[::-1].index(names[-1]) + 1 if names[-1] in rest else len(names)
        shown = [self._firing_text(*each) for each in self._executed[-turn:]]
        entry = catalogue.FIRINGS_LIMIT
        hint = "`Limits(firings_max=…)` or `--firings-max` raises the limit"
        return LimitError([entry.at(None, limit=len(names), cycle=" → ".join(shown), hint=hint)])

    def _firing_text(self, name: str, fired: list[Row]) -> str:
        facts = [fact_text(name, row) for row in islice(fired, FACTS_SHOWN)]
        return ", ".join(facts) if facts else name


def settle_transaction(
    database: MemoryDatabase, phase: CheckPhase, base: ChangeSet, run: Run
) -> ChangeSet:
    """Run a transaction until no rule is triggered; returns its change, with what has fired."""
    with Rehearsal(database, base) as rehearsal:
        try:
            while not phase.is_over:
                if phase.has_messages:
                    phase.send(rehearsal.transaction)
                found = rehearsal.propagate(phase, run)
                if not phase.is_waiting:
                    break
                unmade = rehearsal.unmade()
                phase.execute(rehearsal.transaction, unmade)
            if phase.is_over or rehearsal.is_advanced:
                found = rehearsal.commit(run)
            return _visible_change(database, rehearsal.base, found, phase)
        except ConstraintError as refused:
            refused.base = rehearsal.base
            raise


def _visible_change(
    database: MemoryDatabase, base: ChangeSet, change: ChangeSet, phase: CheckPhase
) -> ChangeSet:
    """The change without relations that nobody sees, and with what has fired."""
    hidden = database.model.hidden
    if not hidden.isdisjoint(base.relations):
        change = change.without(*hidden)
    return with_firings(change, phase.firings, phase.rejections) if phase.firings else change


def settle_immediate(phase: CheckPhase, transaction: Transaction, run: Run) -> None:
    """Execute the immediate rules that the operations of a transaction so far trigger."""
    while not phase.is_over:
        base = transaction.net()
        if base:
            run(base, phase)
        else:
            phase.is_triggered(None, only_immediate=True)
        if not phase.is_waiting:
            phase.end(only_immediate=True)
            return
        transaction._is_internal = True
        phase.execute(transaction, base)
        transaction._is_internal = False
