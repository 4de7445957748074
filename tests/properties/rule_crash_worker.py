"""Processes that are there to be killed: one changes a file with rules, one delivers its messages.

    try {"kind": "steps", …}            written before anything is done
    ack 17                              written when the commit has been acknowledged
    refused                             a constraint or a rule has refused it

Started once, it has everything imported; for each line on standard input (what to be, the path of a
file, a seed or an address, and a number of calls) it makes a child of itself that works until it
is killed. If the number is not 0 the child kills itself that many calls after one of its
transactions, or its first delivery, has begun.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path

from crash_worker import kill_after, say

import deltalog
from deltalog.runtime import delivery_verbs, rehearsal
from deltalog.runtime.deliveries import Recorded, Target
from deltalog.service.dispatch import Dispatcher
from deltalog.service.targets import HttpTarget
from deltalog.service.webhooks import Webhook
from deltalog.store.file_journal import FileJournal

ITEMS = 6
LIMITS = (20, 40)
PROGRAM = """
    base stock(item: int key, amount: int).
    base scarce(item: int).
    deny negative(I) :- stock(I, N), N < 0.
    rule low for I priority 5 when stock(I, N), N < 10
      do insert scarce(I), emit low(I) else delete scarce(I).
    rule note on insert scarce(I) do emit scarce(I).
    rule under(L) for I when stock(I, N), N < L do emit under(I, L).
    rule much for I when stock(I, N), N > 95 do reject "too much of {I}".
    view alarm(item: int key, limit: int).
    alarm(I, max(N)) :- scarce(I), stock(I, N).
"""
KINDS = (*("steps",) * 8, "group", "refuse", "refuse", "activation", "reopen")
COMMITS_MAX = 15
"""Transactions before a process is killed, or kills itself."""
SECRET = bytes(range(32))


class Writer:
    def __init__(self, path: Path, seed: int, calls: int) -> None:
        self.path, self.calls = path, calls
        self.random = random.Random(seed)
        self.left = self.random.randrange(1, COMMITS_MAX)
        self.durability = self.random.choice(("full", "normal"))
        self.database = self.open()

    def open(self) -> deltalog.FileDatabase:
        is_there = self.path.exists() and self.path.stat().st_size
        return deltalog.connect(
            self.path,
            program=None if is_there else PROGRAM,
            engine="reference",
            durability=self.durability,
            wait=60.0,
        )

    def run(self) -> None:
        say("ready")
        while True:
            getattr(self, self.random.choice(KINDS))()

    def tried(self, **words: object) -> None:
        say("try " + json.dumps(words))
        self.left -= 1
        if self.calls and self.left == 0:
            kill_after(self.calls)

    def step(self) -> list[list[int]]:
        items = self.random.sample(range(ITEMS), self.random.randrange(1, 4))
        return [[item, self.random.randrange(90)] for item in items]

    def apply(self, step: list[list[int]]) -> None:
        self.database.apply(set={"stock": [tuple(row) for row in step]})

    def steps(self) -> None:
        step = self.step()
        self.tried(kind="steps", steps=[step])
        self.apply(step)
        say(f"ack {self.database.version}")

    def group(self) -> None:
        steps = [self.step() for _ in range(4)]
        self.tried(kind="steps", steps=steps)
        with self.database.group():
            for step in steps:
                self.apply(step)
        say(f"ack {self.database.version}")

    def refuse(self) -> None:
        """Rules fire and emit in a transaction that is refused."""
        bad = self.random.choice((-1, 99))
        items = self.random.sample(range(ITEMS), 3)
        self.tried(kind="nothing")
        try:
            self.apply([[items[0], bad], [items[1], 5], [items[2], 15]])
        except deltalog.ConstraintError:
            say("refused")

    def activation(self) -> None:
        limit = self.random.choice(LIMITS)
        is_active = bool(self.random.randrange(2))
        self.tried(kind="activation", limit=limit, is_active=is_active)
        (self.database.activate if is_active else self.database.deactivate)("under", L=limit)
        say(f"ack {self.database.version}")

    def reopen(self) -> None:
        self.database.close()
        self.database = self.open()


def target(url: str) -> HttpTarget:
    about = Target("shop", pauses_seconds=(0.0,) * 100)
    return HttpTarget(about, url, (SECRET,), (ip_network("127.0.0.0/8"),))


def deliver(path: Path, url: str, calls: int) -> None:
    """Deliver messages until killed."""
    post = Webhook.deliver

    async def begun(self: Webhook, message: object) -> object:
        nonlocal calls
        if calls:
            kill_after(calls)
            calls = 0
        return await post(self, message)  # type: ignore[arg-type]

    Webhook.deliver = begun  # type: ignore[assignment, method-assign]

    def report(recorded: Recorded) -> None:
        assert recorded.state == "delivered", recorded

    async def run() -> None:
        with closing(FileJournal(path)) as journal:
            say("ready")
            dispatcher = Dispatcher(journal, [target(url)], report)
            await dispatcher.run(is_once=False, poll_seconds=0.002)

    asyncio.run(run())


def main() -> None:
    for line in sys.stdin:
        role, path, word, calls = line.split("\t")
        child = os.fork()
        if child == 0:
            if role == "writer":
                Writer(Path(path), int(word), int(calls)).run()
            deliver(Path(path), word, int(calls))
        say(f"child {child}")
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    rehearsal.WHOLE_MAX = 1  # so that the second execution is a step of its own
    delivery_verbs.MESSAGES_MIN = 8
    delivery_verbs.DeliveryVerbs._prune_from = 8  # so that messages are deleted all the time
    main()
