"""Every client's copy equals the view at its version, for every version that it was told of.

Random transactions, while clients of every mode and quality follow over real sockets, disconnect
and resume; the log is compacted, and the service is stopped and started again on its file. Views
are stored, virtual, or external: virtual with strategy `demand`, so that the server holds no copy.
"""

from __future__ import annotations

import json
import random
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from streaming import Service, serving

import deltalog
from deltalog.service.offsets import read_offset
from deltalog.service.selections import Selection
from waiting import HANG_SECONDS, wait_until

PROGRAM = """
    base edge(src: int, dst: int).
    base blocked(node: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    free(X, Y) :- path(X, Y), not blocked(X).
    degree(X, count()) :- edge(X, Y).
"""
VIEWS = ("path", "free", "degree")
NODES, COMMITS = 6, 25
Rows = frozenset[tuple[Any, ...]]
KINDS: dict[str, dict[str, Any]] = {
    "stored": {},
    "virtual": {"materialize": False},
    "external": {"materialize": False, "strategy": {"path": "demand", "free": "demand"}},
}
QUALITIES: tuple[dict[str, str], ...] = (
    {},
    {"every_commits": "3"},
    {"every_seconds": "0.05"},
    {"path.x": "1"},
)


class Follower(threading.Thread):
    """A client that notes what it held at every version that it was told of."""

    def __init__(self, view: str, mode: str, quality: dict[str, str], seed: int) -> None:
        super().__init__(daemon=True)
        self.view, self._mode = view, mode
        self._quality = {k: v for k, v in quality.items() if "." not in k or view == "path"}
        self._random = random.Random(seed)
        self.service: Service | None = None
        self.offset = "-1"
        self.is_over = False
        self.state: dict[str, Any] = {}
        self.held: dict[int, Rows] = {}
        self.expired = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.is_over:
                service = self.service
                time.sleep(0.02)  # others work, too
                if service is None:
                    continue
                try:
                    self._read(service)
                except httpx.TransportError:
                    continue
        except BaseException as problem:
            self.problem = problem

    def _read(self, service: Service) -> None:
        live = {} if self._mode == "catch-up" else {"live": self._mode}
        address = service.stream(self.view, offset=self.offset, **live, **self._quality)
        with httpx.stream("GET", address, timeout=10.0) as response:
            if response.status_code == 410:
                self.expired += 1
                self.offset = "-1"
                return
            assert response.status_code in (200, 204), response.status_code
            if self._mode == "sse":
                self._follow(response)
                return
            response.read()
            self._apply(response.json() if response.content else [])
            self._note(response.headers["Stream-Next-Offset"])

    def _follow(self, response: httpx.Response) -> None:
        kind = ""
        for line in response.iter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data:") and kind == "data":
                self._apply(json.loads(line[5:]))
            elif line.startswith("data:"):
                self._note(json.loads(line[5:])["streamNextOffset"])
                if self.is_over or self._random.random() < 0.1:
                    return  # disconnect

    def _apply(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            headers = message["headers"]
            if headers.get("control") == "reset":
                self.state = {}
            elif headers.get("operation") == "delete":
                self.state.pop(message["key"], None)  # a repeat after a cut may have done it
            elif "operation" in headers:
                self.state[message["key"]] = message["value"]

    def _note(self, offset: str) -> None:
        self.offset = offset
        found = read_offset(offset)
        assert found is not None
        if found.is_complete:
            rows = frozenset(tuple(value.values()) for value in self.state.values())
            assert self.held.setdefault(found.version, rows) == rows

    def has_reached(self, version: int) -> bool:
        return self.problem is not None or max(self.held, default=-1) >= version

    def selected(self, rows: Rows) -> Rows:
        return frozenset(r for r in rows if "path.x" not in self._quality or r[0] == 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_copies_equal_the_view_at_their_versions(kind: str, seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    path = tmp_path / "graph.db"
    expected: dict[int, dict[str, Rows]] = {}

    def note(database: Any) -> None:
        expected[database.version] = {view: frozenset(database.facts(view)) for view in VIEWS}

    followers = [
        Follower(view, mode, quality, seed)
        for view in VIEWS
        for mode in ("catch-up", "long-poll", "sse")
        for quality in random_.sample(QUALITIES, 1)
    ]
    for follower in followers:
        follower.start()
    for number in range(2):
        options: dict[str, Any] = {"program": PROGRAM} if number == 0 else {}
        with serving(deltalog.connect(path, **options, **KINDS[kind])) as service:
            service.call(note)
            for follower in followers:
                follower.service = service
            for _ in range(COMMITS):
                commit(service, random_)
                service.call(note)
                if random_.random() < 0.1:
                    keep = deltalog.Retention(versions=random_.randrange(4))
                    service.call(lambda db, keep=keep: db.compact(keep))  # type: ignore[misc]
            last = service.host.version
            for follower in followers:
                wait_until(partial(follower.has_reached, last - 2), "it has caught up")
            for follower in followers:
                follower.service = None
    for follower in followers:
        follower.is_over = True
        follower.join(HANG_SECONDS)
        assert follower.problem is None, repr(follower.problem)
        for version, rows in follower.held.items():
            assert rows == follower.selected(expected[version][follower.view]), (
                follower.view,
                version,
            )


def commit(service: Service, random_: random.Random) -> None:
    """A transaction of a few facts, most of which change something."""
    sides: dict[str, dict[str, list[tuple[int, ...]]]] = {"insert": {}, "delete": {}}
    for _ in range(random_.randrange(1, 4)):
        side = random_.choice(("insert", "delete"))
        row = (random_.randrange(NODES), random_.randrange(NODES))
        sides[side].setdefault("edge", []).append(row)
        if random_.random() < 0.3:
            sides[side].setdefault("blocked", []).append((row[0],))
    service.apply(**sides)


def test_ten_thousand_bindings_cost_what_the_changed_facts_cost() -> None:
    """Counted, not timed: feeds that a commit touches, and facts that it generates."""
    figures = []
    for bindings in (10, 10_000):
        with serving(deltalog.connect(program=PROGRAM)) as service:
            feeds, relation = service.streams.feeds, service.host.relations["path"]
            service.on_loop(lambda: [feeds.enter(bound(relation, n)) for n in range(bindings)])  # noqa: B023
            service.apply(insert={"edge": [(1, 2), (2, 3)]})
            counts = service.call(lambda db: db.statistics.total)
            touched = service.on_loop(
                lambda: sum(feed.has_after(0) for feed in feeds.of_view("path"))  # noqa: B023
            )
            figures.append((counts, touched))
    assert figures[0] == figures[1]
    assert figures[0][1] == 2


def bound(relation: Any, number: int) -> Any:
    return Selection(relation, (0,), (number,))


def test_only_what_somebody_subscribes_to_is_propagated() -> None:
    database = deltalog.connect(program=PROGRAM, materialize=False, strategy={"path": "demand"})
    with serving(database) as service:
        service.apply(insert={"edge": [(1, 2)]})
        assert service.call(lambda db: db.statistics.total) == 0
        read = httpx.get(service.stream("path", offset="-1"), timeout=HANG_SECONDS)
        service.apply(insert={"edge": [(2, 3)]})
        assert service.call(lambda db: db.statistics.total) > 0
        assert "path" not in service.call(lambda db: db.model.stored)
        offset = read.headers["Stream-Next-Offset"]
        found = httpx.get(service.stream("path", offset=offset), timeout=HANG_SECONDS).json()
        assert [message["key"] for message in found] == ["[1,3]", "[2,3]"]
