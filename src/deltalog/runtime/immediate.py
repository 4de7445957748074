"""Constraints that are checked after each operation of a transaction, not only at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.refusals import with_causes
from deltalog.runtime.violations import ConstraintError

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


def check_immediate(database: MemoryDatabase, wanted: ChangeSet) -> None:
    """Refuse a transaction whose operations so far violate an immediate constraint."""
    with database.turn():
        network = database.propagation
        base, route = database.net(wanted), network.route_to(frozenset())
        if network.constraints is None or not base:
            return
        arguments = network, base, database.limits, database.watch, False, route
        try:
            with Propagated(*arguments) as outcome:
                network.constraints.refuse(outcome, is_immediate=True)
        except ConstraintError as refused:
            raise with_causes(database, base, refused) from None
