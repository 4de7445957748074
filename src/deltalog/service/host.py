"""The host of a database that is served: one thread owns it, and everybody else awaits.

    event loop    await host.call(lambda db: db.apply(…))      await host.wait_beyond(17, 20.0)
                      │                                             ▲
    one thread        ▼ db.apply ── commit 18 ── follower ──────────┘ wake

A database is used from one thread only, so requests take turns without locks, and the event loop
never waits for propagation or for the disk. After every commit the database calls its follower: the
host adds the commit to its journal (`journal.py`) and wakes who waits. This happens in the event
loop before the caller of the commit goes on, so `host.version` is never behind an answer.

A file or a state that another process writes to is polled: its log has the commits.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from deltalog.analysis.columns import Relation
from deltalog.diagnostics.report import DeltalogError
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.sourced_database import SourcedDatabase
from deltalog.service.journal import Journal, JournalEntry
from deltalog.service.logs import log_event
from deltalog.service.offsets import Offset
from deltalog.store.logged import Logged, Settings, Tailed
from deltalog.store.settings import HISTORY, MemorySettings, new_history

if TYPE_CHECKING:
    from deltalog.service.stored_queries import StoredQuery

Result = TypeVar("Result")
Listener = Callable[[JournalEntry], None]
POLL_SECONDS = 0.2
"""How often a log that another process writes to is looked at."""
PULL_SECONDS = 1.0
"""How often sources are asked for what they announce."""


class Host:
    """Owns one open database from `start` to `stop`; all its methods belong to the event loop."""

    def __init__(
        self,
        database: MemoryDatabase,
        *,
        poll_seconds: float = POLL_SECONDS,
        pull_seconds: float = PULL_SECONDS,
    ) -> None:
        self.database = database
        self.settings: Settings = (
            database.settings if isinstance(database, Logged) else MemorySettings()
        )
        self.history = ""
        self.version = database.version
        self.journal = Journal(database.version)
        self.relations: dict[str, Relation] = dict(database.relations)
        self.queries: dict[str, StoredQuery] = {}
        self.is_stopping = False
        self.seconds_max = math.inf
        """How long one request may compute."""
        self._poll_seconds = poll_seconds
        self._pull_seconds = pull_seconds
        self.pull_problem: str | None = None
        """The code of the error that the last pull from sources ended with."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deltalog-host")
        self._follower = _Follower(self, self._always_followed())
        self._wanted: Counter[str] = Counter()
        self._estimated: Counter[str] = Counter()
        self._precisions: dict[str, str] = {}
        self._listeners: list[Listener] = []
        self._waiters: set[asyncio.Future[None]] = set()
        self._polling: asyncio.Task[None] | None = None
        self.stopped: asyncio.Event = asyncio.Event()

    # --- life

    async def start(self) -> None:
        """Take the database over."""
        self._follower.loop = asyncio.get_running_loop()
        self.history = await self.call(self._known_history)
        self.database.follower = self._follower
        if isinstance(self.database, Logged) and self.database.is_tailed:
            self._polling = asyncio.create_task(self._poll_log(self.database))
        if isinstance(self.database, SourcedDatabase):
            self._polling = asyncio.create_task(self._pull_sources(self.database))

    async def stop(self) -> None:
        """Wake everybody who waits, finish what was begun, and close the database."""
        if self.is_stopping:
            await self.stopped.wait()
            return
        self.is_stopping = True
        self._wake_waiters()
        if self._polling is not None:
            self._polling.cancel()
            with suppress(asyncio.CancelledError):
                await self._polling
        await self._run_in_thread(self.database.close)
        self.database.follower = None
        self._thread.shutdown(wait=True)
        self.stopped.set()

    def _known_history(self, database: MemoryDatabase) -> str:
        found = self.settings.get(HISTORY)
        if found is None:
            found = new_history()
            if self.settings.is_writable:
                self.settings.put(HISTORY, found)
        return found

    # --- the thread

    async def call(self, function: Callable[[MemoryDatabase], Result]) -> Result:
        """Run a function with the database in the thread that owns it."""
        return await self._run_in_thread(function, self.database)

    async def compute(self, function: Callable[[MemoryDatabase], Result]) -> Result:
        """The same for a request, whose evaluation ends with an error after `seconds_max`."""

        def run(database: MemoryDatabase) -> Result:
            limits = database.limits
            if limits.seconds_max > self.seconds_max:
                database.limits = replace(limits, seconds_max=self.seconds_max)
            try:
                return function(database)
            finally:
                database.limits = limits

        return await self.call(run)

    async def _run_in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, function, *arguments)
        return await asyncio.shield(future)  # who stops waiting does not stop a commit

    async def _poll_log(self, database: Logged) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            try:
                tailed = await self.call(lambda _: database.tail(self._follower.subscribed))
            except DeltalogError as error:  # the disk may come back
                log_event("tail_failed", level=logging.WARNING, codes=list(error.codes))
                continue
            for each in tailed:
                is_program = each.commit.kind == "program"
                relations = dict(self.database.relations) if is_program else None
                self.publish(_journal_entry(each), relations)

    async def _pull_sources(self, database: SourcedDatabase) -> None:
        """Take over what sources announce; a source that fails is tried again."""
        while True:
            await asyncio.sleep(self._pull_seconds)
            try:
                await self.call(lambda _: database.pull(views=()))
                self.pull_problem = None
            except DeltalogError as error:
                if self.pull_problem is None:
                    log_event("pull_failed", level=logging.WARNING, codes=list(error.codes))
                self.pull_problem = error.codes[0]

    # --- versions

    def offset(self, version: int | None = None) -> str:
        """The offset behind a commit, or behind the last one."""
        return str(Offset(self.history, self.version if version is None else version))

    async def wait_beyond(self, version: int, timeout_seconds: float) -> int:
        """Wait for a version greater than this one; returns the version there is at the end."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_seconds
        while self.version <= version and not self.is_stopping:
            rest = until - loop.time()
            if rest <= 0:
                break
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.add(waiter)
            try:
                async with asyncio.timeout(rest):
                    await waiter
            except TimeoutError:
                break
            finally:
                self._waiters.discard(waiter)
        return self.version

    def listen(self, listener: Listener) -> None:
        """Call a function with every commit, in the event loop, oldest first."""
        self._listeners.append(listener)

    def publish(self, entry: JournalEntry, relations: dict[str, Relation] | None = None) -> None:
        """Add a commit to the journal and wake everybody who waits."""
        if relations is not None:
            before, self.relations = self.relations, relations
            self._precisions.clear()
            same = frozenset(name for name in before if before[name] == relations.get(name))
            entry = replace(entry, unchanged=same)
            self._update_followed()
        self.journal.append(entry)
        self.version = entry.version
        for listener in self._listeners:
            listener(entry)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def precision_of(self, relation: str) -> str:
        """`eventual` if a relation depends on a source that has no snapshots, else `exact`."""
        database = self.database
        if not isinstance(database, SourcedDatabase):
            return "exact"
        known = self._precisions.get(relation)
        if known is None:
            known = self._precisions[relation] = database.precision_of(relation)
        return known

    # --- what is propagated

    def want(self, view: str, is_potential: bool = False) -> None:
        """Propagate a view from the next commit on, until `release` was called as often.

        If it `is_potential` for all who want it, a superset of its change is computed. Its rows are
        decoded by the thread of the database, so that the event loop may read them; those of other
        relations may be read inside `call` only.
        """
        (self._estimated if is_potential else self._wanted)[view] += 1
        self._update_followed()

    def release(self, view: str, is_potential: bool = False) -> None:
        wanted = self._estimated if is_potential else self._wanted
        wanted[view] -= 1
        if not wanted[view]:
            del wanted[view]
        self._update_followed()

    @property
    def followed(self) -> frozenset[str]:
        """The views whose change every commit computes: those that are stored, or wanted."""
        return self._follower.views

    def _update_followed(self) -> None:
        stored = self._always_followed()
        self._follower.subscribed = frozenset(self._wanted) | frozenset(self._estimated)
        self._follower.potential = frozenset(self._estimated) - frozenset(self._wanted) - stored
        self._follower.views = stored | self._follower.subscribed

    def _always_followed(self) -> frozenset[str]:
        """The stored views: their change is computed anyway."""
        model = self.database.model
        return model.stored & frozenset(model.views)


class _Follower:
    """Called in the thread of the database; hands every commit to the event loop."""

    def __init__(self, host: Host, views: frozenset[str]) -> None:
        self._host = host
        self.views = views
        self.subscribed: frozenset[str] = frozenset()
        self.potential: frozenset[str] = frozenset()
        self.loop: asyncio.AbstractEventLoop | None = None

    def committed(
        self,
        version: int,
        kind: str,
        change: ChangeSet,
        views: frozenset[str],
        estimated: frozenset[str] = frozenset(),
    ) -> None:
        assert self.loop is not None
        _decode_relations(change, self.subscribed)
        entry = JournalEntry(version, datetime.now(UTC), kind, change, views, estimated=estimated)
        relations = dict(self._host.database.relations) if kind == "program" else None
        self.loop.call_soon_threadsafe(self._host.publish, entry, relations)


def _decode_relations(change: ChangeSet, relations: Iterable[str]) -> None:
    """Decode what subscribers read, in the thread of the engine; all else stays as it is."""
    for side in (change.inserted, change.deleted):
        for name in relations:
            side[name]


def _journal_entry(tailed: Tailed) -> JournalEntry:
    commit = tailed.commit
    time = commit.time.replace(tzinfo=UTC)
    return JournalEntry(commit.version, time, commit.kind, commit.change, only=tailed.known)
