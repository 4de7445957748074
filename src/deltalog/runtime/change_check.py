"""A function of the user that looks at every change before it is made."""

from __future__ import annotations

from collections.abc import Callable

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.protocols import Participant

Check = Callable[[ChangeSet], str | None]
"""Returns why a change must not be made, or None."""


class ChangeCheck:
    """The `Participant` that refuses a change if the check returns a reason."""

    def __init__(self, check: Check) -> None:
        self._check = check

    def before_change(
        self, database: MemoryDatabase, outcome: Propagated, change: ChangeSet
    ) -> None:
        reason = self._check(change)
        if reason is not None:
            raise DataError([catalogue.CHECK_REFUSED.at(None, reason=reason)])


def participants_for(check: Check | None) -> tuple[Participant, ...]:
    return () if check is None else (ChangeCheck(check),)
