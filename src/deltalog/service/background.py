"""Serve a database from a thread of the program that has it, for as long as a `with` lasts.

with background_service(database) as address:
    client = Client(address)
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI

from deltalog.runtime.database import MemoryDatabase
from deltalog.service.app import make_app
from deltalog.service.host import Host
from deltalog.service.server import Server, listening_socket
from deltalog.service.settings import ServiceSettings


@contextmanager
def background_service(
    database: MemoryDatabase, settings: ServiceSettings | None = None
) -> Iterator[str]:
    """Yield the address of a service, by default at any free port of this machine.

    The database belongs to the service from here on, and is closed with it.
    """
    chosen = settings or ServiceSettings(port=0)
    with background_app(make_app(Host(database), chosen), chosen) as address:
        yield address


@contextmanager
def background_app(app: FastAPI, chosen: ServiceSettings) -> Iterator[str]:
    """The same for an application that is there already."""
    listening = listening_socket(chosen)
    port = listening.getsockname()[1]
    started = threading.Event()
    server = Server(app, chosen, started.set)

    def run() -> None:
        try:
            server.run([listening])
        finally:
            started.set()

    thread = threading.Thread(target=run, name="deltalog-service", daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://{chosen.host}:{port}"
    finally:
        server.stop()
        thread.join()
        listening.close()
