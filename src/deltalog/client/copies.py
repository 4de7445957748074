"""A copy of a view: its rows, and how they follow the stream of the view."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from deltalog.client import calls
from deltalog.client.backoff import Backoff
from deltalog.client.deltas import ViewDelta
from deltalog.client.errors import ServiceError
from deltalog.client.follower import Follower, Message
from deltalog.client.graph import Graph
from deltalog.client.rows import RowFormat, columns_of
from deltalog.client.stored_copy import StoredCopy
from deltalog.client.subscription import DurableSubscription
from deltalog.client.transport import Requests
from deltalog.diagnostics import catalogue, service_catalogue
from deltalog.diagnostics.report import DataError

IDLE_SECONDS = 0.02


@dataclass(frozen=True)
class Polled:
    """An answer of a stream."""

    messages: list[Message]
    offset: str
    cursor: str | None
    is_up_to_date: bool


def read_poll(response: httpx.Response) -> Polled:
    headers = response.headers
    messages = [] if response.status_code == 204 else response.json()
    is_up_to_date = headers.get("stream-up-to-date") == "true"
    return Polled(
        messages, headers["stream-next-offset"], headers.get("stream-cursor"), is_up_to_date
    )


class CopyOfView:
    """Rows of a view as of one version, and where its stream goes on.

    Iteration, `len` and `in` are over its rows: tuples, or objects of the dataclass `into`.
    """

    def __init__(
        self,
        requests: Requests,
        name: str,
        selection: Mapping[str, str],
        file: str | Path | None,
        into: type | None,
        subscription: str | None = None,
    ) -> None:
        self._requests = requests
        self._subscription: DurableSubscription | None = None
        if subscription is not None:
            self._subscription = DurableSubscription(subscription, name, selection)
        self.name = name
        self._into = into
        self._path = calls.stream_path(name)
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        identity = json.dumps([name, dict(selection)], ensure_ascii=False)
        copy = StoredCopy(None if file is None else Path(file), identity)
        self._follower = Follower(name, selection, copy)
        if copy.columns is not None:
            self._follower.row_format = RowFormat(name, columns_of(copy.columns), into)
            self._follower.row_format.maker()

    @property
    def version(self) -> int | None:
        """The version of the database that the copy is of; None before the first read."""
        return self._follower.version

    @property
    def offset(self) -> str | None:
        return self._follower.copy.offset

    @property
    def rows(self) -> frozenset[Any]:
        """All rows, as of `version`."""
        return frozenset(self)

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            rows = list(self._follower.copy.rows.values())
        row_format = self._follower.row_format
        return iter(()) if row_format is None else map(row_format.maker(), rows)

    def __len__(self) -> int:
        return len(self._follower.copy.rows)

    def graph(self) -> Graph:
        """The rows of a binary view as one object; deltas can be applied to it."""
        with self._lock:
            rows = list(self._follower.copy.rows.values())
        row_format = self._follower.row_format
        if row_format is not None and len(row_format.columns) != 2:
            reason = f"it has {len(row_format.columns)} columns, and an arc has two"
            entry = service_catalogue.ROW_MISFIT
            raise DataError([entry.at(None, view=self.name, name="Graph", reason=reason)])
        return Graph((row[0], row[1]) for row in rows)

    # --- following

    async def _sleep_seconds(self, seconds: float) -> None:
        """Wait before the next attempt."""
        await self._requests.sleep(seconds)

    async def _read_to_end(self, wait_for: str | None) -> list[ViewDelta]:
        """Read up to the end of the stream, once; returns the deltas."""
        if self._stopping.is_set():
            raise DataError([catalogue.DATABASE_CLOSED.at(None, name=f"the copy of `{self.name}`")])
        found: list[ViewDelta] = []
        is_up_to_date = False
        while not is_up_to_date:
            deltas, is_up_to_date = await self._poll_once(is_live=False, wait_for=wait_for)
            found += deltas
        return found

    async def _next_deltas(self, backoff: Backoff) -> list[ViewDelta]:
        """Wait for deltas; none if there were none in time, or after a failure for a moment."""
        started = time.monotonic()
        try:
            deltas, _ = await self._poll_once(is_live=self.version is not None)
        except ServiceError as error:
            if not error.is_temporary:
                raise
            await self._sleep_seconds(backoff.seconds(error.retry_seconds))
            return []
        if not deltas and self._is_idle(started):
            await self._sleep_seconds(backoff.seconds())
            return []
        backoff.succeeded()
        return deltas

    async def _poll_once(
        self, is_live: bool, wait_for: str | None = None
    ) -> tuple[list[ViewDelta], bool]:
        """One read, and what it changes; after 410 everything is read again."""
        if self._follower.row_format is None:
            self._follower.row_format = await self._current_format()
        subscription = self._subscription
        if subscription is not None and not subscription.is_claimed:
            await self._requests.send(subscription.definition())
            await self._requests.send(subscription.claim())
        parameters = self._follower.parameters(is_live)
        if wait_for is not None:
            parameters["wait_for"] = wait_for
        try:
            polled = read_poll(await self._requests.read_stream(self._path, parameters))
        except ServiceError as error:
            if error.status != 410:
                raise
            row_format = await self._current_format()
            with self._lock:
                self._follower.restart(row_format)
            return [], False
        deltas = self._apply_polled(polled)
        waiting = None if subscription is None else subscription.acknowledgement(self.offset)
        if waiting is not None:
            await self._requests.send(waiting)
        return deltas, polled.is_up_to_date

    async def _current_format(self) -> RowFormat:
        relation = await self._requests.send(calls.relation_call(self.name))
        return RowFormat.read(relation, self._into)

    def _apply_polled(self, polled: Polled) -> list[ViewDelta]:
        with self._lock:
            if self._stopping.is_set():
                return []
            return self._follower.received(polled.messages, polled.offset, polled.cursor)

    def _is_idle(self, started: float) -> bool:
        """Whether an empty answer arrived at once, as from a service that is being stopped."""
        return self.version is not None and time.monotonic() - started < IDLE_SECONDS

    def _close_copy(self) -> None:
        self._stopping.set()
        with self._lock:
            self._follower.copy.close()
