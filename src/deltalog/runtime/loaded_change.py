"""A net change of stored relations, its rows in relations of the engine, for queries to read.

    change of path, named "before"   →   path__plus__asked_before, path__minus__asked_before

A search asks thousands of queries of the same state, so the rows are inserted once for all of them:
when a query first reads their relation. `close` drops them.
"""

from __future__ import annotations

from collections.abc import Set
from copy import copy

from deltalog.engines.base import Engine
from deltalog.rewrites import names
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.model import Model


class LoadedChange:
    """A change of `relations`; changes that an engine has at the same time have different names."""

    def __init__(
        self, engine: Engine, model: Model, change: ChangeSet = NO_CHANGE, name: str = ""
    ) -> None:
        self.name = name
        self.relations = frozenset(change.relations)
        self._engine = engine
        self._model = model
        self._change = change
        self._loaded: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.relations)

    def only(self, relations: Set[str]) -> LoadedChange:
        """The same change as far as it is one of these relations."""
        if self.relations <= relations:
            return self
        found = copy(self)
        found.relations = self.relations & relations
        return found

    def load(self) -> None:
        """Insert the rows, unless they are there."""
        for name in self.relations - self._loaded:
            self._loaded.add(name)
            relation = self._model.relations[name]
            for side, rows in (
                (names.plus_name(name), self._change.inserted[name]),
                (names.minus_name(name), self._change.deleted[name]),
            ):
                create_relations(self._engine, {self.place(side): relation})
                self._engine.insert(self.place(side), rows)

    def place(self, side: str) -> str:
        """Where the rows of `path__plus` or `path__minus` are."""
        return names.asked_name(side, self.name)

    def close(self) -> None:
        """Drop the rows."""
        for name in self._loaded:
            self._engine.drop(self.place(names.plus_name(name)))
            self._engine.drop(self.place(names.minus_name(name)))
        self._loaded.clear()
