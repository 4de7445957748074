"""A database that is a file: every commit is in it before anybody sees its effect.

    commit:  propagate ─▶ BEGIN ─▶ tables, log ─▶ COMMIT ─▶ relations in memory
    open:    tables ─▶ relations in memory, in the order of their ranks

If SQLite cannot commit, nothing has changed in memory either. What lies between a group's first
transaction and its end is in memory only; if that end fails, memory is read from the file again.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import cast

import apsw

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, InternalError
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Program, Query, Row
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import create
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, make_model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.parameters import Parameters
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.protocols import Facts, Participant
from deltalog.runtime.rows import Rows
from deltalog.store import readers
from deltalog.store.copies import backup
from deltalog.store.file_persistence import FilePersistence
from deltalog.store.history import FileHistory
from deltalog.store.log import Commit
from deltalog.store.programs import program_and_text, stored_program
from deltalog.store.readers import Dropped, Retention
from deltalog.store.sqlite import opened, reported
from deltalog.store.storage import Storage, check_unspoiled
from deltalog.store.verify import Verification, verify

INDEXED_FROM = 100_000
"""With so many facts indexes are built when they are loaded, and not by the first transaction."""
COMMITS_BETWEEN_COMPACTIONS = 1_000
GROUP_MAX = 10_000
_CURRENT, _COMPARE, _UNKNOWN = range(3)
"""Whether memory is what the file says: surely, if it is at the same version, or who knows."""


class FileDatabase(MemoryDatabase):
    """Made by `connect` with a path."""

    engine: RankedEngine

    def __init__(
        self,
        storage: Storage,
        model: Model,
        engine: RankedEngine,
        limits: Limits,
        watch: Watch | None = None,
        facts: Facts = MappingProxyType({}),
        text: str | None = None,
        participants: tuple[Participant, ...] = (),
    ) -> None:
        """`text` is that of the program for a new file; None reads what the file holds."""
        self.path = storage.path
        self._storage = storage
        self._connection = storage.connection
        self._kept = persistence = FilePersistence(storage, text)
        self._writer = persistence.writer
        self._log = persistence.log
        self._is_closed = False
        self._staleness = _CURRENT
        self._group_max = GROUP_MAX
        self._compact_at = self._due = sys.maxsize  # versions, for what is done now and then
        weakref.finalize(self, storage.close)  # also when it was forgotten to close it
        _open.add(self)
        super().__init__(model, engine, limits, watch, facts, persistence, participants)
        self._compact_later()
        if persistence.loaded >= INDEXED_FROM and storage.is_writable:
            for node in self.propagation.nodes:  # and with it the indexes that it looks up by
                node.installed  # noqa: B018

    def _reload(self) -> None:
        """Memory as the file is: after a group could not be written, or others wrote."""
        self._staleness = _UNKNOWN
        checked = stored_program(self._log.program)
        stored = make_model(checked, self.model.options.of_views(checked.relations))
        self.model, self.engine = stored, cast("RankedEngine", self.engine.fresh())
        create(self.engine, {name: stored.relations[name] for name in stored.stored})
        self.statistics = self._kept.restore(self)
        self.propagation = Propagation(self.engine, stored)
        self._staleness = _CURRENT

    # --- committing

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Alone among the threads, with a file that is open and that memory agrees with."""
        with self._lock:
            self._check_open()
            if self._staleness:
                self._resync()
            yield

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """One state of the file, whatever others write meanwhile."""
        with self._turn(), self._reading():
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with reported(self.path):
            if self._writer.is_grouped:
                yield
                return
            self._writer.roll_back()  # what an interrupt may have left open
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._writer.roll_back()

    def _inherit(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when the process forked
        self._storage.inherit()

    def _check_open(self) -> None:
        if self._storage.is_inherited:
            reason = "it belongs to the process from which this one was forked"
            hint = "open it again in this process"
            raise DataError(
                [catalogue.CANNOT_OPEN.at(None, name=self.path, reason=reason, hint=hint)]
            )
        if self._is_closed:
            raise DataError(
                [catalogue.DATABASE_CLOSED.at(None, name=f"the database `{self.path}`")]
            )

    def _check_writable(self) -> None:
        if self._is_closed or self._storage.is_closed:
            self._check_open()
        self._kept.check_writable()

    def _propagate(
        self, base: ChangeSet, is_committed: bool, views: frozenset[str] | None = None
    ) -> ChangeSet:
        storage = self._storage
        if storage.is_closed:
            self._check_open()
        if storage.lock is None and is_committed and base:
            self._check_writable()
        if self._staleness:
            self._resync()
        before = self.version
        self._staleness = _UNKNOWN
        try:
            change = super()._propagate(base, is_committed, views)
        except BaseException as error:
            self._after_failure(error)
            raise
        if self.version != before and self.engine.clock != self._kept.clock:
            raise InternalError("facts have other ranks in memory than in the file")
        self._staleness = _CURRENT
        if self.version >= self._due:
            self._do_what_is_due()
        return change

    def _after_failure(self, error: BaseException) -> None:
        """Bring file and memory together; if that fails too, whoever comes next begins with it."""
        if isinstance(error, Exception):  # which leaves nothing half done in memory
            self._staleness = (
                min(self._staleness, _COMPARE) if self._storage.is_writable else _CURRENT
            )
        with suppress(Exception):
            if self._staleness:
                self._resync()

    def _resync(self) -> None:
        """If file and memory are not at the same version, the file is right.

        SQLite may have undone a whole group; or we were interrupted, at any place.
        """
        self._writer.tidy()
        if not self._writer.is_grouped:
            self._due = self._compact_at
        self._log.forget_programs()
        with self._reading():
            if self._staleness == _UNKNOWN or self._log.last != self.version:
                self._reload()
        self._staleness = _CURRENT

    def _do_what_is_due(self) -> None:
        if self._writer.is_grouped:
            self._end_group()
            self._begin_group()
        else:
            self.compact()

    def _compact_later(self) -> None:
        if self._storage.retention.is_limited:
            self._compact_at = self._due = self.version + COMMITS_BETWEEN_COMPACTIONS

    @contextmanager
    def group(self, transactions_max: int = GROUP_MAX) -> Iterator[None]:
        """Transactions of the block reach the disk together when it ends.

        Each has its version and its place in the log, and is seen at once in this process; other
        processes see them, and a crash spares them, from the end of the block on, or when there
        are `transactions_max` of them. If they cannot be written, all of them are undone.
        """
        readers.check_number("transactions_max", transactions_max, int)
        with self._turn():
            self._check_writable()
            is_inner = self._writer.is_grouped
        if is_inner:
            yield
            return
        try:
            with self._turn():
                self._group_max = transactions_max
                self._begin_group()
            yield
        finally:
            with self._lock:
                self._end_group()

    def _begin_group(self) -> None:
        self._writer.begin_group()
        self._due = self.version + self._group_max

    def _end_group(self) -> None:
        if self._staleness and self._writer.is_grouped:
            self._resync()
        if not self._writer.is_grouped:
            return  # it was undone, and that was said
        try:
            self._staleness = _COMPARE
            self._due = self._compact_at
            self._writer.end_group()
            self._staleness = _CURRENT
        except BaseException as error:
            self._after_failure(error)
            raise

    # --- changing rules

    def change_program(
        self, program: str | Path | Program, *, is_committed: bool = True
    ) -> ChangeSet:
        with self._turn():
            parsed, text = program_and_text(program)
            if is_committed:
                self._check_writable()
                if self._writer.is_grouped:
                    raise DataError([catalogue.GROUP_OPEN.at(None)])
                self._kept.text = text
            before = self.model
            self._staleness = _UNKNOWN
            try:
                change = super().change_program(parsed, is_committed=is_committed)
            except BaseException as error:
                if self.model is before:
                    self._after_failure(error)
                else:
                    with suppress(Exception):
                        self._resync()
                raise
            self._staleness = _CURRENT
            return change

    # --- time travel

    @property
    def _history(self) -> FileHistory:
        return FileHistory(self._kept, self)  # not kept: a cycle would keep the file open

    @property
    def first_version(self) -> int:
        """The oldest version whose state the log still leads back to."""
        with self._snapshot():
            return self._history.first

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a relation or view, now or as of an earlier version."""
        with self._turn():
            if version is None or version == self.version:
                return super().facts(relation)
            with self._reading():
                return self._history.facts_at(relation, version, self.current_facts)

    def query(
        self,
        text: str | Query,
        parameters: Parameters | None = None,
        *,
        version: int | None = None,
    ) -> Rows:
        """As of an earlier version: the program of that version over the base facts it had.

        Those of the base relations that the query reads are copied for it, and the log is read back
        to that version.
        """
        with self._turn():
            if version is None or version == self.version:
                return super().query(text, parameters)
            with self._reading():
                return self._history.query_at(text, parameters or {}, version, self.current_facts)

    def relations_at(self, version: int) -> Mapping[str, Relation]:
        """The base relations and views that the program of a version had."""
        with self._snapshot():
            return self._history.program_at(version).relations

    def delta(self, first: int, last: int | None = None) -> ChangeSet:
        """The net change from one version to another, which may also be an earlier one."""
        with self._snapshot():
            return self._history.delta(first, last)

    def commits(self, after: int | None = None, until: int | None = None) -> list[Commit]:
        """The commits after a version, up to another one, as they are in the log."""
        with self._snapshot():
            return self._history.commits(after, until)

    def programs(self) -> list[tuple[int, str, str]]:
        """Every program there was: the version from which on it counted, the time, the text."""
        with self._snapshot():
            return self._history.programs()

    # --- readers of the log, and its size

    @property
    def readers(self) -> Mapping[str, int]:
        """The registered readers, each with the version it has acknowledged."""
        with self._snapshot():
            return readers.read_up_to(self._connection)

    def register(self, reader: str) -> int:
        """Hold the log for a reader from now on; answers the version it has read up to."""
        with self._turn(), self._beside() as connection:
            return readers.register(connection, reader, self.version)

    def acknowledge(self, reader: str, version: int) -> None:
        """The reader needs nothing any more of what lies up to a version."""
        with self._turn(), self._beside() as connection:
            self._history.check_version(version)
            readers.acknowledge(connection, reader, version)

    def unregister(self, reader: str) -> None:
        """Let go of what the log holds for a reader."""
        with self._turn(), self._beside() as connection:
            readers.unregister(connection, reader)

    @contextmanager
    def _beside(self) -> Iterator[apsw.Connection]:
        """A connection that may write about readers; also of a database that is only read."""
        self._check_open()
        if self._storage.is_writable:
            with self._kept.writing():
                yield self._connection
                self._writer.foreign.registered()
            return
        with reported(self.path, is_commit=True):
            connection = opened(self.path, is_writable=True)
            try:
                with connection:
                    yield connection
            finally:
                connection.close()

    def compact(self, retention: Retention | None = None) -> Dropped:
        """Drop what the log need not keep any more, as `retention` says or the one of `connect`."""
        with self._turn(), reported(self.path, is_commit=True):
            self._check_writable()
            if self._writer.is_grouped:
                raise DataError([catalogue.GROUP_OPEN.at(None)])
            self._compact_later()
            chosen = self._storage.retention if retention is None else retention
            readers.check_retention(chosen)
            return readers.compact(self._connection, self.path, chosen)

    # --- others

    def backup(self, target: str | Path) -> None:
        """Copy the database, as it is now, to a new file; others may go on meanwhile."""
        with self._turn():
            if self._writer.is_grouped:
                raise DataError([catalogue.GROUP_OPEN.at(None)])
            backup(self._connection, self.path, Path(target))

    def refresh(self) -> ChangeSet:
        """Catch up with what another process has committed; answers what has changed by it."""
        with self._snapshot():
            self._storage.check_unmoved()
            check_unspoiled(self.path, self._connection)
            self._log.forget_programs()
            last = self._log.last
            if last == self.version:
                return ChangeSet()
            if self._log.first > self.version:
                return self._compared()
            change = self._log.net(self.version, last)
            if self._log.program_version > self.version:
                self._reload()
            else:
                self._follow(change)
                self.version = last
            return change

    def _compared(self) -> ChangeSet:
        """Read the file again where the log no longer leads from here to there."""
        before = {name: super(FileDatabase, self).facts(name) for name in self.relations}
        self._reload()
        after = {name: super(FileDatabase, self).facts(name) for name in self.relations}
        return ChangeSet(after, before)

    def _follow(self, change: ChangeSet) -> None:
        """Make the base changes of others in memory; views follow as they did there."""
        base = (name for name in change.relations if self.relations[name].kind == "base")
        self._staleness = _UNKNOWN
        followed = change.only(*base)
        if followed:
            arguments = self.propagation, followed, self.limits, self.watch
            with Propagated(*arguments) as outcome:
                outcome.apply()
                self.statistics = outcome.statistics
        self._staleness = _CURRENT

    def verify(self, *, engine: str | None = None) -> Verification:
        """Compare pages, views and log with each other; raises if a page cannot be read at all.

        Views are recomputed on another engine if one is named.
        """
        return verify(self, engine=engine)

    def check_pages(self) -> tuple[str, ...]:
        """What SQLite's integrity check finds; every page is read, and its checksum verified."""
        with self._snapshot():
            self._storage.check_unmoved()
            found = [str(line) for (line,) in self._connection.execute("PRAGMA integrity_check")]
        return () if found == ["ok"] else tuple(found)

    def close(self) -> None:
        """Give the file back; a closed database cannot be used any more."""
        with self._lock:
            if not self._is_closed and not self._storage.is_inherited:
                try:
                    self._end_group()
                    if self._storage.is_writable:
                        with self._reading():
                            self._writer.foreign.check()
                finally:
                    self._is_closed = True
                    self._storage.close()


_open: weakref.WeakSet[FileDatabase] = weakref.WeakSet()


def _inherit_all() -> None:
    for database in list(_open):
        database._inherit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit_all)
