"""The last commits, in memory: what live subscribers read, so that none of them reads the log.

    version  17   18   19   20
             ──────────────────▶  subscribers at 20 wait; one at 17 reads three commits

It is the one queue of all subscribers, and bounded: by a number of commits, and by a number of
facts. A subscriber has only a position in it. One that falls behind its oldest commit must resume,
from the log where there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from deltalog.runtime.changes import ChangeSet

COMMITS_MAX = 10_000
FACTS_MAX = 1_000_000


@dataclass(frozen=True)
class JournalEntry:
    """A commit: `views` are those whose change is known, beside every base relation.

    With None that is every view. If there is `only`, nothing else is known, base relations neither.
    With None that is every view. Of those that were `estimated` it is a superset of the change.
    `kind` is `transaction` or `program`; another program leaves the relations `unchanged` with the
    columns that they had.
    """

    version: int
    time: datetime
    kind: str
    change: ChangeSet
    views: frozenset[str] | None = None
    unchanged: frozenset[str] | None = None
    only: frozenset[str] | None = None
    estimated: frozenset[str] = frozenset()

    def covers(self, relation: str, is_base: bool, is_potential: bool = False) -> bool:
        """Whether the change of a relation is known, and its columns are those of before.

        For who wants what `is_potential` a superset is enough.
        """
        if self.unchanged is not None and relation not in self.unchanged:
            return False
        if self.only is not None:
            return relation in self.only
        if is_potential and relation in self.estimated:
            return True
        return is_base or self.views is None or relation in self.views

    @property
    def size(self) -> int:
        return len(self.change)


@dataclass
class Journal:
    """Belongs to one thread. `base` is the version before its oldest commit."""

    base: int
    commits_max: int = COMMITS_MAX
    facts_max: int = FACTS_MAX
    held: int | None = None
    """Commits after this version are kept as long as `commits_max` and `facts_max` allow."""
    _entries: deque[JournalEntry] = field(default_factory=deque)
    _facts: int = 0

    @property
    def last(self) -> int:
        return self.base + len(self._entries)

    def append(self, entry: JournalEntry) -> None:
        """Add the next commit, and drop what exceeds the bounds."""
        if entry.version != self.last + 1:  # commits in between are unknown
            self._entries.clear()
            self._facts = 0
            self.base = entry.version - 1
        self._entries.append(entry)
        self._facts += entry.size
        while len(self._entries) > 1 and (
            len(self._entries) > self.commits_max or self._facts > self.facts_max
        ):
            self._facts -= self._entries.popleft().size
            self.base += 1

    def after(self, version: int) -> Iterator[JournalEntry] | None:
        """The commits after a version, oldest first; None if the journal does not reach back."""
        if version < self.base:
            return None
        return islice(self._entries, version - self.base, None)
