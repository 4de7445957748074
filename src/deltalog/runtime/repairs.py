"""Repairs of a refused change: the least that must be changed beside it so that constraints hold.

    except deltalog.ConstraintError as refused:
        for repair in refused.repairs():
            print(repair.additions)

A repair realizes the refused base changes together with all constraints, so it is a minimal
realization of these as requests; what it adds to them is minimal, too. It is searched in the state
that refused the change, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.realization import Budget, Realizations, Wish
from deltalog.runtime.realize import (
    Costs,
    check_choice,
    constraint_wishes,
    cost_of,
    search_in_turns,
)
from deltalog.runtime.view_updates import Search

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


def minimal_repairs(
    database: MemoryDatabase,
    refused: ChangeSet,
    commit: Callable[[ChangeSet], ChangeSet],
    budget: Budget | None = None,
    fixed: Iterable[str] = (),
    costs: Costs | None = None,
) -> Realizations:
    """The minimal consistent changes that contain a refused one."""
    check_choice(database, budget, fixed, costs)
    base = [name for name, each in database.relations.items() if each.kind == "base"]
    change = database.net(refused).only(*base)
    wanted = [Wish(True, name, row) for name in change.inserted for row in change.inserted[name]]
    wanted += [Wish(False, name, row) for name in change.deleted for row in change.deleted[name]]
    denials, required = constraint_wishes(database)
    found = Realizations((), (), iter(()))

    def skip(reason: str) -> None:
        found.reasons.setdefault(reason)

    search = Search(database, budget or Budget(), commit, denials, cost_of(costs or {}), (), skip)
    search.nodes.refused = frozenset(wanted)
    search.nodes.fixed = frozenset(fixed)
    found.source = search_in_turns(database, search.run([*wanted, *required]), found)
    return found
