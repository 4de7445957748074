"""A process that is there to be killed: it changes a database file and says what it does.

    try {"kind": "transaction", …}      written before anything is done
    ack 17                              written when the commit has been acknowledged

Started once, it has everything imported; for each line on standard input (the path of a file,
what to do most, a seed, and a number of calls) it makes a child of itself that works until it is
killed. If the number is not 0 the child kills itself: this many calls after it began with what it
does most, however fast the machine is.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from itertools import count
from pathlib import Path

import deltalog
from deltalog.store import readers

EDGES = 12
PROGRAMS = (
    """
    base edge(src: int, dst: int).
    base label(node: int key, text: str).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    reach(X, count()) :- path(X, Y).
    named(X, T) :- path(1, X), label(X, T).
    """,
    """
    base edge(src: int, dst: int).
    base label(node: int key, text: str).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- path(X, Z), edge(Z, Y), X != Y.
    total(sum(Y)) :- path(X, Y).
    """,
)
OFTEN = {
    "everything": (*("transaction",) * 6, "group", "migrate", "compact", "backup", "reopen"),
    "transactions": ("transaction",),
    "groups": ("group",),
    "migrations": ("transaction", "migrate", "migrate"),
    "compactions": (*("group",) * 6, "compact"),
    "backups": ("transaction", "backup", "backup"),
}
"""What a worker does most of the time."""
BEGUN = {
    "transactions": 'try {"kind": "steps"',
    "migrations": 'try {"kind": "migrate"',
    "compactions": "now compact",
    "backups": "now backup",
}
"""What it says when it begins with that."""
readers.ROWS_AT_ONCE = 1  # so that a compaction takes many transactions


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def kill_after(calls: int) -> None:
    """Kill this process when it has called, or returned from, as many functions."""
    events = count(1)

    def die(*_: object) -> None:
        if next(events) == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(die)


class Worker:
    def __init__(self, path: Path, focus: str, seed: int, calls: int) -> None:
        self.path = path
        self.kinds = OFTEN[focus]
        self.fatal = BEGUN[focus] if calls else None
        self.calls = calls
        self.random = random.Random(seed)
        self.durability = self.random.choice(("full", "normal"))
        self.database = self.open()

    def open(self) -> deltalog.FileDatabase:
        program = None if self.path.exists() and self.path.stat().st_size else PROGRAMS[0]
        return deltalog.connect(
            self.path, program=program, engine="reference", durability=self.durability
        )

    def run(self) -> None:
        self.say("ready")
        while True:
            kind = self.random.choice(self.kinds)
            getattr(self, kind)()

    def say(self, text: str) -> None:
        say(text)
        if self.fatal is not None and text.startswith(self.fatal):
            self.fatal = None
            kill_after(self.calls)

    def step(self) -> dict[str, object]:
        known = self.database.facts("edge")
        gone = self.random.sample(sorted(known), min(len(known), self.random.randrange(3)))
        come = [self.edge() for _ in range(self.random.randrange(1, 4))]
        label = [self.random.randrange(EDGES), self.random.choice("abcdef") * 3]
        return {"insert": come, "delete": gone, "set": label}

    def edge(self) -> list[int]:
        return [self.random.randrange(EDGES), self.random.randrange(EDGES)]

    def apply(self, step: dict[str, object]) -> None:
        with self.database.transaction() as tx:
            tx.delete("edge", [tuple(row) for row in step["delete"]])  # type: ignore[union-attr]
            tx.insert("edge", [tuple(row) for row in step["insert"]])  # type: ignore[union-attr]
            tx.set("label", step["set"])  # type: ignore[arg-type]

    def transaction(self) -> None:
        step = self.step()
        self.say("try " + json.dumps({"kind": "steps", "steps": [step]}))
        self.apply(step)
        self.say(f"ack {self.database.version}")

    def group(self) -> None:
        """Steps are made up beforehand, on the state at the beginning."""
        steps = [self.step() for _ in range(5)]
        self.say("try " + json.dumps({"kind": "steps", "steps": steps}))
        with self.database.group():
            for step in steps:
                self.apply(step)
        self.say(f"ack {self.database.version}")

    def migrate(self) -> None:
        text = self.random.choice(PROGRAMS)
        self.say("try " + json.dumps({"kind": "migrate", "program": PROGRAMS.index(text)}))
        self.database.change_program(text)
        self.say(f"ack {self.database.version}")

    def compact(self) -> None:
        self.say("now compact")
        self.database.compact(deltalog.Retention(versions=self.random.randrange(1, 5)))
        self.say("now done")

    def backup(self) -> None:
        target = self.path.with_name(f"copy{self.random.randrange(10**9)}.db")
        self.say("now backup")
        self.database.backup(target)
        self.say("now done")

    def reopen(self) -> None:
        self.say("now reopen")
        self.database.close()
        self.database = self.open()
        self.say("now done")


def main() -> None:
    for line in sys.stdin:
        path, focus, seed, calls = line.split("\t")
        child = os.fork()
        if child == 0:
            Worker(Path(path), focus, int(seed), int(calls)).run()
        say(f"child {child}")
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    main()
