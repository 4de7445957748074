"""Quality of service: how precise a subscriber wants to know, and how soon (Staudt & Jarke 1996).

    precision    exact       the true change
                 potential   a superset of it, for less work: changes that may be no-ops
                 touched     the name of the view
    actuality    immediate   every commit
                 every_seconds, every_commits   the net change over the interval

Net changes compose: what is inserted and deleted again within the interval cancels. Potential ones
do not cancel each other; their union is a superset of the net change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from deltalog.language.ast import Row
from deltalog.service.feeds import FeedItem
from deltalog.service.selections import sorted_rows
from deltalog.service.state_messages import Delta, MessageWriter

Precision = Literal["exact", "potential", "touched"]
PRECISIONS: tuple[Precision, ...] = ("exact", "potential", "touched")


@dataclass(frozen=True)
class Quality:
    """The quality that a subscriber asks for; by default every exact change at once."""

    precision: Precision = "exact"
    every_seconds: float | None = None
    every_commits: int | None = None

    @property
    def is_potential(self) -> bool:
        return self.precision == "potential"

    @property
    def is_immediate(self) -> bool:
        return self.every_seconds is None and self.every_commits is None

    def due(self, version: int, last: int) -> int:
        """The last version up to which a reader at a version gets to know changes."""
        if self.every_commits is None:
            return last
        return version + (last - version) // self.every_commits * self.every_commits

    def shown(
        self, items: Iterable[FeedItem], version: int, writer: MessageWriter
    ) -> Iterator[FeedItem]:
        """The changes after a version as this quality shows them."""
        if self.is_immediate:
            yield from items
            return
        held: list[FeedItem] = []
        until = None if self.every_commits is None else version + self.every_commits
        for item in items:
            while until is not None and item.version > until:
                yield from net_items(held, until, writer)
                held, until = [], until + (self.every_commits or 0)
            held.append(item)
        if held:
            yield from net_items(held, held[-1].version if until is None else until, writer)


def net_items(items: list[FeedItem], version: int, writer: MessageWriter) -> Iterator[FeedItem]:
    """The net change of several commits, as of a version; nothing if they cancel."""
    if not items:
        return
    inserted: set[Row] = set()
    deleted: set[Row] = set()
    is_potential = any(item.delta.is_potential for item in items)
    for item in items:
        if is_potential:  # a deletion that was none would cancel a true insertion
            deleted.update(item.delta.deleted)
            inserted.update(item.delta.inserted)
            continue
        for row in item.delta.deleted:
            _add_or_cancel(row, deleted, inserted)
        for row in item.delta.inserted:
            _add_or_cancel(row, inserted, deleted)
    if inserted or deleted:
        sides = sorted_rows(list(inserted)), sorted_rows(list(deleted))
        yield FeedItem(Delta(version, items[-1].delta.time, *sides, is_potential), writer)


def _add_or_cancel(row: Row, into: set[Row], other: set[Row]) -> None:
    if row in other:
        other.remove(row)
    else:
        into.add(row)
