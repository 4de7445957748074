"""Damage in the write-ahead log, which SQLite takes for the end of it.

Commits go to `shop.db-wal` first and from there to `shop.db`. When a file is opened after a crash,
SQLite reads the log as far as its checksums lead and ignores the rest: right for a transaction
that was being written, wrong for a byte that flipped in the middle, since all later commits would
be gone without a word. So: what comes behind the frames that SQLite has accepted may be the pieces
of one commit, but not more. And after a crash of the process alone, `shop.db-shm` still tells how
far the log went: no frame of those may be missing.

    header   magic, format, page size, sequence, salt, salt, checksum, checksum  8 × 4 bytes
    frame    page, size of the file if it commits or 0, salts, checksums, page   24 bytes + page

Without that file a log that was cut off looks like one that was never longer, and one whose last
commit is damaged like one that was being written. Either gives the state before those commits.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

HEADER, FRAME, SHARED = 32, 24, 48


def is_cut_off(path: Path, connection: apsw.Connection) -> bool:
    """Whether the file ends too early, and the log does not make up for it.

    SQLite takes what is missing of the last page for zeros, and its checksum is not looked at.
    """
    size = int(connection.pragma("page_size"))
    accepted = int(connection.execute("PRAGMA wal_checkpoint = NOOP").get[1])
    return accepted <= 0 and path.stat().st_size != size * int(connection.pragma("page_count"))


def frames_known(path: Path) -> tuple[bytes, int] | None:
    """Salts and frames of the log as the last process knew them, if the system still runs.

    To be asked before this process opens the file: SQLite begins the shared memory anew, and a
    handle that is closed here would take SQLite's locks with it.
    """
    try:
        with path.with_name(f"{path.name}-shm").open("rb") as file:
            data = file.read(2 * SHARED)
            changed = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    started = time.time() - time.clock_gettime(clock)
    if len(data) < 2 * SHARED or data[:SHARED] != data[SHARED:] or changed < started:
        return None
    return data[32:40], struct.unpack("=I", data[16:20])[0]


def is_log_damaged(
    path: Path, connection: apsw.Connection, known: tuple[bytes, int] | None
) -> bool:
    """Whether the log of a database that nobody else writes to has lost commits."""
    try:
        handle = os.open(path.with_name(f"{path.name}-wal"), os.O_RDONLY)
    except FileNotFoundError:
        return known is not None and known[1] > 0
    try:
        if known is not None and not os.fstat(handle).st_size:
            return known[1] > 0
        header = os.pread(handle, HEADER, 0)
        if os.fstat(handle).st_size < HEADER + FRAME:
            return False
        if not _is_whole(header):
            return True
        accepted = int(connection.execute("PRAGMA wal_checkpoint = NOOP").get[1])
        if known is not None and known[0] == header[16:24] and accepted < known[1]:
            return True
        return _has_more_than_one(_commits_behind(handle, header, accepted))
    finally:
        os.close(handle)  # SQLite's locks are on other files


def _is_whole(header: bytes) -> bool:
    words = struct.unpack(">8I", header)
    order = ">" if words[0] & 1 else "<"
    first = second = 0
    for a, b in struct.iter_unpack(f"{order}2I", header[:24]):
        first = (first + a + second) & 0xFFFFFFFF
        second = (second + b + first) & 0xFFFFFFFF
    return (first, second) == words[6:]


def _commits_behind(handle: int, header: bytes, accepted: int) -> Iterator[bool]:
    """For each frame of this log behind those accepted, whether it ends a commit."""
    size, salts = struct.unpack(">I", header[8:12])[0] + FRAME, header[16:24]
    start = HEADER + accepted * size
    while len(head := os.pread(handle, FRAME, start)) == FRAME:
        if head[8:16] == salts:
            yield head[4:8] != bytes(4)
        start += size


def _has_more_than_one(commits: Iterator[bool]) -> bool:
    """Whether anything follows the first of them."""
    return any(commits) and next(commits, None) is not None
