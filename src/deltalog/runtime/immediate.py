"""Constraints and rules that are checked after each operation of a transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.check_phase import CheckPhase, settle_immediate
from deltalog.runtime.incoming import RowsLike
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.refusals import with_causes
from deltalog.runtime.transaction import Commit, Ground, Transaction
from deltalog.runtime.violations import ConstraintError, Violation

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


class ImmediateChecks:
    """Stands beside one transaction: immediate rules are executed, then constraints checked."""

    def __init__(self, database: MemoryDatabase, is_tried: bool = False) -> None:
        self._database = database
        rules = database.propagation.rules
        self.phase = None if rules is None else CheckPhase(database, rules, is_tried)
        self._is_tried = is_tried
        self.warned: set[Violation] = set()

    def after_operation(self, transaction: Transaction) -> None:
        database = self._database
        with database.turn():
            try:
                if self.phase is not None:
                    settle_immediate(self.phase, transaction, self._propagate_change)
                base = transaction.net()
                if base and not self._is_tried:
                    self._propagate_change(base, None)
            except ConstraintError as refused:
                raise with_causes(database, transaction.net(), refused) from None

    def _propagate_change(self, base: ChangeSet, phase: CheckPhase | None) -> ChangeSet:
        """Propagate a change, for rules that are triggered by it, or constraints that refuse it."""
        database, network = self._database, self._database.propagation
        arguments = network, base, database.limits, database.watch, False
        with Propagated(*arguments, network.route_to(frozenset())) as outcome:
            if phase is not None:
                phase.is_triggered(outcome, only_immediate=True)
            elif network.constraints is not None:
                network.constraints.refuse(outcome, is_immediate=True)
                warned = network.constraints.immediate_warnings(outcome)
                warned.issue(self.warned)
                self.warned.update(warned.violations)
        return NO_CHANGE


class ImmediateTransaction(Transaction):
    """A transaction that calls `after_operation`, which may change it, after each operation.

    If an operation is refused, the transaction has ended.
    """

    __slots__ = ("_after_operation", "_is_operating")

    def __init__(
        self,
        ground: Ground,
        commit: Commit,
        database: MemoryDatabase | None,
        after_operation: Callable[[Transaction], None],
    ) -> None:
        super().__init__(ground, commit, database)
        self._after_operation = after_operation
        self._is_operating = False

    def insert(self, relation: str, rows: RowsLike) -> None:
        self._run_operation(partial(super().insert, relation, rows))

    def delete(self, relation: str, rows: RowsLike) -> None:
        self._run_operation(partial(super().delete, relation, rows))

    def set(self, relation: str, rows: RowsLike) -> None:
        self._run_operation(partial(super().set, relation, rows))

    def _run_operation(self, operation: Callable[[], None]) -> None:
        """One operation; those that it is made of, and those of rules, are part of it."""
        if self._is_operating:
            return operation()
        self._is_operating = True
        try:
            operation()
            self._end_operation()
        finally:
            self._is_operating = False

    def _end_operation(self) -> None:
        try:
            with self._ground.lock:
                self._after_operation(self)
        except BaseException:
            self.rollback()
            raise
