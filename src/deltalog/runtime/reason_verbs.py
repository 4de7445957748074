"""Verbs of a database that reason about its rules: which base changes lead to a derived fact?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.realization import Budget, Realizations
from deltalog.runtime.realize import Costs, realize

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


class ReasonVerbs:
    """View updating."""

    def realize(
        self,
        *requests: str,
        budget: Budget | None = None,
        fixed: Iterable[str] = (),
        costs: Costs | None = None,
    ) -> Realizations:
        """Search the minimal changes of base relations that make derived facts true or false.

        `db.realize("+path(1, 9)", "-path(2, 3)")` yields them as they are found, the cheapest
        first. Relations in `fixed` are not touched; `costs` are per relation, or per sign and
        relation (`-edge`).
        """
        database = cast("MemoryDatabase", self)
        with database.turn():
            return realize(database, requests, self._realized, budget, fixed, costs)

    def _realized(self, base: ChangeSet) -> ChangeSet:
        return cast("MemoryDatabase", self).apply(base.inserted, base.deleted)
