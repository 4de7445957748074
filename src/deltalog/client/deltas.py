"""Deltas of a followed view, as a client reports them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ViewDelta:
    """The exact change of a copy: by one commit, by a snapshot, or net by several commits.

    `is_snapshot` says that the copy began anew: then the change is the difference between what it
    had and what the view has, whatever happened in between.
    """

    view: str
    version: int
    inserted: tuple[Any, ...]
    deleted: tuple[Any, ...]
    is_snapshot: bool = False

    def __bool__(self) -> bool:
        return bool(self.inserted or self.deleted)

    def __len__(self) -> int:
        return len(self.inserted) + len(self.deleted)
