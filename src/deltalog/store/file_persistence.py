"""The tables of a database file: where its stored relations come from, and where changes go.

    a new file     compute the state ─▶ tables, log
    one that is    tables ─▶ relations in memory, in the order of their ranks
    a commit       BEGIN ─▶ tables, log ─▶ COMMIT; then it is applied in memory

A table whose columns are not those of the program of today, or that the file does not have, is
computed and written anew: it was kept with other options.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Set
from contextlib import contextmanager
from itertools import islice
from typing import cast

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Row
from deltalog.language.printer import print_program
from deltalog.rewrites.names import is_generated
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import rebuild_views
from deltalog.runtime.fixpoint import Statistics
from deltalog.runtime.model import Model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.protocols import Facts
from deltalog.store.cells import append_ranks, check_cells, from_cells, to_cells
from deltalog.store.log import CREATED, PROGRAM, Columns, Log
from deltalog.store.schema import (
    Table,
    add_table,
    change_kind,
    drop_table,
    read_tables,
    relations_json,
    table_for,
)
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.storage import Storage, check_unspoiled, lay_out
from deltalog.store.writer import Writer

ROWS_AT_ONCE = 50_000


class FilePersistence:
    """Knows which table has which relation; `text` is that of a program not yet written."""

    def __init__(self, storage: Storage, text: str | None) -> None:
        self.path = storage.path
        self.is_omitting = True
        self.storage = storage
        self.connection = storage.connection
        self.writer = Writer(storage)
        self.log = Log(storage.connection)
        self.text = text
        self.loaded = 0
        """How many facts were loaded."""
        self.clock: int | None = None
        """The engine's clock when the change that was written last has been applied."""

    @property
    def tables(self) -> dict[str, Table]:
        return self.writer.tables

    # --- the initial state

    def initial_state(self, database: MemoryDatabase, facts: Facts) -> Statistics:
        return (
            self._load_state(database) if self.text is None else self._create_state(database, facts)
        )

    def _create_state(self, database: MemoryDatabase, facts: Facts) -> Statistics:
        statistics = database.compute_state(facts)
        assert self.text is not None
        with self.writing():
            lay_out(self.connection)
            self._write_program(database, 0, CREATED, ChangeSet(), {}, self.text)
            self._write_relations(database, database.model.stored)
            self.writer.foreign.check_writes()
        with sqlite_errors_reported(
            self.path, is_commit=True
        ):  # the file is not empty without its log
            self.connection.execute("PRAGMA wal_checkpoint = PASSIVE").fetchall()
        return statistics

    def _load_state(self, database: MemoryDatabase) -> Statistics:
        with sqlite_errors_reported(self.path), _no_collection():
            try:  # in the transaction in which the program was read
                statistics = self.restore(database)
                self.writer.foreign.check_writes()
            finally:
                self.writer.roll_back()
        stored = database.model.stored
        absent = stored - self._usable_relations(database.model)
        kinds = {
            n: _kind_of_relation(database.model, n) for n in stored & self.tables.keys() - absent
        }
        others = {n: kind for n, kind in kinds.items() if self.tables[n].kind != kind}
        if self.storage.is_writable and (absent or others or self.tables.keys() - stored):
            with self.writing():  # it was kept with other options
                for name, kind in others.items():
                    self.tables[name] = change_kind(self.connection, self.tables[name], kind)
                self._write_relations(database, absent)
        return statistics

    def restore(self, database: MemoryDatabase) -> Statistics:
        """Load what the file holds, and compute what it does not hold or holds otherwise."""
        check_unspoiled(self.path, self.connection)
        self.writer.tables = read_tables(self.connection)
        self.writer.columns = _log_columns(database)
        model, engine = database.model, _ranked_engine(database)
        kept = self._usable_relations(model)
        self.loaded = 0
        for name in sorted(kept):
            for rows in self._ranked_rows(self.tables[name]):
                if engine.load(name, rows) != len(rows):
                    raise self._damage_error(f"facts of `{name}` are in it twice")
                self.loaded += len(rows)
                if database.watch is not None:
                    database.watch(0, self.loaded)
        missing = model.stored - kept
        lost = [name for name in missing if model.relations[name].kind == "base"]
        if any(not is_generated(name) for name in lost):
            raise self._damage_error(f"the table of `{lost[0]}` is missing")
        database.version = self.log.last
        return rebuild_views(engine, model, missing, database.limits, database.watch)

    def _usable_relations(self, model: Model) -> frozenset[str]:
        """The stored relations that the file has, with their ranks in one order.

        Of a recursive component all or nothing: ranks of facts that are derived now would say
        nothing about those that were derived before. Nothing, if the strategy of a writer before
        did not keep ranks in order, and this one needs them so.
        """
        same = {
            name
            for name in model.stored & self.tables.keys()
            if self.tables[name].types == model.relations[name].types
        }
        for choice in model.choices:
            own = model.stored & choice.members
            is_lost = not choice.is_unordered and any(self._is_unordered(name) for name in own)
            if choice.is_recursive and (is_lost or not own <= same):
                same -= choice.members
        return frozenset(same)

    def _is_unordered(self, name: str) -> bool:
        """Whether the file has a relation whose ranks nobody kept in order."""
        return name in self.tables and self.tables[name].kind.startswith(UNORDERED)

    def _ranked_rows(self, table: Table) -> Iterator[list[Row]]:
        """The facts in a table, each with its rank, some at a time."""
        cursor = self.connection.execute(table.select)
        types = ("int", *table.types)
        while chunk := list(islice(cursor, ROWS_AT_ONCE)):
            try:
                check_cells(chunk, table.columns)
                rows = from_cells(chunk, types)
            except (ArithmeticError, TypeError, ValueError) as error:
                reason = f"the table of `{table.relation}` contains invalid facts"
                raise self._damage_error(reason) from error
            yield rows

    def _damage_error(self, reason: str) -> DataError:
        return DataError([catalogue.FILE_DAMAGED.at(None, name=self.path, reason=reason)])

    # --- before a change is applied

    def before_change(
        self, database: MemoryDatabase, outcome: Propagated, change: ChangeSet
    ) -> None:
        clock: int = database.engine.clock  # type: ignore[attr-defined]
        self.clock = self.writer.write(outcome, change, database.version + 1, clock)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction of its own, or a part of the group that is open."""
        self.storage.check_writable()
        with self.writer.transaction():
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One state of the file, or that of the group that is open."""
        with sqlite_errors_reported(self.path):
            if self.writer.is_grouped:
                yield
                return
            self.writer.roll_back()  # what an interrupt may have left open
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                self.writer.roll_back()

    # --- after a program changed

    def program_changed(
        self, database: MemoryDatabase, touched: Set[str], change: ChangeSet
    ) -> None:
        before = self.log.columns_at(database.version)
        text = self.text or print_program(database.model.checked.program)
        with self.writing():
            self._write_program(database, database.version + 1, PROGRAM, change, before, text)
            self._write_relations(database, touched)
        self.clock = None

    def _write_program(
        self,
        database: MemoryDatabase,
        version: int,
        kind: str,
        change: ChangeSet,
        before: Columns,
        text: str,
    ) -> None:
        self.log.append_program(version, text, relations_json(database.model.checked.relations))
        self.writer.columns = _log_columns(database)
        self.log.append(version, kind, change, before, self.writer.columns)

    def _write_relations(self, database: MemoryDatabase, touched: Set[str]) -> None:
        """Bring tables to what memory holds: those that are touched, or are other ones now."""
        model, tables = database.model, self.tables
        for name, table in list(tables.items()):
            relation = model.relations.get(name)
            is_same = relation is not None and table == _table_of_relation(
                model, relation, table.name
            )
            if name not in model.stored or name in touched or not is_same:
                drop_table(self.connection, table)
                del tables[name]
        for name in sorted(model.stored - tables.keys()):
            taken = [table.name for table in tables.values()]
            table = table_for(model.relations[name], _kind_of_relation(model, name), taken)
            add_table(self.connection, table)
            tables[name] = table
            self._insert_all(_ranked_engine(database), table)

    def _insert_all(self, engine: RankedEngine, table: Table) -> None:
        rows = engine.ranked(table.relation)
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            cells = to_cells([row for _, row in chunk], table.types)
            chunked = append_ranks(cells, [rank for rank, _ in chunk])
            self.connection.executemany(table.insert, chunked)


def _ranked_engine(database: MemoryDatabase) -> RankedEngine:
    return cast("RankedEngine", database.engine)


def _log_columns(database: MemoryDatabase) -> Columns:
    """The columns of every relation of the program, as the log wants them."""
    return {name: each.types for name, each in database.model.checked.relations.items()}


def _table_of_relation(model: Model, relation: Relation, name: str) -> Table:
    return Table(relation.name, _kind_of_relation(model, relation.name), name, relation.columns)


UNORDERED = "unordered "


def _kind_of_relation(model: Model, name: str) -> str:
    """The kind of a relation, and whether its ranks are in no order."""
    kind = "helper" if is_generated(name) else model.relations[name].kind
    is_unordered = any(c.is_unordered and name in c.predicates for c in model.choices)
    return f"{UNORDERED}{kind}" if is_unordered else kind


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
