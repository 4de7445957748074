"""A service that is killed loses nothing that it answered, and applies nothing twice.

Each transaction has a key and is offered until it is answered; the process is killed by SIGKILL
between and during transactions, and started again on the same file.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from pathlib import Path

import httpx
from serving import GRAPH

import deltalog
from waiting import HANG_SECONDS, wait_until

KILLS = 4
TRANSACTIONS = 40
COUNTER = """
    base entry(id: int key, amount: int).
    base step(number: int key, left: int).
    total(sum(A)) :- entry(_, A).
"""


class Process:
    """A service in a process of its own."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "deltalog.cli.main", "serve", str(path), "--port", "0"]
        self._process = subprocess.Popen(
            [*command, "--engine", "reference"], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        self.address = ""
        for line in self._process.stderr:
            if '"listening"' in line:
                self.address = json.loads(line)["address"]
                break
        assert self.address
        self._drain = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._drain.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(HANG_SECONDS)
        self._drain.join(HANG_SECONDS)
        assert self._process.stderr is not None
        self._process.stderr.close()


def test_keys_survive_kills(tmp_path: Path) -> None:
    path = tmp_path / "counter.db"
    deltalog.connect(path, program=COUNTER, engine="reference").close()
    generator = random.Random(17)
    process = Process(path)
    versions: dict[int, int] = {}
    kills = set(generator.sample(range(TRANSACTIONS), KILLS))
    for number in range(TRANSACTIONS):
        changes = {"insert": {"entry": [[number, number]]}, "set": {"step": [[0, number]]}}
        headers = {"Idempotency-Key": f"entry {number}"}
        if number in kills:
            process = _offered_while_killed(process, path, changes, headers)
        for _ in range(2):  # the answer of the first may have been lost
            answer = httpx.post(
                f"{process.address}/v1/transactions",
                json=changes,
                headers=headers,
                timeout=HANG_SECONDS,
                trust_env=False,
            )
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert versions.setdefault(number, found["version"]) == found["version"]
        assert found["is_repeated"]
    process.kill()
    with deltalog.connect(path, engine="reference") as database:
        assert database.version == TRANSACTIONS
        assert sorted(versions.values()) == list(range(1, TRANSACTIONS + 1))
        assert database.facts("total") == {(sum(range(TRANSACTIONS)),)}
        assert database.audit() == ()


def _offered_while_killed(
    process: Process, path: Path, changes: object, headers: dict[str, str]
) -> Process:
    """Offer a transaction and kill the service meanwhile; returns the one that comes after it."""
    ended = threading.Event()

    def offer() -> None:
        try:
            httpx.post(
                f"{process.address}/v1/transactions",
                json=changes,
                headers=headers,
                timeout=HANG_SECONDS,
                trust_env=False,
            )
        except httpx.HTTPError:
            pass
        finally:
            ended.set()

    threading.Thread(target=offer, daemon=True).start()
    process.kill()
    wait_until(ended.is_set, "the request has ended")
    return Process(path)


def test_a_graph_is_served_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    deltalog.connect(path, program=GRAPH, engine="reference").close()
    first = Process(path)
    changes = {"insert": {"edge": [[1, 2]]}}
    done = httpx.post(f"{first.address}/v1/transactions", json=changes, trust_env=False).json()
    first.kill()
    second = Process(path)
    asked = f"{second.address}/v1/views/path/rows?wait_for={done['offset']}"
    assert httpx.get(asked, trust_env=False).json()["rows"] == [[1, 2]]
    second.kill()
