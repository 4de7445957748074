"""The last commits as the page shows them: facts that flowed over each arc, and rules that fired.

Both are known only right after a commit, in the thread that owns the database. They are kept in
memory, a bounded number of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from deltalog.rewrites.names import is_generated
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.rule_trace import TracedFiring
from deltalog.service.values import rows_to_json

COMMITS_MAX = 200
FIRINGS_MAX = 200
INSTANCES_MAX = 100
Result = TypeVar("Result")


@dataclass
class Recent:
    """Used in the thread that owns the database only."""

    flows: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=COMMITS_MAX))
    firings: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=FIRINGS_MAX))

    def committing(self, database: MemoryDatabase, commit: Callable[[], Result]) -> Result:
        """Commit, and keep what flowed and what fired."""
        before = database.version
        if not database.model.checked.program.active_rules:
            fired: list[TracedFiring] = []
            result = commit()
        else:
            with database.trace.recording() as fired:
                result = commit()
        if database.version != before:
            time = datetime.now(UTC).isoformat()
            self._keep_flows(database, time)
            for firing in fired:
                self.firings.append(_firing_json(database.version, time, firing))
        return result

    def _keep_flows(self, database: MemoryDatabase, time: str) -> None:
        arcs = [
            {"source": source, "target": target, "inserted": plus, "deleted": minus}
            for (source, target), (plus, minus) in database.propagation.flows.items()
            if (plus or minus) and not is_generated(target)
        ]
        self.flows.append({"version": database.version, "time": time, "arcs": arcs})


def _firing_json(version: int, time: str, firing: TracedFiring) -> dict[str, Any]:
    return {
        "version": version,
        "time": time,
        "rule": firing.rule,
        "instances": rows_to_json(firing.instances[:INSTANCES_MAX]),
        "watched": firing.watched,
        "arcs": [
            {
                "source": arc.source,
                "target": arc.target,
                "inserted": arc.inserted,
                "deleted": arc.deleted,
            }
            for arc in firing.arcs
        ],
    }
