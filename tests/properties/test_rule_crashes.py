"""A writer with rules, constraints and messages, and its dispatcher, are killed at random points.

Every acknowledged commit is there, once, or the one that was being made, wholly; rules have fired
exactly as often as a model says; what was refused has left no trace. Every message of these
commits, and no other, is delivered at least once, under one id, first deliveries in order per rule.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from effort import IS_FUZZ
from rule_crash_worker import COMMITS_MAX, LIMITS, PROGRAM, target

import deltalog
from deltalog.store.verify import verify_file
from waiting import HANG_SECONDS

sys.path.append(str(Path(__file__).parents[1] / "service"))
from receiver import Receiver
from test_dispatch import dispatch_once

KILLS = int(os.environ.get("DELTALOG_KILLS", 250 if IS_FUZZ else 24))
KILLS_EACH = 12
"""Kills of processes that work on one file, before the next file."""
MILLISECONDS_MAX = 30
CALLS_MAX = 2_000

Sent = tuple[str, tuple[int, ...]]
"""The name and the arguments of a message."""


@dataclass
class Expected:
    """The state and the messages of all commits so far; `tried` may have happened, too."""

    stock: dict[int, int] = field(default_factory=dict)
    limits: set[int] = field(default_factory=set)
    commits: list[list[tuple[str, Sent]]] = field(default_factory=list)
    firings: Counter[str] = field(default_factory=Counter)
    version: int = 0
    tried: dict[str, object] | None = None

    def hear(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "try":
            self.tried = json.loads(rest)
        elif word == "ack":
            self.make()
            self.version = int(rest)
        elif word == "refused":
            self.tried = None

    def make(self) -> None:
        """What was tried has happened."""
        assert self.tried is not None
        if self.tried["kind"] == "activation":
            change = self.limits.add if self.tried["is_active"] else self.limits.discard
            change(int(str(self.tried["limit"])))
        for step in self.tried.get("steps", ()):  # type: ignore[attr-defined]
            self._fire(dict(step))
        self.tried = None

    def _fire(self, step: dict[int, int]) -> None:
        before, after = self.stock, self.stock | step
        rose = {limit: _under(after, limit) - _under(before, limit) for limit in (10, *LIMITS)}
        made: list[tuple[str, Sent]] = [("low", ("low", (item,))) for item in rose[10]]
        made += [("note", ("scarce", (item,))) for item in rose[10]]
        for limit in self.limits:
            made += [("under", ("under", (item, limit))) for item in rose[limit]]
        self.firings += Counter(rule for rule, _ in made)
        self.stock = after
        self.commits.append(made)

    @property
    def facts(self) -> dict[str, set[tuple[int, ...]]]:
        return {
            "stock": set(self.stock.items()),
            "scarce": {(item,) for item in _under(self.stock, 10)},
        }

    def messages(self) -> Counter[Sent]:
        return Counter(sent for commit in self.commits for _, sent in commit)


def _under(stock: dict[int, int], limit: int) -> set[int]:
    return {item for item, amount in stock.items() if amount < limit}


class Child:
    """A process, made by another that has everything imported."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("rule_crash_worker.py")
        paths = [str(Path(__file__).parents[1] / each) for each in ("", "properties", "service")]
        self._process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *sys.path])},
        )
        self._handle = -1
        self.said: list[str] = []

    def start(self, role: str, path: Path, word: object, calls: int) -> None:
        """Start a child; returns when it works."""
        assert self._process.stdin is not None
        self.said = []
        self._process.stdin.write(f"{role}\t{path}\t{word}\t{calls}\n".encode())
        self._process.stdin.flush()
        while not {"ready", "child"} <= {line.split()[0] for line in self.said}:
            line = self._line()
            assert line, self.said
            self.said.append(line)
            if line == "dead":
                return
        pid = next(int(line.split()[1]) for line in self.said if line.startswith("child"))
        self._handle = os.pidfd_open(pid)  # a number could be that of another process by now

    def hear(self, acknowledged: int) -> None:
        """Wait until it has acknowledged so many commits."""
        while sum(line.startswith("ack") for line in self.said) < acknowledged:
            self.said.append(self._line())
            assert self.said[-1] not in ("", "dead"), self.said

    def kill(self, is_by_itself: bool = False) -> list[str]:
        """Everything it has said, until it was killed or has killed itself."""
        if not is_by_itself and "dead" not in self.said:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        while "dead" not in self.said:
            line = self._line()
            assert line, self.said
            self.said.append(line)
        return self.said

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=HANG_SECONDS)


def check(path: Path, expected: Expected) -> None:
    with deltalog.connect(path, engine="reference", wait=60.0) as database:
        if expected.tried is not None and database.version != expected.version:
            assert expected.tried["kind"] != "nothing", "a refused transaction has left a trace"
            expected.make()
            expected.version = database.version
        assert database.version == expected.version
        expected.tried = None
        assert {name: database.facts(name) for name in ("stock", "scarce")} == expected.facts
        assert not database.violations()
        rules = {rule.name: rule for rule in database.rules()}
        assert {row[0] for row in rules["under"].parameters} == expected.limits
        assert {name: rules[name].firings for name in ("low", "note", "under", "much")} == {
            name: expected.firings[name] for name in ("low", "note", "under", "much")
        }
        stored = Counter((each.name, tuple(each.arguments)) for each in database.messages())
        assert stored <= expected.messages()
        found = verify_file(database)
        assert found.is_clean, found
        assert not database.dead_letters()


def check_deliveries(path: Path, expected: Expected, receiver: Receiver) -> int:
    """After what is left has been delivered; returns how many deliveries were repetitions."""
    summary, _ = dispatch_once(path, target(receiver.url))
    assert summary.is_complete
    by_id: dict[str, bytes] = {}
    for request in receiver.requests:
        assert by_id.setdefault(request.headers["webhook-id"], request.body) == request.body
    bodies = [json.loads(body) for body in by_id.values()]
    received = [(each["type"], tuple(each["data"]["arguments"])) for each in bodies]
    assert Counter(received) == expected.messages()
    for rule in ("low", "note", "under"):
        of_rule = [
            each
            for each, body in zip(received, bodies, strict=True)
            if body["data"]["rule"] == rule
        ]
        for commit in expected.commits:  # those of one commit are in the order of execution
            wanted = [sent for name, sent in commit if name == rule]
            assert sorted(of_rule[: len(wanted)]) == sorted(wanted)
            del of_rule[: len(wanted)]
        assert not of_rule
    return len(receiver.requests) - len(by_id)


def test_kills_with_rules_and_messages(tmp_path: Path) -> None:
    seed = time.time_ns() if IS_FUZZ else 7
    chance = random.Random(seed)
    print(f"seed {seed}")
    counts: Counter[str] = Counter()
    writer, dispatcher = Child(), Child()
    try:
        while counts["kills"] < KILLS:
            folder = tmp_path / str(counts["kills"])
            folder.mkdir()
            _kill_some(folder / "shop.db", writer, dispatcher, chance, counts)
    finally:
        writer.end()
        dispatcher.end()
    print(dict(counts))
    assert min(counts[each] for each in ("commits", "messages", "refused")) > 0


def _kill_some(
    path: Path, writer: Child, dispatcher: Child, chance: random.Random, counts: Counter[str]
) -> None:
    """Kill processes that work on one file, then check all that was delivered."""
    deltalog.connect(path, program=PROGRAM, engine="reference").close()
    expected = Expected()
    with Receiver() as receiver:
        for _ in range(KILLS_EACH // 2):
            calls = [chance.choice((0, chance.randrange(1, CALLS_MAX))) for _ in range(2)]
            dispatcher.start("dispatcher", path, receiver.url, calls[0])
            writer.start("writer", path, chance.randrange(2**32), calls[1])
            if not calls[1]:
                writer.hear(chance.randrange(1, COMMITS_MAX))
                time.sleep(chance.random() * MILLISECONDS_MAX / 1000)
            said = writer.kill(is_by_itself=bool(calls[1]))
            dispatcher.kill()
            for line in said:
                expected.hear(line)
            counts["kills"] += 2
            counts["refused"] += said.count("refused")
            counts["mid-transaction"] += expected.tried is not None
            check(path, expected)
        counts["repeated"] += check_deliveries(path, expected, receiver)
    counts["commits"] += expected.version
    counts["messages"] += expected.messages().total()


def test_the_worker_is_the_model() -> None:
    """The model fires what the database fires, with nobody killed."""
    database = deltalog.connect(program=PROGRAM, engine="reference")
    expected, chance = Expected(), random.Random(3)
    for _ in range(60):
        step = {item: chance.randrange(90) for item in chance.sample(range(6), 2)}
        if chance.random() < 0.3:
            limit, is_active = chance.choice(LIMITS), bool(chance.randrange(2))
            (database.activate if is_active else database.deactivate)("under", L=limit)
            expected.tried = {"kind": "activation", "limit": limit, "is_active": is_active}
            expected.make()
        fired = Counter(
            rule for rule, _ in database.apply(set={"stock": list(step.items())}).firings
        )
        before = Counter(expected.firings)
        expected.tried = {"kind": "steps", "steps": [list(step.items())]}
        expected.make()
        assert expected.firings - before == fired
    sent = Counter((each.name, tuple(each.arguments)) for each in database.messages())
    assert sent == expected.messages()
