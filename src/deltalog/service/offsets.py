"""Offsets: positions in the stream of a view, as clients hold them.

    6a1b2c3d9f00e1d2-00000000000000000017-99999999
    history          version              part

Opaque to clients, of fixed width, and sortable as text. The *history* is the random identity of the
sequence of versions (`store/settings.py`); a restore renews it, so that an offset of another
history is recognised. The *part* counts chunks of the snapshot at a version; `COMPLETE` is the
position behind all of it, which is also the position behind the commit that made the version.
Every version has such a position, whether its commit touched a view or not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COMPLETE = 99_999_999
"""The part behind the last chunk of a snapshot."""
VERSION_MAX = 2**63 - 1
_FORM = re.compile(r"([0-9a-f]{16})-([0-9]{20})-([0-9]{8})", re.ASCII)


@dataclass(frozen=True, order=True)
class Offset:
    """A position behind a part of the state at a version."""

    history: str
    version: int
    part: int = COMPLETE

    @property
    def is_complete(self) -> bool:
        """Whether it lies between commits, and not inside a snapshot."""
        return self.part == COMPLETE

    def __str__(self) -> str:
        return f"{self.history}-{self.version:020}-{self.part:08}"


def read_offset(text: str) -> Offset | None:
    """The offset that a text stands for, or None if it stands for none.

    >>> str(read_offset("6a1b2c3d9f00e1d2-00000000000000000017-99999999"))
    '6a1b2c3d9f00e1d2-00000000000000000017-99999999'
    """
    found = _FORM.fullmatch(text)
    if found is None or int(found[2]) > VERSION_MAX:
        return None
    return Offset(found[1], int(found[2]), int(found[3]))
