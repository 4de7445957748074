"""Groups of rows in the Parquet files of a table: only those are read that can hold a wanted value.

    wanted 7, 40,123        file 1: 0..16,383  16,384..32,767      file 2: 32,768..49,151  …
                                    └ read                                 └ read

Arrow skips groups by their bounds, too, but goes through all wanted values for each of them, which
takes longer than to read everything. Here the values are sorted, and bounds are looked up in them.
Files are never changed, so the bounds of a file are read once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import pyarrow.dataset

from deltalog.language.ast import Row

COMPARABLE = ("int", "str", "date")
"""Types whose bounds in a file are values as they are here."""
Bounds = tuple[Any, Any]


@dataclass
class RowGroups:
    """The bounds of every group in the files of a table, for the columns that were looked up."""

    bounds: dict[tuple[str, str], list[Bounds | None]] = field(default_factory=dict)

    def that_may_hold(
        self,
        dataset: pyarrow.dataset.Dataset,
        wanted: Mapping[str, Sequence[Any]],
        condition: pyarrow.dataset.Expression,
    ) -> pyarrow.dataset.Dataset:
        """The part of a dataset whose groups may hold one of the sorted values of each column.

        Files are not even opened if what Delta knows of them excludes the condition.
        """
        if not wanted:
            return dataset
        found = []
        for fragment in dataset.get_fragments(filter=condition):
            groups = self._groups_that_may_hold(fragment, wanted)
            if groups:
                found.append(fragment.subset(row_group_ids=groups))
        return pyarrow.dataset.FileSystemDataset(
            found, dataset.schema, dataset.format, dataset.filesystem
        )

    def rows_near(self, fragment: Any, name: str, rows: Sequence[Row]) -> Sequence[Row]:
        """Those of some rows, sorted by their first value, that a file may hold.

        That value is in the column of this name.
        """
        bounds = self._bounds_of(fragment, name)
        known = [each for each in bounds if each is not None]
        if len(known) < len(bounds) or not known:
            return rows
        least, most = min(low for low, _ in known), max(high for _, high in known)
        start = bisect_left(rows, least, key=itemgetter(0))
        return rows[start : bisect_right(rows, most, key=itemgetter(0))]

    def _groups_that_may_hold(
        self, fragment: Any, wanted: Mapping[str, Sequence[Any]]
    ) -> list[int]:
        held = [self._bounds_of(fragment, name) for name in wanted]
        return [
            number
            for number, bounds in enumerate(zip(*held, strict=True))
            if all(map(_may_hold, bounds, wanted.values()))
        ]

    def _bounds_of(self, fragment: Any, name: str) -> list[Bounds | None]:
        place = fragment.path, name
        if place not in self.bounds:
            self.bounds[place] = [
                _bounds_in(group.statistics, name) for group in fragment.row_groups
            ]
        return self.bounds[place]

    def forget_others(self, paths: Collection[str]) -> None:
        """Forget files that are not among these."""
        self.bounds = {place: found for place, found in self.bounds.items() if place[0] in paths}


def _bounds_in(statistics: Mapping[str, Any] | None, name: str) -> Bounds | None:
    """The bounds of a column in a group; None if they are not known."""
    found = (statistics or {}).get(name)
    return None if found is None else (found["min"], found["max"])


def _may_hold(bounds: Bounds | None, values: Sequence[Any]) -> bool:
    if bounds is None:
        return True
    at = bisect_left(values, bounds[0])
    return at < len(values) and bool(values[at] <= bounds[1])
