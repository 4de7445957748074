"""The end of a database in memory: once closed, it holds nothing and refuses everything."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.propagation import Propagation

if TYPE_CHECKING:
    from deltalog.engines.base import Engine
    from deltalog.runtime.model import Model


class Closable:
    """The part of a database that ends it, also as the end of a `with` block."""

    model: Model
    engine: Engine
    propagation: Propagation
    _lock: AbstractContextManager[object]
    _is_closed = False

    def check_not_acting(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of all facts; a closed database cannot be used any more."""
        with self._lock:
            self.check_not_acting()
            if not self._is_closed:
                self._is_closed = True
                self.engine = self.engine.fresh()
                create_relations(
                    self.engine, {n: self.model.relations[n] for n in self.model.stored}
                )
                self.propagation = Propagation(self.engine, self.model)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise DataError([catalogue.DATABASE_CLOSED.at(None, name="the database in memory")])
