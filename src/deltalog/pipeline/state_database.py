"""A state in tables, opened to be read without Spark: what a service puts in front of it.

    versions, changes    the log, which other processes append to: `tail` takes over what is new
    facts of a relation  its table and the log, files and groups of rows skipped by what is bound
    queries, reasons     the stored relations that they read, loaded into this process
    what-ifs             the base relations; every view is virtual, by the strategy `demand`

A relation is loaded when something first needs all of it, and follows the log from then on; one
that is too large is refused by name. Changes need Spark: with a `writer`, a database in tables
that is open in this process, they are made there, and read from the log like those of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.base import Changed, Engine
from deltalog.engines.extensions import is_twinned
from deltalog.language.ast import Atom, Constant, Query, Row, Value
from deltalog.pipeline.change_log import TableLog
from deltalog.pipeline.loaded_relations import LoadedRelations, two_models
from deltalog.pipeline.read import opened_state
from deltalog.pipeline.relation_parts import contents_at
from deltalog.pipeline.state_journal import JournalOfState
from deltalog.pipeline.state_settings import StateSettings
from deltalog.pipeline.state_tables import is_stored, known_table
from deltalog.pipeline.state_writes import StateWrites
from deltalog.pipeline.virtual_rows import virtual_rows
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.engine_choice import DEFAULT_ENGINE, ENGINES, known_engine
from deltalog.runtime.evaluation import Difference, compare_views
from deltalog.runtime.fixpoint import Statistics
from deltalog.runtime.limits import Limits
from deltalog.runtime.parameters import Parameters
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.protocols import Facts
from deltalog.runtime.queries import answer_query, stored_reads
from deltalog.runtime.realization import Realizations
from deltalog.runtime.realize import realize
from deltalog.runtime.rows import Rows
from deltalog.runtime.system_relations import system_inputs
from deltalog.runtime.violations import Violation
from deltalog.runtime.why.state import AskedState
from deltalog.runtime.why.why_changed import Transition
from deltalog.store.history import LoggedHistory, without_hidden
from deltalog.store.log import Commit, Summary
from deltalog.store.logged import Logged, Tailed

if TYPE_CHECKING:
    from deltalog.pipeline.table_database import TableDatabase

LOADED_ROWS_MAX = 5_000_000
"""Rows of a relation that is loaded as a whole."""
TAILED_ROWS_MAX = 1_000_000
"""Changed rows of a relation in one commit that are passed on; readers of more begin anew."""


class StateDatabase(StateWrites, MemoryDatabase, Logged):
    """Made by `open_state`."""

    def __init__(
        self,
        state: str,
        limits: Limits | None = None,
        writer: TableDatabase | None = None,
        loaded_rows_max: int = LOADED_ROWS_MAX,
    ) -> None:
        self.state = state
        self.writer = writer
        self._tables = opened_state(state)
        self._log = TableLog(self._tables)
        self._settings = StateSettings(self._tables)
        self._loaded_rows_max = loaded_rows_max
        self._noted: dict[str, float] = {}
        self._text = self._tables.program
        self._reading, model = two_models(self._text)
        self._read = LoadedRelations(self._reading)
        super().__init__(model, ENGINES[DEFAULT_ENGINE](), limits or Limits())
        self._tried = LoadedRelations(model, self.engine)
        self._journal_elsewhere = JournalOfState(state)
        self.version = self._tables.last.version
        if writer is not None:
            self._settings.recording = lambda batches: writer._writer.recording(batches, ())

    def compute_state(self, facts: Facts) -> Statistics:
        """Nothing is computed: the state has it."""
        return Statistics()

    # --- following the log

    @property
    def is_tailed(self) -> bool:
        return True

    @property
    def settings(self) -> StateSettings:
        return self._settings

    def tail(self, wanted: frozenset[str]) -> list[Tailed]:
        """Take over what others have committed; the changes of `wanted` relations are read."""
        with self.turn():
            self._tables.refresh()
            before, last = self.version, self._tables.last.version
            if last == before:
                return []
            few = {name: self._few_until(name, before, last) for name in wanted}
            found = [
                Tailed(
                    replace(each, change=without_hidden(each.change)),
                    frozenset(name for name in wanted if each.version <= few[name]),
                )
                for each in self._few_commits(few, before, last)
            ]
            self._follow_commits(before, last)
            self.version = last
            return found

    def _few_commits(self, few: Mapping[str, int], after: int, last: int) -> Iterator[Commit]:
        """The commits, with the changes of each relation up to a version of its own."""
        for until in sorted({last, *few.values()}):
            if until > after:
                names = {name for name, its_last in few.items() if its_last >= until}
                yield from self._log.commits(after, until, names)
                after = until

    def _few_until(self, relation: str, after: int, until: int) -> int:
        """The last version up to which a relation has changed so little that it is read here."""
        total, found = 0, after
        for record in self._tables.records:
            if after < record.version <= until:
                total += sum(record.counts.get(relation, (0, 0)))
                if total > TAILED_ROWS_MAX:
                    return found
                found = record.version
        return until

    def _rows_changed(self, relation: str, after: int, until: int) -> int:
        records = (r for r in self._tables.records if after < r.version <= until)
        return sum(sum(r.counts.get(relation, (0, 0))) for r in records)

    def _follow_commits(self, before: int, last: int) -> None:
        """Bring loaded relations up to a version, or forget them if it has another program."""
        if self._tables.program != self._text:
            self._adopt_program()
            return
        for name in self._read.names | self._tried.names:
            changed = self._rows_changed(name, before, last)
            if not changed:
                continue
            net = self._log.net(before, last, name) if changed <= TAILED_ROWS_MAX else None
            self._read.follow(name, net)
            self._tried.follow(name, net)

    def _adopt_program(self) -> None:
        """Go over to the program of the last commit."""
        self._text = self._tables.program
        self._reading, self.model = two_models(self._text)
        self._read, self._tried = LoadedRelations(self._reading), LoadedRelations(self.model)
        self.engine = self._tried.engine
        self.propagation = Propagation(self.engine, self.model)
        self._ground = None

    def commits_of(self, relation: str, after: int, until: int) -> tuple[int, list[Commit]] | None:
        with self.turn():
            last = self._few_until(relation, after, until)
            if last == after < until:
                return None
            return last, list(self._log.commits(after, last, {relation}))

    def log_behind(self, version: int) -> tuple[int, bool]:
        """Bytes of the log behind a version; it is kept until somebody compacts it."""
        return self._tables.log.table.bytes_behind(version), True

    # --- facts

    def _load_relations(self, held: LoadedRelations, names: Iterable[str]) -> None:
        """Have all of some stored relations here."""
        for name in names:
            if name in held.names or name not in held.model.stored:
                continue
            size = self._tables.size(name)
            if size > self._loaded_rows_max:
                most = f"{self._loaded_rows_max:,}"
                hint = "bind a column, or serve the state with `--spark`"
                entry = service_catalogue.TOO_LARGE_TO_LOAD
                words = {"name": name, "size": f"{size:,}", "limit": most}
                raise DataError([entry.at(None, **words, hint=hint)])
            held.load(name, self._rows_at(name, self.version, {}))

    def _load_all(self) -> None:
        self._load_relations(self._read, self._reading.stored)

    def _load_base(self) -> None:
        self._load_relations(self._tried, self.model.stored)

    def _rows_at(
        self, relation: str, version: int, bindings: Mapping[str, tuple[Value, ...]]
    ) -> set[Row]:
        """The facts of a relation at a version with these values, read where they lie."""
        import pyarrow

        state, table = self._tables, known_table(self._tables, relation, version)
        parts: Any = (
            contents_at(state, table, relation, version, bindings)
            if is_stored(table)
            else virtual_rows(state, table, relation, version, bindings)
        )
        batches = (batch for part in parts for batch in part.read())
        return {row for each in batches for row in table.rows(pyarrow.Table.from_batches([each]))}

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a relation or view, now or as of an earlier version."""
        with self.turn():
            if version is None or version == self.version:
                self.check_relation(relation)
                return self.current_facts(relation)
            self._logged_history.check_version(version)
            return self._rows_at(relation, version, {})

    def held_facts(self, relation: str) -> Changed:
        return frozenset(self.current_facts(relation))

    def current_facts(self, relation: str) -> set[Row]:
        if relation in self._read.names:
            return set(self._read.engine.rows(relation))
        if relation in self._reading.checked.relations:
            return self._rows_at(relation, self.version, {})
        return super().current_facts(relation)

    def _answer_query(self, query: Query, magic: bool = True) -> Rows:
        bound = self._bound_rows(query)
        if bound is not None:
            return answer_query(bound, self._reading, query, self.limits, self.watch, magic)
        self._load_relations(self._read, stored_reads(self._reading, query))
        arguments = self.limits, self.watch, magic, NO_CHANGE, system_inputs(self, query)
        return answer_query(self._read.engine, self._reading, query, *arguments)

    def _bound_rows(self, query: Query) -> Engine | None:
        """For one atom with constants over a relation that is not loaded: the rows it can need."""
        atom = query.body[0]
        if len(query.body) != 1 or not isinstance(atom, Atom):
            return None
        name = atom.predicate
        if name not in self._reading.stored or name in self._read.names:
            return None
        relation = self._reading.relations[name]
        pairs = zip(relation.columns, atom.arguments, strict=True)
        bindings = {
            column.name: (term.value,)
            for column, term in pairs
            if isinstance(term, Constant) and term.type == column.type
        }
        if not bindings:
            return None
        held = LoadedRelations(self._reading)
        held.load(name, self._rows_at(name, self.version, bindings))
        return held.engine

    # --- history

    @property
    def _logged_history(self) -> LoggedHistory:
        return LoggedHistory(self._log, self, self.state)

    @property
    def first_version(self) -> int:
        """The oldest version whose state the log still leads back to."""
        return self._tables.first

    def query(
        self,
        text: str | Query,
        parameters: Parameters | None = None,
        *,
        version: int | None = None,
    ) -> Rows:
        """The bindings of the query's variables, now or as of an earlier version."""
        with self.turn():
            if version is None or version == self.version:
                return super().query(text, parameters)
            return self._logged_history.query_at(
                text, parameters or {}, version, self.current_facts
            )

    def relations_at(self, version: int) -> Mapping[str, Relation]:
        """The base relations and views that the program of a version had."""
        with self.turn():
            return self._logged_history.relations_at(version)

    def delta(
        self, first: int, last: int | None = None, views: Iterable[str] | None = None
    ) -> ChangeSet:
        """The net change from one version to another, which may also be an earlier one.

        `views` are those to be derived if the log omits them; that of a state omits none.
        """
        with self.turn():
            return self._logged_history.delta(first, last, self.current_facts, views)

    def commits(
        self,
        after: int | None = None,
        until: int | None = None,
        views: Iterable[str] | None = None,
    ) -> list[Commit]:
        """The commits after a version, up to another one, as they are in the log."""
        with self.turn():
            return list(self._logged_history.commits(after, until, self.current_facts, views))

    def summaries(self, after: int, until: int) -> tuple[int, list[Summary]]:
        with self.turn():
            self._logged_history.check_version(after)
            return until, list(self._log.summaries(after, until))

    def programs(self) -> list[tuple[int, str, str]]:
        """Every program there was: the version from which on it counted, the time, the text."""
        return self._log.programs()

    # --- reasons

    @contextmanager
    def _asked_state(self, version: int | None) -> Iterator[AskedState]:
        with self.turn():
            self._load_all()
            if version is None or version == self.version:
                yield AskedState(self._read.engine, self._reading, self.limits, self.watch)
            else:
                yield self._logged_history.state_at(version, self.current_facts)

    @contextmanager
    def _transition_at(self, version: int | None) -> Iterator[Transition]:
        with self.turn():
            self._load_all()
            wanted = self.version if version is None else version
            yield self._logged_history.transition_to(wanted, self.current_facts)

    def audit(self, *, engine: str | None = None) -> tuple[Difference, ...]:
        """Recompute every view from the base facts and report what differs: nothing, normally."""
        with self.turn():
            self._load_all()
            held = self._read.engine
            is_same = engine in (None, held.name)
            made = held.twin() if is_same and is_twinned(held) else known_engine(str(engine))()
            arguments = self.current_facts, made, self.limits, self.watch
            return tuple(compare_views(held, self._reading, *arguments))

    def violations(self, name: str | None = None) -> tuple[Violation, ...]:
        """Return the violations of all constraints, or of the one of that name, as of now."""
        with self.turn():
            self._load_base()
            return super().violations(name)

    def realize(self, *requests: str, **options: Any) -> Realizations:
        """Search the minimal changes of base relations that make derived facts true or false."""
        with self.turn():
            searched: MemoryDatabase = self
            if self.writer is not None:
                searched = self.writer._database
            else:
                self._load_base()
            return realize(searched, requests, self._apply_realization, **options)

    def why_not(self, fact: str, *, version: int | None = None) -> Any:
        """Show what blocks a fact: for every rule the literal its nearest instance fails by."""
        with self.turn():
            self._load_all()
            self._load_base()
            return super().why_not(fact, version=version)

    @contextmanager
    def turn(self) -> Iterator[None]:
        with super().turn():
            hidden = self.model.hidden - self._tried.names
            if hidden:  # what active rules keep for themselves is small
                self._load_relations(self._tried, hidden)
            yield

    # --- ending

    def close(self) -> None:
        if not self._is_closed:
            self._settings.close()
        super().close()
        if self.writer is not None:
            self.writer.close()
