"""A database whose relations and views are tables: DataFrames in, exact DataFrames out.

    db = deltalog.connect(spark=spark, program="graph.dl", state="state")
    db.load("edge", df)                               # many facts at once
    delta = db.apply(delete={"edge": few})            # DataFrames or rows
    delta.deleted["path"].show()

Opened again, it goes on where it was: views are loaded, with the ranks and the group state that
changes of them need, and nothing is computed. Every commit writes the tables that changed
(`tables.py`), and then one row that makes it true (`commits.py`). A database that fails in between
is closed: the tables are put back when it is opened again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, DeltalogError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.spark.columns import frame, rows_in
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import without
from deltalog.language.ast import Row
from deltalog.pipeline.commits import Batch, Commits
from deltalog.pipeline.deltas import Counts, Delta, Frames
from deltalog.pipeline.given import Given, check_keys, given_frame, given_rows
from deltalog.pipeline.keeper import Check, Keeper, Refused, Work, stored_frame
from deltalog.pipeline.net import net
from deltalog.pipeline.tables import Table, Tables
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.database import Database
from deltalog.runtime.evaluation import Difference, evaluate
from deltalog.runtime.fixpoint import Statistics, Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.parameters import Parameters
from deltalog.runtime.rows import Rows
from deltalog.runtime.transaction import base_relation


class _Kept(Database):
    """The part that is in memory; what it is about to change is written by its `keeper`."""

    def __init__(
        self, model: Model, engine: SparkEngine, limits: Limits, watch: Watch | None, keeper: Keeper
    ) -> None:
        self._keeper = keeper
        super().__init__(model, engine, limits, watch)

    _records_every_view = True  # in its tables of changes

    def _fill(self, facts: Mapping[str, Iterable[Sequence[Any]]]) -> Statistics:
        if self._keeper.is_new:
            return super()._fill(facts)
        self._keeper.load_into(self.engine)  # type: ignore[arg-type]
        return Statistics()

    def commit_net(self, change: ChangeSet) -> ChangeSet:
        """Commit a change that is known to be net."""
        with self._lock:
            return self._propagate(change, is_committed=True)

    def _keep(self, outcome: Propagated, change: ChangeSet) -> None:
        self._keeper.keep(outcome, change, self.engine)  # type: ignore[arg-type]


class TableDatabase:
    """Made by `deltalog.connect(spark=…, state=…)`."""

    def __init__(
        self,
        model: Model,
        engine: SparkEngine,
        state: str,
        limits: Limits,
        watch: Watch | None = None,
        check: Check | None = None,
    ) -> None:
        self.spark: SparkSession = engine.spark
        self.state = state
        self.engine = engine
        self._tables = Tables(engine.spark, state)
        self._commits = Commits(self._tables)
        self._keeper = Keeper(self._tables, self._commits, model, check)
        self._is_open = True
        self._commits.open()
        try:
            self._check_program()
            self._keeper.recover()
            self._database = _Kept(model, engine, limits, watch, self._keeper)
        except BaseException:
            self.close()
            raise

    def _check_program(self) -> None:
        if not self._keeper.is_new and self._commits.last.program != self._keeper.program:
            hint = "use a separate state, or the old program"
            raise DataError([catalogue.STATE_OF_OTHER_PROGRAM.at(None, name=self.state, hint=hint)])

    # --- reading

    @property
    def version(self) -> int:
        """How many commits have changed something."""
        return self._commits.last.version

    @property
    def is_new(self) -> bool:
        """Whether nothing has been committed yet."""
        return self._keeper.is_new

    @property
    def relations(self) -> Mapping[str, Relation]:
        return self._database.relations

    @property
    def batches(self) -> frozenset[Batch]:
        """What has been taken from sources."""
        return frozenset(self._commits.batches)

    @property
    def table_versions(self) -> Mapping[str, int]:
        """The versions of the tables that belong together, as of the last commit."""
        return dict(self._commits.last.tables)

    def frame(self, relation: str) -> DataFrame:
        """All facts of a relation or view, as of the last commit."""
        table = self._keeper.stored.get(relation)
        if table is None or self._keeper.is_new:
            known = self._known(relation)
            data = frame(self.spark, self._database.facts(relation), _types(known))
            return Table("", tuple(column.name for column in known.columns)).outwards(data)
        version = self._commits.last.tables[self._keeper.relative(table.path)]
        return self._tables.read(table.path, version).select(
            *table.names[: len(table.columns) or 1]
        )

    def facts(self, relation: str) -> set[Row]:
        """All facts of a relation or view, on the driver."""
        return self._database.facts(relation)

    def query(self, text: str, parameters: Parameters | None = None) -> Rows:
        return self._database.query(text, parameters)

    def key_holders(self, relation: str, rows: Sequence[Row]) -> dict[Row, Row]:
        """The facts that have the keys of these rows, by key."""
        positions = self.relations[relation].key
        keys = [tuple(row[position] for position in positions) for row in rows]
        self.engine.expect(relation, positions, keys)
        found = {
            key: next(self.engine.lookup(relation, dict(zip(positions, key, strict=True))), None)
            for key in keys
        }
        return {key: row for key, row in found.items() if row is not None}

    def audit(self, *, engine: str | None = None) -> tuple[Difference, ...]:
        """Recompute every view and report what differs: nothing, normally."""
        return self._database.audit(engine=engine)

    def changes(self, relation: str, after: int = 0) -> DataFrame:
        """The changes of a relation in versions after this one: version, op, columns."""
        known = self._known(relation)
        path = self._tables.path("changes", relation)
        version = self._commits.last.tables.get(self._keeper.relative(path))
        if version is None:
            data = frame(self.spark, [], _types(known))
            return self._keeper.with_op(relation, data, "+")
        return self._tables.read(path, version).where(F.col("version") > after)

    def _known(self, relation: str) -> Relation:
        if relation not in self.relations:
            hint = did_you_mean(relation, self.relations)
            raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
        return self.relations[relation]

    # --- changing

    def load(
        self,
        relation: str | Mapping[str, Given],
        data: Given | None = None,
        *,
        batches: tuple[Batch, ...] = (),
    ) -> Delta:
        """Add many facts at once; views are computed anew if these are more than a change.

        Several relations are given as a mapping: views are computed once then.
        """
        given = {relation: data} if isinstance(relation, str) else relation
        facts = {name: each for name, each in given.items() if each is not None}
        frames = {
            name: given_frame(self.spark, base_relation(self.relations, name), each)
            for name, each in facts.items()
        }
        for name, each in frames.items():
            check_keys(self.relations[name], each)
        return self.load_frames(frames, batches=batches)

    def load_frames(
        self,
        frames: Mapping[str, DataFrame],
        *,
        batches: tuple[Batch, ...] = (),
        refused: Refused = (),
    ) -> Delta:
        """The same for frames that have been checked, with columns as the engine names them."""
        if not self._keeper.is_new:
            most = self.engine.settings.driver_rows_max
            if sum(each.limit(most + 1).count() for each in frames.values()) <= most:
                rows = {name: self._rows(name, each) for name, each in frames.items()}
                return self.apply(insert=rows, batches=batches, refused=refused)
        with self._changing(batches, refused):
            try:
                return self._bulk(frames)
            except BaseException:  # what is in memory is not what is in the tables
                self.close()
                raise

    def apply(
        self,
        insert: Mapping[str, Given] | None = None,
        delete: Mapping[str, Given] | None = None,
        put: Mapping[str, Given] | None = None,
        *,
        batch: Batch | None = None,
        batches: tuple[Batch, ...] = (),
        refused: Refused = (),
    ) -> Delta:
        """Delete, insert and put facts in one commit; `put` replaces what has the same key.

        A `batch` (a source and a name) is applied once, however often it is offered.
        """
        named = (*((batch,) if batch else ()), *batches)
        if named and self._commits.batches.issuperset(named):
            return self._delta(NO_CHANGE, self.version)
        with self._changing(named, refused):
            if self._keeper.is_new:
                self._bulk({}, is_alone=False)
                self._keeper.batches, self._keeper.refused = named, refused
            before = self.version
            change = self._change(delete or {}, insert or {}, put or {})
            if self.version == before and (named or refused):
                self._keeper.commit({}, self.engine, before)
            return self._delta(change, self.version, len(refused))

    def _change(
        self, delete: Mapping[str, Given], insert: Mapping[str, Given], put: Mapping[str, Given]
    ) -> ChangeSet:
        """A transaction, if the driver should hold its rows; else the same on the cluster."""
        sides = (delete, insert, put)
        for name in put:
            if not base_relation(self.relations, name).key:
                raise DataError([catalogue.NO_KEY.at(None, name=name)])
        rows = [{name: self._few(name, given) for name, given in side.items()} for side in sides]
        if any(each is None for side in rows for each in side.values()):
            frames = [
                {name: given_frame(self.spark, self.relations[name], side[name]) for name in side}
                for side in sides
            ]
            return self._database.commit_net(net(self.engine, self.relations, *frames))
        transaction = self._database.transaction()
        for name, each in rows[0].items():
            transaction.delete(name, each or ())
        for name, each in rows[1].items():
            transaction.insert(name, each or ())
        for name, each in rows[2].items():
            for row in each or ():
                transaction.set(name, row)
        return transaction.commit()

    def _few(self, name: str, given: Given) -> list[Row] | None:
        """Facts that were given, unless they are more than the driver should hold."""
        known = base_relation(self.relations, name)
        return given_rows(known, given, self.engine.settings.driver_rows_max)

    def _rows(self, name: str, data: DataFrame) -> list[Row]:
        table = data.toArrow()
        return rows_in(table.columns, _types(self.relations[name]), table.num_rows)

    @contextmanager
    def _changing(self, batches: tuple[Batch, ...], refused: Refused) -> Iterator[None]:
        """What goes wrong after writing has begun closes the database."""
        if not self._is_open:
            hint = "open it again with `deltalog.connect`"
            raise DataError([catalogue.STATE_CLOSED.at(None, name=self.state, hint=hint)])
        self._keeper.batches, self._keeper.refused = batches, refused
        try:
            yield
        except DeltalogError as error:  # found before anything was written, but for one
            if catalogue.STATE_IN_USE.code in error.codes:
                self.close()
            raise
        except BaseException:
            self.close()
            raise
        finally:
            self._keeper.batches, self._keeper.refused = (), ()

    def _bulk(self, frames: Mapping[str, DataFrame], is_alone: bool = True) -> Delta:
        """Load frames, compute all views, and write everything that is not as it was."""
        keeper, engine = self._keeper, self.engine
        batches, keeper.batches = keeper.batches, keeper.batches if is_alone else ()
        refused, keeper.refused = keeper.refused, keeper.refused if is_alone else ()
        for name, data in frames.items():
            engine.load_frame(name, data)
        model = self._database.model
        evaluate(engine, model, self._database.limits, self._database.watch)
        works: dict[str, Work] = {}
        counts: dict[str, tuple[int, int]] = {}
        for name, table in keeper.stored.items():
            data, size, _ = stored_frame(engine, name)
            if name in model.checked.relations:
                gained, lost = self._difference(name, data, size)
                if gained[1] or lost[1]:
                    counts[name] = gained[1], lost[1]
                    both = keeper.with_op(name, gained[0], "+").unionByName(
                        keeper.with_op(name, lost[0], "-")
                    )
                    works.update([keeper.noting(name, both, gained[1] + lost[1])])
            works[table.path] = partial(
                self._tables.replace, table.path, table.outwards(data), size
            )
        keeper.commit(works, engine, self.version + bool(counts))
        keeper.batches, keeper.refused = batches, refused
        return self._delta_of(counts, self.version, NO_CHANGE)

    def _difference(
        self, name: str, data: DataFrame, size: int
    ) -> tuple[tuple[DataFrame, int], tuple[DataFrame, int]]:
        """What a relation gains and loses against its table."""
        table = self._keeper.stored[name]
        version = self._commits.last.tables.get(self._keeper.relative(table.path))
        types = self.engine.relations[name].types
        if version is None:
            return (data, size), (frame(self.spark, [], types), 0)
        before = table.inwards(self._tables.read(table.path, version))
        if not types:
            held = before.count()
            return (data, max(0, size - held)), (
                before.limit(max(0, held - size)),
                max(0, held - size),
            )
        gained, lost = without(data, before, len(types)), without(before, data, len(types))
        return (gained, gained.count()), (lost, lost.count())

    def _delta(self, change: ChangeSet, version: int, rejected: int = 0) -> Delta:
        sides = change.sides
        names = [*sides[0], *(name for name in sides[1] if name not in sides[0])]
        counts = {
            name: (_size(sides[0].get(name)), _size(sides[1].get(name))) for name in sorted(names)
        }
        return self._delta_of(counts, version, change, rejected)

    def _delta_of(
        self, counts: Counts, version: int, change: ChangeSet, rejected: int = 0
    ) -> Delta:
        def side(op: str, position: int) -> Frames:
            def read(name: str) -> DataFrame:
                changes = self.changes(name, version - 1)
                held = (F.col("version") == version) & (F.col("op") == op)
                return changes.where(held).drop("version", "op")

            return Frames(tuple(n for n, each in counts.items() if each[position]), read)

        return Delta(version, counts, side("+", 0), side("-", 1), change, rejected)

    # --- ending

    def close(self) -> None:
        """Let others write to the state."""
        self._is_open = False
        self._commits.close()

    def __enter__(self) -> TableDatabase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _types(relation: Relation) -> tuple[str, ...]:
    return tuple(type_ or "int" for type_ in relation.types)


def _size(held: Any) -> int:
    return 0 if held is None else len(held)
