"""A line on standard error while something takes long.

It appears only after a second, and only when standard error is a terminal: quick work and scripts
see nothing. Rounds and facts come from the database's `watch`, rows from the files being read.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from deltalog.cli.terminal import is_terminal
from deltalog.language.ast import Row

DELAY_SECONDS = 1.0
SECONDS_BETWEEN_UPDATES = 0.1
ROWS_BETWEEN_LOOKS = 1_000


class Progress:
    """At most one line at a time; outside of a `phase` nothing is ever shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status: Status | None = None
        self._due = 0.0

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Show the text if the block takes longer than a second."""
        if self._status is not None or not is_terminal(sys.stderr):
            yield
            return
        self._status = Console(stderr=True).status(escape(text))
        timer = threading.Timer(DELAY_SECONDS, self._show_status)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._status.stop()
                self._status = None

    def watch(self, rounds: int, facts: int) -> None:
        """Called by the database after every round."""
        if self._is_due():
            done = f"evaluating: {rounds:,} rounds," if rounds else "loading:"
            self._update_status(f"{done} {facts:,} facts")

    def counted(self, rows: Iterable[Row], name: str) -> Iterator[Row]:
        """The same rows, counted while they pass."""
        for number, row in enumerate(rows, start=1):
            if number % ROWS_BETWEEN_LOOKS == 0 and self._is_due():
                self._update_status(f"reading {name}: {number:,} rows")
            yield row

    def _show_status(self) -> None:
        with self._lock:
            if self._status is not None:
                self._status.start()

    def _is_due(self) -> bool:
        """Whether the line is shown and stale: rounds may be far quicker than anybody reads."""
        now = time.monotonic()
        if self._status is None or now < self._due:
            return False
        self._due = now + SECONDS_BETWEEN_UPDATES
        return True

    def _update_status(self, text: str) -> None:
        assert self._status is not None
        self._status.update(escape(text))
