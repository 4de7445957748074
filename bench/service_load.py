"""Load on the service: delivery times with many subscribers, and the cost of many bindings.

    python -m bench.service_load [--seconds 10] [--subscribers 1000] [--views 50] [--rate 200]

The service runs in a process of its own; writer and subscribers share this one, over real sockets.
A commit changes one view; its time is written into the fact, so a delivery knows its age.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

import deltalog
from deltalog.analysis.relation import Relation
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.feeds import Feeds
from deltalog.service.host import Host
from deltalog.service.selections import Selection

CLOSURE = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""


def program(views: int) -> str:
    """Views that do not depend on each other."""
    lines = [
        f"base fact{n}(id: int, sent: int). view{n}(I, T) :- fact{n}(I, T)." for n in range(views)
    ]
    return "\n".join(lines)


class Subscribers:
    """Connections that read events; each notes the age of what it gets."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.ages: list[float] = []
        self.ready = 0
        self.received: dict[int, int] = {}

    async def follow(self, number: int, view: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        address = f"/v1/views/{view}/stream?offset=now&live=sse"
        writer.write(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        self.received[number] = 0
        try:
            while line := await reader.readline():
                if line.startswith(b"event: control") and self.received[number] == 0:
                    self.ready += 1
                    self.received[number] = 1
                elif line.startswith(b"data:[{"):
                    now = time.time_ns()
                    for message in json.loads(line[5:]):
                        self.ages.append((now - message["value"]["t"]) / 1e6)
                        self.received[number] += 1
        finally:
            writer.close()


async def deliveries(port: int, views: int, count: int, rate: float, seconds: float) -> None:
    subscribers = Subscribers(port)
    tasks = [asyncio.create_task(subscribers.follow(n, f"view{n % views}")) for n in range(count)]
    while subscribers.ready < count:
        await asyncio.sleep(0.1)
    commits = int(rate * seconds)
    started, late = time.perf_counter(), 0
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=600) as client:
        for number in range(commits):
            due = started + number / rate
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            late += time.perf_counter() - due > 1 / rate
            row = [number, time.time_ns()]
            body = {"insert": {f"fact{number % views}": [row]}}
            (await client.post("/v1/transactions", json=body)).raise_for_status()
    took = time.perf_counter() - started
    expected = sum(len(range(n % views, commits, views)) for n in range(count))
    until = time.perf_counter() + 60
    while len(subscribers.ages) < expected and time.perf_counter() < until:
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    ages = sorted(subscribers.ages)
    print(
        f"{count} subscribers of {views} views, {commits} commits in {took:.1f} s "
        f"({commits / took:.0f}/s, {rate:g}/s wanted): {len(ages)} of {expected} deliveries, "
        f"p50 {ages[len(ages) // 2]:.1f} ms, p99 {ages[len(ages) * 99 // 100]:.1f} ms"
    )


async def bindings_cost(bindings: int) -> float:
    """Milliseconds of a commit, and of its distribution, in the median."""
    host = Host(deltalog.connect(program=CLOSURE))
    await host.start()
    feeds, relation = Feeds(host), host.relations["path"]
    for number in range(bindings):
        feeds.enter(_bound(relation, number))
    times = []
    for number in range(300):
        before = time.perf_counter()
        await host.call(lambda db, n=number: _commit(db, n))  # type: ignore[misc]
        times.append(time.perf_counter() - before)
    await host.stop()
    return sorted(times[100:])[100] * 1e3


def _bound(relation: Relation, number: int) -> Selection:
    return Selection(relation, (0,), (number,))


def _commit(database: MemoryDatabase, number: int) -> None:
    edge = {"edge": [(number % 10, 1_000_000 + number)]}
    database.apply(insert=edge, views=())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--subscribers", type=int, default=1_000)
    options.add_argument("--views", type=int, default=50)
    options.add_argument("--rate", type=float, default=200)
    chosen = options.parse_args()
    for bindings in (10, 1_000, 10_000):
        cost = asyncio.run(bindings_cost(bindings))
        print(f"{bindings:6} bindings of one recursive view: {cost:.3f} ms per commit")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.db"
        deltalog.connect(path, program=program(chosen.views)).close()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        command = [sys.executable, "-m", "deltalog.cli.main", "serve", str(path)]
        command += ["--port", str(port), "--requests-per-second", "1000000"]
        with (Path(folder) / "log").open("wb") as log:
            service = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_ready(port)
            arguments = chosen.views, chosen.subscribers, chosen.rate, chosen.seconds
            asyncio.run(deliveries(port, *arguments))
        finally:
            service.terminate()
            service.wait(60)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"memory of the service at its peak: {peak:.0f} MB")


def _wait_ready(port: int) -> None:
    for _ in range(600):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise SystemExit("the service does not start")


if __name__ == "__main__":
    main()
