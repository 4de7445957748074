"""Earlier versions of a database: its state of today, and what its log takes back from it.

The log may omit the changes of virtual views that nobody wanted. They are derived from the base
facts of a version, or of the commits in between (`replay.py`), for those who ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Protocol

from deltalog.analysis.columns import Relations
from deltalog.checks.program import CheckedProgram, check_query
from deltalog.diagnostics import catalogue, why_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Query, Row
from deltalog.rewrites.names import is_generated
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.model import query_model
from deltalog.runtime.parameters import Parameters, bound_query
from deltalog.runtime.queries import answer_query, stored_reads
from deltalog.runtime.rows import Rows
from deltalog.runtime.why.state import AskedState, current_state, state_of_program
from deltalog.runtime.why.why_changed import Transition
from deltalog.store.cells import Types, with_types
from deltalog.store.log import Commit
from deltalog.store.programs import stored_program
from deltalog.store.replay import Replay, derived_facts, with_omitted_changes

FactsNow = Callable[[str], set[Row]]


class ChangeLog(Protocol):
    """The changes of every version, as a file or a state in tables keeps them."""

    @property
    def first(self) -> int:
        """The oldest version that the log still leads back to."""
        ...

    def columns_at(self, version: int) -> Mapping[str, Types]: ...
    def net(self, after: int, until: int, relation: str | None = None) -> ChangeSet: ...
    def omitted(self, after: int, until: int) -> frozenset[str]: ...
    def commits(self, after: int, until: int) -> Iterable[Commit]: ...
    def programs(self) -> list[tuple[int, str, str]]: ...
    def program_at(self, version: int) -> str: ...


class LoggedHistory:
    """Reads log and memory together, so the caller sees to it that both are of one state.

    `name` is what the database is called in messages.
    """

    def __init__(self, log: ChangeLog, database: MemoryDatabase, name: str) -> None:
        self._log = log
        self._database = database
        self._name = name

    @property
    def first(self) -> int:
        return self._log.first

    def facts_at(self, relation: str, version: int, facts_now: FactsNow) -> set[Row]:
        """All facts of a relation or view that a version had; `facts_now` reads those of today."""
        self.check_version(version)
        known = self._log.columns_at(version)
        if relation not in known:
            hint = did_you_mean(str(relation), known)
            raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
        last = self._known_until(relation, version)
        if last is None:
            return self._derived_facts_at(relation, version, facts_now)
        if last < self._database.version:
            facts = self._facts_if_known(relation, last, facts_now)
        else:
            facts = facts_now(relation) if relation in self._database.relations else set()
        change = self._log.net(version, last, relation)
        facts = (facts - change.inserted[relation]) | change.deleted[relation]
        is_same = known[relation] == self._log.columns_at(last).get(relation)
        return facts if is_same else with_types(facts, known[relation])

    def _facts_if_known(self, relation: str, version: int, facts_now: FactsNow) -> set[Row]:
        if relation not in self._log.columns_at(version):
            return set()
        return self.facts_at(relation, version, facts_now)

    def _known_until(self, relation: str, version: int) -> int | None:
        """The version from which the log leads a relation back; None for a view to be derived."""
        last = self._database.version
        if relation not in self._log.omitted(version, last):
            return last
        for since, text in self._later_programs(version):
            known = stored_program(text).relations.get(relation)
            if known is not None and known.kind == "view":
                return None if since <= version else since
        raise AssertionError("only the change of a view may be omitted")

    def _later_programs(self, version: int) -> list[tuple[int, str]]:
        """The program of a version, and those after it."""
        found = [(since, text) for since, _, text in self._log.programs()]
        earlier = [each for each in found if each[0] <= version]
        return [*earlier[-1:], *(each for each in found if each[0] > version)]

    def _derived_facts_at(self, view: str, version: int, facts_now: FactsNow) -> set[Row]:
        def facts(name: str) -> set[Row]:
            return self.facts_at(name, version, facts_now)

        return derived_facts(self._database, self.program_at(version), view, facts)

    def _net_with_omitted(
        self, after: int, until: int, facts_now: FactsNow, wanted: Set[str] | None = None
    ) -> ChangeSet:
        """The net change between two versions, with omitted views: all of them, or the wanted."""
        change, omitted = self._log.net(after, until), self._log.omitted(after, until)
        if not omitted:
            return change
        before, then = (
            {
                name: self._facts_if_known(name, version, facts_now)
                for name in sorted(omitted if wanted is None else omitted & wanted)
            }
            for version in (after, until)
        )
        return change + ChangeSet(then, before)

    def query_at(
        self, text: str | Query, parameters: Parameters, version: int, facts_now: FactsNow
    ) -> Rows:
        """Run the program of a version over the base facts it had, as far as the query reads them.

        They are copied for it to an engine of its own.
        """
        checked = self.program_at(version)
        base = frozenset(name for name, each in checked.relations.items() if each.kind == "base")
        model = query_model(checked, base)
        query = bound_query(text, parameters, checked.relations)
        check_query(query, checked.relations)
        engine = self._database.engine.fresh()
        for name in stored_reads(model, query):
            create_relations(engine, {name: checked.relations[name]})
            engine.insert(name, self.facts_at(name, version, facts_now))
        return answer_query(engine, model, query, self._database.limits, self._database.watch)

    def state_at(self, version: int, facts_now: FactsNow, name: str = "") -> AskedState:
        """The state of a version, to be asked: that of today, read through what the log takes back.

        Another program is asked over the base facts of today in the same way, or over a copy of
        those of the version where its base relations are others.
        """
        self.check_version(version)
        database = self._database
        net = self._net_with_omitted(version, database.version, facts_now, database.model.stored)
        back = self._with_current_types(-net, version)
        if self._log.program_at(version) == self._log.program_at(database.version):
            return current_state(database, back, name)
        checked = self.program_at(version)

        def facts(relation: str) -> set[Row]:
            return self.facts_at(relation, version, facts_now)

        return state_of_program(database, checked, back, facts, name)

    def _with_current_types(self, change: ChangeSet, version: int) -> ChangeSet:
        """The change of relations that have the columns they had in a version.

        In between these may have had others: its values get their types again.
        """
        now = self._log.columns_at(self._database.version)
        same = {n: t for n, t in self._log.columns_at(version).items() if now.get(n) == t}
        inserted, deleted = (
            {n: with_types(rows, same[n]) for n, rows in side.items() if n in same}
            for side in (change.inserted, change.deleted)
        )
        return ChangeSet(inserted, deleted)

    def transition_to(self, version: int, facts_now: FactsNow) -> Transition:
        """The states around the transaction, or the change of the program, that made a version."""
        self.check_version(version)
        if version == self.first:
            words = {"version": str(version), "first": str(self.first)}
            raise DataError([why_catalogue.NO_PREDECESSOR.at(None, **words)])
        (commit,) = self._log.commits(version - 1, version)  # for its time
        before = self.state_at(version - 1, facts_now, "before")
        after = self.state_at(version, facts_now, "after")
        return Transition(before, after, version, commit.time)

    def program_at(self, version: int) -> CheckedProgram:
        self.check_version(version)
        return stored_program(self._log.program_at(version))

    def relations_at(self, version: int) -> Relations:
        """The relations of the program of a version, but those of active rules."""
        known = self.program_at(version).relations
        return {name: each for name, each in known.items() if not is_generated(name)}

    def delta(
        self,
        first: int,
        last: int | None,
        facts_now: FactsNow,
        views: Iterable[str] | None = None,
    ) -> ChangeSet:
        """The net change; of views that the log omits all are derived, or those in `views`."""
        last = self._database.version if last is None else last
        self.check_version(first)
        self.check_version(last)
        wanted = None if views is None else frozenset(views)
        if first <= last:
            return without_hidden(self._net_with_omitted(first, last, facts_now, wanted))
        return -without_hidden(self._net_with_omitted(last, first, facts_now, wanted))

    def commits(
        self,
        after: int | None,
        until: int | None,
        facts_now: FactsNow,
        views: Iterable[str] | None = None,
    ) -> Iterator[Commit]:
        """The commits; of views that the log omits all are derived, or those in `views`."""
        after = self._log.first if after is None else after
        until = self._database.version if until is None else until
        self.check_version(after)
        omitted = self._log.omitted(after, until)
        found = with_omitted_changes(
            self._log.commits(after, until),
            omitted if views is None else omitted.intersection(views),
            lambda version, missing: self._replay_from(version, missing, facts_now),
        )
        return (replace(each, change=without_hidden(each.change)) for each in found)

    def _replay_from(self, version: int, views: frozenset[str], facts_now: FactsNow) -> Replay:
        def facts(name: str) -> set[Row]:
            return self.facts_at(name, version, facts_now)

        return Replay(self._database, self.program_at(version), views, facts)

    def programs(self) -> list[tuple[int, str, str]]:
        return self._log.programs()

    def check_version(self, version: int) -> None:
        first, last = self._log.first, self._database.version
        if not isinstance(version, int) or not first <= version <= last:
            words = {"version": str(version), "first": str(first), "last": str(last)}
            raise DataError([catalogue.NO_SUCH_VERSION.at(None, name=self._name, **words)])


def without_hidden(change: ChangeSet) -> ChangeSet:
    """The change without relations that active rules keep for themselves."""
    hidden = [name for name in change.relations if is_generated(name)]
    return change.without(*hidden) if hidden else change
