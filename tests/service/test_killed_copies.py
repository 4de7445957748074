"""Every client's copy equals the view at its version, over real sockets, through kills by SIGKILL.

Random programs with stored, virtual and external views (virtual with strategy `demand`), random
transactions, clients of every mode and quality that disconnect and resume, a service in a process
of its own that is killed and started again, and compactions in between. A database in memory loses
everything with its process: its clients begin anew in another history.

With DELTALOG_FUZZ there are more programs, commits and kills, with fresh seeds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from recording import Recorder, Rows

import deltalog
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.offsets import read_offset
from served_command import ServedFile
from waiting import HANG_SECONDS, wait_until

IS_FUZZ = bool(os.environ.get("DELTALOG_FUZZ"))
SEEDS = [random.SystemRandom().randrange(10**6) for _ in range(25)] if IS_FUZZ else [3]
LIVES, COMMITS, VIEWS, NODES = (5, 40, 6, 6) if IS_FUZZ else (2, 8, 4, 5)
BASE = "base e(a: int, b: int).\nbase f(a: int).\n"
MODES = ("catch-up", "long-poll", "sse")
QUALITIES: tuple[dict[str, str], ...] = tuple(
    {"precision": precision, **actuality}
    for precision in ("exact", "potential", "touched")
    for actuality in ({}, {"every_seconds": "0.05"}, {"every_commits": "3"})
)
TEMPLATES = (
    "{v}(X, Z) :- {p}(X, Y), {q}(Y, Z).",
    "{v}(X, Y) :- {p}(X, Y). {v}(X, Y) :- {q}(Y, X).",
    "{v}(X, Y) :- {p}(X, Y). {v}(X, Y) :- {p}(X, Z), {v}(Z, Y).",
    "{v}(X, Y) :- {p}(X, Y), not {q}(Y, X).",
    "{v}(X, Y) :- {p}(X, Y), not f(X).",
    "{v}(X, count()) :- {p}(X, Y).",
)


def random_program(random_: random.Random) -> tuple[str, dict[str, str]]:
    """A program, and the strategies of its external views; the first and the last are such."""
    text, known, strategies = BASE, ["e"], {}
    for number in range(VIEWS):
        view = f"v{number}"
        kind = random_.choice(("stored", "virtual", "external"))
        if number in (0, VIEWS - 1):
            kind = "external"
        p, q = random_.choice(known), random_.choice(known)
        is_closure = number in (0, VIEWS - 1)
        template = TEMPLATES[2] if is_closure else random_.choice(TEMPLATES)
        prefix = "" if kind == "stored" else "virtual "
        text += f"{prefix}view {view}(a: int, b: int).\n{template.format(v=view, p=p, q=q)}\n"
        known.append(view)
        if kind == "external":
            strategies[view] = "demand"
    return text, strategies


def random_changes(random_: random.Random) -> dict[str, Any]:
    sides: dict[str, dict[str, list[list[int]]]] = {"insert": {}, "delete": {}}
    for _ in range(random_.randrange(1, 4)):
        side = random_.choice(("insert", "insert", "delete"))
        sides[side].setdefault("e", []).append([random_.randrange(NODES) for _ in range(2)])
        if random_.random() < 0.3:
            sides[side].setdefault("f", []).append([random_.randrange(NODES)])
    return sides


class Truth:
    """The rows of every view at every version of every history, from a database of its own."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._model = self._opened()
        self.versions: dict[str, dict[tuple[str, int], Rows]] = {}

    def _opened(self) -> MemoryDatabase:
        return deltalog.connect(program=self._program, engine="reference")

    def forget(self) -> None:
        """Begin anew, as a database in memory does."""
        self._model = self._opened()

    def apply(self, changes: dict[str, Any]) -> None:
        self._model.apply(**changes)

    def note(self, history: str, version: int) -> None:
        for view in self._model.model.views:
            rows = frozenset(self._model.facts(view))
            known = self.versions.setdefault(view, {})
            assert known.setdefault((history, version), rows) == rows


class Writer:
    """Offers transactions to a service until they are answered, each with a key."""

    def __init__(self, service: ServedFile, truth: Truth, random_: random.Random) -> None:
        self._service, self._truth, self._random = service, truth, random_
        self._number = 0

    def status(self) -> tuple[str, int]:
        """The history and the version of the service."""
        answer = httpx.head(self._service.stream("e"), timeout=HANG_SECONDS, trust_env=False)
        found = read_offset(answer.headers["Stream-Next-Offset"])
        assert found is not None
        return found.history, found.version

    def commit(self, is_killed: bool, is_durable: bool) -> None:
        """Commit; if it `is_killed` the service dies around that time and comes back."""
        changes, self._number = random_changes(self._random), self._number + 1
        headers = {"Idempotency-Key": f"commit {self._number}"}
        address = f"{self._service.address}/v1/transactions"
        asked = partial(
            httpx.post,
            address,
            json=changes,
            headers=headers,
            timeout=HANG_SECONDS,
            trust_env=False,
        )
        if is_killed:
            if self._random.random() < 0.5:
                self._record(changes, asked())  # offered again behind the kill: applied once
            self._service.kill()
            if is_durable:
                _compact(self._service.path, self._random)
            else:
                self._truth.forget()
            self._service.start()
            self._truth.note(*self.status())
        self._record(changes, asked())

    def _record(self, changes: dict[str, Any], answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self._truth.apply(changes)
        found = read_offset(answer.json()["offset"])
        assert found is not None
        self._truth.note(found.history, found.version)


@contextmanager
def recorders(service: ServedFile, seed: int, views: list[str]) -> Iterator[list[Recorder]]:
    """Clients of all modes and qualities, over the views."""
    random_ = random.Random(seed)
    made = []
    for number, quality in enumerate(QUALITIES):
        mode = MODES[(number + number // 3) % len(MODES)]
        view = "v0" if number % 2 else random_.choice(views[:-1])
        if quality["precision"] == "potential":
            view = views[-1]  # where nobody needs exact changes
        bound = {f"{view}.a": "1"} if random_.random() < 0.2 else {}
        made.append(Recorder(view, mode, {**quality, **bound}, seed + number))
    for each in made:
        each.address = service.stream(each.view)
        each.start()
    try:
        yield made
    finally:
        for each in made:
            each.end(HANG_SECONDS)


@pytest.mark.parametrize("store", ["file", "memory"])
@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_right_through_kills(store: str, seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    program, strategies = random_program(random_)
    path = tmp_path / ("served.db" if store == "file" else "served.dl")
    if store == "file":
        deltalog.connect(path, program=program, strategy=strategies, engine="reference").close()
    else:
        path.write_text(program, encoding="utf-8")
    options = ["--engine", "reference"]
    options += [each for view in strategies for each in ("--strategy", f"{view}=demand")]
    truth, views = Truth(program), [f"v{n}" for n in range(VIEWS)]
    service = ServedFile(path, options)
    service.start()
    writer = Writer(service, truth, random_)
    truth.note(*writer.status())
    try:
        with recorders(service, seed, views) as clients:
            for life in range(LIVES):
                killed = random_.randrange(COMMITS) if life else -1
                for number in range(COMMITS):
                    writer.commit(number == killed, store == "file")
                history, version = writer.status()
                for each in clients:
                    wait_until(partial(each.has_reached, history, version - 2), "it caught up")
        for each in clients:
            _check(each, truth)
        if store == "memory":
            assert any(step.is_potential for each in clients for step in each.steps)
    finally:
        service.kill()


def _compact(path: Path, random_: random.Random) -> None:
    with deltalog.connect(path, engine="reference") as database:
        database.compact(deltalog.Retention(versions=random_.randrange(4)))


def _check(client: Recorder, truth: Truth) -> None:
    is_bound = any("." in name for name in client.quality)
    client.check(
        {
            place: frozenset(row for row in rows if not is_bound or row[0] == 1)
            for place, rows in truth.versions[client.view].items()
        }
    )
