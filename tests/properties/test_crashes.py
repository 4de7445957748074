"""A writing process is killed at random points, again and again; nothing is lost, nothing half.

Whatever it was doing (a transaction, a group of them, a migration, compaction of the log, a
backup, closing), the file opens again at the last commit that was acknowledged, or at the one that
was being made, wholly; views are those of recomputation, and the log leads back from there.
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
from dataclasses import dataclass, field
from pathlib import Path

from crash_worker import BEGUN, OFTEN, PROGRAMS
from effort import IS_FUZZ

import deltalog
from deltalog.store.verify import verify_file
from waiting import HANG_SECONDS

KILLS = 1_000 if IS_FUZZ else 50
KILLS_EACH = 10
"""Kills of processes that work on one file, before the next file."""
KILLS_MORE = 20
"""Until everything was interrupted at least once; these come after some calls, not some time."""
CALLS_MAX = 20
MILLISECONDS_MAX = 120
BRIEF = ("migrations", "compactions", "backups")
"""These take a few milliseconds, and a kill shall come then."""
BRIEF_MILLISECONDS_MAX = 6
INTERRUPTED = {
    "transactions": "steps",
    "migrations": "migrate",
    "compactions": "compact",
    "backups": "backup",
}

Facts = dict[str, set[tuple[object, ...]]]


@dataclass
class Expected:
    """What the file must hold, and what it may hold instead: the change that was being made."""

    edges: set[tuple[int, int]] = field(default_factory=set)
    labels: dict[int, str] = field(default_factory=dict)
    program: int = 0
    version: int = 0
    tried: dict[str, object] | None = None

    def hear(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "try":
            self.tried = json.loads(rest)
        elif word == "ack":
            self.make()
            self.version = int(rest)

    def make(self) -> None:
        """What was tried has happened."""
        assert self.tried is not None
        if self.tried["kind"] == "migrate":
            self.program = int(str(self.tried["program"]))
        for step in self.tried.get("steps", ()):  # type: ignore[attr-defined]
            self.edges -= {tuple(row) for row in step["delete"]}
            self.edges |= {tuple(row) for row in step["insert"]}
            self.labels[step["set"][0]] = step["set"][1]
        self.tried = None

    @property
    def facts(self) -> Facts:
        return {"edge": set(self.edges), "label": set(self.labels.items())}


class Workers:
    """The process that makes children to be killed."""

    def __enter__(self) -> Workers:
        script = Path(__file__).with_name("crash_worker.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=HANG_SECONDS)

    def killed(self, path: Path, focus: str, seed: int, seconds: float) -> list[str]:
        """What a child said before it was killed, so long after it began with what it is to do."""
        self._start(path, focus, seed, 0)
        said, child = [], None
        begun = BEGUN[focus] if focus in BRIEF else "ready"
        while child is None or not any(line.startswith(begun) for line in said):
            line = self._line()
            assert line not in ("", "dead"), said
            child = int(line.split()[1]) if line.startswith("child") else child
            said.append(line)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        return said + self._rest()

    def killed_by_itself(self, path: Path, focus: str, seed: int, calls: int) -> list[str]:
        """The same for a child that kills itself, after so many calls of functions."""
        self._start(path, focus, seed, calls)
        return self._rest()

    def _start(self, path: Path, focus: str, seed: int, calls: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\t{focus}\t{seed}\t{calls}\n".encode())
        self.process.stdin.flush()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def _rest(self) -> list[str]:
        said = []
        while (line := self._line()) != "dead":
            assert line, said
            said.append(line)
        return said


def base_of(database: deltalog.MemoryDatabase) -> Facts:
    return {name: database.facts(name) for name in ("edge", "label")}


def check(path: Path, expected: Expected) -> None:
    with deltalog.connect(path, engine="reference") as database:
        before = database.version
        if expected.tried is not None and before != expected.version:
            expected.make()
            expected.version = before
        assert before == expected.version
        assert base_of(database) == expected.facts
        assert database.programs()[-1][2] == PROGRAMS[expected.program]
        found = verify_file(database)
        assert found.is_clean, found
        database.apply(insert={"edge": [(1, 99)]})
        database.apply(delete={"edge": [(1, 99)]})
        expected.edges.discard((1, 99))
        expected.version = database.version
        expected.tried = None


def check_copies(folder: Path) -> int:
    """A backup is whole or not there, whenever it was interrupted."""
    copies = list(folder.glob("copy*.db"))
    for copy in copies:
        with deltalog.connect(copy, engine="reference", read_only=True) as database:
            assert verify_file(database).is_clean
        copy.unlink()
    return len(copies)


def test_kills(tmp_path: Path) -> None:
    seed = time.time_ns() if IS_FUZZ else 5
    chance = random.Random(seed)
    print(f"seed {seed}")
    caught: Counter[str] = Counter()
    with Workers() as workers:
        for number in range(KILLS + KILLS_MORE):
            missing = [focus for focus, kind in INTERRUPTED.items() if not caught[kind]]
            if number >= KILLS and not missing:
                break
            if number % KILLS_EACH == 0:
                folder = tmp_path / str(number)
                folder.mkdir()
                expected = Expected()
            path = folder / "crash.db"
            work = chance.randrange(2**32)
            if number < KILLS:
                focus = tuple(OFTEN)[number % len(OFTEN)]
                latest = BRIEF_MILLISECONDS_MAX if focus in BRIEF else MILLISECONDS_MAX
                said = workers.killed(path, focus, work, chance.random() * latest / 1000)
            else:
                calls = chance.randrange(1, CALLS_MAX)
                said = workers.killed_by_itself(path, missing[0], work, calls)
            for line in said:
                expected.hear(line)
            caught[_interrupted(said)] += 1
            check(path, expected)
            check_copies(folder)
    print(dict(caught))
    assert not missing


def _interrupted(said: list[str]) -> str:
    """What was being done."""
    last = [line for line in said if not line.startswith("child")][-1]
    if last.startswith("try"):
        return str(json.loads(last[4:])["kind"])
    return last.removeprefix("now ") if last.startswith("now") else "nothing"
