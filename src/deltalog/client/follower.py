"""Follow the stream of a view, without any transport: which request is next, what an answer does.

    parameters()  {"offset": …, "live": "long-poll"}  ──▶  GET /v1/views/{view}/stream
    received(messages, next offset)                   ◀──  200
    restart()                                         ◀──  410: the stream cannot go on there

A snapshot is collected until its end and then takes the place of the copy; the difference is what
the user gets. Rows of a commit that the copy has already are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deltalog.client.deltas import ViewDelta
from deltalog.client.errors import bad_stream
from deltalog.client.rows import RowFormat
from deltalog.client.stored_copy import Rows, StoredCopy
from deltalog.language.ast import Row
from deltalog.service.offsets import read_offset

START = "-1"
Message = Mapping[str, Any]


class Follower:
    """The position of one client in one stream."""

    def __init__(self, view: str, selection: Mapping[str, str], copy: StoredCopy) -> None:
        self.view = view
        self.copy = copy
        self.row_format: RowFormat | None = None
        self._selection = dict(selection)
        self._position = copy.offset or START
        self._cursor: str | None = None
        self._snapshot: Rows | None = None

    @property
    def version(self) -> int | None:
        """The version that the copy is of; None before the first snapshot."""
        return None if self.copy.offset is None else _version_of_offset(self.view, self.copy.offset)

    def parameters(self, is_live: bool) -> dict[str, str]:
        """The query of the next request."""
        found = {**self._selection, "offset": self._position}
        if is_live:
            found["live"] = "long-poll"
            if self._cursor is not None:
                found["cursor"] = self._cursor
        return found

    def restart(self, row_format: RowFormat) -> None:
        """Read everything again: the copy stays as it is until a whole snapshot has arrived."""
        self.row_format = row_format
        self._position, self._snapshot = START, None

    def received(
        self, messages: Sequence[Message], offset: str, cursor: str | None = None
    ) -> list[ViewDelta]:
        """Take over an answer: all of it is stored, with its offset, before this returns."""
        self._cursor = cursor or self._cursor
        deltas: list[ViewDelta] = []
        changes: list[Message] = []
        for message in messages:
            control = message["headers"].get("control")
            if control == "reset":
                self._snapshot, changes = {}, []
            elif control == "snapshot-end":
                deltas += self._replace_copy(message["headers"].get("offset", offset))
            elif control is None and self._snapshot is not None:
                self._snapshot[message["key"]] = self._known_format.row(message["value"])
            elif control is None:
                changes.append(message)
        self._position = offset
        if self._snapshot is None:
            deltas += self._apply_commits(changes, offset)
        return deltas

    @property
    def _known_format(self) -> RowFormat:
        assert self.row_format is not None
        return self.row_format

    def _replace_copy(self, offset: str) -> list[ViewDelta]:
        if self._snapshot is None:
            raise bad_stream(self.view, "the end of a snapshot that has no beginning")
        found, self._snapshot = self._snapshot, None
        inserted, deleted = self.copy.replace(found, offset, self._known_format)
        version = _version_of_offset(self.view, offset)
        return [self._view_delta(version, inserted, deleted, is_snapshot=True)]

    def _apply_commits(self, messages: Iterable[Message], offset: str) -> list[ViewDelta]:
        """The deltas of whole commits, which become one change of the copy."""
        known = self.version
        if known is None:
            raise bad_stream(self.view, "changes before any snapshot")
        commits: dict[int, list[Message]] = {}
        for message in messages:
            version = int(message["headers"]["txid"])
            if version > known:  # else it is a repeat
                commits.setdefault(version, []).append(message)
        pending: dict[str, Row | None] = {}
        deltas = []
        for version, changes in commits.items():
            found = self._rows_of_commit(changes, pending)
            if found is None:
                self._position = START  # the copy lacks a row that is deleted: read it again
                return []
            deltas.append(self._view_delta(version, *found))
        new = {key: row for key, row in pending.items() if row is not None}
        absent = [key for key, row in pending.items() if row is None]
        if new or absent or offset != self.copy.offset:
            self.copy.change(new, absent, offset)
        return deltas

    def _rows_of_commit(
        self, messages: Iterable[Message], pending: dict[str, Row | None]
    ) -> tuple[list[Row], list[Row]] | None:
        inserted, deleted = [], []
        for message in messages:
            key, operation = message["key"], message["headers"]["operation"]
            if operation in ("delete", "update"):
                before = pending[key] if key in pending else self.copy.rows.get(key)
                if before is None:
                    return None
                deleted.append(before)
                pending[key] = None
            if operation in ("insert", "update"):
                pending[key] = row = self._known_format.row(message["value"])
                inserted.append(row)
        return inserted, deleted

    def _view_delta(
        self, version: int, inserted: list[Row], deleted: list[Row], is_snapshot: bool = False
    ) -> ViewDelta:
        make = self._known_format.maker()
        sides = tuple(map(make, inserted)), tuple(map(make, deleted))
        return ViewDelta(self.view, version, *sides, is_snapshot)


def _version_of_offset(view: str, offset: str) -> int:
    found = read_offset(offset)
    if found is None:
        raise bad_stream(view, f"`{offset}` is not an offset of Deltalog")
    return found.version
