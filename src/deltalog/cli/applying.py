"""Transactions applied one after the other; each result is written before the next one is read.

An error is reported with its place. Transactions before it have been applied; those after it are
applied only with `--keep-going`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import typer

from deltalog.cli.change_files import Change, Changes, diagnostics_with_place, read_changes
from deltalog.cli.change_lines import fact_text
from deltalog.cli.exit_codes import ExitCode, exit_code_of
from deltalog.cli.messages import report_error
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import visible_text, write_note
from deltalog.diagnostics.report import DataError, DeltalogError, with_diagnostics
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fixpoint import Statistics
from deltalog.runtime.realization import Budget
from deltalog.runtime.transaction import Transaction
from deltalog.runtime.violations import ConstraintError


@dataclass(frozen=True)
class Applied:
    """The exact change that the transaction of this number made, or would make."""

    number: int
    place: str
    version: int
    change: ChangeSet
    statistics: Statistics
    omitted: frozenset[str] = frozenset()
    """Views of which it is not known; the log of a file omits some."""


@dataclass
class Applying:
    """`code` is that of the first problem."""

    database: MemoryDatabase
    progress: Progress
    is_tried: bool = False
    keeps_going: bool = False
    repairs: int = 0
    """How many repairs of a change that constraints refuse are shown."""
    code: ExitCode = ExitCode.FINE

    def run(self, changes: Changes) -> Iterator[Applied]:
        """Yield every transaction that succeeded."""
        for number, change in enumerate(changes, start=1):
            try:
                applied = self._applied_change(number, change)
            except DeltalogError as error:
                report_error(error)
                if isinstance(error, ConstraintError) and self.repairs:
                    show_repairs(error, self.repairs)
                self.code = self.code or exit_code_of(error)
                if not self.keeps_going:
                    return
            else:
                yield applied

    def _applied_change(self, number: int, change: Change | DataError) -> Applied:
        if isinstance(change, DataError):
            raise change
        with self.progress.phase("evaluating"):
            made = apply_change(self.database, change, self.is_tried)
        statistics = self.database.statistics if made else Statistics()
        return Applied(number, change.place, self.database.version, made, statistics)


def show_repairs(refused: ConstraintError, count: int) -> None:
    """Show some of the additions by which a refused change satisfies all constraints."""
    found = refused.repairs(budget=Budget(answers=count, seconds=10))
    shown = 0
    for shown, repair in enumerate(found, 1):
        facts = (f"{op}{fact_text(name, row)[:-1]}" for op, name, row in repair.additions)
        write_note(f"repair {shown}: {visible_text(', '.join(facts))}")
    if not shown:
        reasons = "; ".join(found.reasons)
        write_note(
            "no further change repairs it" + (f" within bounds: {reasons}" if reasons else "")
        )


def each_applied(
    database: MemoryDatabase, path: Path, relation: str | None, progress: Progress
) -> Iterator[Applied]:
    """Yield every transaction in a file; the command exits at the first that fails."""
    applying = Applying(database, progress)
    yield from applying.run(read_changes(path, database.relations, relation))
    if applying.code:
        raise typer.Exit(applying.code)


def apply_change(database: MemoryDatabase, change: Change, is_tried: bool = False) -> ChangeSet:
    """Commit the transaction, or evaluate it only; its errors name its place."""
    transaction = database.silent_transaction() if is_tried else database.transaction()
    try:
        _fill_transaction(transaction, change)
        if not is_tried:
            return transaction.commit()
        base = transaction.net()
        transaction.rollback()
        return database.what_if(base.inserted, base.deleted)
    except DeltalogError as error:
        raise with_diagnostics(
            error, diagnostics_with_place(change.place, error.diagnostics)
        ) from None


def _fill_transaction(transaction: Transaction, change: Change) -> None:
    for (kind, relation), group in groupby(change.operations, attrgetter("kind", "relation")):
        rows = [operation.row for operation in group]
        if kind == "insert":
            transaction.insert(relation, rows)
        elif kind == "delete":
            transaction.delete(relation, rows)
        else:
            for row in rows:
                transaction.set(relation, row)
