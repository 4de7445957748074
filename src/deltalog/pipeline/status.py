"""The contents of a state without opening it: it may be in use, and Spark need not be started."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deltalog.pipeline.metrics import Metrics
from deltalog.pipeline.project import Project
from deltalog.pipeline.quarantine import quarantined_rows
from deltalog.pipeline.state import State
from deltalog.pipeline.stored_table import StoredTable

METRICS_MAX = 20


@dataclass(frozen=True)
class Status:
    """The last commit, and the tables: name, the version each stands for, rows as of the commit.

    Of sinks the version that each has been given, of parts that failed in the last run the reason,
    of the last commits of a pipeline the version and what it cost.
    """

    version: int
    at: datetime | None
    tables: tuple[tuple[str, int, int], ...]
    quarantined: int
    batches: dict[str, list[str]]
    sinks: dict[str, int]
    problems: dict[str, str]
    metrics: tuple[tuple[int, Metrics], ...]

    def record(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "at": self.at,
            "tables": {name: {"version": v, "rows": rows} for name, v, rows in self.tables},
            "quarantined": self.quarantined,
            "batches": self.batches,
            "sinks": self.sinks,
            "problems": self.problems,
            "metrics": [{"version": v, **each._asdict()} for v, each in self.metrics],
        }


def state_status(project: Project) -> Status:
    """The status of a project's state."""
    state = State(None, project.state)
    state.open(is_writer=False)
    rows = {name: size for record in state.records for name, size in record.sizes.items()}
    batches: dict[str, list[str]] = {}
    for source, batch in sorted(state.batches):
        batches.setdefault(source, []).append(batch)
    tables = tuple(
        (name, StoredTable(state.location, f"tables/{name}", (), ()).version, rows[name])
        for name in sorted(rows)
        if "__" not in name
    )
    measured = [record for record in state.records if record.metrics]
    reached = {sink.name: state.delivered.get(sink.name, 0) for sink in project.sinks}
    return Status(
        state.last.version,
        state.last.at,
        tables,
        len(quarantined_rows(state)),
        batches,
        reached,
        state.problems,
        tuple((r.version, Metrics(**r.metrics)) for r in measured[-METRICS_MAX:]),  # type: ignore[arg-type]
    )
