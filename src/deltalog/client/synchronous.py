"""The client for ordinary code: it blocks, and follows views in a loop or in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    BlockingTransport,
    Requests,
    connection_options,
    run_blocking,
)
from deltalog.language.ast import Row

Callback = Callable[[ViewDelta], object]


class Client:
    """A service at an address; safe to use from several threads.

    Requests that fail for a moment are sent again, transactions too: each has an idempotency key,
    so one that was applied before its answer was lost is not applied again.
    """

    def __init__(
        self, address: str, *, token: str | None = None, attempts_max: int = ATTEMPTS_MAX
    ) -> None:
        self.address = address.rstrip("/")
        self._http = httpx.Client(**connection_options(self.address, token))
        transport = BlockingTransport(self._http)
        self._requests = Requests(transport, self.address, attempts_max)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- verbs

    def apply(
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
        return self.send(calls.transaction_call(insert, delete, set, views, key))

    def what_if(
        self,
        insert: Facts = None,
        delete: Facts = None,
        set: Facts = None,
        *,
        views: Iterable[str] | None = None,
    ) -> Tried:
        """Return the exact change that a transaction would make, without making it."""
        return self.send(calls.what_if(insert, delete, set, views))

    def query(self, text: str, /, *, version: int | None = None, **parameters: Any) -> list[Row]:
        """Return the bindings of a query's variables: `client.query("path($a, Y)", a=1)`."""
        pages = calls.QueryPages()
        while pages.start is not None:
            pages.add(self.send(calls.query_call(text, parameters, version, pages.start)))
        return pages.rows

    def why(self, fact: str, version: int | None = None) -> dict[str, Any]:
        """Return a proof of a fact."""
        return self.send(calls.post_call("/v1/why", calls.known_values(fact=fact, version=version)))

    def why_not(self, fact: str, version: int | None = None) -> dict[str, Any]:
        """Return why a fact does not hold."""
        return self.send(
            calls.post_call("/v1/why-not", calls.known_values(fact=fact, version=version))
        )

    def why_changed(self, fact: str, version: int | None = None) -> dict[str, Any]:
        """Return which base changes of a transaction, the last one by default, changed a fact."""
        body = calls.known_values(fact=fact, version=version)
        return self.send(calls.post_call("/v1/why-changed", body))

    def realize(self, *requests: str, **options: Any) -> dict[str, Any]:
        """Search the changes of base facts that make derived facts true or false."""
        return self.send(calls.post_call("/v1/realize", {"requests": list(requests), **options}))

    def relations(self) -> dict[str, Any]:
        return self.send(calls.get_call("/v1/relations"))

    def status(self) -> dict[str, Any]:
        return self.send(calls.get_call("/v1/status"))

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
    ) -> ViewCopy:
        """A copy of a view, or of the part of it that has the values in `bindings`.

        With a file it is kept there together with its offset, and the next client that opens the
        file continues where this one ended. `into` is a dataclass that rows are shown as. Under
        the name of a `subscription` the service keeps what this copy has not stored yet.
        """
        selection = calls.selection_parameters(name, bindings, every_seconds, every_commits)
        return ViewCopy(self._requests, name, selection, file, into, subscription)

    def send(self, call: Call[Result]) -> Result:
        """Send a request, several times if it may be repeated and fails for a moment."""
        return run_blocking(self._requests.send(call))


class ViewCopy(CopyOfView):
    """A copy of a view, which is as of one version at every moment."""

    _thread: threading.Thread | None = None
    error: Exception | None = None
    """The error that ended the thread of `start`, if one did."""

    def __enter__(self) -> ViewCopy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End following; what was reported is stored."""
        self._close_copy()

    def refresh(self, wait_for: str | None = None) -> list[ViewDelta]:
        """Read up to the end of the stream; `wait_for` is the offset of a commit to be included.

        Returns the deltas, oldest first. One attempt: raises if the service does not answer.
        """
        return run_blocking(self._read_to_end(wait_for))

    def follow(self) -> Iterator[ViewDelta]:
        """Yield deltas as they are committed, for ever, over lost connections and restarts."""
        backoff = Backoff()
        while not self._stopping.is_set():
            yield from run_blocking(self._next_deltas(backoff))

    async def _sleep_seconds(self, seconds: float) -> None:
        self._stopping.wait(seconds)

    def start(self, callback: Callback) -> None:
        """Follow in a thread and call back with each delta, after the copy has it."""

        def run() -> None:
            try:
                for delta in self.follow():
                    callback(delta)
            except Exception as error:
                if not self._stopping.is_set():
                    self.error = error

        self._thread = threading.Thread(target=run, name=f"deltalog-{self.name}", daemon=True)
        self._thread.start()
