"""A service on a real socket, in a thread of the test, and a client of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx

import deltalog
from deltalog.service.app import make_app
from deltalog.service.host import Host
from deltalog.service.server import Server, listening_socket
from deltalog.service.settings import ServiceSettings
from waiting import HANG_SECONDS, wait_until

GRAPH = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""


class Service:
    """A running service: `client` calls it, `server` stops it."""

    def __init__(self, server: Server, address: str) -> None:
        self.server = server
        self.address = address
        self.client = httpx.Client(base_url=address, timeout=HANG_SECONDS, trust_env=False)

    def call(self, method: str, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return self.client.request(method, path, headers=headers, **more)

    def get(self, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        return self.call("GET", path, token, **more)

    def post(self, path: str, json: Any, token: str | None = None, **more: Any) -> httpx.Response:
        return self.call("POST", path, token, json=json, **more)


@contextmanager
def serving(database: deltalog.MemoryDatabase, **settings: Any) -> Iterator[Service]:
    """Serve a database, which is closed with the service."""
    chosen = replace(ServiceSettings(port=0), **settings)
    listening = listening_socket(chosen)
    port = listening.getsockname()[1]
    server = Server(make_app(Host(database), chosen), chosen)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), "the service listens")
    service = Service(server, f"http://127.0.0.1:{port}")
    try:
        yield service
    finally:
        service.client.close()
        server.stop()
        thread.join(HANG_SECONDS)
        listening.close()
