"""The change that a commit made, as DataFrames.

    delta = db.apply(insert={"edge": df})
    delta.inserted["path"]        a DataFrame with the declared columns
    delta.counts                  {"edge": (2, 0), "path": (3, 0)}

The frames are read from the log, so they cost nothing until they are used, and can be
used for as long as the state is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from deltalog.engines.base import NO_ROWS
from deltalog.pipeline.log_rows import DELETE, INSERT
from deltalog.pipeline.reading import CHANGE_TYPE, COMMIT_VERSION, FEED
from deltalog.runtime.changes import NO_CHANGE, ChangeSet, Firing

Counts = Mapping[str, tuple[int, int]]


class Frames(Mapping[str, DataFrame]):
    """One side of a change: relation to DataFrame; a relation that does not change is empty."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], DataFrame]) -> None:
        self._names = names
        self._read = read

    def __getitem__(self, name: str) -> DataFrame:
        return self._read(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Delta:
    """The exact change of everything in one commit; `counts` are rows inserted and deleted.

    `changes` are the same as rows. `rejected` rows were not taken: they are in the quarantine.
    """

    version: int
    counts: Counts
    inserted: Frames
    deleted: Frames
    changes: ChangeSet
    rejected: int = 0

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def firings(self) -> list[Firing]:
        """The active rules that fired, each with an instance, in the order of their execution."""
        return self.changes.firings


def counts_of(change: ChangeSet) -> Counts:
    """How many facts of each relation a change inserts and deletes, without reading them."""
    inserted, deleted = change.sides
    return {
        name: (len(inserted.get(name, NO_ROWS)), len(deleted.get(name, NO_ROWS)))
        for name in sorted({*inserted, *deleted})
    }


def delta_of(
    changes: Callable[[str, int], DataFrame],
    version: int,
    counts: Counts,
    change: ChangeSet = NO_CHANGE,
    rejected: int = 0,
) -> Delta:
    """The delta of a version; `changes` reads those of a relation after a version."""

    def side(kind: str, position: int) -> Frames:
        def read(name: str) -> DataFrame:
            held = (F.col(COMMIT_VERSION) == version) & (F.col(CHANGE_TYPE) == kind)
            return changes(name, version - 1).where(held).drop(*FEED)

        return Frames(tuple(n for n, each in counts.items() if each[position]), read)

    return Delta(version, counts, side(INSERT, 0), side(DELETE, 1), change, rejected)
