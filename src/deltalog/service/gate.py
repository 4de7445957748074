"""The gate before every route, for names, origins and sizes; and a note of every request.

Host      on loopback only names of this machine, or a page that resolves its own name to
          127.0.0.1 could read everything (DNS rebinding)
Origin    the service's own, or one of the settings; of WebSockets, too, which CORS leaves alone
body      read before anything else, up to a number of bytes
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from time import perf_counter
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deltalog.diagnostics import service_catalogue
from deltalog.service.logs import log_event
from deltalog.service.metrics import Metrics
from deltalog.service.problems import Problem, http_problem, internal_problem, problem_response
from deltalog.service.settings import LOOPBACK_NAMES, ServiceSettings

REQUESTS = "deltalog_http_requests_total"
SECONDS = "deltalog_http_request_seconds"
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "WEBSOCKET")
_WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")


class Gate:
    """ASGI middleware that refuses what must not reach a route."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._settings = settings
        self._names: frozenset[str] = frozenset()
        if settings.is_loopback:
            known = (*LOOPBACK_NAMES, settings.host, *settings.names)
            self._names = frozenset(name.lower() for name in known)
        elif settings.names:
            self._names = frozenset(name.lower() for name in settings.names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            self.check_headers(Headers(scope=scope))
            if scope["type"] == "http" and scope["method"] in _WITH_BODY:
                receive = await self._with_body(scope, receive)
        except Problem as refused:
            await _refuse_request(refused, scope, receive, send)
            return
        await self._app(scope, receive, send)

    def check_headers(self, headers: Headers) -> None:
        """Raise unless the request names this service and comes from a page that may use it."""
        host = headers.get("host", "")
        name = _host_name(host)
        if self._names and name.lower() not in self._names:
            raise http_problem(421, service_catalogue.FOREIGN_HOST, host=name)
        origin = headers.get("origin")
        if origin is None or origin in self._settings.origins:
            return
        if _netloc_of(origin).lower() != host.lower():
            hint = f"`deltalog serve --origin {origin}` allows them"
            raise http_problem(403, service_catalogue.FOREIGN_ORIGIN, origin=origin, hint=hint)

    async def _with_body(self, scope: Scope, receive: Receive) -> Receive:
        limit = self._settings.body_bytes_max
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            raise http_problem(413, service_catalogue.BODY_TOO_LARGE, limit=limit)
        body, is_more = bytearray(), True
        while is_more:
            message = await receive()
            if message["type"] != "http.request":
                return _replaying_receive([message], receive)
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
            if len(body) > limit:
                raise http_problem(413, service_catalogue.BODY_TOO_LARGE, limit=limit)
        whole: Message = {"type": "http.request", "body": bytes(body), "more_body": False}
        return _replaying_receive([whole], receive)


def _netloc_of(address: str) -> str:
    """Name and port in an address; none if it is not one."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    """The name in a header `Host`, without port and brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host


def _replaying_receive(messages: Iterable[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def replay() -> Message:
        for message in waiting:
            return message
        return await receive()

    return replay


async def _refuse_request(refused: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    response = problem_response(refused)
    if scope["type"] == "websocket":
        await receive()  # the request to connect
        await send({"type": "websocket.close", "code": 1008, "reason": refused.codes[0]})
        return
    await response(scope, receive, send)


class Observer:
    """ASGI middleware that logs, counts and times each request, and answers for bugs."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id, started, status = secrets.token_hex(8), perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                headers["x-content-type-options"] = "nosniff"
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            log_event("internal error", logging.ERROR, exc_info=error, request_id=request_id)
            if status == 0 and scope["type"] == "http":
                response: Response = internal_problem(request_id)
                await response(scope, receive, noting)
            status = status or 500
        finally:
            self._note_request(scope, status, perf_counter() - started, request_id)

    def _note_request(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope.get("method", "WEBSOCKET")
        method = method if method in _METHODS else "OTHER"  # anybody may invent methods
        self._metrics.count(REQUESTS, method=method, route=route, status=str(status))
        self._metrics.observe(SECONDS, seconds, route=route)
        caller = scope.get("state", {}).get("caller")
        log_event(
            "request",
            method=method,
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 3),
            caller=getattr(caller, "name", None),
            request_id=request_id,
        )
