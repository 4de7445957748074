"""Interop: published clients of Durable Streams follow a recursive view, and hold what it holds.

Nobody here wrote them: `durable-streams` from PyPI, `@durable-streams/client` and
`@durable-streams/state` from npm. The service and the clients are killed on the way.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
from pathlib import Path
from typing import Any

import durable_streams
import httpx
import pytest
from interop import HAS_NODE, NO_NODE, NODE, node_folder, served

import deltalog
from served_command import ServedFile
from waiting import HANG_SECONDS, wait_until

CLOSURE = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
ROUNDS, COMMITS, NODES = 3, 8, 7
Rows = set[tuple[Any, ...]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.db"
    with deltalog.connect(path, program=CLOSURE, facts={"edge": [(1, 2), (2, 3)]}):
        pass
    return path


class Writer:
    """Random transactions, and the rows of the view that they lead to."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._last = 100
        self._model = deltalog.connect(
            program=CLOSURE, facts={"edge": [(1, 2), (2, 3)]}, engine="reference"
        )

    def commit(self, service: ServedFile) -> str:
        """Commit a random transaction; returns the offset behind it."""
        return self._commit(service, [self._random.randrange(NODES), self._random.randrange(NODES)])

    def commit_all(self, service: ServedFile) -> str:
        """Commit several, the last of which changes the view, so that clients see its offset."""
        for _ in range(COMMITS):
            self.commit(service)
        self._last += 1
        return self._commit(service, [self._last, self._last + 1])

    def _commit(self, service: ServedFile, row: list[int]) -> str:
        side = "delete" if tuple(row) in self._model.facts("edge") else "insert"
        self._model.apply(**{side: {"edge": [row]}})
        return service.apply(**{side: {"edge": [row]}})

    @property
    def rows(self) -> Rows:
        return self._model.facts("path")


class PythonClient:
    """A copy held by `durable-streams`, with the offset behind it."""

    def __init__(self, address: str, live: Any) -> None:
        self._address, self._live = address, live
        self.state: dict[str, Any] = {}
        self.offset = "-1"
        self._is_over = False

    def run(self) -> None:
        while not self._is_over:
            try:
                self._follow()
            except (httpx.HTTPError, durable_streams.DurableStreamError):
                continue  # the service is away: resume

    def _follow(self) -> None:
        with durable_streams.stream(
            self._address, offset=self.offset, live=self._live, timeout=5.0
        ) as response:
            for event in response.iter_events(mode="json"):
                for message in event.data:
                    self._apply(message)
                self.offset = event.next_offset
                if self._is_over:
                    return

    def _apply(self, message: dict[str, Any]) -> None:
        headers = message["headers"]
        if headers.get("control") == "reset":
            self.state.clear()
        elif headers.get("operation") == "delete":
            self.state.pop(message["key"], None)
        elif "operation" in headers:
            self.state[message["key"]] = message["value"]

    @property
    def rows(self) -> Rows:
        return {tuple(value.values()) for value in list(self.state.values())}

    def stop(self) -> None:
        self._is_over = True


@pytest.mark.parametrize("live", ["long-poll", "sse"])
def test_the_client_of_pypi_follows(file: Path, live: str) -> None:
    writer = Writer(1)
    with served(file) as service:
        client = PythonClient(service.stream("path"), live)
        thread = threading.Thread(target=client.run, daemon=True)
        thread.start()
        for number in range(ROUNDS):
            last = writer.commit_all(service)
            wait_until(lambda last=last: client.offset >= last, "it has caught up")  # type: ignore[misc]
            assert client.rows == writer.rows
            if number < ROUNDS - 1:
                service.kill()
                service.start()
        client.stop()
        writer.commit(service)
        thread.join(HANG_SECONDS)


class NodeClient:
    """A copy held by the packages of npm, in a process that writes it down."""

    def __init__(self, folder: Path, address: str, copy: Path, live: str) -> None:
        command = [str(NODE), str(folder / "follow.mjs"), address, str(copy), live]
        self._copy = copy
        self._process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    @property
    def kept(self) -> dict[str, Any]:
        assert self._process.poll() is None, self._process.stderr and self._process.stderr.read()
        if not self._copy.exists():
            return {"offset": "-1", "events": []}
        found: dict[str, Any] = json.loads(self._copy.read_text(encoding="utf-8"))
        return found

    @property
    def rows(self) -> Rows:
        return {tuple(event["value"].values()) for event in self.kept["events"]}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(HANG_SECONDS)


@pytest.mark.skipif(not HAS_NODE, reason=NO_NODE)
@pytest.mark.parametrize("live", ["long-poll", "sse"])
def test_the_clients_of_npm_follow(file: Path, live: str, tmp_path: Path) -> None:
    writer, folder, copy = Writer(2), node_folder(), tmp_path / "copy.json"
    with served(file) as service:
        client = NodeClient(folder, service.stream("path"), copy, live)
        for number in range(ROUNDS):
            last = writer.commit_all(service)
            held = client
            wait_until(lambda: held.kept["offset"] >= last, "it has caught up")  # noqa: B023
            assert client.rows == writer.rows
            if number == 0:
                service.kill()
                service.start()
            elif number == 1:
                client.kill()
                writer.commit_all(service)
                client = NodeClient(folder, service.stream("path"), copy, live)
        client.kill()
