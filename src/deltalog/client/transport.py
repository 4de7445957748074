"""The way to a service over HTTP: headers, times, and answers that are errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from deltalog.client.errors import refusal_error, unreachable_error
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
