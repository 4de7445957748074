"""How a transaction gets into the file: rows into their tables, a row into the log, all or nothing.

    alone        BEGIN IMMEDIATE ─▶ rows, log ─▶ COMMIT
    in a group   SAVEPOINT ─▶ rows, log ─▶ RELEASE, inside the transaction that the group has open

Each small commit goes through `write`, which therefore does by itself what others would call for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import apsw

from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.outcome import Propagated
from deltalog.store.cells import Cells, append_ranks, convert_cells
from deltalog.store.foreign_writes import ForeignWrites
from deltalog.store.log import (
    APPEND,
    ROWS_EACH,
    TRANSACTION,
    Columns,
    current_timestamp,
    entries_of_commit,
    piece_text,
)
from deltalog.store.schema import PARTS, Table
from deltalog.store.sqlite import sqlite_errors_reported, sqlite_problem
from deltalog.store.storage import Storage

_ALONE = ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
_GROUPED = ("SAVEPOINT one", "RELEASE one", "ROLLBACK TO one; RELEASE one")


class Writer:
    """Writes to the `tables` of stored relations; `columns` are those of every relation."""

    def __init__(self, storage: Storage) -> None:
        self.tables: dict[str, Table] = {}
        self.columns: Columns = {}
        self.foreign = ForeignWrites(storage)
        self.is_grouped = False
        self.beside: Callable[[], object] | None = None
        """Writes something in the transaction of the next commit, beside its facts."""
        self._path = storage.path
        self._connection = storage.connection
        self._cursor = storage.connection.cursor()  # one for all: making them takes time

    def write(self, outcome: Propagated, change: ChangeSet, version: int, clock: int) -> int:
        """Write what leads to a version; returns the engine's clock when it has been applied."""
        connection, foreign, is_grouped = self._connection, self.foreign, self.is_grouped
        execute = self._cursor.execute
        opening, ending, _ = _GROUPED if is_grouped else _ALONE
        inserted, deleted = change.sides
        sides: dict[str, Cells] = {}
        before, size = clock, 0
        try:
            if connection.in_transaction and not is_grouped:
                self.roll_back()  # what an interrupt has left open
            execute(opening)
            if connection.data_version() != foreign.commits or monotonic() >= foreign.look_at:
                foreign.look()
            for relation, _, _, is_net, left, ranks, rows in outcome.written(change, clock):
                table = self.tables[relation]
                if left:
                    self._cursor.executemany(table.delete, [(rank,) for rank in left])
                elif left is None:
                    execute(table.delete_all)
                if not rows:
                    continue
                cells: Cells = rows if type(rows) is list else list(rows)
                if table.converters:
                    cells = convert_cells(cells, table.converters)
                first, count = ranks[0], len(cells)
                if type(ranks) is range:  # above all that are there, and one after the other
                    execute(table.insert, cells[0] + (first,))
                    if count > 1:
                        self._cursor.executemany(table.append, cells[1:])
                else:
                    self._cursor.executemany(table.insert, append_ranks(cells, ranks))
                if first >= before:
                    clock += count
                if is_net and relation in inserted:
                    sides["+" + relation] = cells
                    size += count
            omitted = outcome.omitted
            if len(sides) == len(inserted) and size <= ROWS_EACH and not deleted:
                text = piece_text(sides, omitted)
                execute(APPEND, (version << PARTS, current_timestamp(), TRANSACTION, text))
            else:
                columns = self.columns
                log = entries_of_commit(
                    version, TRANSACTION, change, columns, columns, sides, omitted
                )
                self._cursor.executemany(APPEND, log)
            if self.beside is not None:
                self.beside()
            execute(ending)
            if not is_grouped:
                foreign.commits += 1
        except BaseException as error:
            self._undo_transaction()
            if isinstance(error, apsw.Error):
                foreign.forget()
                raise sqlite_problem(self._path, error, is_commit=True) from error
            raise
        return clock

    def _undo_transaction(self) -> None:
        """Nothing of the transaction stays; SQLite may have undone it by itself."""
        if self._connection.in_transaction:
            undoing = (_GROUPED if self.is_grouped else _ALONE)[2]
            with suppress(apsw.SQLError):  # there may be no such savepoint
                self._connection.execute(undoing)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """For all else that is written; a part of the group if one is open."""
        opening, ending, _ = _GROUPED if self.is_grouped else _ALONE
        with sqlite_errors_reported(self._path, is_commit=True):
            if not self.is_grouped:
                self.roll_back()  # what an interrupt may have left open
            self._connection.execute(opening)
            try:
                self.foreign.check()
                yield
                self._connection.execute(ending)
            except BaseException:
                self._undo_transaction()
                raise

    def roll_back(self) -> None:
        if self._connection.in_transaction:  # SQLite may have done so by itself
            self._connection.execute("ROLLBACK")

    # --- groups

    def begin_group(self) -> None:
        with sqlite_errors_reported(self._path, is_commit=True):
            self.roll_back()  # what an interrupt may have left open
            self._connection.execute("BEGIN IMMEDIATE")
        self.is_grouped = True

    def end_group(self) -> None:
        """Write the group; if that fails there is none any more."""
        self.is_grouped = False
        with sqlite_errors_reported(self._path, is_commit=True):
            self.foreign.check_place()
            self._connection.execute("COMMIT")

    def tidy(self) -> None:
        """After a failure or an interrupt at any place: leave nothing of a transaction half done.

        SQLite may have undone the whole group; then there is none any more.
        """
        with sqlite_errors_reported(self._path):
            if self.is_grouped and self._connection.in_transaction:
                self._undo_transaction()
            else:
                self.is_grouped = False
                self.roll_back()
