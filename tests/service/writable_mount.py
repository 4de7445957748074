"""A writable mount for tests: streams of bytes in front of the service, which has none.

    PUT, POST /v1/stream/a     ─▶ POST /v1/transactions          facts entry("a", 0, "…")
    GET, HEAD /v1/stream/a?…   ─▶ GET  /v1/views/log/stream?log.stream=a&…

The published conformance tests write before they read; the service is read only, and its messages
are rows. The mount makes a commit of each append, and sends every read to the real route: offsets,
statuses, headers, cursors, tags and the rhythm of events are those of the service. Of each message
only its payload is shown, and of a snapshot not where it begins and ends.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deltalog.service.event_text import event_text

PROGRAM = """
    base entry(stream: str, position: int, body: str).
    log(S, P, B) :- entry(S, P, B).
"""
PREFIX = "/v1/stream/"
JSON = "application/json"


@dataclass
class Mounted:
    """A stream of bytes: its type, and how many entries it has."""

    type: str
    count: int = 0
    sequence: str = ""

    @property
    def is_json(self) -> bool:
        return _plain(self.type) == JSON

    @property
    def is_text(self) -> bool:
        return self.type.startswith("text/") or self.is_json


def _plain(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


class WritableMount:
    """ASGI application: the service, and beside it streams that can be written."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._streams: dict[str, Mounted] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        name = scope["path"].removeprefix(PREFIX)
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._read(name, scope, receive, send)
        else:
            response = await self._write(name, Request(scope, receive))
            response.headers["x-content-type-options"] = "nosniff"
            await response(scope, receive, send)

    # --- reads

    async def _read(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        stream = self._streams.get(name)
        view = "log" if stream is not None else "missing"
        asked = scope["query_string"].decode("latin-1")
        query = "&".join(each for each in (asked, f"log.s={quote(name)}") if each)
        inner = dict(scope)
        inner["path"] = f"/v1/views/{view}/stream"
        inner["raw_path"] = inner["path"].encode()
        inner["query_string"] = query.encode("latin-1")
        await self._app(inner, receive, send if stream is None else _Unwrapped(stream, send))

    # --- writes

    async def _write(self, name: str, request: Request) -> Response:
        stream = self._streams.get(name)
        if request.method == "PUT":
            return await self._create(name, stream, request)
        if stream is None:
            return Response(status_code=404)
        if request.method == "DELETE":
            del self._streams[name]
            return Response(status_code=204)
        return await self._append(name, stream, request)

    async def _create(self, name: str, stream: Mounted | None, request: Request) -> Response:
        kind = request.headers.get("content-type", "application/octet-stream")
        if stream is not None:
            is_same = _plain(stream.type) == _plain(kind)
            return Response(status_code=200 if is_same else 409, headers={"content-type": kind})
        made = Mounted(kind)
        bodies = _bodies(made, await request.body())
        if bodies is None:
            return Response(status_code=400)
        self._streams[name] = made
        offset = await self._commit(name, made, bodies, request.scope)
        headers = {"content-type": kind, "location": str(request.url), "stream-next-offset": offset}
        return Response(status_code=201, headers=headers)

    async def _append(self, name: str, stream: Mounted, request: Request) -> Response:
        kind = request.headers.get("content-type")
        if kind is None:
            return Response(status_code=400)
        if _plain(kind) != _plain(stream.type):
            return Response(status_code=409)
        sequence = request.headers.get("stream-seq")
        if sequence is not None and sequence <= stream.sequence:
            return Response(status_code=409)
        bodies = _bodies(stream, await request.body())
        if not bodies:
            return Response(status_code=400)
        stream.sequence = sequence or stream.sequence
        offset = await self._commit(name, stream, bodies, request.scope)
        return Response(status_code=204, headers={"stream-next-offset": offset})

    async def _commit(self, name: str, stream: Mounted, bodies: list[str], scope: Scope) -> str:
        """Commit entries, none perhaps; returns the offset behind them."""
        rows = [[name, stream.count + n, body] for n, body in enumerate(bodies)]
        stream.count += len(rows)
        body = json.dumps({"insert": {"entry": rows}}).encode()
        answered: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            answered.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", JSON.encode())]
        path, query = "/v1/transactions", b""
        target = {"path": path, "raw_path": path.encode(), "query_string": query}
        inner = {**scope, **target, "method": "POST", "headers": headers}
        await self._app(inner, receive, send)
        assert answered[0]["status"] == 200, answered
        return MutableHeaders(raw=list(answered[0]["headers"]))["stream-next-offset"]


def _bodies(stream: Mounted, body: bytes) -> list[str] | None:
    """The entries in a body; None if it is not what its type says."""
    if not stream.is_json:
        return [base64.b64encode(body).decode()] if body else []
    if not body:
        return []
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return [json.dumps(each) for each in (found if isinstance(found, list) else [found])]


class _Unwrapped:
    """Sends what the service sends, with payloads instead of messages."""

    def __init__(self, stream: Mounted, send: Send) -> None:
        self._stream = stream
        self._send = send
        self._start: Message = {}
        self._is_events = False
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._is_events:
            events = b"".join(self._events(message.get("body", b"")))
            await self._send({**message, "body": events})
        elif self._start["status"] != 200:
            await self._send(self._start)
            await self._send(message)
        else:
            await self._end(message)

    async def _begin(self, message: Message) -> None:
        self._start = message
        headers = MutableHeaders(scope=message)
        self._is_events = headers.get("content-type", "").startswith("text/event-stream")
        if self._is_events:
            if not self._stream.is_text:
                headers["stream-sse-data-encoding"] = "base64"
            await self._send(message)
        elif message["status"] == 200:
            headers["content-type"] = self._stream.type

    async def _end(self, message: Message) -> None:
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        body = self._payload(json.loads(self._body)) if self._body else b""
        MutableHeaders(scope=self._start)["content-length"] = str(len(body))
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body})

    def _payload(self, messages: list[dict[str, object]]) -> bytes:
        bodies = [each["value"]["b"] for each in messages if each.get("value")]  # type: ignore[index]
        if self._stream.is_json:
            return b"[" + ",".join(bodies).encode() + b"]"
        return b"".join(map(base64.b64decode, bodies))

    def _events(self, sent: bytes) -> Iterator[bytes]:
        for event in sent.split(b"\n\n"):
            if not event.startswith(b"event: data\n"):
                if event:
                    yield event + b"\n\n"
                continue
            payload = self._payload(json.loads(event.partition(b"data:")[2]))
            if payload in (b"", b"[]"):
                continue
            shown = payload if self._stream.is_text else base64.b64encode(payload)
            lines = shown.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            yield event_text("data", b"\ndata:".join(lines))
