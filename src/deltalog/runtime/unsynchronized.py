"""The `Synchronization` of a database that is in memory only: there is nothing to agree with."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


class Unsynchronized:
    def before_reading(self, database: MemoryDatabase) -> None:
        pass

    def changing(
        self, database: MemoryDatabase, is_committed: bool
    ) -> AbstractContextManager[object]:
        return _NOTHING

    def changing_program(
        self, database: MemoryDatabase, is_committed: bool
    ) -> AbstractContextManager[object]:
        return _NOTHING


_NOTHING = nullcontext()
UNSYNCHRONIZED = Unsynchronized()
