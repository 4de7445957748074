"""The client for asyncio: the verbs of `Client`, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from deltalog.client import calls
from deltalog.client.answers import Committed, Tried
from deltalog.client.backoff import Backoff
from deltalog.client.calls import Call, Facts, Result
from deltalog.client.copies import CopyOfView
from deltalog.client.deltas import ViewDelta
from deltalog.client.transport import (
    ATTEMPTS_MAX,
    AsyncTransport,
    Requests,
    connection_options,
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
        self._http = httpx.AsyncClient(**connection_options(self.address, token))
        transport = AsyncTransport(self._http)
        self._requests = Requests(transport, self.address, attempts_max)

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
        return AsyncViewCopy(self._requests, name, selection, file, into, subscription)

    async def send(self, call: Call[Result]) -> Result:
        """Send a request, several times if it may be repeated and fails for a moment."""
        return await self._requests.send(call)


class AsyncViewCopy(CopyOfView):
    """A copy of a view, which is as of one version at every moment."""

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
        return await self._read_to_end(wait_for)

    async def follow(self) -> AsyncIterator[ViewDelta]:
        """Yield deltas as they are committed, for ever, over lost connections and restarts."""
        backoff = Backoff()
        while not self._stopping.is_set():
            for delta in await self._next_deltas(backoff):
                yield delta
