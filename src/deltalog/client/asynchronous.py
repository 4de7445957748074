"""The client for asyncio: the verbs of `Client`, awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from deltalog.client import calls
from deltalog.client.answers import Committed, Tried
from deltalog.client.backoff import Backoff
from deltalog.client.calls import Call, Facts, Result
from deltalog.client.copies import CopyOfView, Polled, read_poll
from deltalog.client.deltas import ViewDelta
from deltalog.client.errors import ServiceError
from deltalog.client.subscription import DurableSubscription
from deltalog.client.transport import (
    ATTEMPTS_MAX,
    connection_options,
    read_answer,
    translate_transport_errors,
)
from deltalog.language.ast import Row


class AsyncClient:
    """A service at an address; for one event loop.

    Requests that fail for a moment are sent again, transactions too: each has an idempotency key,
    so one that was applied before its answer was lost is not applied again.
    """

    def __init__(
        self, address: str, *, token: str | None = None, attempts_max: int = ATTEMPTS_MAX
    ) -> None:
        self.address = address.rstrip("/")
        self._attempts_max = attempts_max
        self._http = httpx.AsyncClient(**connection_options(self.address, token))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    # --- verbs

    async def apply(
        self,
        insert: Facts = None,
        delete: Facts = None,
        set: Facts = None,
        *,
        views: Iterable[str] | None = None,
        key: str | None = None,
    ) -> Committed:
        """Delete, insert and set facts in one transaction.

        A fact is a sequence, a mapping or a dataclass object. With `views` the answer has their
        exact change. `key` names the transaction: offered twice it is applied once.
        """
        return await self.send(calls.transaction_call(insert, delete, set, views, key))

    async def what_if(
        self,
        insert: Facts = None,
        delete: Facts = None,
        set: Facts = None,
        *,
        views: Iterable[str] | None = None,
    ) -> Tried:
        """Return the exact change that a transaction would make, without making it."""
        return await self.send(calls.what_if(insert, delete, set, views))

    async def query(
        self, text: str, /, *, version: int | None = None, **parameters: Any
    ) -> list[Row]:
        """Return the bindings of a query's variables: `await client.query("path($a, Y)", a=1)`."""
        pages = calls.QueryPages()
        while pages.start is not None:
            pages.add(await self.send(calls.query_call(text, parameters, version, pages.start)))
        return pages.rows

    async def why(self, fact: str, version: int | None = None) -> dict[str, Any]:
        """Return a proof of a fact."""
        return await self.send(
            calls.post_call("/v1/why", calls.known_values(fact=fact, version=version))
        )

    async def why_not(self, fact: str, version: int | None = None) -> dict[str, Any]:
        """Return why a fact does not hold."""
        return await self.send(
            calls.post_call("/v1/why-not", calls.known_values(fact=fact, version=version))
        )

    async def why_changed(self, fact: str, version: int | None = None) -> dict[str, Any]:
        """Return which base changes of a transaction, the last one by default, changed a fact."""
        body = calls.known_values(fact=fact, version=version)
        return await self.send(calls.post_call("/v1/why-changed", body))

    async def realize(self, *requests: str, **options: Any) -> dict[str, Any]:
        """Search the changes of base facts that make derived facts true or false."""
        return await self.send(
            calls.post_call("/v1/realize", {"requests": list(requests), **options})
        )

    async def relations(self) -> dict[str, Any]:
        return await self.send(calls.get_call("/v1/relations"))

    async def status(self) -> dict[str, Any]:
        return await self.send(calls.get_call("/v1/status"))

    def view(
        self,
        name: str,
        *,
        file: str | Path | None = None,
        bindings: Mapping[str, Any] | None = None,
        into: type | None = None,
        subscription: str | None = None,
        every_seconds: float | None = None,
        every_commits: int | None = None,
    ) -> AsyncViewCopy:
        """A copy of a view, or of the part of it that has the values in `bindings`.

        With a file it is kept there together with its offset, and the next client that opens the
        file continues where this one ended. `into` is a dataclass that rows are shown as. Under
        the name of a `subscription` the service keeps what this copy has not stored yet.
        """
        selection = calls.selection_parameters(name, bindings, every_seconds, every_commits)
        durable = subscription and DurableSubscription(subscription, name, selection)
        return AsyncViewCopy(self, name, selection, file, into, durable or None)

    # --- the transport

    async def send(self, call: Call[Result]) -> Result:
        """Send a request, several times if it may be repeated and fails for a moment."""
        backoff = Backoff()
        for attempt in range(1, self._attempts_max + 1):
            try:
                return call.read(await self._answer_call(call))
            except ServiceError as error:
                is_last = attempt == self._attempts_max or not call.is_repeatable
                if is_last or not error.is_temporary:
                    raise
                await asyncio.sleep(backoff.seconds(error.retry_seconds))
        raise AssertionError("unreachable")

    async def _answer_call(self, call: Call[Any]) -> Any:
        with translate_transport_errors(self.address):
            response = await self._http.request(
                call.method,
                call.path,
                json=call.body,
                params=call.parameters,
                headers=call.headers,
            )
        return read_answer(response).json()

    async def poll(self, path: str, parameters: Mapping[str, str]) -> Polled:
        """One read of a stream."""
        with translate_transport_errors(self.address):
            response = await self._http.get(path, params=parameters)
        return read_poll(read_answer(response))


class AsyncViewCopy(CopyOfView):
    """A copy of a view, which is as of one version at every moment."""

    def __init__(
        self,
        client: AsyncClient,
        name: str,
        selection: Mapping[str, str],
        file: str | Path | None,
        into: type | None,
        subscription: DurableSubscription | None = None,
    ) -> None:
        super().__init__(name, selection, file, into)
        self._subscription = subscription
        self._client = client

    async def __aenter__(self) -> AsyncViewCopy:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End following; what was reported is stored."""
        self._close_copy()

    async def refresh(self, wait_for: str | None = None) -> list[ViewDelta]:
        """Read up to the end of the stream; `wait_for` is the offset of a commit to be included.

        Returns the deltas, oldest first. One attempt: raises if the service does not answer.
        """
        found: list[ViewDelta] = []
        is_up_to_date = False
        while not is_up_to_date:
            deltas, is_up_to_date = await self._poll_once(is_live=False, wait_for=wait_for)
            found += deltas
        return found

    async def follow(self) -> AsyncIterator[ViewDelta]:
        """Yield deltas as they are committed, for ever, over lost connections and restarts."""
        backoff = Backoff()
        while not self._is_closed:
            started = time.monotonic()
            try:
                deltas, _ = await self._poll_once(is_live=self.version is not None)
            except ServiceError as error:
                if not error.is_temporary:
                    raise
                await asyncio.sleep(backoff.seconds(error.retry_seconds))
                continue
            if not deltas and self._is_idle(started):
                await asyncio.sleep(backoff.seconds())
                continue
            backoff.succeeded()
            for delta in deltas:
                yield delta

    async def _poll_once(
        self, is_live: bool, wait_for: str | None = None
    ) -> tuple[list[ViewDelta], bool]:
        """One read, and what it changes; after 410 everything is read again."""
        if self._needs_format:
            self._use_format(await self._client.send(calls.relation_call(self.name)))
        subscription = self._subscription
        if subscription is not None and not subscription.is_claimed:
            await self._client.send(subscription.definition())
            await self._client.send(subscription.claim())
        try:
            polled = await self._client.poll(self._path, self._poll_parameters(is_live, wait_for))
        except ServiceError as error:
            if error.status != 410:
                raise
            self._restart_copy(await self._client.send(calls.relation_call(self.name)))
            return [], False
        deltas = self._apply_polled(polled)
        waiting = None if subscription is None else subscription.acknowledgement(self.offset)
        if waiting is not None:
            await self._client.send(waiting)
        return deltas, polled.is_up_to_date
