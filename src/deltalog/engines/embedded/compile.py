"""Compile the kernels now rather than in the first query.

    python -m deltalog.engines.embedded.compile

numba keeps what it compiled on disk, beside the package or in the user's cache directory, so this
takes some seconds once per machine and nothing afterwards. A kernel's file does not say that a
kernel it calls has changed, so a digest of all sources stands beside them, and when it differs they
are compiled anew.
"""

from __future__ import annotations

import hashlib
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from numba import types

from deltalog.engines.embedded.kernels import bulk, fixpoint, pipeline, relation_memory, wave

KERNELS: tuple[Any, ...] = (
    wave.run_wave,
    wave.enter_station,
    wave.leave_station,
    wave.end_wave,
    pipeline.put_row,
    pipeline.send_rows,
    pipeline.is_over,
    pipeline.test_holds,
    pipeline.assign_slot,
    pipeline.is_some,
    fixpoint.run_alone,
    fixpoint.run_round,
    fixpoint.rewind_sequence,
    fixpoint.rewind_part,
    bulk.insert_rows,
    bulk.load_rows,
    bulk.delete_rows,
    bulk.find_rows,
    bulk.is_there,
    relation_memory.append_row,
    bulk.rank_of_row,
    bulk.copy_rows,
    bulk.matching_rows,
    bulk.move_rows,
    relation_memory.clear_relation,
    bulk.clear_all,
    relation_memory.add_index,
    bulk.mark_words,
    relation_memory.discard_relation,
    bulk.discard_machine,
)
DIGEST = "kernels.digest"
Report = Callable[[int, int], None]


def compile_kernels(report: Report) -> None:
    """Compile, or load, every kernel; `report` gets how many are ready, of how many."""
    sources = compiled_sources()  # as they are now: they may change meanwhile
    with _reraise_interrupt():
        for number, function in enumerate(KERNELS):
            report(number, len(KERNELS))
            function.compile((types.int64,) * function.py_func.__code__.co_argcount)
    report(len(KERNELS), len(KERNELS))
    with suppress(OSError):
        (kept_at() / DIGEST).write_text(sources, encoding="ascii")


@contextmanager
def _reraise_interrupt() -> Iterator[None]:
    """Raise an interrupt again as what it was, whatever numba makes of it.

    A compilation that is interrupted may fail with `generator raised StopIteration`.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    is_interrupted = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        before(number, frame)

    try:
        signal.signal(signal.SIGINT, handle)
        yield
    except Exception:
        if is_interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


@cache
def ensure_compiled() -> None:
    """Compile with progress on the terminal, if this machine has not done it yet.

    A process looks once: what it has loaded stays as it is, and engines are made often.
    """
    if _is_compiled():
        return
    for kept in kept_at().glob("*.nb[ic]"):
        with suppress(OSError):
            kept.unlink()
    for made in kept_at().glob("pipelines_*"):
        shutil.rmtree(made, ignore_errors=True)
    started = time.monotonic()
    compile_kernels(_show_progress)
    _write_to_stderr(f"ready in {time.monotonic() - started:.0f} s\n")


def _is_compiled() -> bool:
    try:
        return (kept_at() / DIGEST).read_text(encoding="ascii") == compiled_sources()
    except OSError:
        return False


def kept_at() -> Path:
    """Return the folder where numba keeps the kernels."""
    return Path(fixpoint.run_alone.stats.cache_path)


def compiled_sources() -> str:
    """A digest of what kernels are compiled from."""
    files = sorted(Path(str(pipeline.__file__)).parent.glob("*.py"))
    sources = (path.read_bytes() for path in files)
    return hashlib.sha256(b"".join(sources)).hexdigest()


SECONDS_BETWEEN_LINES = 10.0
_line_due = [0.0]
"""When the next line is due where there is no terminal."""


def _show_progress(done: int, total: int) -> None:
    text = f"compiling the kernels of the embedded engine, once per machine: {done} of {total}"
    if sys.stderr is not None and sys.stderr.isatty():
        _write_to_stderr(f"\r{text} " if done < total else f"\r{text}, ")
    elif done == 0 or time.monotonic() >= _line_due[0]:
        _line_due[0] = time.monotonic() + SECONDS_BETWEEN_LINES
        _write_to_stderr(f"{text}\n")


def _write_to_stderr(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


if __name__ == "__main__":
    ensure_compiled()
