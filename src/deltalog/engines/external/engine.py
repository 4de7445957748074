"""An engine some of whose base relations are at sources elsewhere, probed by the values of a round.

What is derived is small and stays here, in the relations of the reference engine. A rule that
starts from a change looks up what it needs at the sources by bound columns; only a rule without
anything bound reads a source from end to end.

Rules run inside `reading`: all sources then have one snapshot each, and their relations are at the
state that was last propagated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from deltalog.engines.base import Capabilities
from deltalog.engines.external.relation import ExternalRelation
from deltalog.engines.external.source import Source
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.language.ast import Row


class ExternalEngine(ReferenceEngine):
    name = "external"
    capabilities = Capabilities(fact_bytes=512)

    def __init__(self, sources: Mapping[str, Sequence[Source]]) -> None:
        super().__init__()
        self._sources = sources
        self._depth = 0

    def fresh(self) -> ReferenceEngine:
        """An engine for facts that are given to it: nobody but this one has the sources."""
        return ReferenceEngine()

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        if relation in self._sources and relation not in self.relations:
            sources = self._sources[relation]
            self.relations[relation] = ExternalRelation(self._clock, sources, len(types))
            return
        super().create(relation, types)

    @property
    def external(self) -> dict[str, ExternalRelation]:
        """The relations that are at sources."""
        return {n: r for n, r in self.relations.items() if isinstance(r, ExternalRelation)}

    @property
    def sources(self) -> dict[str, tuple[Source, ...]]:
        return {name: tuple(sources) for name, sources in self._sources.items()}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One snapshot of each source; inside another one it is the same."""
        self._depth += 1
        try:
            if self._depth == 1:
                self._open_sources()
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                for source in self._all_sources():
                    source.close()

    def _open_sources(self) -> None:
        for source in self._all_sources():
            source.open()
        for relation in self.external.values():
            relation.roll_back()

    def _all_sources(self) -> Iterator[Source]:
        for sources in self._sources.values():
            yield from sources

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        with self.reading():
            return iter(list(super().lookup(relation, key)))

    def present(self, relation: str, rows: Collection[Row]) -> list[bool]:
        with self.reading():
            return super().present(relation, rows)

    def disconnect(self) -> None:
        for source in self._all_sources():
            source.disconnect()
