"""Processes that are there to be killed: they begin with everything imported, and say what they do.

Most of what a kill costs is the start of the next process: the imports and a JVM. Processes are
therefore forked from one that has imported everything (`multiprocessing`'s fork server), and most
of them work with the JVM of the test. Each leads a group of its own, which dies as a whole: with a
JVM, if it has one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from waiting import HANG_SECONDS

HERE = Path(__file__).parent
PATHS = (HERE, HERE.parent, HERE.parents[1] / "src")
Say = Callable[[str], None]


class Killed:
    """A process that works until it is killed, or kills itself."""

    def __init__(self, work: Callable[..., None], *words: Any, gateway: Mapping[str, str]) -> None:
        """Call `work(say, *words)` in a process whose environment has also these settings."""
        context = multiprocessing.get_context("forkserver")
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, PATHS))  # read when the server starts
        context.set_forkserver_preload(["killed_walk"])
        self._said, said = context.Pipe(duplex=False)
        self._process = context.Process(target=_begin, args=(work, words, dict(gateway), said))
        self._process.start()
        said.close()

    def lines(self) -> Iterator[str]:
        """What it says, until it is dead."""
        while self._said.poll(HANG_SECONDS):
            try:
                yield self._said.recv()
            except EOFError:
                return
        raise AssertionError("it hangs")

    def kill(self) -> None:
        if self._process.is_alive() and self._process.pid is not None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def status(self) -> int | None:
        """How it ended: the number of a signal is negative."""
        self._process.join(HANG_SECONDS)
        return self._process.exitcode


def _begin(
    work: Callable[..., None], words: tuple[Any, ...], gateway: Mapping[str, str], said: Connection
) -> None:
    os.setsid()
    said.send("begins")
    os.environ.update(gateway)
    work(said.send, *words)


def die() -> None:
    """The whole group of processes at once, the JVM too: nobody has the time to tidy up."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def make_deadly(
    writes: tuple[tuple[Any, str], ...], last: int, when: str, say: Say = lambda _: None
) -> None:
    """From now on, the process dies before or after the write with this number."""
    numbers = iter(range(1, 1_000_000))
    for kind, name in writes:
        setattr(kind, name, _deadly(kind, name, numbers, last, when, say))


def _deadly(kind: Any, name: str, numbers: Iterator[int], last: int, when: str, say: Say) -> Any:
    write = getattr(kind, name)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        number = next(numbers)
        if number == last:
            say(f"dies {when} {kind.__name__}.{name}")
        if number == last and when == "before":
            die()
        written = write(*arguments, **named)
        if number == last:
            die()
        return written

    return wrapped
