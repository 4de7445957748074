"""The way to a service over HTTP: headers, times, repetitions, and answers that are errors.

What both clients do is written once, as coroutines. Those of the client that blocks never wait for
anything but its socket and its clock, so `run_blocking` runs them without an event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import httpx

from deltalog.client.backoff import Backoff
from deltalog.client.calls import Call, Result
from deltalog.client.errors import ServiceError, refusal_error, unreachable_error
from deltalog.service.settings import LOOPBACK_NAMES

ATTEMPTS_MAX = 6
"""How often a request is sent that fails for a moment."""
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""Longer than any long poll lasts."""


def connection_options(address: str, token: str | None) -> dict[str, Any]:
    """Arguments of a client of `httpx`; this machine is never reached through a proxy."""
    return {
        "base_url": address,
        "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
        "timeout": httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        "trust_env": httpx.URL(address).host not in LOOPBACK_NAMES,
    }


@contextmanager
def translate_transport_errors(address: str) -> Iterator[None]:
    """Turn errors of the transport into one of the client."""
    try:
        yield
    except httpx.HTTPError as error:
        raise unreachable_error(address, error) from error


def read_answer(response: httpx.Response) -> httpx.Response:
    """The answer, unless it is an error."""
    if response.is_success:
        return response
    document: Any = None
    if "json" in response.headers.get("content-type", ""):
        document = response.json()
    raise refusal_error(response.status_code, document, response.headers.get("retry-after"))


class Transport(Protocol):
    """Sends one request, and waits."""

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response: ...
    async def sleep(self, seconds: float) -> None: ...


class BlockingTransport:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._http.request(method, path, **options)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class AsyncTransport:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return await self._http.request(method, path, **options)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_blocking(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that gives control to nobody."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("it waits for an event loop")


class Requests:
    """The requests of a client to the service at an address."""

    def __init__(self, transport: Transport, address: str, attempts_max: int) -> None:
        self._transport = transport
        self.sleep = transport.sleep
        self._address = address
        self._attempts_max = attempts_max

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
                await self.sleep(backoff.seconds(error.retry_seconds))
        raise AssertionError("unreachable")

    async def _answer_call(self, call: Call[Any]) -> Any:
        with translate_transport_errors(self._address):
            response = await self._transport.request(
                call.method,
                call.path,
                json=call.body,
                params=call.parameters,
                headers=call.headers,
            )
        return read_answer(response).json()

    async def read_stream(self, path: str, parameters: Mapping[str, str]) -> httpx.Response:
        """One read of a stream."""
        with translate_transport_errors(self._address):
            response = await self._transport.request("GET", path, params=parameters)
        return read_answer(response)
