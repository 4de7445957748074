"""Read the stream of a selection behind an offset: from its feed, the journal, or the log.

    -1           the snapshot of now                    (`snapshots.py`)
    inside one   its next chunk
    a version    the commits behind it that change the selection: from the feed if somebody has
                 subscribed since, else from the journal, else from the log of a file

Whatever cannot be read any more is 410: the history is another one, the log was compacted, the view
was not propagated, or it had other columns. A read from `-1` always succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC

from deltalog.diagnostics import service_catalogue
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.feeds import Feed, FeedItem
from deltalog.service.host import Host
from deltalog.service.journal import JournalEntry
from deltalog.service.offsets import Offset, read_offset
from deltalog.service.pieces import Piece, Reading
from deltalog.service.problems import Problem, http_problem
from deltalog.service.quality import Quality
from deltalog.service.snapshots import Snapshots, has_other_columns
from deltalog.service.state_messages import Delta, touched_message
from deltalog.store.logged import Logged

START, NOW = "-1", "now"
EVERYTHING = Quality()
FACTS_EACH = 10_000
"""Changed facts after which one answer ends; a commit is never divided."""
COMMITS_EACH = 1_000
"""Commits that are taken from the log at once."""


def checked_offset(host: Host, text: str, is_future: bool = False) -> Offset:
    """The offset that a client sends; raises 400 if it is none, 410 if it is not valid here.

    One that `is_future` may be ahead of what this host has seen.
    """
    offset = read_offset(text)
    if offset is None:
        hint = "send the last `Stream-Next-Offset`"
        if text not in (START, NOW):
            hint += ", or `-1`, or `now`"
        raise http_problem(400, service_catalogue.MALFORMED_OFFSET, text=text[:100], hint=hint)
    if offset.history != host.history:
        raise expired_problem(
            offset, "it belongs to another history of this database, or to another one"
        )
    if offset.version > host.version and not is_future:
        raise expired_problem(offset, "this history has not come so far")
    return offset


def expired_problem(offset: Offset, reason: str) -> Problem:
    hint = "read from offset -1"
    entry = service_catalogue.OFFSET_EXPIRED
    return http_problem(410, entry, offset=offset, reason=reason, hint=hint)


class StreamReader:
    """Reads one selection for one reader, which has entered its feed."""

    def __init__(
        self,
        host: Host,
        snapshots: Snapshots,
        feed: Feed,
        quality: Quality = EVERYTHING,
        is_allowed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._host = host
        self._snapshots = snapshots
        self.feed = feed
        self.selection = feed.selection
        self.quality = quality
        self.is_allowed = is_allowed
        self.version = host.version
        """The version up to which it was sent everything."""

    @property
    def commits_behind(self) -> int:
        """How many commits it is behind; none if nothing has changed for it."""
        if self.version >= self.feed.since and not self.feed.has_after(self.version):
            return 0
        return max(self._host.version - self.version, 0)

    async def read(self, offset: Offset | None) -> Reading:
        """What lies behind an offset, or from the start, up to some size; it does not wait."""
        if offset is not None:
            self.version = offset.version
        if offset is None:
            is_named_only = self.quality.precision == "touched"
            return self._of_snapshot(await self._snapshots.first(self.selection, is_named_only))
        if not offset.is_complete:
            piece = await self._snapshots.next(self.selection, offset)
            if piece is None:
                raise expired_problem(offset, "the rest of that snapshot is not kept any more")
            return self._of_snapshot(piece)
        return await self.changes(offset)

    def _of_snapshot(self, piece: Piece) -> Reading:
        offset = piece.offset
        is_last = offset.is_complete and not self.feed.has_after(offset.version)
        return Reading((piece,), offset, is_last)

    @property
    def end(self) -> Offset:
        """The offset behind the last commit."""
        return Offset(self._host.history, self._host.version)

    async def changes(self, offset: Offset) -> Reading:
        """The changes behind an offset between commits."""
        if self.feed.is_over:
            raise expired_problem(
                offset, f"`{self.selection.name}` has other columns now, or is gone"
            )
        version, last = offset.version, self._host.version
        if self.quality is EVERYTHING or self.quality == EVERYTHING:
            first = self.feed.first_after(version) if version >= self.feed.since else None
            if first is not None:  # what nearly every reader needs after a commit
                return self._shared_reading(first, version, last)
        items: Iterable[FeedItem] | None = self.feed.after(version)
        if items is None:
            last, items = await self._host.compute(self._earlier_items(version))
        if items is None:
            raise expired_problem(offset, "changes behind it are not kept any more")
        due = self.quality.due(version, last)
        wanted = (item for item in items if item.version <= due)
        return self._reading_of(self.quality.shown(wanted, version, self.feed.writer), version, due)

    def _shared_reading(self, first: int, version: int, last: int) -> Reading:
        """The reading of one commit, which is the same for all its readers."""
        known: Reading | None = self.feed.shared.get((first, last))
        if known is None:
            known = self._reading_of(self.feed.after(version) or (), version, last)
            self.feed.shared[first, last] = known
        return known

    def _reading_of(self, items: Iterable[FeedItem], first: int, last: int) -> Reading:
        """Whole commits behind the first version, up to a number of facts."""
        pieces: list[Piece] = []
        facts, version = 0, first
        for item in items:
            if facts >= FACTS_EACH:
                return Reading(tuple(pieces), Offset(self._host.history, version), False)
            version = item.version
            pieces.append(self._piece_of(item))
            facts += len(item.delta)
        is_up_to_date = self.quality.due(last, self._host.version) == last or (
            last >= self.feed.since and not self.feed.has_after(last)
        )
        return Reading(tuple(pieces), Offset(self._host.history, last), is_up_to_date)

    def _piece_of(self, item: FeedItem) -> Piece:
        place = Offset(self._host.history, item.version)
        if self.quality.precision == "touched":
            named = touched_message(self.selection.name, item.version, item.delta.time)
            return Piece(named, place, 1)
        return Piece(item.payload, place, len(item.delta), item)

    # --- in the thread of the database

    def _earlier_items(
        self, version: int
    ) -> Callable[[MemoryDatabase], tuple[int, list[FeedItem] | None]]:
        entries = self._host.journal.after(version)
        kept = None if entries is None else list(entries)
        name, is_base = self.selection.name, self.selection.relation.kind == "base"
        wanted = name, is_base, self.quality.is_potential
        if kept is not None and not all(each.covers(*wanted) for each in kept):
            kept = None
        if kept is not None:
            last = kept[-1].version if kept else version
            return lambda _: (last, self._items_of(kept))
        return lambda database: self._from_log(database, version)

    def _from_log(
        self, database: MemoryDatabase, version: int
    ) -> tuple[int, list[FeedItem] | None]:
        if not isinstance(database, Logged) or version < database.first_version:
            return version, None
        if has_other_columns(database, self.selection, version):
            return version, None
        until = min(version + COMMITS_EACH, database.version)
        read = database.commits_of(self.selection.name, version, until)
        if read is None:
            return version, None
        last, found = read
        entries = (
            JournalEntry(each.version, each.time.replace(tzinfo=UTC), each.kind, each.change)
            for each in found
        )
        return last, self._items_of(entries)

    def _items_of(self, entries: Iterable[JournalEntry]) -> list[FeedItem]:
        found = []
        of_rows, name = self.selection.of_rows, self.selection.name
        for entry in entries:
            change = entry.change
            rows = of_rows(change.inserted[name]), of_rows(change.deleted[name])
            delta = Delta(entry.version, entry.time, *rows, name in entry.estimated)
            if delta:
                found.append(FeedItem(delta, self.feed.writer))
        return found
