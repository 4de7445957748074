"""Feeds: the changes of what somebody subscribes to, made once for all who do.

    commit ─▶ path ─┬─ all of it ────────────▶ 20 subscribers
                    └─ by src: {1: …, 2: …} ─▶ the feeds whose value a changed fact has

Every commit is looked at once per changed relation. Bound subscriptions are found through an index
from the values of their bound columns, one for each set of columns that somebody has bound: ten
thousand bindings cost a commit one look-up per changed fact. The feeds of a relation that did not
change are not even looked at. A delta is written as JSON once, when its first reader asks.

A feed is a window on the journal: what the journal has dropped, it drops. A reader has only a
position, so that a slow one keeps nobody waiting; when its position is dropped, it must resume.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from deltalog.analysis.relation import Relation
from deltalog.language.ast import Row
from deltalog.service.event_text import event_text
from deltalog.service.host import Host
from deltalog.service.journal import JournalEntry
from deltalog.service.selections import Selection, sorted_rows
from deltalog.service.state_messages import Delta, MessageWriter

LINGER_SECONDS = 60.0
"""How long a view is propagated after its last subscriber left, so that it can come back."""
Values = Row
Wanted = tuple[str, bool]
"""A view, and whether a superset of its changes is enough."""


class FeedItem:
    """A commit that changed a selection; its JSON is made when it is first asked for."""

    def __init__(self, delta: Delta, writer: MessageWriter) -> None:
        self.delta = delta
        self._writer = writer

    @property
    def version(self) -> int:
        return self.delta.version

    @cached_property
    def payload(self) -> bytes:
        """Its messages, separated by commas."""
        return self._writer.delta(self.delta)

    @cached_property
    def event(self) -> bytes:
        """Its messages as an event of type `data`."""
        return data_event(self.payload)


def data_event(payload: bytes) -> bytes:
    """Messages as an event; the control event that follows has the id."""
    return event_text("data", b"[%b]" % payload)


class Feed:
    """The changes of one selection after version `since`, as far as the journal reaches."""

    def __init__(self, selection: Selection, since: int, is_potential: bool = False) -> None:
        self.selection = selection
        self.is_potential = is_potential
        self.writer = MessageWriter(selection.relation)
        self.since = since
        self.is_over = False
        self.users = 0
        self._items: deque[FeedItem] = deque()
        self._waiters: set[asyncio.Future[bool]] = set()
        self.shared: dict[tuple[int, int], Any] = {}
        """Readings that several readers of one version need, each made once."""

    def append(self, delta: Delta, base: int) -> None:
        """Add a change; the journal reaches back to the version `base`."""
        self.forget(base)
        self._items.append(FeedItem(delta, self.writer))
        self.shared.clear()
        self.wake()

    def forget(self, version: int) -> None:
        """Drop what leads to this version and to earlier ones."""
        while self._items and self._items[0].version <= version:
            self._items.popleft()
        self.since = max(self.since, version)

    def after(self, version: int) -> Iterator[FeedItem] | None:
        """The commits after a version; None if they are not all here."""
        if version < self.since:
            return None
        items = self._items
        if not items or items[-1].version <= version:
            return iter(())
        if items[0].version > version:
            return iter(tuple(items))
        first = next(i for i in range(len(items) - 1, -1, -1) if items[i].version <= version) + 1
        return islice(tuple(items), first, None)

    def first_after(self, version: int) -> int | None:
        """The version of the change behind one, if there is one only."""
        items = self._items
        if not items or items[-1].version <= version:
            return None
        if len(items) == 1 or items[-2].version <= version:
            return items[-1].version
        return None

    def has_after(self, version: int) -> bool:
        return bool(self._items) and self._items[-1].version > version

    def end(self) -> None:
        """The relation is another one now, or gone: readers must begin anew."""
        self.is_over = True
        self.wake()

    def wake(self) -> None:
        for waiter in self._waiters:
            _resolve_waiter(waiter, True)
        self._waiters.clear()

    async def wait(self, version: int, timeout_seconds: float) -> bool:
        """Wait for a change after a version, or until it is over; False if none came in time."""
        if self.is_over or version < self.since or self.has_after(version):
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiters.add(waiter)
        timer = loop.call_later(timeout_seconds, _resolve_waiter, waiter, False)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)


def _resolve_waiter(waiter: asyncio.Future[bool], has_more: bool) -> None:
    if not waiter.done():
        waiter.set_result(has_more)


class ViewFeeds:
    """The feeds of one relation, by bound positions and then by values.

    Those that are `is_potential` have a superset of its changes, where that costs less.
    """

    def __init__(self, relation: Relation, is_potential: bool = False) -> None:
        self.relation = relation
        self.is_potential = is_potential
        self.users = 0
        self.by_positions: dict[tuple[int, ...], dict[Values, Feed]] = {}

    def knows(self, entry: JournalEntry) -> bool:
        """Whether a commit has what these feeds need."""
        relation = self.relation
        return entry.covers(relation.name, relation.kind == "base", self.is_potential)

    def publish(self, entry: JournalEntry, base: int) -> None:
        is_potential = self.relation.name in entry.estimated
        sides = (
            entry.change.inserted[self.relation.name],
            entry.change.deleted[self.relation.name],
        )
        for positions, feeds in self.by_positions.items():
            touched: dict[Values, tuple[list[Row], list[Row]]] = {}
            for side, rows in enumerate(sides):
                for row in rows:
                    values = tuple(row[i] for i in positions)
                    if values in feeds:
                        touched.setdefault(values, ([], []))[side].append(row)
            for values, (inserted, deleted) in touched.items():
                changed = (sorted_rows(inserted), sorted_rows(deleted))
                delta = Delta(entry.version, entry.time, *changed, is_potential)
                feeds[values].append(delta, base)

    def all(self) -> Iterator[Feed]:
        for feeds in self.by_positions.values():
            yield from feeds.values()


class Feeds:
    """All feeds of a host. Belongs to its event loop."""

    def __init__(self, host: Host, linger_seconds: float = LINGER_SECONDS) -> None:
        self.host = host
        self._linger_seconds = linger_seconds
        self._views: dict[Wanted, ViewFeeds] = {}
        host.listen(self._publish_entry)

    @property
    def count(self) -> int:
        """How many selections are subscribed to."""
        return sum(
            len(feeds) for view in self._views.values() for feeds in view.by_positions.values()
        )

    def enter(self, selection: Selection, is_potential: bool = False) -> Feed:
        """The feed of a selection, which is kept until `leave`, and a while longer."""
        wanted = selection.name, is_potential
        view = self._views.get(wanted)
        if view is None:
            self.host.want(*wanted)
            view = self._views[wanted] = ViewFeeds(selection.relation, is_potential)
        feeds = view.by_positions.setdefault(selection.positions, {})
        feed = feeds.get(selection.values)
        if feed is None:
            feed = Feed(selection, self.host.version, is_potential)
            feeds[selection.values] = feed
        feed.forget(self.host.journal.base)
        feed.users += 1
        view.users += 1
        return feed

    def leave(self, feed: Feed) -> None:
        feed.users -= 1
        view = self._views.get((feed.selection.name, feed.is_potential))
        if view is not None:
            view.users -= 1
        if feed.users == 0:
            loop = asyncio.get_running_loop()
            loop.call_later(self._linger_seconds, self._drop_unused, feed)

    def _drop_unused(self, feed: Feed) -> None:
        selection = feed.selection
        wanted = selection.name, feed.is_potential
        view = self._views.get(wanted)
        if view is None or feed.users:
            return
        feeds = view.by_positions.get(selection.positions, {})
        if feeds.get(selection.values) is feed:
            del feeds[selection.values]
            if not feeds:
                del view.by_positions[selection.positions]
            if not view.by_positions:
                self._drop_view(wanted)

    def _drop_view(self, wanted: Wanted) -> None:
        del self._views[wanted]
        self.host.release(*wanted)

    def _publish_entry(self, entry: JournalEntry) -> None:
        if entry.kind == "program":
            self._follow_program()
        inserted, deleted = entry.change.sides
        for (name, _), view in list(self._views.items()):
            if not view.knows(entry):
                for feed in view.all():
                    feed.forget(entry.version)
                    feed.wake()
            elif name in inserted or name in deleted:
                view.publish(entry, self.host.journal.base)

    def _follow_program(self) -> None:
        """End the feeds of relations that are gone, or have other columns now."""
        for wanted, view in list(self._views.items()):
            if self.host.relations.get(view.relation.name) != view.relation:
                for feed in view.all():
                    feed.end()
                self._drop_view(wanted)

    def of_view(self, name: str) -> list[Feed]:
        """The feeds of one relation."""
        views = [self._views.get((name, each)) for each in (False, True)]
        return [feed for view in views if view is not None for feed in view.all()]

    def wake_all(self) -> None:
        """Let every reader look whether it should end."""
        for view in self._views.values():
            for feed in view.all():
                feed.wake()
