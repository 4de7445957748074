"""Snapshots: the facts of a selection as of a version, in chunks of a bounded number of rows.

    reset, snapshot-start, 10,000 rows │ 10,000 rows │ …, snapshot-end
                            offset v-1 ┘  offset v-2 ┘        └ offset v, complete

The rows are sorted, so a chunk can be made again. Those of a large snapshot are kept for a while
between two chunks, a few snapshots at a time; where one was dropped, a file leads back to its
version, and memory does not: then the reader begins anew.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from deltalog.language.ast import Row
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.host import Host
from deltalog.service.offsets import COMPLETE, Offset
from deltalog.service.pieces import Piece
from deltalog.service.selections import Selection
from deltalog.service.state_messages import MessageWriter, control_message
from deltalog.store.logged import Logged

ROWS_EACH = 10_000
"""Rows in one chunk."""
ROWS_KEPT = 5_000_000
"""Rows of unfinished snapshots that are kept."""
Key = tuple[Selection, int]


class Snapshots:
    """The snapshots of a host that are being read."""

    def __init__(self, host: Host, rows_each: int = ROWS_EACH, rows_kept: int = ROWS_KEPT) -> None:
        self._host = host
        self.rows_each = rows_each
        self._rows_kept = rows_kept
        self._kept: OrderedDict[Key, list[Row]] = OrderedDict()

    async def first(self, selection: Selection, is_empty: bool = False) -> Piece:
        """The first chunk, or all, of the state of now; `is_empty` leaves its rows out."""

        def read(database: MemoryDatabase) -> tuple[int, list[Row]]:
            return database.version, [] if is_empty else selection.rows_now(database)

        version, rows = await self._host.compute(read)
        return await self._piece_of_rows(selection, version, 0, rows)

    async def next(self, selection: Selection, offset: Offset) -> Piece | None:
        """The chunk behind an offset inside a snapshot; None if it cannot be had any more."""
        rows = self._kept.get((selection, offset.version))
        if rows is None:
            rows = await self._host.compute(lambda db: _rows_again(db, selection, offset.version))
        if rows is None or offset.part * self.rows_each >= max(len(rows), 1):
            return None
        return await self._piece_of_rows(selection, offset.version, offset.part, rows)

    async def _piece_of_rows(
        self, selection: Selection, version: int, part: int, rows: list[Row]
    ) -> Piece:
        start, end = part * self.rows_each, (part + 1) * self.rows_each
        is_last = end >= len(rows)
        offset = Offset(self._host.history, version, COMPLETE if is_last else part + 1)
        self._keep_rows((selection, version), None if is_last else rows)
        writer, chosen = MessageWriter(selection.relation), rows[start:end]
        if len(chosen) > 1_000:  # others go on meanwhile
            written = await asyncio.to_thread(writer.snapshot, chosen, version)
        else:
            written = writer.snapshot(chosen, version)
        messages = [written] if written else []
        if part == 0:
            messages = [
                control_message("reset", offset),
                control_message("snapshot-start", offset),
                *messages,
            ]
        if is_last:
            messages.append(control_message("snapshot-end", offset))
        return Piece(b",".join(messages), offset, len(chosen))

    def _keep_rows(self, key: Key, rows: list[Row] | None) -> None:
        self._kept.pop(key, None)
        if rows is not None:
            self._kept[key] = rows
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > self._rows_kept:
            self._kept.popitem(last=False)


def _rows_again(database: MemoryDatabase, selection: Selection, version: int) -> list[Row] | None:
    if version == database.version:
        return selection.rows_now(database)
    if not isinstance(database, Logged) or not database.first_version <= version:
        return None
    if version > database.version or has_other_columns(database, selection, version):
        return None
    return selection.rows_at(database, version)


def has_other_columns(database: MemoryDatabase, selection: Selection, version: int) -> bool:
    """Whether the relation of a selection was another one at an earlier version."""
    if all(since <= version for since, _, _ in database.programs()):
        return False
    return database.relations_at(version).get(selection.name) != selection.relation
