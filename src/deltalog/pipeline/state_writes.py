"""The verbs of a state that is served which change it, or would: Spark makes the changes.

Without a writer a what-if is computed in this process, and everything that would be committed is
refused by one error. With one, a commit is made by Spark on the log, and taken from there before
its answer is seen. Readers of the log may be noted by whoever reads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Value
from deltalog.pipeline.state import State
from deltalog.pipeline.state_settings import StateSettings
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.protocols import Facts
from deltalog.runtime.transaction import Transaction
from deltalog.store.history import LoggedHistory
from deltalog.store.logged import Logged
from deltalog.store.readers import check_known, check_reader_name

if TYPE_CHECKING:
    from deltalog.pipeline.table_database import TableDatabase

NOTED_SECONDS = 5.0
"""How often a reader's place is written to the log; until then more is kept than it needs."""
Result = TypeVar("Result")


class StateWrites(MemoryDatabase, Logged):
    """A part of `StateDatabase`."""

    state: str
    writer: TableDatabase | None
    _tables: State
    _settings: StateSettings
    _noted: dict[str, float]

    @property
    def _logged_history(self) -> LoggedHistory:
        raise NotImplementedError

    def _load_base(self) -> None:
        raise NotImplementedError

    def what_if(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
        set: Facts | None = None,
        *,
        views: Iterable[str] | None = None,
    ) -> ChangeSet:
        """The exact change that a transaction would make, without making it."""
        if self.writer is not None:
            return self.writer.what_if(insert, delete, set, views=views)
        with self.turn():
            self._load_base()
            return super().what_if(insert, delete, set, views=views)

    def transaction(self, *, views: Iterable[str] | None = None) -> Transaction:
        """A transaction for a `with` block, which the writer commits."""
        writer = self._needed_writer("a transaction")
        made = writer.transaction(views=views)
        commit = made._commit
        made._commit = lambda wanted: self._taking_over(lambda: commit(wanted))
        return made

    def silent_transaction(self, *arguments: Any, **options: Any) -> Transaction:
        if self.writer is not None:
            return self.writer._database.silent_transaction(*arguments, **options)
        self._load_base()
        return super().silent_transaction(*arguments, **options)

    def propagate_wanted(
        self,
        wanted: ChangeSet,
        is_committed: bool = True,
        views: frozenset[str] | None = None,
        is_firing: bool | None = None,
    ) -> ChangeSet:
        if is_committed:
            self._refuse_writing("a transaction")
        return super().propagate_wanted(wanted, is_committed, views, is_firing)

    def _apply_realization(self, base: ChangeSet) -> ChangeSet:
        writer = self._needed_writer("a view update")
        return self._taking_over(lambda: writer.apply(base.inserted, base.deleted).changes)

    def change_program(
        self, program: Any, *, is_committed: bool = True, inactive: Iterable[str] = ()
    ) -> ChangeSet:
        """Go over to another program, by the writer."""
        writer = self._needed_writer("another program")
        return self._taking_over(
            lambda: writer.change_program(program, is_committed=is_committed, inactive=inactive)
        )

    def activate(self, rule: str, **parameters: Value) -> None:
        """Activate a rule, by the writer."""
        writer = self._needed_writer("a rule")
        self._taking_over(lambda: writer.activate(rule, **parameters))

    def deactivate(self, rule: str, **parameters: Value) -> None:
        """Deactivate a rule, by the writer."""
        writer = self._needed_writer("a rule")
        self._taking_over(lambda: writer.deactivate(rule, **parameters))

    def _taking_over(self, change: Callable[[], Result]) -> Result:
        """Commit by the writer, and take the commit from the log before anybody sees the answer."""
        result = change()
        follower = self.follower
        names = {n for n, each in self.relations.items() if each.kind == "base"}
        views = follower.views if follower is not None else frozenset()
        for each in self.tail(frozenset(names) | views):
            if follower is not None:
                commit = each.commit
                follower.committed(commit.version, commit.kind, commit.change, views)
        return result

    def _needed_writer(self, what: str) -> TableDatabase:
        if self.writer is None:
            self._refuse_writing(what)
        return self.writer

    def _refuse_writing(self, what: str) -> NoReturn:
        hint = "serve it with `--spark`, while no pipeline runs; or let the pipeline change it"
        entry = service_catalogue.STATE_ONLY_READ
        raise DataError([entry.at(None, what=what, name=self.state, hint=hint)])

    # --- readers

    @property
    def readers(self) -> Mapping[str, int]:
        """The registered readers, each with the version it has acknowledged."""
        return self._tables.readers

    def register(self, reader: str) -> int:
        """Hold the log for a reader from now on; returns the version it has read up to."""
        check_reader_name(reader)
        if not self._settings.is_durable:
            reason = "it is not in a folder of this machine"
            entry = service_catalogue.STATE_NOT_KEPT
            raise DataError([entry.at(None, name=self.state, reason=reason)])
        if reader not in self.readers:
            self._tables.log.note_reader(reader, self.version)
        return self.readers[reader]

    def acknowledge(self, reader: str, version: int) -> None:
        """The reader needs nothing any more of what lies up to a version."""
        self._logged_history.check_version(version)
        now = time.monotonic()
        if now - self._noted.get(reader, -NOTED_SECONDS) < NOTED_SECONDS:
            return
        check_known(self.readers, reader)
        if version > self.readers[reader]:
            self._tables.log.note_reader(reader, version)
        self._noted[reader] = now

    def unregister(self, reader: str) -> None:
        """Let go of what the log holds for a reader."""
        check_known(self.readers, reader)
        self._tables.log.note_reader(reader, None)
        self._noted.pop(reader, None)
