"""One writer at a time: a lock file beside the database, held while it is open for writing.

The lock is the operating system's and ends with the process, however that ends. It is not on the
database file itself: closing any handle of that file would drop SQLite's own locks on it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # where there is none, SQLite's locks must do
    fcntl = None  # type: ignore[assignment]

_held: set[Path] = set()
"""The lock files that this process holds."""
SECONDS_BETWEEN_TRIES = 0.02
SECONDS_MIN = 0.1
"""Somebody may just be looking whether it is free."""


class WriterLock:
    """Taken by `acquire`, given back by `release` or by the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}-lock")
        self._handle: int | None = None

    @property
    def is_held_here(self) -> bool:
        """Whether a writer of this process has it."""
        return self.path.resolve() in _held

    def is_free(self) -> bool:
        """Whether nobody has it just now."""
        if fcntl is None or not self.path.exists():
            return True
        with suppress(OSError):
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True
            finally:
                os.close(handle)
        return False

    def acquire(self, wait_seconds: float) -> bool:
        """Whether it could be had within that time."""
        until = time.monotonic() + max(wait_seconds, SECONDS_MIN)
        while not self._try_to_lock():
            if time.monotonic() >= until:
                return False
            time.sleep(SECONDS_BETWEEN_TRIES)
        return True

    def _try_to_lock(self) -> bool:
        if fcntl is None:
            return True
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._is_current(handle):
                self._handle = handle
                _held.add(self.path.resolve())
                return True
        except BlockingIOError:
            pass
        os.close(handle)
        return False

    def _is_current(self, handle: int) -> bool:
        """Whoever held the lock before may have removed the file in the meantime."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        return False

    def leave(self) -> None:
        """Let go of a copy that came by a fork; the other process still has it."""
        if self._handle is not None:
            self._let_go()

    def release(self) -> None:
        if self._handle is not None:
            with suppress(OSError):
                self.path.unlink()
            self._let_go()

    def _let_go(self) -> None:
        assert self._handle is not None
        _held.discard(self.path.resolve())
        os.close(self._handle)
        self._handle = None
