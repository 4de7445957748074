"""The verbs `why`, `why_not` and `why_changed`, for every kind of database.

A database provides the states they ask: the one it has now, and where it keeps them earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, cast

from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics import why_catalogue as errors
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Row
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.realization import Budget, Realization
from deltalog.runtime.why.asked import parse_asked, parse_fact
from deltalog.runtime.why.change_reason import WhyChanged
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.fitting import fitting_row
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.search import FACTS_MAX
from deltalog.runtime.why.sets import SetProof
from deltalog.runtime.why.state import AskedState, ReplacedProgram, current_state, state_of_program
from deltalog.runtime.why.why import every_derivation, why_fact, why_set
from deltalog.runtime.why.why_changed import Transition, parse_changed, why_changed_fact
from deltalog.runtime.why.why_not import WhyNot, why_not_fact

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.protocols import Database

NODES_MAX = 200
"""States that are looked at for a realization of a fact that does not hold."""


class WhyVerbs:
    """Why facts hold, do not hold, and have changed."""

    last_program: ReplacedProgram | None = None
    """The program before its last change, of a database in memory."""

    @contextmanager
    def _asked_state(self, version: int | None) -> Iterator[AskedState]:
        """A state to be asked, now or as of a version, while nobody changes the database."""
        database = cast("MemoryDatabase", self)
        database._check_version_known(version)
        with database.turn():
            yield current_state(database)

    def why(
        self,
        fact: str,
        *,
        version: int | None = None,
        every: bool = False,
        facts_max: int = FACTS_MAX,
    ) -> Proof | SetProof | Derivations:
        """Prove a fact: `db.why("path(1, 3)")` returns a proof of least height.

        With variables, `db.why("path(1, X)")`, all facts that fit are proved as one. `every`
        returns all derivations as a graph. The search ends at `facts_max` facts. `version` asks an
        earlier state of a database that keeps them.
        """
        hint = "it is a whole number, 1 or more"
        check_argument(isinstance(facts_max, int) and facts_max > 0, "facts_max", facts_max, hint)
        with self._asked_state(version) as state, closing(state):
            asked = parse_asked(fact, state.model.visible, has_variables=True)
            when = "" if version is None else f" in version {version}"
            if asked.fact is None:
                hint = "all derivations are those of one fact, without variables"
                check_argument(not every, "every", every, hint)
                return why_set(state, asked, when, facts_max)
            prove = every_derivation if every else why_fact
            return prove(state, asked.fact, when, facts_max)

    def why_not(self, fact: str, *, version: int | None = None) -> WhyNot:
        """Show what blocks a fact: for every rule the literal its nearest instance fails by.

        Of the current state it also has a realization, a change of base facts that would make the
        fact true, which is not applied.
        """
        with self._asked_state(version) as state, closing(state):
            asked = parse_fact(fact, state.model.visible)
            when = "" if version is None else f" in version {version}"
            if state.holding([asked]):
                hint = "`why` (`deltalog why`) proves it"
                text = fact_text(*asked)
                raise DataError([errors.HOLDS.at(None, fact=text, when=when, hint=hint)])
            rules = why_not_fact(state, asked)
            is_base = state.model.relations[asked[0]].kind == "base"
        text = fact_text(*asked)
        found = None if is_base or version is not None else self._first_realization(text)
        return WhyNot(text, rules, is_base, found)

    def _first_realization(self, fact: str) -> Realization | None:
        """A change that makes a fact true; None where nothing is requested, as of aggregates."""
        budget = Budget(nodes=NODES_MAX, answers=1)
        try:
            return next(iter(cast("Database", self).realize(f"+{fact}", budget=budget)), None)
        except DataError as error:
            if error.codes != (view_catalogue.AGGREGATE_REQUESTED.code,):
                raise
            return None

    @contextmanager
    def _transition_at(self, version: int | None) -> Iterator[Transition]:
        """The states around a transaction, by default the last one."""
        database = cast("MemoryDatabase", self)
        if version is not None and version != database.version:
            database._check_version_known(version)
        with database.turn():
            yield Transition(_state_before(database), current_state(database), database.version)

    def why_changed(self, fact: str, version: int | None = None) -> WhyChanged:
        """Show which changes of a version inserted or deleted a fact, and by which way.

        They are changes of base facts, and of rules where the version changed the program.
        `version` is by default the last. A database in memory knows only that one.
        """
        with self._transition_at(version) as transition, closing(transition):
            return why_changed_fact(transition, parse_changed(fact, transition))


def _state_before(database: MemoryDatabase) -> AskedState:
    """The state that the last change of a database in memory was made in."""
    replaced = database.last_program
    if replaced is not None and replaced.version == database.version:
        back = -replaced.base
        facts = partial(_facts_before, database, replaced)
        return state_of_program(database, replaced.checked, back, facts)
    change = database.last_change
    if change is None:
        raise DataError([errors.NO_TRANSACTION.at(None)])
    known = database.model.checked.relations
    base = change.only(*(n for n in change.relations if known[n].kind == "base"))
    return current_state(database, database.propagate_net(-base, False))


def _facts_before(database: MemoryDatabase, replaced: ReplacedProgram, name: str) -> list[Row]:
    """The facts of a base relation before a change of programs, with the types they had."""
    relation = database.model.checked.relations.get(name)
    now = set(database.engine.rows(name)) if relation and relation.kind == "base" else set()
    rows = (now - replaced.base.inserted[name]) | replaced.base.deleted[name]
    found = (fitting_row(replaced.checked.relations[name], row) for row in rows)
    return [row for row in found if row is not None]
