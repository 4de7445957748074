"""Delivery of a message over HTTP, by the conventions of Standard Webhooks.

    POST /hooks HTTP/1.1
    webhook-id: msg_5f0c…                       of the message, the same at every attempt
    webhook-timestamp: 1795000000               of the attempt
    webhook-signature: v1,K5oZ…                 HMAC-SHA256 of `id.timestamp.body`, for each secret

    {"type":"left","timestamp":"2026-11-18T…Z","data":{"rule":"farewell","arguments":["ann",300]}}

2xx is a delivery, and 410 stops the target. Everything else is a failure, redirects too; a
`Retry-After` is respected. An attempt has a time in which it must end, whatever the receiver does,
and little is read of its answer.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx

from deltalog.runtime.deliveries import Outcome
from deltalog.runtime.messages import Message
from deltalog.service.addresses import (
    Address,
    AddressRefusedError,
    Resolve,
    checked_addresses,
    is_allowed,
    resolve_name,
)
from deltalog.service.targets import HttpTarget

ANSWER_BYTES_MAX = 16_384
ANSWER_CHARACTERS_SHOWN = 200
STOPPED = 410


def webhook_body(message: Message) -> bytes:
    """The body of a message: the same bytes at every attempt."""
    stored = json.loads(message.payload)
    data = {"rule": message.rule, "arguments": stored["arguments"]}
    made = {"type": message.name, "timestamp": stored["time"], "data": data}
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()


def body_signatures(secrets: Sequence[bytes], id_: str, timestamp: int, body: bytes) -> str:
    """The signatures of a body, one for each secret."""
    signed = f"{id_}.{timestamp}.".encode() + body
    found = (hmac.new(secret, signed, hashlib.sha256).digest() for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(each).decode()}" for each in found)


class Webhook:
    """The connections to one target; names of other targets never share them."""

    def __init__(self, target: HttpTarget, resolve: Resolve = resolve_name) -> None:
        self._target = target
        self._resolve = resolve
        self._client = httpx.AsyncClient(
            verify=ssl.create_default_context(),
            trust_env=False,  # a proxy would connect to another address than the checked one
            follow_redirects=False,
            timeout=target.timeout_seconds,
        )

    async def deliver(self, message: Message) -> Outcome:
        """Try to deliver a message; never raises for what a receiver or a network does."""
        try:
            async with asyncio.timeout(self._target.timeout_seconds):
                return await self._post_message(message)
        except TimeoutError:
            return Outcome(f"no answer within {self._target.timeout_seconds:g} seconds")
        except AddressRefusedError as error:
            return Outcome(str(error))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return Outcome(f"{type(error).__name__}: {error}".rstrip(": "))

    async def _post_message(self, message: Message) -> Outcome:
        url = httpx.URL(self._target.url)
        host = url.raw_host.decode().strip("[]")
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = await checked_addresses(host, port, self._target.networks, self._resolve)
        if url.scheme == "http":
            self._check_plain(addresses)
        body, timestamp = webhook_body(message), int(time.time())
        headers = {
            "host": urlsplit(str(url)).netloc,
            "content-type": "application/json",
            "user-agent": "deltalog",
            "webhook-id": message.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": body_signatures(self._target.secrets, message.id, timestamp, body),
        }
        if self._target.authorization:
            headers["authorization"] = self._target.authorization
        failure: httpx.HTTPError | None = None
        for address in addresses:
            try:
                return await self._post_to(url.copy_with(host=str(address)), host, headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        assert failure is not None
        raise failure

    def _check_plain(self, addresses: Sequence[Address]) -> None:
        for address in addresses:
            if not is_allowed(address, self._target.networks):
                raise AddressRefusedError(
                    "plain http is only for networks that are allowed; use https"
                )

    async def _post_to(
        self, url: httpx.URL, host: str, headers: dict[str, str], body: bytes
    ) -> Outcome:
        request = self._client.build_request("POST", url, headers=headers, content=body)
        request.extensions["sni_hostname"] = host  # the certificate is that of the name
        response = await self._client.send(request, stream=True)
        try:
            answer = await _first_bytes(response)
        finally:
            await response.aclose()
        return _outcome_of(response, answer)

    async def close(self) -> None:
        await self._client.aclose()


async def _first_bytes(response: httpx.Response) -> bytes:
    """The first bytes of an answer, as they came: unpacking could make many of few."""
    found = b""
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) >= ANSWER_BYTES_MAX:
            break
    return found[:ANSWER_BYTES_MAX]


def _outcome_of(response: httpx.Response, answer: bytes) -> Outcome:
    if response.is_success:
        return Outcome()
    text = answer.decode("utf-8", "replace")[:ANSWER_CHARACTERS_SHOWN]
    shown = "".join(c if c.isprintable() else " " for c in text).strip()
    reason = f"status {response.status_code}{f': {shown}' if shown else ''}"
    is_stopped = response.status_code == STOPPED
    return Outcome(reason, _retry_seconds(response.headers.get("retry-after")), is_stopped)


def _retry_seconds(retry_after: str | None) -> float:
    """The seconds that `Retry-After` asks for, as a number or as a time; 0 if nothing sensible."""
    if retry_after is None:
        return 0.0
    if retry_after.strip().isdecimal():
        return float(retry_after[:10])
    try:
        return max(parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return 0.0
