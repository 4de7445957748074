"""A database that is a file: every commit is in it before anybody sees its effect.

    commit:  propagate ─▶ BEGIN ─▶ tables, log ─▶ COMMIT ─▶ relations in memory
    open:    tables ─▶ relations in memory, in the order of their ranks

If SQLite cannot commit, nothing has changed in memory either. What lies between a group's first
transaction and its end is in memory only; if that end fails, memory is read from the file again.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import cast

import apsw

from deltalog.analysis.columns import Relation
from deltalog.checks.program import CheckedProgram, check_query
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, InternalError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Program, Query, Row
from deltalog.language.parser import parse_query
from deltalog.language.printer import print_program
from deltalog.rewrites.names import is_generated
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import Database, Facts
from deltalog.runtime.evaluation import create, rebuild
from deltalog.runtime.fixpoint import Statistics, Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, make_model, query_model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.parameters import Parameters, bind_parameters
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.queries import answer, stored_reads
from deltalog.runtime.rows import Rows
from deltalog.store import readers
from deltalog.store.cells import check_cells, from_cells, ranked, to_cells, with_types
from deltalog.store.copies import backup
from deltalog.store.log import CREATED, PROGRAM, Columns, Commit, Log
from deltalog.store.programs import program_and_text, stored_program
from deltalog.store.readers import Dropped, Retention
from deltalog.store.schema import (
    Table,
    add_table,
    drop_table,
    read_tables,
    relations_json,
    table_for,
)
from deltalog.store.sqlite import opened, reported
from deltalog.store.storage import Storage, check_unspoiled, lay_out
from deltalog.store.writer import Writer

ROWS_AT_ONCE = 50_000
INDEXED_FROM = 100_000
"""With so many facts indexes are built when they are loaded, and not by the first transaction."""
COMMITS_BETWEEN_COMPACTIONS = 1_000
GROUP_MAX = 10_000
_NO_DOUBT, _COMPARE, _UNKNOWN = range(3)
"""Whether memory is what the file says: surely, if it is at the same version, or who knows."""


class FileDatabase(Database):
    """Made by `connect` with a path."""

    _is_kept = True
    _records_every_view = True  # its log has the change of every view, wanted now or not
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
    ) -> None:
        """`text` is that of the program for a new file; None reads what the file holds."""
        self.path = storage.path
        self._storage = storage
        self._connection = storage.connection
        self._writer = Writer(storage)
        self._log = Log(storage.connection)
        self._text = text
        self._is_closed = False
        self._doubt = _NO_DOUBT
        self._group_max = GROUP_MAX
        self._compact_at = self._due = sys.maxsize  # versions, for what is done now and then
        self._loaded = 0
        self._clock = 0  # of the engine, when what was written last has been applied
        weakref.finalize(self, storage.close)  # also when it was forgotten to close it
        _open.add(self)
        super().__init__(model, engine, limits, watch, facts)
        self._compact_later()
        if self._loaded >= INDEXED_FROM and storage.is_writable:
            for node in self.propagation.nodes:  # and with it the indexes that it looks up by
                node.installed  # noqa: B018

    # --- opening

    def _fill(self, facts: Facts) -> Statistics:
        if self._text is not None:
            statistics = super()._fill(facts)
            with self._written():
                lay_out(self._connection)
                self._write_program(0, CREATED, ChangeSet(), {}, self._text)
                self._write_relations(self.model.stored)
                self._writer.others.check_writes()
            with reported(self.path, is_commit=True):  # the file is not empty without its log
                self._connection.execute("PRAGMA wal_checkpoint = PASSIVE").fetchall()
            return statistics
        with reported(self.path), _no_collection():
            try:  # in the transaction in which the program was read
                statistics = self._restore()
                self._writer.others.check_writes()
            finally:
                self._writer.roll_back()
        absent = self.model.stored - self._usable()
        if self._storage.is_writable and (absent or self._tables.keys() - self.model.stored):
            with self._written():  # it was kept with other options
                self._write_relations(absent)
        return statistics

    def _restore(self) -> Statistics:
        """Load what the file holds, and compute what it does not hold or holds otherwise."""
        check_unspoiled(self.path, self._connection)
        self._writer.tables = read_tables(self._connection)
        self._writer.columns = self._columns()
        kept = self._usable()
        self._loaded = 0
        for name in sorted(kept):
            for rows in self._ranked(self._tables[name]):
                if self.engine.load(name, rows) != len(rows):
                    raise self._damaged(f"facts of `{name}` are in it twice")
                self._loaded += len(rows)
                if self.watch is not None:
                    self.watch(0, self._loaded)
        missing = self.model.stored - kept
        lost = [name for name in missing if self.model.relations[name].kind == "base"]
        if any(not is_generated(name) for name in lost):
            raise self._damaged(f"the table of `{lost[0]}` is missing")
        self.version = self._log.last
        return rebuild(self.engine, self.model, missing, self.limits, self.watch)

    @property
    def _tables(self) -> dict[str, Table]:
        return self._writer.tables

    def _columns(self) -> Columns:
        """The columns of every relation of the program that counts, as the log wants them."""
        return {name: each.types for name, each in self.relations.items()}

    def _usable(self) -> frozenset[str]:
        """The stored relations that the file has, with their ranks in one order.

        Of a recursive component all or nothing: ranks of facts that are derived now would say
        nothing about those that were derived before.
        """
        same = {
            name
            for name in self.model.stored & self._tables.keys()
            if self._tables[name].types == self.model.relations[name].types
        }
        for choice in self.model.choices:
            if choice.is_recursive and not self.model.stored & choice.members <= same:
                same -= choice.members
        return frozenset(same)

    def _ranked(self, table: Table) -> Iterator[list[Row]]:
        """The facts in a table, each with its rank, some at a time."""
        cursor = self._connection.execute(table.select)
        types = ("int", *table.types)
        while chunk := list(islice(cursor, ROWS_AT_ONCE)):
            try:
                check_cells(chunk, table.columns)
                rows = from_cells(chunk, types)
            except (ArithmeticError, TypeError, ValueError) as error:
                reason = f"the table of `{table.relation}` contains invalid facts"
                raise self._damaged(reason) from error
            yield rows

    def _damaged(self, reason: str) -> DataError:
        return DataError([catalogue.FILE_DAMAGED.at(None, name=self.path, reason=reason)])

    def _reload(self) -> None:
        """Memory as the file is: after a group could not be written, or others wrote."""
        self._doubt = _UNKNOWN
        checked = stored_program(self._log.program)
        stored = make_model(checked, self.model.options.of_views(checked.relations))
        self.model, self.engine = stored, cast("RankedEngine", self.engine.fresh())
        create(self.engine, {name: stored.relations[name] for name in stored.stored})
        self.statistics = self._restore()
        self.propagation = Propagation(self.engine, stored)
        self._doubt = _NO_DOUBT

    # --- committing

    def _keep(self, outcome: Propagated, change: ChangeSet) -> None:
        clock = self.engine.clock
        self._clock = self._writer.write(outcome, change, self.version + 1, clock)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """A transaction of its own, or a part of the group that is open."""
        self._check_writable()
        with self._writer.transaction():
            yield

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Alone among the threads, with a file that is open and that memory agrees with."""
        with self._lock:
            self._check_open()
            if self._doubt:
                self._agree()
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
        if self._storage.lock is None:
            raise DataError([catalogue.OPENED_READ_ONLY.at(None, name=self.path)])

    def _propagate(
        self, base: ChangeSet, is_committed: bool, views: frozenset[str] | None = None
    ) -> ChangeSet:
        storage = self._storage
        if storage.is_closed:
            self._check_open()
        if storage.lock is None and is_committed and base:
            self._check_writable()
        if self._doubt:
            self._agree()
        before = self.version
        self._doubt = _UNKNOWN
        try:
            change = super()._propagate(base, is_committed, views)
        except BaseException as error:
            self._after_failure(error)
            raise
        if self.version != before and self.engine.clock != self._clock:
            raise InternalError("facts have other ranks in memory than in the file")
        self._doubt = _NO_DOUBT
        if self.version >= self._due:
            self._do_what_is_due()
        return change

    def _after_failure(self, error: BaseException) -> None:
        """Bring file and memory together; if that fails too, whoever comes next begins with it."""
        if isinstance(error, Exception):  # which leaves nothing half done in memory
            self._doubt = min(self._doubt, _COMPARE) if self._storage.is_writable else _NO_DOUBT
        with suppress(Exception):
            if self._doubt:
                self._agree()

    def _agree(self) -> None:
        """If file and memory are not at the same version, the file is right.

        SQLite may have undone a whole group; or we were interrupted, at any place.
        """
        self._writer.tidy()
        if not self._writer.is_grouped:
            self._due = self._compact_at
        self._log.forget_programs()
        with self._reading():
            if self._doubt == _UNKNOWN or self._log.last != self.version:
                self._reload()
        self._doubt = _NO_DOUBT

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
        if self._doubt and self._writer.is_grouped:
            self._agree()
        if not self._writer.is_grouped:
            return  # it was undone, and that was said
        try:
            self._doubt = _COMPARE
            self._due = self._compact_at
            self._writer.end_group()
            self._doubt = _NO_DOUBT
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
                self._text = text
            before = self.model
            self._doubt = _UNKNOWN
            try:
                change = super().change_program(parsed, is_committed=is_committed)
            except BaseException as error:
                if self.model is before:
                    self._after_failure(error)
                else:
                    with suppress(Exception):
                        self._agree()
                raise
            self._doubt = _NO_DOUBT
            return change

    def _keep_program(self, touched: Set[str], change: ChangeSet) -> None:
        before = self._log.columns_at(self.version)
        text = self._text or print_program(self.model.checked.program)
        with self._written():
            self._write_program(self.version + 1, PROGRAM, change, before, text)
            self._write_relations(touched)

    def _write_program(
        self, version: int, kind: str, change: ChangeSet, before: Columns, text: str
    ) -> None:
        self._log.append_program(version, text, relations_json(self.relations))
        self._writer.columns = self._columns()
        self._log.append(version, kind, change, before, self._writer.columns)

    def _write_relations(self, touched: Set[str]) -> None:
        """Bring tables to what memory holds: those that are touched, or are other ones now."""
        for name, table in list(self._tables.items()):
            relation = self.model.relations.get(name)
            is_same = relation is not None and table == self._table(relation, table.name)
            if name not in self.model.stored or name in touched or not is_same:
                drop_table(self._connection, table)
                del self._tables[name]
        for name in sorted(self.model.stored - self._tables.keys()):
            taken = [table.name for table in self._tables.values()]
            table = table_for(self.model.relations[name], self._kind(name), taken)
            add_table(self._connection, table)
            self._tables[name] = table
            self._insert_all(table)

    def _table(self, relation: Relation, name: str) -> Table:
        return Table(relation.name, self._kind(relation.name), name, relation.columns)

    def _kind(self, name: str) -> str:
        return "helper" if is_generated(name) else self.model.relations[name].kind

    def _insert_all(self, table: Table) -> None:
        rows = self.engine.ranked(table.relation)
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            cells = to_cells([row for _, row in chunk], table.types)
            chunked = ranked(cells, [rank for rank, _ in chunk])
            self._connection.executemany(table.insert, chunked)

    # --- time travel

    @property
    def first_version(self) -> int:
        """The oldest version whose state the log still leads back to."""
        with self._snapshot():
            return self._log.first

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a relation or view, now or as of an earlier version."""
        with self._turn():
            if version is None or version == self.version:
                return super().facts(relation)
            with self._reading():
                return self._facts_at(relation, version)

    def _facts_at(self, relation: str, version: int) -> set[Row]:
        self._check_version(version)
        known = self._log.columns_at(version)
        if relation not in known:
            hint = did_you_mean(str(relation), known)
            raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
        change = self._log.net(version, self.version, relation)
        facts = self._facts(relation) if relation in self.relations else set()
        facts = (facts - change.inserted[relation]) | change.deleted[relation]
        is_same = known[relation] == self._writer.columns.get(relation)
        return facts if is_same else with_types(facts, known[relation])

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
                return self._query_at(text, parameters or {}, version)

    def _query_at(self, text: str | Query, parameters: Parameters, version: int) -> Rows:
        checked = self._checked_at(version)
        base = frozenset(name for name, each in checked.relations.items() if each.kind == "base")
        model = query_model(checked, base)
        asked = parse_query(text) if isinstance(text, str) else text
        query = bind_parameters(asked, parameters, checked.relations)
        check_query(query, checked.relations)
        engine = self.engine.fresh()
        for name in stored_reads(model, query):
            create(engine, {name: checked.relations[name]})
            engine.insert(name, self._facts_at(name, version))
        return answer(engine, model, query, self.limits, self.watch)

    def relations_at(self, version: int) -> Mapping[str, Relation]:
        """The base relations and views that the program of a version had."""
        with self._snapshot():
            return self._checked_at(version).relations

    def _checked_at(self, version: int) -> CheckedProgram:
        self._check_version(version)
        return stored_program(self._log.program_at(version))

    def delta(self, first: int, last: int | None = None) -> ChangeSet:
        """The net change from one version to another, which may also be an earlier one."""
        with self._snapshot():
            last = self.version if last is None else last
            self._check_version(first)
            self._check_version(last)
            if first <= last:
                return self._log.net(first, last)
            return -self._log.net(last, first)

    def commits(self, after: int | None = None, until: int | None = None) -> list[Commit]:
        """The commits after a version, up to another one, as they are in the log."""
        with self._snapshot():
            after = self._log.first if after is None else after
            until = self.version if until is None else until
            self._check_version(after)
            return list(self._log.commits(after, until))

    def programs(self) -> list[tuple[int, str, str]]:
        """Every program there was: the version from which on it counted, the time, the text."""
        with self._snapshot():
            return self._log.programs()

    def _check_version(self, version: int) -> None:
        first, last = self._log.first, self.version
        if not isinstance(version, int) or not first <= version <= last:
            raise DataError(
                [
                    catalogue.NO_SUCH_VERSION.at(
                        None, version=version, name=self.path, first=first, last=last
                    )
                ]
            )

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
            self._check_version(version)
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
            with self._written():
                yield self._connection
                self._writer.others.registered()
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
        self._doubt = _UNKNOWN
        followed = change.only(*base)
        if followed:
            arguments = self.propagation, followed, self.limits, self.watch
            with Propagated(*arguments) as outcome:
                outcome.apply()
                self.statistics = outcome.statistics
        self._doubt = _NO_DOUBT

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
                            self._writer.others.check()
                finally:
                    self._is_closed = True
                    self._storage.close()


_open: weakref.WeakSet[FileDatabase] = weakref.WeakSet()


def _inherit_all() -> None:
    for database in list(_open):
        database._inherit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit_all)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of rows make no garbage that must be looked for, and looking takes long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
