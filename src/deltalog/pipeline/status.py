"""The contents of a state, read without opening it: it may be in use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deltalog.engines.spark.session import session
from deltalog.pipeline.commit_writer import QUARANTINE
from deltalog.pipeline.commits import Commits
from deltalog.pipeline.project import Project
from deltalog.pipeline.tables import Tables


@dataclass(frozen=True)
class Status:
    """The last commit, and the tables as of it: name, version and rows."""

    version: int
    at: datetime | None
    tables: tuple[tuple[str, int, int], ...]
    quarantined: int
    batches: dict[str, list[str]]

    def record(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "at": self.at,
            "tables": {name: {"version": v, "rows": rows} for name, v, rows in self.tables},
            "quarantined": self.quarantined,
            "batches": self.batches,
        }


def state_status(project: Project) -> Status:
    """The status of a project's state."""
    tables = Tables(session(settings=project.spark), project.state)
    commits = Commits(tables)
    commits.open(is_writer=False)
    counted = {
        name: (version, tables.read(tables.path(name), version).count())
        for name, version in sorted(commits.last.tables.items())
        if name.startswith("tables/") or name == QUARANTINE
    }
    batches: dict[str, list[str]] = {}
    for source, batch in sorted(commits.batches):
        batches.setdefault(source, []).append(batch)
    quarantined = counted.pop(QUARANTINE, (0, 0))[1]
    listed = ((name.removeprefix("tables/"), *each) for name, each in counted.items())
    return Status(commits.last.version, commits.last.at, tuple(listed), quarantined, batches)
