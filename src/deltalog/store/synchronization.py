"""Keep memory at the version that a database file is at, whatever fails or is interrupted.

    changing   memory is unknown ─▶ propagate, write, apply ─▶ memory is current
    resync     memory may be behind or half changed: compare versions, or load the file again
    group      one transaction of SQLite for many of ours; if it fails, all of them are undone
    refresh    follow the log of another process that writes

The file is always right. What lies between a group's first transaction and its end is in memory
only; if that end fails, memory is loaded from the file again.
"""

from __future__ import annotations

import sys
from collections.abc import Set
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from enum import IntEnum
from types import TracebackType
from typing import cast

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, InternalError
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Row
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.model import Model, make_model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.propagation import Propagation
from deltalog.store import readers
from deltalog.store.file_persistence import FilePersistence
from deltalog.store.log import PROGRAM, Commit
from deltalog.store.programs import stored_program
from deltalog.store.readers import Dropped, Retention
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.storage import check_unspoiled

COMMITS_BETWEEN_COMPACTIONS = 1_000
GROUP_MAX = 10_000


class Staleness(IntEnum):
    """Whether memory holds the state of the file: yes, yes if it is at its version, unknown."""

    CURRENT = 0
    COMPARE = 1
    UNKNOWN = 2


class FileSynchronization:
    """Belongs to one database, which is passed to each method: a cycle would keep the file open."""

    def __init__(self, persistence: FilePersistence) -> None:
        self._persistence = persistence
        self._storage = persistence.storage
        self._writer = persistence.writer
        self._log = persistence.log
        self.staleness = Staleness.CURRENT
        self._group_max = GROUP_MAX
        self._compact_at = self._due = sys.maxsize
        """The versions of the next compaction, and of it or the end of the group."""

    # --- reading

    def before_reading(self, database: MemoryDatabase) -> None:
        if self.staleness:
            self.resync(database)

    def resync(self, database: MemoryDatabase) -> None:
        """Load the file again unless memory is known to be at its version.

        SQLite may have undone a whole group; or we were interrupted, at any place.
        """
        self._writer.tidy()
        if not self._writer.is_grouped:
            self._due = self._compact_at
        self._log.forget_programs()
        with self._persistence.reading():
            if self.staleness == Staleness.UNKNOWN or self._log.last != database.version:
                self._reload_file(database)
        self.staleness = Staleness.CURRENT

    def _reload_file(self, database: MemoryDatabase) -> None:
        self.staleness = Staleness.UNKNOWN
        checked = stored_program(self._log.program)
        stored = make_model(checked, database.model.options.of_views(checked.relations))
        database.model, database.engine = stored, database.engine.fresh()
        create_relations(database.engine, {name: stored.relations[name] for name in stored.stored})
        database.statistics = self._persistence.restore(database)
        database.propagation = Propagation(database.engine, stored)
        self.staleness = Staleness.CURRENT

    # --- changing

    def changing(
        self, database: MemoryDatabase, is_committed: bool
    ) -> AbstractContextManager[object]:
        storage = self._storage
        if storage.is_closed:
            storage.check_open()
        if is_committed and storage.lock is None:
            storage.check_writable()
        if self.staleness:
            self.resync(database)
        return _Changing(self, database)

    def changing_program(
        self, database: MemoryDatabase, is_committed: bool
    ) -> AbstractContextManager[object]:
        if is_committed:
            self._storage.check_writable()
            self.check_ungrouped()
        return _Changing(self, database)

    def after_failure(
        self, database: MemoryDatabase, error: BaseException | None, model: Model
    ) -> None:
        """Bring file and memory together; if that fails too, the next caller begins with it.

        `model` is the one before the change.
        """
        if isinstance(error, Exception) and database.model is model:  # nothing is half changed
            self.staleness = (
                min(self.staleness, Staleness.COMPARE)
                if self._storage.is_writable
                else Staleness.CURRENT
            )
        with suppress(Exception):
            if self.staleness:
                self.resync(database)

    def after_success(self, database: MemoryDatabase, version: int) -> None:
        """Do what is due at the version that the database has now; it had another, or this one."""
        expected, engine = self._persistence.clock, cast("RankedEngine", database.engine)
        if database.version != version and expected not in (None, engine.clock):
            raise InternalError("facts have other ranks in memory than in the file")
        self.staleness = Staleness.CURRENT
        if database.version >= self._due:
            if self._writer.is_grouped:
                self.end_group(database)
                self.begin_group(database, self._group_max)
            else:
                self.compact(database)

    # --- groups

    @property
    def is_grouped(self) -> bool:
        return self._writer.is_grouped

    def check_ungrouped(self) -> None:
        if self._writer.is_grouped:
            raise DataError([catalogue.GROUP_OPEN.at(None)])

    def begin_group(self, database: MemoryDatabase, transactions_max: int) -> None:
        self._group_max = transactions_max
        self._writer.begin_group()
        self._due = database.version + transactions_max

    def end_group(self, database: MemoryDatabase) -> None:
        if self.staleness and self._writer.is_grouped:
            self.resync(database)
        if not self._writer.is_grouped:
            return  # it was undone, and that was reported
        try:
            self.staleness = Staleness.COMPARE
            self._due = self._compact_at
            self._writer.end_group()
            self.staleness = Staleness.CURRENT
        except BaseException as error:
            self.after_failure(database, error, database.model)
            raise

    # --- compaction

    def compact(self, database: MemoryDatabase, retention: Retention | None = None) -> Dropped:
        """Drop what the log need not keep any more."""
        storage = self._storage
        with sqlite_errors_reported(storage.path, is_commit=True):
            storage.check_writable()
            self.check_ungrouped()
            self.compact_later(database)
            chosen = storage.retention if retention is None else retention
            readers.check_retention(chosen)
            return readers.compact_log(storage.connection, storage.path, chosen)

    def compact_later(self, database: MemoryDatabase) -> None:
        if self._storage.retention.is_limited:
            self._compact_at = self._due = database.version + COMMITS_BETWEEN_COMPACTIONS

    # --- following another process

    def refresh(self, database: MemoryDatabase) -> ChangeSet:
        """Catch up with the file, inside a transaction that reads it; return what has changed."""
        last = self._checked_last_version(database)
        if last == database.version:
            return NO_CHANGE
        if self._log.first > database.version:
            return self._reload_and_compare(database)
        change = self._log.net(database.version, last)
        omitted = self._log.omitted(database.version, last)
        if self._log.program_version > database.version:
            found = self._reload_and_compare(database, omitted)
        else:
            found = self._follow_change(database, change, omitted)
            database.version = last
        return change + found if omitted else change

    def tail(self, database: MemoryDatabase, wanted: frozenset[str]) -> list[Commit]:
        """Catch up with the file commit by commit, with the changes of views that are wanted."""
        last = self._checked_last_version(database)
        if last == database.version:
            return []
        first = max(database.version, self._log.first)
        found = list(self._log.commits(first, last))
        if first == database.version:
            for number, each in enumerate(found):
                if each.kind == PROGRAM:
                    break
                more = self._follow_change(database, each.change, each.omitted & wanted)
                change, omitted = each.change + more, each.omitted - wanted
                found[number] = replace(each, change=change, omitted=omitted)
                database.version = each.version
        if database.version != last:
            self._reload_file(database)
        return found

    def _checked_last_version(self, database: MemoryDatabase) -> int:
        """The version of the file, which is checked first."""
        self._storage.check_unmoved()
        check_unspoiled(self._storage.path, self._storage.connection)
        self._log.forget_programs()
        return self._log.last

    def _reload_and_compare(
        self, database: MemoryDatabase, relations: Set[str] | None = None
    ) -> ChangeSet:
        """Load the file again; return what that changes of some relations, or of all.

        Another program may have others.
        """

        before = _facts_of(database, relations)
        self._reload_file(database)
        return ChangeSet(_facts_of(database, relations), before)

    def _follow_change(
        self, database: MemoryDatabase, change: ChangeSet, omitted: Set[str]
    ) -> ChangeSet:
        """Make the base changes of another process in memory; views follow as they did there.

        Returns the change of those views whose change the log omits.
        """
        known = database.model.checked.relations
        base = (name for name in change.relations if known[name].kind == "base")
        self.staleness = Staleness.UNKNOWN
        followed, found = change.only(*base), NO_CHANGE
        is_nervous = database.model.options.is_nervous
        before = _facts_of(database, omitted) if followed and is_nervous else {}
        if followed:
            arguments = database.propagation, followed, database.limits, database.watch
            route = database.propagation.route_to(frozenset(omitted))
            with Propagated(*arguments, route=route) as outcome:
                found = outcome.changes().only(*omitted)
                outcome.apply()
                database.statistics = outcome.statistics
            database.propagation.watch_active_rules()
        self.staleness = Staleness.CURRENT
        if before:  # the log is exact, also to a reader whose own propagation is not
            return ChangeSet(_facts_of(database, omitted), before)
        return found


def _facts_of(database: MemoryDatabase, relations: Set[str] | None) -> dict[str, set[Row]]:
    """The facts of some relations as far as the program has them, or of all."""
    wanted = (n for n in database.relations if relations is None or n in relations)
    return {name: database.current_facts(name) for name in wanted}


class _Changing:
    """The time in which memory may be half changed; not a generator, for small commits."""

    __slots__ = ("_database", "_model", "_synchronization", "_version")

    def __init__(self, synchronization: FileSynchronization, database: MemoryDatabase) -> None:
        self._synchronization = synchronization
        self._database = database
        self._model = database.model
        self._version = database.version

    def __enter__(self) -> None:
        self._synchronization.staleness = Staleness.UNKNOWN

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._synchronization.after_success(self._database, self._version)
        else:
            self._synchronization.after_failure(self._database, error, self._model)
