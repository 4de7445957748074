"""A database in memory some of whose base relations are at sources elsewhere.

    db = deltalog.connect(program="graph.dl", materialize=False, sources={"edge": …})
    db.pull()        the exact change of every view by what the sources have announced since

Facts of these relations are changed where they are. Until they are pulled, announced changes are
rolled back: queries, what-ifs and commits see the state that was last propagated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from deltalog.analysis.relevance import needed_rules
from deltalog.diagnostics import source_catalogue as catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.external.engine import ExternalEngine
from deltalog.engines.external.source import Precision
from deltalog.rewrites.forms import read_by
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model
from deltalog.runtime.protocols import Facts, Participant
from deltalog.runtime.wanted_views import known_views


@dataclass(frozen=True)
class SourceState:
    """A source of a relation, and how many of its events are not pulled yet."""

    relation: str
    place: str
    precision: Precision
    pending: int


class SourcedDatabase(MemoryDatabase):
    """Made by `connect(sources=…)`."""

    def __init__(
        self,
        model: Model,
        engine: ExternalEngine,
        limits: Limits,
        watch: Watch | None,
        facts: Facts,
        participants: tuple[Participant, ...] = (),
    ) -> None:
        at_sources = [name for name in facts if name in engine.sources]
        if at_sources:
            raise _is_elsewhere(at_sources[0])
        self._external = engine
        with engine.reading():
            super().__init__(model, engine, limits, watch, facts, participants=participants)

    @contextmanager
    def turn(self) -> Iterator[None]:
        with super().turn(), self._external.reading():
            yield

    def propagate_wanted(
        self,
        wanted: ChangeSet,
        is_committed: bool = True,
        views: frozenset[str] | None = None,
        is_firing: bool | None = None,
    ) -> ChangeSet:
        self._check_open()
        if is_committed:
            for name in wanted.relations:
                if name in self._external.sources:
                    raise _is_elsewhere(name)
        with self._external.reading():
            return super().propagate_wanted(wanted, is_committed, views, is_firing)

    def pull(self, *, views: Iterable[str] | None = None) -> ChangeSet:
        """Take what the sources have announced; returns the exact change of every view.

        All of it is one transaction: a change that was undone at a source since is no change. With
        `views` only these are propagated, and what is stored.
        """
        with self.turn():
            known = None if views is None else known_views(self.propagation, self.relations, views)
            inserted, deleted = {}, {}
            for name, relation in self._external.external.items():
                inserted[name], deleted[name] = relation.announced()
            change = self.propagate_net(ChangeSet(inserted, deleted), True, known)
            for relation in self._external.external.values():
                relation.acknowledge()
            return change

    def precision_of(self, relation: str) -> Precision:
        """`eventual` if a relation or view depends on a source without snapshots."""
        read = read_by(needed_rules(self.model.rules, {relation})) | {relation}
        at_sources = (each for name in read for each in self._external.sources.get(name, ()))
        return "eventual" if any(e.precision == "eventual" for e in at_sources) else "exact"

    @property
    def sources(self) -> tuple[SourceState, ...]:
        """Every source with its place, its precision and what it has announced since."""
        with self.turn():
            return tuple(
                SourceState(name, source.name, source.precision, len(source.events()))
                for name, sources in self._external.sources.items()
                for source in sources
            )

    def close(self) -> None:
        super().close()
        self._external.disconnect()


def _is_elsewhere(name: str) -> DataError:
    hint = "change it there; `db.pull()` takes over what it announces"
    return DataError([catalogue.FACTS_ELSEWHERE.at(None, name=name, hint=hint)])
