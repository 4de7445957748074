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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from deltalog.analysis.columns import Relation, Relations
from deltalog.checks.program import check_program, check_query
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.base import Engine
from deltalog.engines.extensions import is_prefetching, is_twinned, takes_frames
from deltalog.language.ast import Atom, Program, Query, Row, Variable
from deltalog.language.parser import parse, parse_query
from deltalog.rewrites import names
from deltalog.rewrites.desugar import fact_rows
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.checked_rows import check_taken_keys, has_free_keys, with_unique_keys
from deltalog.runtime.engine_choice import known_engine
from deltalog.runtime.evaluation import Difference, create, differences, evaluate
from deltalog.runtime.fixpoint import Statistics, Watch
from deltalog.runtime.incoming import incoming
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, Options, make_model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.parameters import Parameters, bind_parameters
from deltalog.runtime.program_change import apply_program
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.protocols import Facts, Participant, Persistence
from deltalog.runtime.queries import answer, stored_reads
from deltalog.runtime.read_program import read_program
from deltalog.runtime.rows import Rows
from deltalog.runtime.shown import database_html
from deltalog.runtime.transaction import Commit, Transaction, base_relation
from deltalog.runtime.unavailable import WithoutUpkeep
from deltalog.runtime.wanted_views import known_views


def open_in_memory(
    program: str | Path | Program,
    engine: Callable[[], Engine],
    options: Options,
    limits: Limits,
    watch: Watch | None,
    facts: Facts,
    participants: tuple[Participant, ...] = (),
) -> MemoryDatabase:
    """Open a database in memory, as `deltalog.connect` does without a path."""
    parsed = program if isinstance(program, Program) else parse(read_program(program))
    model = make_model(check_program(parsed), options)
    return MemoryDatabase(model, engine(), limits, watch, facts, participants=participants)


class MemoryDatabase(WithoutUpkeep):
    """Made by `connect`. Threads may share it: they take turns.

    With a `persistence` what it holds is kept elsewhere, too. `participants` see every change
    before it is applied, and may refuse it.
    """

    _is_closed = False

    def __init__(
        self,
        model: Model,
        engine: Engine,
        limits: Limits,
        watch: Watch | None = None,
        facts: Facts = MappingProxyType({}),
        persistence: Persistence | None = None,
        participants: tuple[Participant, ...] = (),
    ) -> None:
        self._persistence = persistence
        self._participants = participants if persistence is None else (*participants, persistence)
        self.model = model
        self.engine = engine
        self.limits = limits
        self.watch = watch
        self.version = 0
        self._lock = threading.RLock()
        create(engine, {name: model.relations[name] for name in model.stored})
        if persistence is None:
            self.statistics = self.compute_state(facts)
        else:
            self.statistics = persistence.initial_state(self, facts)
        self.propagation = Propagation(engine, model)

    # --- closing

    def close(self) -> None:
        """Let go of all facts; a closed database cannot be used any more."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self.engine = self.engine.fresh()
                create(self.engine, {n: self.model.relations[n] for n in self.model.stored})
                self.propagation = Propagation(self.engine, self.model)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise DataError([catalogue.DATABASE_CLOSED.at(None, name="the database in memory")])

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Alone among the threads, with a database that is open."""
        with self._lock:
            self._check_open()
            yield

    # --- reading

    @property
    def relations(self) -> Mapping[str, Relation]:
        """Every base relation and view with its columns."""
        return self.model.checked.relations

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a base relation or view; only a file has earlier versions of them."""
        self._check_version_known(version)
        with self._turn():
            self._check_relation(relation)
            return self.current_facts(relation)

    def rows(self, relation: str) -> Rows:
        """Return all facts of a base relation or view, to be read as tuples or as a table."""
        with self._turn():
            self._check_relation(relation)
            if relation in self.model.stored:
                held = self.engine.copied(relation)
            else:
                held = self._answers(relation).held
        return Rows(self.relations[relation].columns, held)

    def _check_relation(self, relation: str) -> None:
        if relation not in self.relations:
            hint = did_you_mean(str(relation), self.relations)
            raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])

    def current_facts(self, relation: str) -> set[Row]:
        if relation in self.model.stored:
            return set(self.engine.rows(relation))
        return set(self._answers(relation).held)

    def _answers(self, relation: str) -> Rows:
        asked = self._everything(relation)
        return answer(self.engine, self.model, asked, self.limits, self.watch, False)

    def _everything(self, relation: str) -> Query:
        arguments = tuple(Variable(f"V{i}") for i in range(self.relations[relation].arity))
        return Query((Atom(relation, arguments),))

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
        with self._turn():
            query = _bound(text, parameters, self.relations)
            return answer(self.engine, self.model, query, self.limits, self.watch)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.relations)} relations, version {self.version})"

    def _repr_html_(self) -> str:
        return database_html(self)

    def explain(
        self,
        query: str | Query | None = None,
        parameters: Parameters | None = None,
        *,
        show: Collection[str] | None = None,
        propagation: bool = False,
    ) -> str:
        """What becomes of the program, or of a query, as `deltalog explain` shows it.

        `show` has some of `dependencies`, `strata`, `rules` and `plan`. With `propagation` it is
        the propagation network instead.
        """
        from deltalog.runtime.explained import explained  # which imports this module

        with self._turn():
            asked = None if query is None else _bound(query, parameters, self.relations)
            return explained(self, asked, show, propagation)

    # --- reading what a transaction would make

    def query_after(
        self, wanted: Callable[[], ChangeSet], text: str | Query, parameters: Parameters | None
    ) -> Rows:
        """Called by a transaction: the answers on the state that it would make."""
        with self._turn():
            query = _bound(text, parameters, self.relations)
            return self._answer_after(wanted(), query, magic=True)

    def facts_after(self, wanted: Callable[[], ChangeSet], relation: str) -> set[Row]:
        """Called by a transaction: the facts of a relation in the state that it would make."""
        with self._turn():
            self._check_relation(relation)
            if relation in self.model.stored:
                change = self._change_of(wanted(), {relation})
                return (
                    self.current_facts(relation) - change.deleted[relation]
                    | change.inserted[relation]
                )
            return set(self._answer_after(wanted(), self._everything(relation), magic=False))

    def _answer_after(self, wanted: ChangeSet, query: Query, magic: bool) -> Rows:
        """Propagate the change without making it, and read stored relations through it."""
        model = self.model.as_written
        check_query(query, self.relations)
        reads = stored_reads(model, query)
        change = self._change_of(wanted, reads)
        return answer(self.engine, model, query, self.limits, self.watch, magic, change)

    def _change_of(self, wanted: ChangeSet, reads: Set[str]) -> ChangeSet:
        """The net change of these stored relations; without views nothing is propagated."""
        if all(self.relations[name].kind == "base" for name in reads):
            changed = [name for name in wanted.relations if name in reads]
            return self._net(wanted.only(*changed))
        views = frozenset(name for name in reads if self.relations[name].kind == "view")
        return self._make(wanted, is_committed=False, views=views).only(*reads)

    # --- changing

    def transaction(self, *, views: Iterable[str] | None = None) -> Transaction:
        """A transaction for a `with` block; it commits at the end, or not at all.

        Its change is that of base relations and of these `views`, or of all views that are
        declared; virtual views that nobody needs are not even looked at.
        """
        self._check_open()
        known = known_views(self.propagation, self.relations, views)
        return self._transaction(lambda wanted: self._make(wanted, True, known))

    def transaction_for(self, commit: Commit) -> Transaction:
        """A transaction whose changes go to `commit` when it ends instead of `commit_wanted`."""
        self._check_open()
        return self._transaction(commit)

    def commit_wanted(self, wanted: ChangeSet, views: frozenset[str] | None = None) -> ChangeSet:
        """Commit a change of which some may be a no-op; returns the exact change of these views."""
        return self._make(wanted, True, views)

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
        return _filled(self.transaction(views=views), insert, delete, set).commit()

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
        known = known_views(self.propagation, self.relations, views)
        tried = self._transaction(lambda wanted: self._make(wanted, False, known))
        return _filled(tried, insert, delete, set).commit()

    def _transaction(self, commit: Callable[[ChangeSet], ChangeSet]) -> Transaction:
        return Transaction(
            self.relations,
            self.engine.lookup,
            self._net,
            commit,
            self._lock,
            self._expect if is_prefetching(self.engine) else None,
            lambda relation, table: has_free_keys(self.engine, relation, table),
            self,
        )

    def propagate_net(
        self, change: ChangeSet, is_committed: bool, views: frozenset[str] | None = None
    ) -> ChangeSet:
        """Commit, or only try, a change of which nothing is a no-op."""
        with self._turn():
            return self._propagate(change, is_committed, views)

    def _make(
        self, wanted: ChangeSet, is_committed: bool, views: frozenset[str] | None = None
    ) -> ChangeSet:
        """Make a change of which some may be a no-op."""
        if self._is_closed:
            self._check_open()
        base = wanted if self.propagation.is_narrowing else self._net(wanted)
        return self._propagate(base, is_committed, views)

    def _net(self, wanted: ChangeSet) -> ChangeSet:
        """What is wanted without what is so already."""
        come, gone = wanted.inserted, wanted.deleted
        if is_prefetching(self.engine):
            for name in come.held | gone.held:
                columns = tuple(range(self.relations[name].arity))
                self._expect(name, columns, come[name] | gone[name])
        return ChangeSet(
            {name: self._present(name, rows, False) for name, rows in come.items()},
            {name: self._present(name, rows, True) for name, rows in gone.items()},
        )

    def _present(self, relation: str, rows: frozenset[Row], is_there: bool) -> frozenset[Row]:
        """Those of the rows that are there, or those that are not."""
        known = zip(rows, self.engine.present(relation, rows), strict=True)
        return frozenset([row for row, found in known if found == is_there])

    def _expect(self, relation: str, columns: tuple[int, ...], keys: Collection[Row]) -> None:
        """What a transaction will ask for; whole rows may be news, so rules will ask, too."""
        engine = self.engine
        assert is_prefetching(engine)
        engine.expect(relation, columns, keys)
        if len(columns) == self.relations[relation].arity:
            for side in (names.plus, names.minus):
                engine.look_ahead(side(relation), keys)

    def _propagate(
        self, base: ChangeSet, is_committed: bool, views: frozenset[str] | None = None
    ) -> ChangeSet:
        """The change of base relations and wanted views; applied if complete and `is_committed`."""
        if not base:
            self.statistics = Statistics()
            return base
        network, route, is_recorded = self.propagation, None, bool(self._participants)
        if views is not None and not (is_committed and is_recorded):
            route = network.route_to(views)
        arguments = network, base, self.limits, self.watch, is_recorded, route
        with Propagated(*arguments) as outcome:
            self.statistics = outcome.statistics
            change = outcome.changes()
            if is_committed and change:
                for participant in self._participants:
                    participant.before_change(self, outcome, change)
                outcome.apply()
                self.version += 1
        if views is not None and route is None:
            return change.without(*network.views - views)
        return change

    # --- changing rules

    def change_program(
        self, program: str | Path | Program, *, is_committed: bool = True
    ) -> ChangeSet:
        """Go over to another program; answers the exact change of every relation and view.

        Facts of base relations stay. With `is_committed=False` nothing happens but the answer. The
        program that is there already is a no-op, and makes no version.
        """
        parsed = program if isinstance(program, Program) else parse(read_program(program))
        with self._lock:
            self._check_open()
            if parsed == self.model.checked.program:
                self.statistics = Statistics()
                return NO_CHANGE
            return apply_program(self, check_program(parsed), is_committed)

    def evaluated_apart(self, model: Model, facts: Facts) -> MemoryDatabase:
        """Another database, in memory, of a model over these facts."""
        return MemoryDatabase(model, self.engine.fresh(), self.limits, self.watch, facts)

    def record_program(self, touched: Set[str], change: ChangeSet) -> None:
        """Count a program that is in place as a version, once the persistence has it."""
        if self._persistence is not None:
            self._persistence.program_changed(self, touched, change)
        self.version += 1

    def base_facts(self) -> dict[str, set[Row]]:
        return {
            name: set(self.engine.rows(name))
            for name, relation in self.relations.items()
            if relation.kind == "base"
        }

    # --- trusting

    def audit(self, *, engine: str | None = None) -> tuple[Difference, ...]:
        """Recompute every view from the base facts and report what differs: nothing, normally.

        This is done on a second engine of the same kind, or on the one of that name: `reference` is
        slow, obvious, and the meaning of the language.
        """
        with self._turn():
            made = self._second_engine() if engine is None else known_engine(engine)()
            arguments = self.engine, self.model, self.current_facts, made, self.limits, self.watch
            return tuple(differences(*arguments))

    def _second_engine(self) -> Engine:
        engine = self.engine
        return engine.twin() if is_twinned(engine) else engine.fresh()

    def compute_state(self, facts: Facts) -> Statistics:
        """Load the facts of the program and others into empty relations, and compute all views."""
        self._load(facts)
        return evaluate(self.engine, self.model, self.limits, self.watch)

    def _load(self, facts: Facts) -> None:
        """The facts of the program, and those given."""
        _check_facts("facts", facts)
        loading = self._transaction(lambda base: base)
        for relation, row in fact_rows(self.model.core):
            loading.insert(relation, [row])
        for relation, new in loading.net().inserted.items():
            self.engine.insert(relation, new)
        for relation, rows in facts.items():
            known = base_relation(self.relations, relation)
            if hasattr(rows, "toArrow") and takes_frames(self.engine):
                self.engine.load_frame(relation, rows)
                continue
            checked = with_unique_keys(known, incoming(known, rows))
            if known.key and self.engine.size(relation):  # facts of the program
                check_taken_keys(
                    ChangeSet({relation: set(checked)}), self.relations, self.engine.lookup
                )
            self.engine.insert(relation, checked)


def _filled(
    transaction: Transaction, insert: Facts | None, delete: Facts | None, put: Facts | None
) -> Transaction:
    """In the order in which files of changes count, too: a set replaces also what was inserted."""
    for name, facts in (("delete", delete), ("insert", insert), ("set", put)):
        if facts is not None:
            _check_facts(name, facts)
    for relation, rows in (delete or {}).items():
        transaction.delete(relation, rows)
    for relation, rows in (insert or {}).items():
        transaction.insert(relation, rows)
    for relation, rows in (put or {}).items():
        transaction.set(relation, rows)
    return transaction


def _check_facts(name: str, facts: object) -> None:
    hint = 'give a mapping from relations to rows, as in `{"edge": [(1, 2)]}`'
    check_argument(isinstance(facts, Mapping), name, facts, hint)


def _bound(text: str | Query, parameters: Parameters | None, relations: Relations) -> Query:
    hint = "a query is a text, as in `path(1, Y)`"
    check_argument(isinstance(text, str | Query), "query", text, hint)
    query = parse_query(text) if isinstance(text, str) else text
    values = {} if parameters is None else parameters
    hint = 'give a mapping from names to values, as in `{"src": 1}`'
    check_argument(isinstance(values, Mapping), "parameters", values, hint)
    return bind_parameters(query, values, relations)
