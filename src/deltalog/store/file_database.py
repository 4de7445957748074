"""A database that is a file: every commit is in it before anybody sees its effect.

    commit:  propagate ─▶ BEGIN ─▶ tables, log ─▶ COMMIT ─▶ relations in memory
    open:    tables ─▶ relations in memory, in the order of their ranks

If SQLite cannot commit, nothing has changed in memory either. `store/file_persistence.py` loads and
writes, `store/synchronization.py` keeps memory and file at one version, `store/history.py` reads
earlier ones.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import apsw

from deltalog.analysis.columns import Relation
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Program, Query, Row
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model
from deltalog.runtime.parameters import Parameters
from deltalog.runtime.protocols import Facts, Participant
from deltalog.runtime.rows import Rows
from deltalog.runtime.why.state import AskedState
from deltalog.runtime.why.why_changed import Transition
from deltalog.store import readers
from deltalog.store.copies import back_up_to
from deltalog.store.file_deliveries import FileDeliveries
from deltalog.store.file_persistence import FilePersistence
from deltalog.store.history import LoggedHistory, without_hidden
from deltalog.store.log import Commit, Summary
from deltalog.store.logged import Logged, Tailed, first_commits
from deltalog.store.programs import program_and_text
from deltalog.store.readers import Dropped, Retention
from deltalog.store.settings import FileSettings
from deltalog.store.sqlite import open_connection, sqlite_errors_reported
from deltalog.store.storage import Storage
from deltalog.store.synchronization import GROUP_MAX, FileSynchronization
from deltalog.store.verify import Verification, verify_file

INDEXED_FROM = 100_000
"""From this many facts on indexes are built at loading, and not by the first transaction."""


class FileDatabase(FileDeliveries, Logged):
    """Made by `connect` with a path."""

    engine: RankedEngine
    _persistence: FilePersistence
    _synchronization: FileSynchronization

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
        persistence = FilePersistence(storage, text)
        self._writer = persistence.writer
        synchronization = FileSynchronization(persistence)
        weakref.finalize(self, storage.close)  # also when it was forgotten to close it
        _open.add(self)
        super().__init__(
            model, engine, limits, watch, facts, persistence, participants, synchronization
        )
        synchronization.compact_later(self)
        if persistence.loaded >= INDEXED_FROM and storage.is_writable:
            for node in self.propagation.nodes:  # and with it the indexes that it looks up by
                node.installed  # noqa: B018

    @contextmanager
    def _reading_snapshot(self) -> Iterator[None]:
        """One state of the file, whatever others write meanwhile."""
        with self.turn(), self._persistence.reading():
            yield

    def _check_open(self) -> None:
        self._storage.check_open()

    def _inherit_lock(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when the process forked
        self._storage.inherit()

    # --- committing

    @contextmanager
    def group(self, transactions_max: int = GROUP_MAX) -> Iterator[None]:
        """Transactions of the block reach the disk together when it ends.

        Each has its version and its place in the log, and is seen at once in this process; other
        processes see them, and a crash spares them, from the end of the block on, or when there
        are `transactions_max` of them. If they cannot be written, all of them are undone.
        """
        readers.check_number("transactions_max", transactions_max, int)
        self.check_not_acting()
        with self.turn():
            self._storage.check_writable()
            is_inner = self._synchronization.is_grouped
        if is_inner:
            yield
            return
        try:
            with self.turn():
                self._synchronization.begin_group(self, transactions_max)
            yield
        finally:
            with self._lock:
                self._synchronization.end_group(self)

    def change_program(
        self,
        program: str | Path | Program,
        *,
        is_committed: bool = True,
        inactive: Iterable[str] = (),
    ) -> ChangeSet:
        """Go over to another program, whose text the file keeps as it was written."""
        self.check_not_acting()
        with self.turn():
            parsed, self._persistence.text = program_and_text(program)
            return super().change_program(parsed, is_committed=is_committed, inactive=inactive)

    # --- time travel

    @property
    def _logged_history(self) -> LoggedHistory:  # not kept: a cycle would keep the file open
        return LoggedHistory(self._persistence.log, self, str(self.path))

    @property
    def first_version(self) -> int:
        """The oldest version whose state the log still leads back to."""
        with self._reading_snapshot():
            return self._logged_history.first

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a relation or view, now or as of an earlier version."""
        with self.turn():
            if version is None or version == self.version:
                return super().facts(relation)
            with self._persistence.reading():
                return self._logged_history.facts_at(relation, version, self.current_facts)

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
        with self.turn():
            if version is None or version == self.version:
                return super().query(text, parameters)
            with self._persistence.reading():
                return self._logged_history.query_at(
                    text, parameters or {}, version, self.current_facts
                )

    @contextmanager
    def _asked_state(self, version: int | None) -> Iterator[AskedState]:
        """The current state, or that of an earlier version."""
        if version is None or version == self.version:
            with super()._asked_state(None) as state:
                yield state
            return
        with self.turn():
            with self._persistence.reading():
                state = self._logged_history.state_at(version, self.current_facts)
            yield state

    @contextmanager
    def _transition_at(self, version: int | None) -> Iterator[Transition]:
        """The states around the transaction that made a version, by default the last one."""
        with self.turn():
            with self._persistence.reading():
                wanted = self.version if version is None else version
                found = self._logged_history.transition_to(wanted, self.current_facts)
            yield found

    def relations_at(self, version: int) -> Mapping[str, Relation]:
        """The base relations and views that the program of a version had."""
        with self._reading_snapshot():
            return self._logged_history.relations_at(version)

    def delta(
        self, first: int, last: int | None = None, views: Iterable[str] | None = None
    ) -> ChangeSet:
        """The net change from one version to another, which may also be an earlier one.

        Of the views that the log omits all are derived, or only those in `views`.
        """
        with self._reading_snapshot():
            return self._logged_history.delta(first, last, self.current_facts, views)

    def commits(
        self,
        after: int | None = None,
        until: int | None = None,
        views: Iterable[str] | None = None,
    ) -> list[Commit]:
        """The commits after a version, up to another one.

        Of the views that the log omits all are derived, or only those in `views`.
        """
        return list(self.each_commit(after, until, views))

    def each_commit(
        self,
        after: int | None = None,
        until: int | None = None,
        views: Iterable[str] | None = None,
    ) -> Iterator[Commit]:
        """The same one after the other: no more than a part of them is in memory."""
        after = self.first_version if after is None else after
        until = self.version if until is None else until
        wanted = None if views is None else frozenset(views)
        while found := self._some_commits(after, until, wanted):
            yield from found
            after = found[-1].version

    def _some_commits(self, after: int, until: int, views: Set[str] | None) -> list[Commit]:
        with self._reading_snapshot():
            found = self._logged_history.commits(after, until, self.current_facts, views)
            return first_commits(found, lambda each: len(each.change))

    def summaries(self, after: int, until: int) -> tuple[int, list[Summary]]:
        with self._reading_snapshot():
            self._logged_history.check_version(after)
            listed = self._persistence.log.summaries(after, until)
            found = first_commits(listed, lambda each: sum(each.counts.values()))
            return found[-1].version if found else until, found

    def omitted(self, first: int, last: int) -> frozenset[str]:
        """The views whose change the log omits somewhere between two versions."""
        with self._reading_snapshot():
            return self._persistence.log.omitted(min(first, last), max(first, last))

    def programs(self) -> list[tuple[int, str, str]]:
        """Every program there was: the version from which on it counted, the time, the text."""
        with self._reading_snapshot():
            return self._logged_history.programs()

    # --- readers of the log, and its size

    @property
    def readers(self) -> Mapping[str, int]:
        """The registered readers, each with the version it has acknowledged."""
        with self._reading_snapshot():
            return readers.read_up_to(self._connection)

    def register(self, reader: str) -> int:
        """Hold the log for a reader from now on; returns the version it has read up to."""
        with self.turn(), self._connection_of_readers() as connection:
            return readers.register_reader(connection, reader, self.version)

    def acknowledge(self, reader: str, version: int) -> None:
        """The reader needs nothing any more of what lies up to a version."""
        with self.turn(), self._connection_of_readers() as connection:
            self._logged_history.check_version(version)
            readers.acknowledge_version(connection, reader, version)

    def unregister(self, reader: str) -> None:
        """Let go of what the log holds for a reader."""
        with self.turn(), self._connection_of_readers() as connection:
            readers.unregister_reader(connection, reader)

    @contextmanager
    def _connection_of_readers(self) -> Iterator[apsw.Connection]:
        """A connection that may write about readers; also of a database that is only read."""
        self._check_open()
        if self._storage.is_writable:
            with self._persistence.writing():
                yield self._connection
                self._writer.foreign.registered()
            return
        with sqlite_errors_reported(self.path, is_commit=True):
            connection = open_connection(self.path, is_writable=True)
            try:
                with connection:
                    yield connection
            finally:
                connection.close()

    @property
    def settings(self) -> FileSettings:
        """Texts by name that belong to no version, such as what a service keeps here."""
        return FileSettings(self.turn, self._persistence)

    @property
    def is_tailed(self) -> bool:
        return not self._storage.is_writable

    def tail(self, wanted: frozenset[str]) -> list[Tailed]:
        """Take over what others have committed; changes of `wanted` views are known in any case."""
        self.check_not_acting()
        with self._reading_snapshot():
            found = self._synchronization.tail(self, wanted)
        relations = frozenset(self.relations)
        return [
            Tailed(replace(each, change=without_hidden(each.change)), relations - each.omitted)
            for each in found
        ]

    def commits_of(self, relation: str, after: int, until: int) -> tuple[int, list[Commit]]:
        found = self._some_commits(after, until, {relation})
        return found[-1].version if found else until, found

    def log_behind(self, version: int) -> tuple[int, bool]:
        return self.settings.log_behind(version)

    def compact(self, retention: Retention | None = None) -> Dropped:
        """Drop what the log need not keep any more, as `retention` says or the one of `connect`."""
        self.check_not_acting()
        with self.turn():
            return self._synchronization.compact(self, retention)

    # --- others

    def backup(self, target: str | Path) -> None:
        """Copy the database, as it is now, to a new file; others may go on meanwhile."""
        with self.turn():
            self._synchronization.check_ungrouped()
            back_up_to(self._connection, self.path, Path(target))

    def refresh(self) -> ChangeSet:
        """Catch up with what another process has committed; return what has changed by it."""
        self.check_not_acting()
        with self._reading_snapshot():
            return without_hidden(self._synchronization.refresh(self))

    def verify(self, *, engine: str | None = None) -> Verification:
        """Compare pages, views and log with each other; raises if a page cannot be read at all.

        Views are recomputed on another engine if one is named.
        """
        return verify_file(self, engine=engine)

    def check_pages(self) -> tuple[str, ...]:
        """Problems found by SQLite's integrity check, which reads every page with its checksum."""
        with self._reading_snapshot():
            self._storage.check_unmoved()
            found = [str(line) for (line,) in self._connection.execute("PRAGMA integrity_check")]
        return () if found == ["ok"] else tuple(found)

    def close(self) -> None:
        """Give the file back; a closed database cannot be used any more."""
        with self._lock:
            self.check_not_acting()
            if not self._is_closed and not self._storage.is_inherited:
                try:
                    self._synchronization.end_group(self)
                    if self._storage.is_writable:
                        with self._persistence.reading():
                            self._writer.foreign.check()
                finally:
                    self._is_closed = True
                    self._storage.close()


_open: weakref.WeakSet[FileDatabase] = weakref.WeakSet()


def _inherit_all() -> None:
    for database in list(_open):
        database._inherit_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit_all)
