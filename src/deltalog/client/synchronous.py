"""The client for ordinary code: it blocks, and follows views in a loop or in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
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
        self._attempts_max = attempts_max
        self._http = httpx.Client(**connection_options(self.address, token))

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
        durable = subscription and DurableSubscription(subscription, name, selection)
        return ViewCopy(self, name, selection, file, into, durable or None)

    # --- the transport

    def send(self, call: Call[Result]) -> Result:
        """Send a request, several times if it may be repeated and fails for a moment."""
        backoff = Backoff()
        for attempt in range(1, self._attempts_max + 1):
            try:
                return call.read(self._answer_call(call))
            except ServiceError as error:
                is_last = attempt == self._attempts_max or not call.is_repeatable
                if is_last or not error.is_temporary:
                    raise
                time.sleep(backoff.seconds(error.retry_seconds))
        raise AssertionError("unreachable")

    def _answer_call(self, call: Call[Any]) -> Any:
        with translate_transport_errors(self.address):
            response = self._http.request(
                call.method,
                call.path,
                json=call.body,
                params=call.parameters,
                headers=call.headers,
            )
        return read_answer(response).json()

    def poll(self, path: str, parameters: Mapping[str, str]) -> Polled:
        """One read of a stream."""
        with translate_transport_errors(self.address):
            response = self._http.get(path, params=parameters)
        return read_poll(read_answer(response))


class ViewCopy(CopyOfView):
    """A copy of a view, which is as of one version at every moment."""

    def __init__(
        self,
        client: Client,
        name: str,
        selection: Mapping[str, str],
        file: str | Path | None,
        into: type | None,
        subscription: DurableSubscription | None = None,
    ) -> None:
        super().__init__(name, selection, file, into)
        self._subscription = subscription
        self._client = client
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None
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
        self._stopping.set()
        self._close_copy()

    def refresh(self, wait_for: str | None = None) -> list[ViewDelta]:
        """Read up to the end of the stream; `wait_for` is the offset of a commit to be included.

        Returns the deltas, oldest first. One attempt: raises if the service does not answer.
        """
        found: list[ViewDelta] = []
        is_up_to_date = False
        while not is_up_to_date:
            deltas, is_up_to_date = self._poll_once(is_live=False, wait_for=wait_for)
            found += deltas
        return found

    def follow(self) -> Iterator[ViewDelta]:
        """Yield deltas as they are committed, for ever, over lost connections and restarts."""
        backoff = Backoff()
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                deltas, _ = self._poll_once(is_live=self.version is not None)
            except ServiceError as error:
                if not error.is_temporary:
                    raise
                self._stopping.wait(backoff.seconds(error.retry_seconds))
                continue
            if not deltas and self._is_idle(started):
                self._stopping.wait(backoff.seconds())
                continue
            backoff.succeeded()
            yield from deltas

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

    def _poll_once(
        self, is_live: bool, wait_for: str | None = None
    ) -> tuple[list[ViewDelta], bool]:
        """One read, and what it changes; after 410 everything is read again."""
        if self._needs_format:
            self._use_format(self._client.send(calls.relation_call(self.name)))
        subscription = self._subscription
        if subscription is not None and not subscription.is_claimed:
            self._client.send(subscription.definition())
            self._client.send(subscription.claim())
        try:
            polled = self._client.poll(self._path, self._poll_parameters(is_live, wait_for))
        except ServiceError as error:
            if error.status != 410:
                raise
            self._restart_copy(self._client.send(calls.relation_call(self.name)))
            return [], False
        deltas = self._apply_polled(polled)
        waiting = None if subscription is None else subscription.acknowledgement(self.offset)
        if waiting is not None:
            self._client.send(waiting)
        return deltas, polled.is_up_to_date
