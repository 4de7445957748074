"""Load on the service: delivery times with many subscribers, and the cost of many bindings.

    python -m bench.service_load [--seconds 10] [--subscribers 1000] [--views 50] [--rate 200]

The service runs in a process of its own, and so do the subscribers; the writer is this one. All
speak over real sockets. A commit changes one view; the time at which it is offered is written into
the fact, so that a delivery knows its age. The time of processors is measured per delivery, too,
which depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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
MARK = b'"t":'
"""Stands before the time of a commit in its message."""


def program(views: int) -> str:
    """Views that do not depend on each other."""
    lines = [
        f"base fact{n}(id: int, sent: int). view{n}(I, T) :- fact{n}(I, T)." for n in range(views)
    ]
    return "\n".join(lines)


class Subscriber(asyncio.Protocol):
    """A connection that reads events, and notes the age of what it gets."""

    def __init__(self, view: str, ages: list[float], ready: list[str]) -> None:
        self._view, self._ages, self._ready = view, ages, ready
        self._rest = b""
        self.received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        address = f"/v1/views/{self._view}/stream?offset=now&live=sse"
        transport.write(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        now = time.time_ns()
        if self._view and b"event: control" in data:
            self._ready.append(self._view)
            self._view = ""
        text = self._rest + data
        end = text.rfind(b"\n") + 1
        for part in text[:end].split(MARK)[1:]:
            sent = int(part[: part.index(b"}")])
            self._ages.append((now - sent) / 1e6)
            self.received += 1
        self._rest = text[end:]


async def subscribe(port: int, views: int, count: int) -> None:
    """What the process of the subscribers does: ready, then wait for the number of deliveries."""
    loop = asyncio.get_running_loop()
    ages: list[float] = []
    ready: list[str] = []
    made = []
    for number in range(count):
        subscriber = Subscriber(f"view{number % views}", ages, ready)
        await loop.create_connection(lambda each=subscriber: each, "127.0.0.1", port)  # type: ignore[misc]
        made.append(subscriber)
    while len(ready) < count:
        await asyncio.sleep(0.05)
    print("ready", flush=True)
    commits = int(await asyncio.to_thread(sys.stdin.readline))
    wanted = [len(range(number % views, commits, views)) for number in range(count)]
    until = time.perf_counter() + 60
    while len(ages) < sum(wanted) and time.perf_counter() < until:
        await asyncio.sleep(0.05)
    behind = sum(each.received < n for each, n in zip(made, wanted, strict=True))
    ages.sort()
    figures = {
        "deliveries": len(ages),
        "expected": sum(wanted),
        "behind": behind,
        "p50": ages[len(ages) // 2],
        "p99": ages[len(ages) * 99 // 100],
        "most": ages[-1],
    }
    print(json.dumps(figures), flush=True)


def deliveries(port: int, views: int, count: int, rate: float, seconds: float) -> dict[str, Any]:
    """Commit at a rate; returns the figures of the subscribers, and the rate that was reached."""
    command = [sys.executable, "-m", "bench.service_load", "--subscribe", str(port)]
    command += ["--views", str(views), "--subscribers", str(count)]
    subscribers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert subscribers.stdin is not None
    assert subscribers.stdout is not None
    assert subscribers.stdout.readline() == b"ready\n"
    commits = int(rate * seconds)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as client:
        started = time.perf_counter()
        for number in range(commits):
            due = started + number / rate
            time.sleep(max(due - time.perf_counter(), 0))
            body = {"insert": {f"fact{number % views}": [[number, time.time_ns()]]}}
            client.post("/v1/transactions", json=body).raise_for_status()
        took = time.perf_counter() - started
    out, _ = subscribers.communicate(f"{commits}\n".encode())
    return {**json.loads(out), "commits": commits, "took": took}


def cpu_seconds(pid: int) -> float:
    """The time of processors that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid: int) -> float:
    """The memory of a process at its peak, in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


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
    options.add_argument("--subscribe", type=int, metavar="PORT", help="be the subscribers")
    chosen = options.parse_args()
    if chosen.subscribe is not None:
        asyncio.run(subscribe(chosen.subscribe, chosen.views, chosen.subscribers))
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
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
            _measure(chosen, port, service.pid)
        finally:
            service.terminate()
            service.wait(60)


def _measure(chosen: argparse.Namespace, port: int, service: int) -> None:
    views, count = chosen.views, chosen.subscribers
    before = cpu_seconds(service)
    found = deliveries(port, views, count, chosen.rate, chosen.seconds)
    used = cpu_seconds(service) - before
    commits, took, made = found["commits"], found["took"], found["deliveries"]
    print(
        f"{count} subscribers of {views} views, {commits} commits in {took:.1f} s "
        f"({commits / took:.0f}/s, {chosen.rate:g}/s wanted): "
        f"{made} of {found['expected']} deliveries, {found['behind']} subscribers behind"
    )
    print(
        f"from commit to delivery p50 {found['p50']:.1f} ms, p99 {found['p99']:.1f} ms, "
        f"at most {found['most']:.1f} ms"
    )
    print(
        f"the service used {used:.1f} s of processors, {used / max(made, 1) * 1e6:.0f} µs per "
        f"delivery, commits included; {peak_memory(service):.0f} MB at its peak"
    )
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


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
