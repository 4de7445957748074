"""Verbs of a database that reason about its rules: what they become, and what makes them true."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from deltalog.language.ast import Query, Value
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.parameters import Parameters, bound_query
from deltalog.runtime.realization import Budget, Realizations
from deltalog.runtime.realize import Costs, realize
from deltalog.runtime.why.verbs import WhyVerbs

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.request_termination import RequestCheck
    from deltalog.runtime.update_choices import ChoiceCheck


class ReasonVerbs(WhyVerbs):
    """Explanations and view updating."""

    committer: Callable[[ChangeSet], ChangeSet] | None = None
    """Commits what is realized where this database is a part of another."""

    def explain(
        self,
        query: str | Query | None = None,
        parameters: Parameters | None = None,
        *,
        show: Collection[str] | None = None,
        propagation: bool = False,
    ) -> str:
        """Show what the program, or a query, is rewritten to, as `deltalog explain` does.

        `show` has some of `dependencies`, `strata`, `rules` and `plan`. With `propagation` it is
        the propagation network instead.
        """
        from deltalog.runtime.explain_as_text import explain_as_text  # which imports the database

        database = cast("MemoryDatabase", self)
        with database.turn():
            asked = None if query is None else bound_query(query, parameters, database.relations)
            return explain_as_text(database, asked, show, propagation)

    def realize(
        self,
        *requests: str,
        budget: Budget | None = None,
        fixed: Iterable[str] = (),
        costs: Costs | None = None,
        mode: str = "complete",
        trace: bool = False,
        rank: str = "cost",
        domains: Mapping[str, Iterable[Value]] | None = None,
    ) -> Realizations:
        """Search the minimal changes of base relations that make derived facts true or false.

        `db.realize("+path(1, 9)", "-path(2, 3)")` yields them as they are found, the cheapest
        first. Relations in `fixed` are not touched; `costs` are per relation, or per sign and
        relation (`-edge`). With the `mode` `first_level` only the first level of alternatives that
        has realizations is searched; a `trace` of it also follows what was still open then. With
        the `rank` `side_effects` those that cost the same are held back until all are found, and
        come with the fewest side effects first. `domains` are the only values that columns get
        where nothing determines them: `{"member.team": ["lab", "sales"]}`.
        """
        database = cast("MemoryDatabase", self)
        with database.turn():
            commit = self.commit_realized
            return realize(
                database, requests, commit, budget, fixed, costs, mode, trace, rank, domains
            )

    def check_requests(self) -> tuple[RequestCheck, ...]:
        """Check for every view whether a search of the `first_level` is guaranteed to end.

        If not, the check has the cycle by which it may introduce new values for ever.
        """
        from deltalog.runtime.request_termination import check_requests  # imports the database

        database = cast("MemoryDatabase", self)
        with database.turn():
            return check_requests(database)

    def check_choices(self) -> tuple[ChoiceCheck, ...]:
        """Check the declared choices for view updates: do they realize every request?

        They are proved, or tried on small databases; the smallest examples show what they do not
        realize, and where they have side effects.
        """
        from deltalog.runtime.update_choices import check_choices  # imports the database

        return check_choices(cast("MemoryDatabase", self))

    def commit_realized(self, base: ChangeSet) -> ChangeSet:
        """Commit a realization."""
        return self.committer(base) if self.committer is not None else self._apply_realization(base)

    def _apply_realization(self, base: ChangeSet) -> ChangeSet:
        return cast("MemoryDatabase", self).apply(base.inserted, base.deleted)
