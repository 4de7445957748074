"""The protocol of a source: a table elsewhere that holds facts of a base relation.

    open ─▶ find, scan, events (all of one snapshot) ─▶ acknowledge ─▶ close

A source is only read. It announces its changes: `events` are those that the snapshot contains and
that have not been acknowledged. What the database knows of the source is the snapshot without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from deltalog.language.ast import Row

Columns = tuple[int, ...]
Event = tuple[bool, Row]
"""A row that was inserted (True) or deleted (False) at a source."""
Precision = Literal["exact", "eventual"]


class Source(Protocol):
    """Rows of one base relation at one place; a row may be there several times."""

    @property
    def name(self) -> str:
        """A name of the place for messages, without credentials."""

    @property
    def precision(self) -> Precision:
        """`eventual` if rows and events cannot be read in one snapshot."""

    def open(self) -> None:
        """Begin a snapshot: rows and events as of now."""

    def close(self) -> None:
        """End the snapshot."""

    def find(self, columns: Columns, key: Row) -> Iterable[Row]:
        """Return the rows with these values in these columns."""

    def scan(self) -> Iterable[Row]:
        """Return all rows."""

    def count(self) -> int:
        """Return about how many rows there are."""

    def events(self) -> list[Event]:
        """Return the events of the snapshot that are not acknowledged, in their order."""

    def acknowledge(self) -> None:
        """The events of the snapshot are processed: later snapshots do not return them."""

    def disconnect(self) -> None:
        """Let go of the place for good."""
