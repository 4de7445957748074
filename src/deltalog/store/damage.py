"""Damage in the write-ahead log, which SQLite would take for the end of it.

Commits go to `shop.db-wal` first and from there to `shop.db`. When a file is opened after a crash,
SQLite reads the log as far as its checksums lead and ignores the rest: right for a transaction
that was being written, wrong for a byte that flipped in the middle, since all later commits would
be gone without a word. So before SQLite sees it: what comes behind the first frame that does not
fit must not be a commit of the same log.

    header   magic, format, page size, sequence, salt, salt, checksum, checksum  8 × 4 bytes
    frame    page, size of the file if it commits or 0, salts, checksums, page   24 bytes + page

A log that was cut off looks like one that was never longer. That cannot be noticed, and is the
same as a crash before those commits.
"""

from __future__ import annotations

import struct
from pathlib import Path

HEADER, FRAME = 32, 24
_MAGIC = 0x377F0682  # the lowest bit tells the byte order of checksums


def is_log_damaged(path: Path) -> bool:
    """Whether the write-ahead log of a database that nobody has open was altered."""
    try:
        data = path.with_name(f"{path.name}-wal").read_bytes()
    except FileNotFoundError:
        return False
    if len(data) < HEADER:
        return any(data)
    magic, _, page_size, _, *_ = struct.unpack(">8I", data[:HEADER])
    order = ">" if magic & 1 else "<"
    sums = _summed(data[:24], (0, 0), order)
    if magic & ~1 != _MAGIC or sums != struct.unpack(">2I", data[24:32]):
        return any(data)
    return _has_commit_behind_damage(data, page_size, order, sums)


def _has_commit_behind_damage(
    data: bytes, page_size: int, order: str, sums: tuple[int, int]
) -> bool:
    salts = data[16:24]
    is_whole = True
    for start in range(HEADER, len(data) - FRAME - page_size + 1, FRAME + page_size):
        head, page = data[start : start + FRAME], data[start + FRAME : start + FRAME + page_size]
        if is_whole:
            sums = _summed(page, _summed(head[:8], sums, order), order)
            is_whole = head[8:16] == salts and sums == struct.unpack(">2I", head[16:24])
            if is_whole or not _is_commit(head, salts):
                continue
            # The last frame of a commit: half-written, unless something follows it.
        elif _is_commit(head, salts):
            return True
    return False


def _is_commit(head: bytes, salts: bytes) -> bool:
    return head[8:16] == salts and head[4:8] != bytes(4)


def _summed(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """SQLite's checksum over pairs of 32-bit words, continued."""
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for a, b in zip(words[::2], words[1::2], strict=True):
        first = (first + a + second) & 0xFFFFFFFF
        second = (second + b + first) & 0xFFFFFFFF
    return first, second
