"""The database in memory: a program, its facts, transactions and queries.

    db = deltalog.connect(program="graph.dl")
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
    db.facts("path")
    db.query("path(1, Y)")

Views are materialised unless declared `virtual` (or the database was opened with
`materialize=False`): a materialised view is read, a virtual one is computed on demand by Magic
Sets, and only the part that is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import MappingProxyType

from deltalog.analysis.columns import Relation
from deltalog.checks.program import check_program
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.base import Changed, Engine
from deltalog.engines.extensions import is_twinned
from deltalog.language.ast import Program, Query, Row
from deltalog.language.parser import parse_program
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.check_phase import CheckPhase
from deltalog.runtime.closable import Closable
from deltalog.runtime.constraints import NOT_WARNED, check_state
from deltalog.runtime.delivery_verbs import DeliveryVerbs
from deltalog.runtime.engine_choice import known_engine
from deltalog.runtime.evaluation import Difference, compare_views, create_relations, evaluate_views
from deltalog.runtime.fact_arguments import fill_transaction, load_facts
from deltalog.runtime.fixpoint import Statistics, Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model
from deltalog.runtime.net_change import ground_of, net_change
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.parameters import Parameters, bound_query
from deltalog.runtime.program_change import apply_program
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.protocols import Facts, Follower, Participant, Persistence, Synchronization
from deltalog.runtime.queries import answer_query, whole_relation
from deltalog.runtime.read_program import ProgramLike, read_program
from deltalog.runtime.reason_verbs import ReasonVerbs
from deltalog.runtime.refusals import with_causes
from deltalog.runtime.rows import Rows
from deltalog.runtime.rule_verbs import RuleVerbs
from deltalog.runtime.shown import database_html
from deltalog.runtime.system_relations import system_inputs
from deltalog.runtime.transaction import Commit, Ground, MakeTransaction, Transaction
from deltalog.runtime.unavailable import WithoutUpkeep
from deltalog.runtime.violations import ConstraintError
from deltalog.runtime.wanted_views import known_views


class MemoryDatabase(RuleVerbs, DeliveryVerbs, ReasonVerbs, Closable, WithoutUpkeep):
    """Made by `connect`. Threads may share it: they take turns.

    With a `persistence` what it holds is kept elsewhere, too, and `synchronization` repairs what a
    failure leaves between the two. `participants` see every change before it is applied, and may
    refuse it.
    """

    def __init__(
        self,
        model: Model,
        engine: Engine,
        limits: Limits,
        watch: Watch | None = None,
        facts: Facts = MappingProxyType({}),
        persistence: Persistence | None = None,
        participants: tuple[Participant, ...] = (),
        synchronization: Synchronization | None = None,
    ) -> None:
        self._persistence = persistence
        self._synchronization = synchronization
        self._participants = participants if persistence is None else (*participants, persistence)
        self._records_all = bool(participants or (persistence and not persistence.is_omitting))
        self.model = model
        self.engine = engine
        self.limits = limits
        self.watch = watch
        self.version = 0
        self.last_change: ChangeSet | None = None  # of a database in memory: `why_changed`
        self._lock = threading.RLock()
        self._ground: Ground | None = None
        self.follower: Follower | None = None
        create_relations(engine, {name: model.relations[name] for name in model.stored})
        if persistence is None:
            self.statistics = self.compute_state(facts)
        else:
            self.statistics = persistence.initial_state(self, facts)
        self.propagation = Propagation(engine, model)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Alone among the threads, with a database that is open, and in its last state."""
        with self._lock:
            self._check_open()
            if self.rehearsed is not None:
                self.rewind_rehearsal()
            if self._synchronization is not None and not self._is_acting:
                self._synchronization.before_reading(self)
            yield

    # --- reading

    @property
    def relations(self) -> Mapping[str, Relation]:
        """Every base relation and view with its columns."""
        return self.model.visible

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a base relation or view; only a file has earlier versions of them."""
        self._check_version_known(version)
        with self.turn():
            self.check_relation(relation)
            return self.current_facts(relation)

    def rows(self, relation: str) -> Rows:
        """Return all facts of a base relation or view, to be read as tuples or as a table."""
        with self.turn():
            self.check_relation(relation)
            held = self.held_facts(relation)
        return Rows(self.model.readable[relation].columns, held)

    def check_relation(self, relation: str) -> None:
        if relation not in self.model.readable:
            hint = did_you_mean(str(relation), self.relations)
            raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])

    def held_facts(self, relation: str) -> Changed:
        """All facts of a relation or view, in the turn of the caller, as the engine has them."""
        if relation in self.model.stored:
            return self.engine.copied(relation)
        return self._read_whole(relation).held

    def current_facts(self, relation: str) -> set[Row]:
        if relation in self.model.stored:
            return set(self.engine.rows(relation))
        return set(self._read_whole(relation).held)

    def _read_whole(self, relation: str) -> Rows:
        return self._answer_query(whole_relation(self.model.readable[relation]), False)

    def _answer_query(self, query: Query, magic: bool = True) -> Rows:
        arguments = self.limits, self.watch, magic, NO_CHANGE, system_inputs(self, query)
        return answer_query(self.engine, self.model, query, *arguments)

    def query(
        self,
        text: str | Query,
        parameters: Parameters | None = None,
        *,
        version: int | None = None,
    ) -> Rows:
        """The bindings of the query's variables, in the order in which they first occur.

        `db.query("path($src, Y), not edge($src, Y)", {"src": 1})`; the leading `?` and the final
        stop are optional. `version` asks an earlier state of a database in a file.
        """
        self._check_version_known(version)
        with self.turn():
            return self._answer_query(bound_query(text, parameters, self.model.readable))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.relations)} relations, version {self.version})"

    def _repr_html_(self) -> str:
        return database_html(self)

    # --- changing

    def transaction(self, *, views: Iterable[str] | None = None) -> Transaction:
        """A transaction for a `with` block; it commits at the end, or not at all.

        Its change is that of base relations and of these `views`, or of all views that are
        declared; virtual views that nobody needs are not even looked at.
        """
        if views is None:
            return self.transaction_for(self.propagate_wanted)
        known = known_views(self.propagation, self.relations, views)
        return self.transaction_for(partial(self.propagate_wanted, views=known))

    def transaction_for(self, commit: Commit) -> Transaction:
        """A transaction whose changes go to `commit` when it ends instead of `propagate_wanted`."""
        if self._is_closed:
            self._check_open()
        if self.propagation.rules is not None:
            self.check_actions()
        if not self.propagation.has_immediate:
            return self._transaction_by(commit)
        return self.immediate_transaction(commit, False)

    def apply(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
        set: Facts | None = None,
        *,
        views: Iterable[str] | None = None,
    ) -> ChangeSet:
        """Delete, insert and set facts, in this order, in one transaction.

        Returns the exact change of base relations and of these `views`, or of all views.
        """
        return fill_transaction(self.transaction(views=views), insert, delete, set).commit()

    def what_if(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
        set: Facts | None = None,
        *,
        views: Iterable[str] | None = None,
    ) -> ChangeSet:
        """The exact change that a transaction would make, without making it."""
        self._check_open()
        self.rewind_rehearsal()
        known = known_views(self.propagation, self.relations, views)
        commit = partial(self.propagate_wanted, is_committed=False, views=known, is_firing=True)
        checks = self.propagation.has_immediate
        tried = self.immediate_transaction(commit, True) if checks else self._transaction_by(commit)
        return fill_transaction(tried, insert, delete, set).commit()

    def _transaction_by(self, commit: Commit, make: MakeTransaction = Transaction) -> Transaction:
        known = self.model.checked.relations
        if self._ground is None or self._ground.relations is not known:
            self._ground = ground_of(self.engine, known, self._lock)
        return make(self._ground, commit, self)

    def propagate_net(
        self,
        change: ChangeSet,
        is_committed: bool,
        views: frozenset[str] | None = None,
        is_firing: bool | None = None,
    ) -> ChangeSet:
        """Commit, or only try, a net change; a commit fires rules unless `is_firing` is False."""
        with self.turn():
            return self._propagate_change(change, is_committed, views, is_firing)

    def propagate_wanted(
        self,
        wanted: ChangeSet,
        is_committed: bool = True,
        views: frozenset[str] | None = None,
        is_firing: bool | None = None,
    ) -> ChangeSet:
        """The same for a change of which some may be a no-op."""
        if self._is_closed:
            self._check_open()
        network = self.propagation
        base = wanted if network.is_narrowing else self.net(wanted)
        if network.is_unguarded and self._synchronization is None:
            return self._run_propagation(base, is_committed, views)
        return self._propagate_change(base, is_committed, views, is_firing)

    def net(self, wanted: ChangeSet) -> ChangeSet:
        """Return the change without its no-ops."""
        return net_change(self.engine, self.model.checked.relations, wanted)

    def _propagate_change(
        self,
        base: ChangeSet,
        is_committed: bool,
        views: frozenset[str] | None,
        is_firing: bool | None = None,
    ) -> ChangeSet:
        run: Callable[..., ChangeSet] = self._run_propagation
        if self.propagation.rules is not None and (is_committed or is_firing):
            run = run if is_firing is False else self.settled
        changing: AbstractContextManager[object] = nullcontext()
        if self._synchronization is not None and not self._is_acting:
            changing = self._synchronization.changing(self, is_committed and bool(base))
        try:
            with changing:
                change = run(base, is_committed, views)
        except ConstraintError as refused:
            raise with_causes(self, base, refused) from None
        self.issue_warnings()
        return change

    def _run_propagation(
        self,
        base: ChangeSet,
        is_committed: bool,
        views: frozenset[str] | None,
        phase: CheckPhase | None = None,
    ) -> ChangeSet:
        """The change of base relations and wanted views.

        It is applied if it is complete, `is_committed`, and triggers no rule of the `phase`.
        """
        if not base:
            self.statistics = Statistics()
            return base
        network, is_recorded = self.propagation, bool(self._participants)
        route = network.whole
        follower, version = self.follower if is_committed else None, self.version
        if views is not None and not (is_committed and self._records_all):
            route = network.followed_route(views, is_committed and is_recorded, follower)
        with Propagated(network, base, self.limits, self.watch, is_recorded, route) as outcome:
            self.statistics = outcome.statistics
            if phase is not None and phase.is_triggered(outcome):
                return NO_CHANGE
            change = outcome.changes()
            if is_committed and change:
                constraints = network.constraints
                if constraints is not None:
                    constraints.before_change(self, outcome, change)
                exact = route.exact_part(change)
                for participant in self._participants:
                    participant.before_change(self, outcome, exact)
                outcome.apply()
                self._warned = NOT_WARNED if constraints is None else constraints.last_warned
                self.version += 1
                if self._persistence is None:
                    self.last_change = exact
        if follower is not None and self.version != version:
            shown = route.views - route.estimated
            follower.committed(self.version, "transaction", change, shown, route.estimated)
        if views is not None and route.views != views:
            return change.without(*network.views - views)
        return change

    # --- changing rules

    def change_program(
        self, program: ProgramLike, *, is_committed: bool = True, inactive: Iterable[str] = ()
    ) -> ChangeSet:
        """Go over to another program; returns the exact change of every relation and view.

        Facts of base relations stay. With `is_committed=False` the change is only returned. The
        program that is there already is a no-op. Rules in `inactive` are deactivated with it.
        """
        check_argument(not isinstance(inactive, str), "inactive", inactive, 'as in `["reorder"]`')
        parsed = program if isinstance(program, Program) else parse_program(read_program(program))
        with self.turn(), self._changing_program(is_committed):
            if self.are_inactive(idle := {*inactive}) and parsed == self.model.checked.program:
                self.statistics = Statistics()
                return NO_CHANGE
            return apply_program(self, check_program(parsed), is_committed, idle)

    def _changing_program(self, is_committed: bool) -> AbstractContextManager[object]:
        self.check_not_acting()
        if self._synchronization is None:
            return nullcontext()
        return self._synchronization.changing_program(self, is_committed)

    def evaluated_apart(self, model: Model, facts: Facts) -> MemoryDatabase:
        """Another database, in memory, of a model over these facts."""
        return MemoryDatabase(model, self.engine.fresh(), self.limits, self.watch, facts)

    def record_program(self, touched: Set[str], change: ChangeSet) -> None:
        """Count a program that is in place as a version, once the persistence has it."""
        if self._persistence is not None:
            self._persistence.program_changed(self, touched, change)
        self.version += 1
        self.last_change = None
        if self.follower is not None:
            self.follower.committed(self.version, "program", change, frozenset(self.model.views))

    def base_facts(self) -> dict[str, set[Row]]:
        return {
            name: set(self.engine.rows(name))
            for name, relation in self.model.checked.relations.items()
            if relation.kind == "base"
        }

    # --- trusting

    def audit(self, *, engine: str | None = None) -> tuple[Difference, ...]:
        """Recompute every view from the base facts and report what differs: nothing, normally.

        This is done on a second engine of the same kind, or on the one of that name: `reference` is
        slow, obvious, and the meaning of the language.
        """
        with self.turn():
            is_same = engine in (None, self.engine.name)
            made = self._second_engine() if is_same else known_engine(engine or "")()
            arguments = self.model, self.current_facts, made, self.limits, self.watch
            return tuple(compare_views(self.engine, *arguments))

    def _second_engine(self) -> Engine:
        return self.engine.twin() if is_twinned(self.engine) else self.engine.fresh()

    def compute_state(self, facts: Facts) -> Statistics:
        """Load the facts of the program and others into empty relations, and compute all views."""
        load_facts(self.engine, self.model, facts, self.rehearsal(NO_CHANGE))
        statistics = evaluate_views(self.engine, self.model, self.limits, self.watch)
        check_state(self)
        return statistics
