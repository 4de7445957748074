"""Tables follow the log: how far behind they may be, and how they are brought up.

    table at version 14  +  log of 15, 16, 17   →   table at version 17, in one transaction

A row may have been inserted, deleted and inserted again in between; only what became of it counts.
Files that a commit names are taken over as they are. What a crash leaves undone is done the next
time: a table says which version it stands for, and the log has everything after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import pyarrow

from deltalog.language.ast import Row
from deltalog.pipeline.freshness import MINUTE, Freshness
from deltalog.pipeline.log import Files, Record, current_time
from deltalog.pipeline.log_rows import DELETE, INSERT, decoded_rows
from deltalog.pipeline.state import State
from deltalog.pipeline.stored_table import Fold, Ranked, StoredTable


def net_fold(changes: pyarrow.Table, types: tuple[str, ...]) -> Fold:
    """The net effect of a stretch of the log on a relation."""
    first: dict[Row, str] = {}
    last: dict[Row, tuple[str, int]] = {}
    rows = decoded_rows(changes, types)
    kinds, ranks = (changes.column(name).to_pylist() for name in ("change", "rank"))
    for row, kind, rank in zip(rows, kinds, ranks, strict=True):
        first.setdefault(row, kind)
        last[row] = kind, rank or 0
    inserted: list[Ranked] = []
    updated: list[Ranked] = []
    deleted: list[Row] = []
    for row, (kind, rank) in last.items():
        was_there = first[row] != INSERT
        if kind == DELETE:
            deleted += [row] if was_there else []
        else:
            (updated if was_there else inserted).append((row, rank))
    return Fold(inserted, updated, deleted)


@dataclass
class Lag:
    """How far a table is behind: since when, by how many rows, and whether files wait for it."""

    first: Record
    rows: int = 0
    has_files: bool = False

    def take(self, name: str, record: Record) -> None:
        self.rows += sum(record.counts.get(name, (0, 0)))
        self.has_files = self.has_files or name in record.files or record.kind == "load"

    def is_due(self, oldest: float, rows_max: int) -> bool:
        at = self.first.at
        return (
            self.has_files or self.rows >= rows_max or (at is not None and at.timestamp() <= oldest)
        )


class Folds:
    """The tables of a state, each of which is brought up when it is due."""

    def __init__(
        self, state: State, tables: Mapping[str, StoredTable], freshness: Freshness = MINUTE
    ) -> None:
        self.state = state
        self.tables = tables
        self.freshness = freshness
        self._behind: dict[str, Lag] = {}
        self._seen = 0

    def behind(self) -> dict[str, Lag]:
        """The tables that lag behind the log, and how far.

        Only commits since the last call are looked at: the cost does not follow the log.
        """
        for record in islice(self.state.records, self._seen, None):
            for name in record.sizes.keys() & self.tables.keys():
                if self.tables[name].is_behind(record.version):
                    lag = self._behind.get(name)
                    if lag is None:
                        lag = self._behind[name] = Lag(record)
                    lag.take(name, record)
        self._seen = len(self.state.records)
        return self._behind

    def due(self, rows_max: int) -> list[str]:
        """The tables that are too far behind: by time, by rows, or by files that they can adopt."""
        if self.freshness == "demand":
            return []
        behind = self.behind()
        if self.freshness == "commit":
            return list(behind)
        oldest = current_time().timestamp() - self.freshness
        return [name for name, lag in behind.items() if lag.is_due(oldest, rows_max)]

    def fold(self, names: Iterable[str]) -> list[str]:
        """Bring tables up to the last commit; returns those that were behind."""
        found: list[str] = []
        self.behind()
        for name in names:
            found += [name] if self._fold_table(name) else []
            self._behind.pop(name, None)
        return found

    def _fold_table(self, name: str) -> bool:
        table, until = self.tables[name], self.state.last.version
        before = table.version
        if not table.is_behind(until):
            return False
        for version, files in self.state.files_since_whole(name, before, until):
            if files.whole is None:
                self._follow_log(name, version - 1)
            self._adopt_files(table, files, version)
        self._follow_log(name, until)
        return table.version != before

    def _follow_log(self, name: str, until: int) -> None:
        table = self.tables[name]
        changes = self.state.log.changes(name, table.version, until)
        if changes.num_rows or not table.exists:
            table.follow(net_fold(changes, table.types), until)

    def _adopt_files(self, table: StoredTable, files: Files, version: int) -> None:
        if files.whole is not None:
            table.adopt(_path_below_table(table, files.whole), version)
        elif files.deleted is None:
            assert files.inserted is not None
            table.adopt(_path_below_table(table, files.inserted), version, is_whole=False)
        else:
            raise AssertionError("what is deleted in files comes with the whole")


def _path_below_table(table: StoredTable, folder: str) -> str:
    return folder.removeprefix(f"{table.relative}/")
