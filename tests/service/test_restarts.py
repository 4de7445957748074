"""Restarts under load: nothing that was answered is lost, and nothing arrives twice.

Writers offer transactions with keys until they are answered, subscribers follow, and the service is
stopped or killed in between. DELTALOG_RESTARTS says how often (2; `make fuzz` uses 20).
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import httpx
from recording import Recorder

import deltalog
from served_command import ServedFile
from waiting import HANG_SECONDS, wait_until

DEFAULT = "20" if os.environ.get("DELTALOG_FUZZ") else "2"
RESTARTS = int(os.environ.get("DELTALOG_RESTARTS", DEFAULT))
PROGRAM = "base made(writer: int, number: int).\nshown(W, N) :- made(W, N)."
WRITERS = 2
COMMITS_EACH = 5
"""Commits of every writer between two restarts, at least."""


class Writer(threading.Thread):
    """Commits a fact of its own after the other, each until it is answered."""

    def __init__(self, service: ServedFile, number: int) -> None:
        super().__init__(daemon=True)
        self._address = f"{service.address}/v1/transactions"
        self._client = httpx.Client(timeout=HANG_SECONDS, trust_env=False, verify=False)
        self.number = number
        self.versions: list[int] = []
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            fact = [self.number, len(self.versions)]
            headers = {"Idempotency-Key": f"{fact}"}
            try:
                answer = self._client.post(
                    self._address, json={"insert": {"made": [fact]}}, headers=headers
                )
            except httpx.TransportError:
                time.sleep(0.01)
                continue  # it may be committed: offered again
            if answer.status_code == 200:
                self.versions.append(answer.json()["version"])

    @property
    def facts(self) -> set[tuple[int, int]]:
        return {(self.number, n) for n in range(len(self.versions))}


def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    path = tmp_path / "restarted.db"
    deltalog.connect(path, program=PROGRAM, engine="reference").close()
    service = ServedFile(path, ["--engine", "reference"])
    service.start()
    modes = ("long-poll", "sse", "catch-up")
    clients = [Recorder("shown", mode, {}, seed) for seed, mode in enumerate(modes)]
    writers = [Writer(service, number) for number in range(WRITERS)]
    for client in clients:
        client.address = service.stream("shown")
    for thread in (*clients, *writers):
        thread.start()
    for number in range(RESTARTS):
        wanted = {each: len(each.versions) + COMMITS_EACH for each in writers}
        for each, count in wanted.items():
            wait_until(lambda each=each, n=count: len(each.versions) >= n, "it writes")  # type: ignore[misc]
        (service.kill if number % 2 else service.stop)()
        service.start()
    for writer in writers:
        writer.is_over = True
        writer.join(HANG_SECONDS)
    expected = set().union(*(writer.facts for writer in writers))
    for client in clients:
        wait_until(
            lambda each=client: bool(
                each.problem or (each.steps and each.steps[-1].copy == expected)
            ),  # type: ignore[misc]
            "it has everything",
        )
        client.end(HANG_SECONDS)
        assert client.problem is None
        assert client.expired == 0
        arrived = [row for step in client.steps for row in step.inserted]
        assert len(arrived) == len(set(arrived)) == len(expected)
        assert not any(step.deleted for step in client.steps)
    service.stop()
    with deltalog.connect(path, engine="reference") as database:
        assert database.facts("shown") == expected
        versions = sorted(version for writer in writers for version in writer.versions)
        assert versions == list(range(1, len(expected) + 1)) == list(range(1, database.version + 1))
