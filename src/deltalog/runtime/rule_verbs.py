"""The verbs of a database that concern constraints and active rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

from deltalog.runtime.constraints import ConstraintChecks, current_violations
from deltalog.runtime.violations import Violation

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.propagation import Propagation


class RuleVerbs:
    """The part of a database that lists what rules have found."""

    propagation: Propagation

    def turn(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def violations(self, name: str | None = None) -> tuple[Violation, ...]:
        """Return the violations of all constraints, or of the one of that name, as of now.

        An enforced constraint has none. Those of a required fact have it as their name.
        """
        with self.turn():
            return tuple(self._violations(name))

    def _violations(self, name: str | None) -> Iterator[Violation]:
        constraints = self.propagation.constraints or ConstraintChecks(())
        for check in constraints.named(name):
            yield from current_violations(cast("MemoryDatabase", self), check)
