"""What only a terminal shows: prompts, colours, editing, history, progress."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import COMMAND, write

from waiting import HANG_SECONDS

pty = pytest.importorskip("pty")


class Terminal:
    """The command with a terminal on all its ends."""

    def __init__(self, *arguments: str) -> None:
        self.shown = ""
        self._process, self._file = pty.fork()
        if self._process == 0:
            try:
                os.environ["TERM"] = "xterm-256color"
                os.execv(COMMAND, [str(COMMAND), *arguments])
            finally:
                os._exit(99)

    def wait_for(self, words: str, seconds_max: float = HANG_SECONDS) -> None:
        end = time.monotonic() + seconds_max
        while words not in self.shown:
            assert time.monotonic() < end, f"{words!r} is not in {self.shown!r}"
            if select.select([self._file], [], [], 0.1)[0]:
                self.shown += self._read()

    def type(self, words: str) -> None:
        self.shown = ""
        os.write(self._file, words.encode())

    def interrupt(self) -> None:
        """Until it is noticed: just before Python waits for a key, that takes another key."""
        for _ in range(HANG_SECONDS // 2):
            self.type("\x03")
            with suppress(AssertionError):
                return self.wait_for("interrupted", seconds_max=2)
        raise AssertionError("it was not interrupted")

    def ended(self) -> int:
        while text := self._read():
            self.shown += text
        os.close(self._file)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])

    def _read(self) -> str:
        try:
            return os.read(self._file, 65536).decode(errors="replace")
        except OSError:  # how Linux says that the other end is closed
            return ""


def test_a_session() -> None:
    terminal = Terminal("repl", "graph.dl")
    terminal.wait_for("deltalog> ")
    terminal.type("+edge(1,\n")
    terminal.wait_for("... ")
    terminal.type("2).\n")
    terminal.wait_for("\x1b[32m+path(1, 2).\x1b[0m")
    terminal.type("? pat\t(1, Y).\n")
    terminal.wait_for("(1 row)")
    terminal.type("+edge(1, 2).\n")
    terminal.wait_for("nothing changes")
    terminal.type("? pth(1).\n")
    terminal.wait_for("\x1b[1;31merror[E0203]")
    terminal.type("half(")
    terminal.interrupt()
    terminal.type(":quit\n")
    assert terminal.ended() == 0
    history = Path(os.environ["XDG_STATE_HOME"]) / "deltalog" / "history"
    kept = history.read_text().splitlines()
    assert "? path(1, Y)." in kept
    assert "+edge(1, 2)." in kept  # of two lines, as one
    assert "2)." not in kept


def test_the_end_of_input_ends_the_session() -> None:
    terminal = Terminal("repl")
    terminal.wait_for("deltalog> ")
    terminal.type("\x04")
    assert terminal.ended() == 0


def test_progress_appears_after_a_second_and_goes_away() -> None:
    write("grow.dl", "n(0).\nn(X + 1) :- n(X).\n")
    terminal = Terminal("run", "grow.dl", "--rounds-max", "1000000000")
    terminal.wait_for("evaluating: ")
    terminal.wait_for(" rounds, ")
    terminal.interrupt()
    assert terminal.ended() == 130
    assert "\x1b[2K" in terminal.shown


def test_quick_work_shows_no_progress() -> None:
    terminal = Terminal("check", "graph.dl")
    assert terminal.ended() == 0
    assert terminal.shown == "graph.dl: 2 relations (1 base, 1 view), 2 rules, 1 stratum\r\n"
