"""The verbs `why`, `why_not` and `why_changed`, for every kind of database.

A database provides the states they ask: the one it has now, and where it keeps them earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from deltalog.diagnostics import why_catalogue as errors
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.realization import Budget, Realization
from deltalog.runtime.why.asked import parse_asked, parse_fact
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.search import FACTS_MAX
from deltalog.runtime.why.sets import SetProof
from deltalog.runtime.why.state import AskedState, current_state
from deltalog.runtime.why.why import every_derivation, why_fact, why_set
from deltalog.runtime.why.why_changed import Transition, WhyChanged, why_changed_fact
from deltalog.runtime.why.why_not import WhyNot, why_not_fact

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.protocols import Database

NODES_MAX = 200
"""States that are looked at for a realization of a fact that does not hold."""


class WhyVerbs:
    """Why facts hold, do not hold, and have changed."""

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
        with self._asked_state(version) as state:
            asked = parse_asked(fact, state.model.visible, has_variables=True)
            when = "" if version is None else f" in version {version}"
            if asked.fact is None:
                return why_set(state, asked, when, facts_max)
            prove = every_derivation if every else why_fact
            return prove(state, asked.fact, when, facts_max)

    def why_not(self, fact: str, *, version: int | None = None) -> WhyNot:
        """Show what blocks a fact: for every rule the literal its nearest instance fails by.

        Of the current state it also has a realization, a change of base facts that would make the
        fact true, which is not applied.
        """
        with self._asked_state(version) as state:
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
        budget = Budget(nodes=NODES_MAX, answers=1)
        return next(iter(cast("Database", self).realize(f"+{fact}", budget=budget)), None)

    @contextmanager
    def _transition(self, version: int | None) -> Iterator[Transition]:
        """The states around a transaction, by default the last one."""
        database = cast("MemoryDatabase", self)
        if version is not None and version != database.version:
            database._check_version_known(version)
        with database.turn():
            change = database.last_change
            if change is None:
                raise DataError([errors.NO_TRANSACTION.at(None)])
            known = database.model.checked.relations
            base = change.only(*(n for n in change.relations if known[n].kind == "base"))
            back = database.propagate_net(-base, False)
            before, after = current_state(database, back), current_state(database)
            yield Transition(before, after, database.version)

    def why_changed(self, fact: str, version: int | None = None) -> WhyChanged:
        """Show which base changes of a transaction inserted or deleted a fact, and by which way.

        `version` is the one that the transaction made, by default the last. A database in memory
        knows only its last transaction.
        """
        with self._transition(version) as transition:
            relations = {**transition.before.model.visible, **transition.after.model.visible}
            return why_changed_fact(transition, parse_fact(fact, relations))
