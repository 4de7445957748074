"""Facts and their changes as messages of the Durable Streams State Protocol.

    {"type": "path", "key": "[1,2]", "value": {"src": 1, "dst": 2},
     "headers": {"operation": "insert", "txid": "17", "timestamp": "2026-01-31T12:30:00Z"}}

The key of a message is the JSON array of the key columns, or of all columns where there is no key.
With a key, a fact that is replaced by another one with the same key is one `update` with
`old_value`; else a change is deletions and insertions. All messages of a commit have its version as
`txid`; those of a potential change have `"precision": "potential"`. Values are written as in the
change log: dates, timestamps and decimals as text.

Messages are made as bytes, without the brackets around them, so that they can be put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from deltalog.analysis.relation import Relation
from deltalog.language.ast import Row
from deltalog.service.offsets import Offset
from deltalog.store.cells import to_cells

Json = dict[str, Any]
TOUCHED = "touched"
"""The type of messages that only name a view."""


def timestamp_text(time: datetime) -> str:
    """The time as RFC 3339 writes it."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@dataclass(frozen=True)
class Delta:
    """The change of a selection by one commit, or net by several; rows are sorted.

    One that `is_potential` is a superset of it: insertions hold now, deletions held before.
    """

    version: int
    time: datetime
    inserted: Sequence[Row]
    deleted: Sequence[Row]
    is_potential: bool = False

    def __bool__(self) -> bool:
        return bool(self.inserted or self.deleted)

    def __len__(self) -> int:
        return len(self.inserted) + len(self.deleted)


class MessageWriter:
    """Writes the messages of one relation."""

    def __init__(self, relation: Relation) -> None:
        self._type = relation.name
        self._names = [column.name for column in relation.columns]
        self._types = relation.types
        self._key = relation.key or tuple(range(relation.arity))
        self._has_key = bool(relation.key)

    def snapshot(self, rows: Sequence[Row], version: int) -> bytes:
        """Rows of the state at a version, as insertions."""
        headers = {"operation": "insert", "txid": str(version)}
        return joined_messages(
            self._insert_message(cells, headers) for cells in self._cells_of(rows)
        )

    def delta(self, delta: Delta) -> bytes:
        """The change, deletions first."""
        about = {"txid": str(delta.version), "timestamp": timestamp_text(delta.time)}
        if delta.is_potential:
            about["precision"] = "potential"
        deleted, inserted = self._cells_of(delta.deleted), self._cells_of(delta.inserted)
        if not self._has_key or delta.is_potential or not deleted or not inserted:
            return joined_messages(
                [*self._delete_messages(deleted, about), *self._insert_messages(inserted, about)]
            )
        before = {self.key(cells): cells for cells in deleted}
        replaced = [cells for cells in inserted if self.key(cells) in before]
        keys = {self.key(cells) for cells in replaced}
        updates = [
            self._update_message(before[self.key(cells)], cells, about) for cells in replaced
        ]
        removed = [cells for cells in deleted if self.key(cells) not in keys]
        new = [cells for cells in inserted if self.key(cells) not in keys]
        return joined_messages(
            [*self._delete_messages(removed, about), *updates, *self._insert_messages(new, about)]
        )

    def key(self, cells: Sequence[Any]) -> str:
        return orjson.dumps([cells[i] for i in self._key]).decode()

    def _cells_of(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        return to_cells(rows, self._types)

    def _value_of(self, cells: Sequence[Any]) -> Json:
        return dict(zip(self._names, cells, strict=True))

    def _insert_messages(self, rows: Iterable[Sequence[Any]], about: Json) -> list[Json]:
        headers = {"operation": "insert", **about}
        return [self._insert_message(cells, headers) for cells in rows]

    def _insert_message(self, cells: Sequence[Any], headers: Json) -> Json:
        key = self.key(cells)
        return {"type": self._type, "key": key, "value": self._value_of(cells), "headers": headers}

    def _delete_messages(self, rows: Iterable[Sequence[Any]], about: Json) -> list[Json]:
        headers = {"operation": "delete", **about}
        return [
            {
                "type": self._type,
                "key": self.key(cells),
                "value": None,
                "old_value": self._value_of(cells),
                "headers": headers,
            }
            for cells in rows
        ]

    def _update_message(self, before: Sequence[Any], after: Sequence[Any], about: Json) -> Json:
        return {
            "type": self._type,
            "key": self.key(after),
            "value": self._value_of(after),
            "old_value": self._value_of(before),
            "headers": {"operation": "update", **about},
        }


def joined_messages(messages: Iterable[Json]) -> bytes:
    """Messages as JSON, separated by commas."""
    return orjson.dumps(list(messages))[1:-1]


def control_message(kind: str, offset: Offset) -> bytes:
    """A control message: `reset`, `snapshot-start` or `snapshot-end`."""
    return orjson.dumps({"headers": {"control": kind, "offset": str(offset)}})


def touched_message(view: str, version: int, time: datetime) -> bytes:
    """A message that says that a view has changed, and no more."""
    headers = {"operation": "update", "txid": str(version), "timestamp": timestamp_text(time)}
    return joined_messages(
        [{"type": TOUCHED, "key": view, "value": {"view": view}, "headers": headers}]
    )
