"""Pieces of a stream: messages that belong together, and the offset behind them."""

from __future__ import annotations

from dataclasses import dataclass, field

from deltalog.service.feeds import FeedItem, data_event
from deltalog.service.offsets import Offset


@dataclass(frozen=True)
class Piece:
    """A chunk of a snapshot, or a commit: `payload` is JSON, messages separated by commas."""

    payload: bytes
    offset: Offset
    size: int
    item: FeedItem | None = None
    """The change that it has, whose event is made once for all its readers."""

    @property
    def event(self) -> bytes:
        """The messages as an event of type `data`."""
        return data_event(self.payload) if self.item is None else self.item.event


@dataclass(frozen=True)
class Reading:
    """The pieces behind an offset, the offset behind them, and whether there is more by now."""

    pieces: tuple[Piece, ...]
    offset: Offset
    is_up_to_date: bool
    events: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    """It as events, by the cursor of their connections: made once for all of these."""

    @property
    def body(self) -> bytes:
        """All messages as one JSON array."""
        return b"[" + b",".join(each.payload for each in self.pieces) + b"]"
