"""The server: uvicorn, told to stop in an order in which nothing that was acknowledged is lost.

    a signal ─▶ `stopping` is set: streams end and tell their clients to resume
             ─▶ no new connections; requests that have begun end, up to `stop_seconds`
             ─▶ the application ends: the database is closed, and with it its log

A commit is acknowledged when it is in the file, so even a process that is killed loses none.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from deltalog.diagnostics import service_catalogue as catalogue
from deltalog.diagnostics.report import DataError
from deltalog.service.app import make_app
from deltalog.service.host import Host
from deltalog.service.logs import log_event
from deltalog.service.settings import ServiceSettings

BACKLOG = 2_048
STOPPED_BY = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """Sets the event `stopping` of its application as soon as it is asked to stop."""

    def __init__(
        self,
        app: FastAPI,
        settings: ServiceSettings,
        on_started: Callable[[], None] = lambda: None,
    ) -> None:
        self.app = app
        self._on_started = on_started
        self._loop: asyncio.AbstractEventLoop | None = None
        super().__init__(_server_configuration(app, settings))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)  # first: it forces the end if a stop is under way
        self.stop()

    def stop(self) -> None:
        """End from any thread: streams first, then requests, then the database."""
        self.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.app.state.stopping.set)


def _server_configuration(app: FastAPI, settings: ServiceSettings) -> uvicorn.Config:
    certificate, key = settings.tls_certificate, settings.tls_key
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        lifespan="on",
        proxy_headers=settings.is_behind_proxy,
        forwarded_allow_ips="127.0.0.1" if settings.is_behind_proxy else None,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
        timeout_graceful_shutdown=int(max(settings.stop_seconds, 1)),
    )


def serve_until_signal(
    host: Host, settings: ServiceSettings, announce: Callable[[str], None] = lambda _: None
) -> None:
    """Serve until a signal ends it; `announce` gets the address once there is one."""
    listening = listening_socket(settings)
    scheme = "http" if settings.tls_certificate is None else "https"
    name, port = listening.getsockname()[:2]
    shown = f"[{name}]" if ":" in name else name
    address = f"{scheme}://{shown}:{port}"

    def on_started() -> None:
        announce(address)
        log_event("listening", address=address, version=host.version)

    server = Server(make_app(host, settings), settings, on_started)
    try:
        with _signals_handled():
            server.run([listening])
    finally:
        listening.close()
        log_event("stopped", version=host.version)


@contextmanager
def _signals_handled() -> Iterator[None]:
    """Let a stop that went well end the command: uvicorn raises its signal once more afterwards."""
    before = {each: signal.signal(each, lambda *_: None) for each in STOPPED_BY}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def listening_socket(settings: ServiceSettings) -> socket.socket:
    """A socket that is bound already, so that port 0 has become one that can be announced."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((settings.host, settings.port))
    except OSError as error:
        made.close()
        reason = (error.strerror or str(error)).lower()
        hint = "`--port 0` takes a free one" if error.errno == errno.EADDRINUSE else None
        wrong = catalogue.CANNOT_LISTEN.at(
            None, host=settings.host, port=settings.port, reason=reason, hint=hint
        )
        raise DataError([wrong]) from error
    return made
