"""The arcs of the propagation network that led to a firing.

    reorder("bolt")
      quantity → reorder    +1 −1      arcs over which nothing flowed are left out

Recorded while somebody wants it (`RuleTrace.recording`), from the propagation that triggered the
rule: every arc below the relation that the rule watches over which facts flowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog.language.ast import Row

if TYPE_CHECKING:
    from deltalog.runtime.propagation import Propagation


@dataclass(frozen=True)
class TracedArc:
    """Facts that were inserted and deleted over an arc from a relation to a view that reads it."""

    source: str
    target: str
    inserted: int
    deleted: int


@dataclass(frozen=True)
class TracedFiring:
    """An execution of a rule: its instances, and the arcs that led to what it `watched`."""

    rule: str
    instances: tuple[Row, ...]
    watched: str
    arcs: tuple[TracedArc, ...]


class RuleTrace:
    """Firings of the transactions since recording began."""

    def __init__(self) -> None:
        self.firings: list[TracedFiring] = []
        self.is_recording = False
        self._arcs: tuple[TracedArc, ...] = ()

    @contextmanager
    def recording(self) -> Iterator[list[TracedFiring]]:
        """Record what fires inside the block."""
        self.firings, self.is_recording = [], True
        try:
            yield self.firings
        finally:
            self.is_recording = False

    def triggered(self, network: Propagation, watched: str) -> None:
        """Remember the arcs of the propagation that has just triggered a rule."""
        self._arcs = tuple(_arcs_below(network, watched))

    def executed(self, rule: str, instances: list[Row], watched: str) -> None:
        self.firings.append(TracedFiring(rule, tuple(instances), watched, self._arcs))


def _arcs_below(network: Propagation, watched: str) -> Iterator[TracedArc]:
    by_target: dict[str, list[TracedArc]] = {}
    for (source, target), (inserted, deleted) in network.flows.items():
        if inserted or deleted:
            arc = TracedArc(source, target, inserted, deleted)
            by_target.setdefault(target, []).append(arc)
    seen, pending = {watched}, [watched]
    while pending:
        for arc in by_target.get(pending.pop(0), ()):
            yield arc
            if arc.source not in seen:
                seen.add(arc.source)
                pending.append(arc.source)
