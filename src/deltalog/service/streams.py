"""All streams of a service: what its routes share, from the start of the application to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from deltalog.diagnostics import service_catalogue
from deltalog.service.feeds import Feeds
from deltalog.service.grants import Access
from deltalog.service.host import Host
from deltalog.service.problems import http_problem
from deltalog.service.quality import Quality
from deltalog.service.selections import Selection
from deltalog.service.snapshots import Snapshots
from deltalog.service.stream_reading import EVERYTHING, StreamReader, checked_offset

SUBSCRIPTIONS_MAX = 20_000


@dataclass(frozen=True)
class StreamTimes:
    """How long things last, in seconds."""

    long_poll: float = 20.0
    """After this a long poll ends quietly."""
    heartbeat: float = 15.0
    """How often a quiet stream reports that it lives, and where it is."""
    connection: float = 60.0
    """After this a stream of events ends, and its client connects again."""
    sending: float = 30.0
    """How long a client may take to receive what was sent before it is disconnected."""
    revoked: float = 1.0
    """How long a quiet stream goes on whose token was revoked."""


class Streams:
    """The feeds and snapshots of a host, and the number of their readers."""

    def __init__(
        self,
        host: Host,
        times: StreamTimes | None = None,
        subscriptions_max: int = SUBSCRIPTIONS_MAX,
    ) -> None:
        self.host = host
        self.times = times or StreamTimes()
        self.feeds = Feeds(host)
        self.snapshots = Snapshots(host)
        self.subscriptions_max = subscriptions_max
        self.open: set[StreamReader] = set()
        """The readers of the streams that are open."""
        self._stopping = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @asynccontextmanager
    async def reader(
        self,
        selection: Selection,
        quality: Quality = EVERYTHING,
        is_allowed: Callable[[], bool] = lambda: True,
    ) -> AsyncIterator[StreamReader]:
        """A reader of a selection as long as it `is_allowed`; raises 503 if there are too many."""
        if len(self.open) >= self.subscriptions_max:
            entry = service_catalogue.TOO_MANY_STREAMS
            raise http_problem(503, entry, limit=self.subscriptions_max)
        feed = self.feeds.enter(selection, quality.is_potential)
        reader = StreamReader(self.host, self.snapshots, feed, quality, is_allowed)
        self.open.add(reader)
        try:
            yield reader
        finally:
            self.feeds.leave(feed)
            self.open.discard(reader)

    async def wait_for(self, offset: str | None, timeout_seconds: float) -> None:
        """Wait until the host has reached an offset that a commit was answered with."""
        if offset is None:
            return
        asked = checked_offset(self.host, offset, is_future=True)
        if asked.version > self.host.version:
            reached = await self.host.wait_beyond(asked.version - 1, timeout_seconds)
            if reached < asked.version:
                entry = service_catalogue.NOT_REACHED
                raise http_problem(503, entry, offset=offset, seconds=timeout_seconds)

    def stop(self) -> None:
        """Let all readers end; their clients are told where to resume."""
        self._stopping.set()
        self.feeds.wake_all()

    async def sleep(self, seconds: float) -> None:
        """Wait, but not longer than until the service stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


def streams_of(connection: HTTPConnection) -> Streams:
    """The streams of the application; made by `running_streams`."""
    streams: Streams = connection.app.state.streams
    return streams


@asynccontextmanager
async def running_streams(app: object) -> AsyncIterator[None]:
    """Make the streams of an application, and end them as soon as it is asked to stop."""
    state = app.state  # type: ignore[attr-defined]
    settings = getattr(state, "settings", None)
    most = getattr(settings, "subscriptions_max", SUBSCRIPTIONS_MAX)
    times = getattr(state, "stream_times", None)
    state.streams = streams = Streams(state.host, times, most)
    stopping = asyncio.create_task(_stop_with(streams, state.stopping))
    watching = asyncio.create_task(_watch_tokens(streams, getattr(state, "access", None)))
    try:
        yield
    finally:
        streams.stop()
        for task in (stopping, watching):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _stop_with(streams: Streams, stopping: asyncio.Event) -> None:
    await stopping.wait()
    streams.stop()


async def _watch_tokens(streams: Streams, access: Access | None) -> None:
    """Wake the readers when tokens have changed: those of a revoked one end."""
    while access is not None:
        await asyncio.sleep(streams.times.revoked)
        if access.is_changed:
            streams.feeds.wake_all()
