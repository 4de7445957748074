"""A service of streams in this process, on a real socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from deltalog.runtime.database import MemoryDatabase
from deltalog.service.app import make_app
from deltalog.service.host import Host
from deltalog.service.server import Server, listening_socket
from deltalog.service.settings import ServiceSettings
from deltalog.service.streams import Streams, StreamTimes
from waiting import HANG_SECONDS

QUICK = StreamTimes(long_poll=1.0, heartbeat=0.2, connection=5.0)


class Service:
    """A running service: its address, and its database, whose verbs run in its own thread."""

    def __init__(self, address: str, server: Server, host: Host) -> None:
        self.address = address
        self.server = server
        self.host = host

    def call(self, function: Callable[[MemoryDatabase], Any]) -> Any:
        """Run a function with the database, as a request would."""
        assert self.server._loop is not None
        future = asyncio.run_coroutine_threadsafe(self.host.call(function), self.server._loop)
        return future.result(HANG_SECONDS)

    def on_loop(self, function: Callable[[], Any]) -> Any:
        """Run a function in the event loop of the service."""

        async def run() -> Any:
            return function()

        assert self.server._loop is not None
        future = asyncio.run_coroutine_threadsafe(run(), self.server._loop)
        return future.result(HANG_SECONDS)

    @property
    def streams(self) -> Streams:
        found: Streams = self.server.app.state.streams
        return found

    def apply(self, **sides: Any) -> Any:
        return self.call(lambda database: database.apply(**sides, views=()))

    def stream(self, view: str, **parameters: str) -> str:
        shown = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"{self.address}/v1/views/{view}/stream" + (f"?{shown}" if shown else "")


@contextmanager
def serving(
    database: MemoryDatabase,
    times: StreamTimes = QUICK,
    settings: ServiceSettings | None = None,
    adapt: Callable[[Any], None] = lambda _: None,
) -> Iterator[Service]:
    """Serve a database until the block ends; then it is closed."""
    settings = settings or ServiceSettings(port=0)
    started = threading.Event()
    host = Host(database)
    app = make_app(host, settings)
    app.state.stream_times = times
    adapt(app)
    server = Server(app, settings, started.set)
    listening = listening_socket(settings)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    assert started.wait(HANG_SECONDS)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield Service(address, server, host)
    finally:
        server.stop()
        thread.join(HANG_SECONDS)
        listening.close()
        assert not thread.is_alive()
