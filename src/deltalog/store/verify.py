"""Whether a database file is what it should be: its pages, its views, and its change log.

- *Pages*: SQLite's integrity check, which reads every page and so verifies every checksum.
- *Keys and nulls* of base relations, and *views*: what `audit` reports, which recomputes
  views from the base facts.
- *Log*: taken back commit by commit from the state of today, every fact that came is there, and
  none that went. So log and tables tell the same story. A view that a commit omits is derived
  again where earlier commits have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog.language.ast import Row
from deltalog.runtime.evaluation import Difference
from deltalog.store.log import Commit
from deltalog.store.sqlite import sqlite_errors_reported

if TYPE_CHECKING:
    from deltalog.store.file_database import FileDatabase

PROBLEMS_MAX = 100


@dataclass(frozen=True)
class Verification:
    """The problems found: none, normally."""

    pages: tuple[str, ...]
    differences: tuple[Difference, ...]
    log: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not (self.pages or self.differences or self.log)


def verify_file(database: FileDatabase, *, engine: str | None = None) -> Verification:
    """Look at everything; raises if a page cannot be read at all.

    Views are recomputed on another engine if one is named.
    """
    with sqlite_errors_reported(database.path):
        pages = database.check_pages()
    return Verification(pages, database.audit(engine=engine), tuple(_misfits_in_log(database)))


def _misfits_in_log(database: FileDatabase) -> Iterator[str]:
    """Where the log does not lead back from the state of today."""
    state: dict[str, set[Row]] = {}
    derived: set[str] = set()
    for version in range(database.version, database.first_version, -1):
        found = database.commits(version - 1, version, views=())
        if len(found) != 1:
            yield f"version {version} is in the log {len(found)} times"
            return
        for name in found[0].change.relations:
            if name not in state:  # what no commit touched need not be read
                at = version if name in derived else None
                is_known = name in database.relations or at is not None
                state[name] = database.facts(name, at) if is_known else set()
        for name in found[0].omitted:  # what is logged before is compared with what is derived
            state.pop(name, None)
            derived.add(name)
        problems = list(_taken_back(state, found[0]))
        if problems:
            yield from problems[:PROBLEMS_MAX]
            return


def _taken_back(state: dict[str, set[Row]], commit: Commit) -> Iterator[str]:
    for name in commit.change.relations:
        facts = state[name]
        inserted, deleted = commit.change.inserted[name], commit.change.deleted[name]
        if not inserted <= facts:
            yield f"version {commit.version} inserts facts of `{name}` that are not there"
        if not deleted.isdisjoint(facts - inserted):
            yield f"version {commit.version} deletes facts of `{name}` that are there"
        state[name] = (facts - inserted) | deleted
