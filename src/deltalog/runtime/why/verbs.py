"""The verbs `why`, `why_not` and `why_changed`, for every kind of database.

A database provides the states they ask: the one it has now, and where it keeps them earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from deltalog.diagnostics.arguments import check_argument
from deltalog.runtime.why.asked import parse_asked
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.search import FACTS_MAX
from deltalog.runtime.why.sets import SetProof
from deltalog.runtime.why.state import AskedState, current_state
from deltalog.runtime.why.why import every_derivation, why_fact, why_set

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


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
