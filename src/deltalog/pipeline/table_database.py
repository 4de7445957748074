"""A database whose relations and views are tables: DataFrames in, exact DataFrames out.

    db = deltalog.connect(spark=spark, program="graph.dl", state="state")
    db.load("edge", df)                               # many facts at once
    delta = db.apply(delete={"edge": few})            # DataFrames or rows
    delta.deleted["path"].show()

Every commit is one transaction on the log (`log.py`); tables that others read follow (`folds.py`).
Opened again, it goes on where it was: the log is read, and a relation when it is first needed, with
the ranks and the group state that changes of it need. Nothing is computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import cast

from pyspark.sql import SparkSession

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, DeltalogError
from deltalog.engines.spark.engine import SparkEngine
from deltalog.language.ast import Program, Query, Row, Value
from deltalog.pipeline.check_state import check_program_of
from deltalog.pipeline.checked_frames import CheckedFrame
from deltalog.pipeline.commit_writer import CommitWriter
from deltalog.pipeline.deltas import Delta, counts_of, delta_of
from deltalog.pipeline.drafts import Draft
from deltalog.pipeline.freshness import MINUTE, Freshness
from deltalog.pipeline.input_facts import FactsInput, input_facts, input_frame
from deltalog.pipeline.log import Batch
from deltalog.pipeline.net_frames import net_frames
from deltalog.pipeline.rejected import Refused
from deltalog.pipeline.state import State
from deltalog.pipeline.state_journal import JournalOfState
from deltalog.pipeline.table_frames import TableFrames
from deltalog.pipeline.table_loads import TableLoads
from deltalog.pipeline.table_reasons import TableReasons
from deltalog.pipeline.table_rules import TableRules
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import Difference
from deltalog.runtime.fact_arguments import fill_transaction
from deltalog.runtime.fixpoint import Statistics, Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model
from deltalog.runtime.parameters import Parameters
from deltalog.runtime.protocols import Participant
from deltalog.runtime.realization import Budget, Realizations
from deltalog.runtime.realize import realize
from deltalog.runtime.request_termination import RequestCheck
from deltalog.runtime.rows import Rows
from deltalog.runtime.transaction import Transaction, base_relation
from deltalog.runtime.update_choices import ChoiceCheck
from deltalog.runtime.violations import ConstraintWarning
from deltalog.runtime.wanted_views import known_views


class TableDatabase(TableLoads, TableRules, TableFrames, TableReasons):
    """Made by `deltalog.connect(spark=…, state=…)`."""

    def __init__(
        self,
        model: Model,
        engine: SparkEngine,
        state: str,
        limits: Limits,
        watch: Watch | None = None,
        participants: tuple[Participant, ...] = (),
        freshness: Freshness = MINUTE,
    ) -> None:
        self.spark: SparkSession = engine.spark
        self.state = state
        self._state = State(engine.spark, state)
        self._writer = CommitWriter(self._state, model, freshness)
        self._is_open = True
        self._state.open()
        try:
            check_program_of(self._state, self._writer.program)
            self._database = MemoryDatabase(
                model, engine, limits, watch, {}, self._writer, participants
            )
            self._participants = participants
            self._database.version = self.version
            self._database._journal_elsewhere = JournalOfState(state)
            self._database.committer = self._commit_realization
        except BaseException:
            self.close()
            raise

    # --- reading

    @property
    def engine(self) -> SparkEngine:
        return cast("SparkEngine", self._database.engine)

    @property
    def version(self) -> int:
        """How many commits have changed something."""
        return self._state.last.version

    @property
    def is_new(self) -> bool:
        """Whether nothing has been committed yet."""
        return self._state.is_new

    @property
    def relations(self) -> Mapping[str, Relation]:
        return self._database.relations

    @property
    def batches(self) -> frozenset[Batch]:
        """The batches that have been taken from sources."""
        return frozenset(self._state.batches)

    @property
    def table_versions(self) -> Mapping[str, int]:
        """The version of the state that each table stands for."""
        return {name: table.version for name, table in self._writer.stored.items()}

    def fold(self) -> list[str]:
        """Bring all tables up to the last commit; returns the names of those that were behind."""
        self._check_open()
        return [] if self.is_new else self._writer.follow(self.engine, list(self._writer.stored))

    @property
    def statistics(self) -> Statistics:
        """Rounds and facts generated by the last change or what-if, at first by opening."""
        return self._database.statistics

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a relation or view, now or as of an earlier version, on the driver."""
        self._check_open()
        if version is None or version == self.version:
            return self._database.facts(relation)
        return self._logged_history.facts_at(relation, version, self._database.current_facts)

    def rows(self, relation: str) -> Rows:
        """All facts of a relation or view, on the driver, as tuples or as a table."""
        self._check_open()
        return self._database.rows(relation)

    def query(
        self, text: str | Query, parameters: Parameters | None = None, *, version: int | None = None
    ) -> Rows:
        """The bindings of the query's variables, now or as of an earlier version, on the driver."""
        self._check_open()
        if version is None or version == self.version:
            return self._database.query(text, parameters)
        facts = self._database.current_facts
        return self._logged_history.query_at(text, parameters or {}, version, facts)

    def explain(
        self,
        query: str | Query | None = None,
        parameters: Parameters | None = None,
        *,
        show: Collection[str] | None = None,
        propagation: bool = False,
    ) -> str:
        """Return an explanation of the program, or of a query, as `deltalog explain` shows it."""
        self._check_open()
        return self._database.explain(query, parameters, show=show, propagation=propagation)

    def audit(self, *, engine: str | None = None) -> tuple[Difference, ...]:
        """Recompute every view and report what differs: nothing, normally."""
        self._check_open()
        return self._database.audit(engine=engine)

    def realize(
        self,
        *requests: str,
        budget: Budget | None = None,
        fixed: Iterable[str] = (),
        costs: Mapping[str, float] | None = None,
        mode: str = "complete",
        trace: bool = False,
        rank: str = "cost",
        domains: Mapping[str, Iterable[Value]] | None = None,
    ) -> Realizations:
        """Search the minimal changes of base relations that make derived facts true or false."""
        self._check_open()
        commit = self._commit_realization
        database = self._database
        return realize(database, requests, commit, budget, fixed, costs, mode, trace, rank, domains)

    def check_choices(self) -> tuple[ChoiceCheck, ...]:
        """Check the declared choices for view updates: do they realize every request?"""
        self._check_open()
        return self._database.check_choices()

    def check_requests(self) -> tuple[RequestCheck, ...]:
        """Check for every view whether a search of the `first_level` is guaranteed to end."""
        self._check_open()
        return self._database.check_requests()

    def _commit_realization(self, base: ChangeSet) -> ChangeSet:
        return self.apply(base.inserted, base.deleted).changes

    # --- changing

    def apply(
        self,
        insert: Mapping[str, FactsInput] | None = None,
        delete: Mapping[str, FactsInput] | None = None,
        set: Mapping[str, FactsInput] | None = None,
        *,
        views: Iterable[str] | None = None,
        batch: Batch | None = None,
        batches: tuple[Batch, ...] = (),
        refused: Refused = (),
    ) -> Delta:
        """Delete, insert and set facts in one commit; `set` replaces what has the same key.

        Returns the change of base relations and of these `views`, or of all views; the log
        gets that of all. A `batch` (a source and a name) is applied once, however often it is
        offered.
        """
        known = self._known_views(views)
        named = (*((batch,) if batch else ()), *batches)
        if named and self._state.batches.issuperset(named):
            return self._delta_of_change(NO_CHANGE, self.version)
        return self._apply_facts(delete or {}, insert or {}, set or {}, known, named, refused, True)

    def _apply_facts(
        self,
        delete: Mapping[str, FactsInput],
        insert: Mapping[str, FactsInput],
        set: Mapping[str, FactsInput],
        known: frozenset[str] | None,
        named: tuple[Batch, ...],
        refused: Refused,
        is_firing: bool,
    ) -> Delta:
        with self._closing_on_failure():
            self._write_initial_state()
            before = self.version
            with self._writer.recording(named, refused):
                change = self._net_change(delete, insert, set, True, known, is_firing)
                if self.version == before and (named or refused):
                    self._writer.commit(Draft(self.spark), self.engine, before)
            return self._delta_of_change(change, self.version, len(refused))

    def _write_initial_state(self) -> None:
        """Write the initial state, in a commit of its own, if there is none yet."""
        if self.is_new:
            self._load_in_bulk({})

    def transaction(self, *, views: Iterable[str] | None = None) -> Transaction:
        """A transaction for a `with` block, of few rows: they are on the driver.

        Its change is that of base relations and of these `views`, or of all views.
        """
        self._check_open()
        known = self._known_views(views)

        def commit(wanted: ChangeSet) -> ChangeSet:
            with self._closing_on_failure():
                self._write_initial_state()
                return self._database.propagate_wanted(wanted, views=known)

        return self._database.transaction_for(commit)

    def what_if(
        self,
        insert: Mapping[str, FactsInput] | None = None,
        delete: Mapping[str, FactsInput] | None = None,
        set: Mapping[str, FactsInput] | None = None,
        *,
        views: Iterable[str] | None = None,
    ) -> ChangeSet:
        """The exact change that `apply` would make, without making it.

        Virtual views that are neither among these `views` nor on the way to one are passed over.
        """
        self._check_open()
        known = self._known_views(views)
        return self._net_change(delete or {}, insert or {}, set or {}, False, known, True)

    def change_program(
        self,
        program: str | Path | Program,
        *,
        is_committed: bool = True,
        inactive: Iterable[str] = (),
    ) -> ChangeSet:
        """Go over to another program; returns the exact change of every relation and view.

        Active rules named in `inactive` are deactivated by the same commit.
        """
        with self._closing_on_failure():
            if is_committed:
                self._write_initial_state()
            return self._database.change_program(
                program, is_committed=is_committed, inactive=inactive
            )

    def _net_change(
        self,
        delete: Mapping[str, FactsInput],
        insert: Mapping[str, FactsInput],
        set: Mapping[str, FactsInput],
        is_committed: bool,
        views: frozenset[str] | None,
        is_firing: bool,
    ) -> ChangeSet:
        """A transaction, if the driver should hold its rows; else the same on the cluster."""
        most = self.engine.settings.driver_rows_max
        for name in set:
            if not base_relation(self.relations, name).key:
                raise DataError([catalogue.NO_KEY.at(None, name=name)])
        sides = [
            {n: self._input_of_relation(n, side[n], most, kind) for n in side}
            for kind, side in (("delete", delete), ("insert", insert), ("set", set))
        ]
        if any(isinstance(facts, CheckedFrame) for side in sides for facts in side.values()):
            frames = [
                {
                    n: input_frame(self.spark, base_relation(self.relations, n), side[n])
                    for n in side
                }
                for side in sides
            ]
            change = net_frames(self.engine, self.relations, *frames)
            return self._database.propagate_net(change, is_committed, views, is_firing)
        if not is_firing:
            return fill_transaction(
                self._database.silent_transaction(), sides[1], sides[0], sides[2]
            ).commit()
        change_facts = self._database.apply if is_committed else self._database.what_if
        return change_facts(insert=sides[1], delete=sides[0], set=sides[2], views=views)

    def _input_of_relation(self, name: str, facts: FactsInput, most: int, kind: str) -> FactsInput:
        """The facts of one relation; those of a view with a declared choice stay as they are."""
        choices = self._database.model.checked.program.update_choices
        if any((c.kind, c.head.predicate) == (kind, name) for c in choices):
            return facts
        return input_facts(base_relation(self.relations, name), facts, most)

    def _known_views(self, views: Iterable[str] | None) -> frozenset[str] | None:
        return known_views(self._database.propagation, self.relations, views)

    @contextmanager
    def _closing_on_failure(self) -> Iterator[None]:
        """Close the database if something goes wrong after writing has begun."""
        self._check_open()
        try:
            yield
        except DeltalogError as error:  # found before anything was written, but for one
            if catalogue.STATE_IN_USE.code in error.codes:
                self.close()
            raise
        except ConstraintWarning:  # which a filter made an exception: the commit is there
            self._follow_writer()
            raise
        except BaseException as error:
            if error is not self._database.action_error:
                self.close()
            raise
        self._follow_writer()

    def _follow_writer(self) -> None:
        """Bring tables up; what is committed stays, and a table that fails follows later."""
        try:
            self._writer.follow(self.engine)
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            warnings.warn(f"a table of `{self.state}` is behind: {reason}", stacklevel=4)

    def _delta_of_change(self, change: ChangeSet, version: int, rejected: int = 0) -> Delta:
        return delta_of(self._changes_after, version, counts_of(change), change, rejected)

    # --- ending

    def close(self) -> None:
        """Let others write to the state."""
        self._is_open = False
        self._state.close()

    def __enter__(self) -> TableDatabase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
