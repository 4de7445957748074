"""A binary view as one object: a graph that can be asked, changed, and sent back as a difference.

graph = view.graph()                 graph.successors("ada"), graph.reachable("ada")
edited = graph.copy()                edited.add("ada", "web")
client.apply(**edited.changes("member", graph))
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypedDict

Arc = tuple[Hashable, Hashable]


class Changes(TypedDict):
    """Arguments of `Client.apply`."""

    insert: dict[str, list[Any]]
    delete: dict[str, list[Any]]


class Graph:
    """Arcs between nodes; a node exists while an arc has it."""

    def __init__(self, arcs: Iterable[Arc] = ()) -> None:
        self._after: dict[Hashable, set[Hashable]] = {}
        self._before: dict[Hashable, set[Hashable]] = {}
        for source, target in arcs:
            self.add(source, target)

    def add(self, source: Hashable, target: Hashable) -> None:
        self._after.setdefault(source, set()).add(target)
        self._before.setdefault(target, set()).add(source)

    def remove(self, source: Hashable, target: Hashable) -> None:
        """Remove an arc, and each end of it that has no other arc."""
        for side, node, other in ((self._after, source, target), (self._before, target, source)):
            side[node].remove(other)
            if not side[node]:
                del side[node]

    def apply(self, inserted: Iterable[Arc], deleted: Iterable[Arc]) -> None:
        """Take over a delta of the view."""
        for arc in deleted:
            self.remove(*arc)
        for arc in inserted:
            self.add(*arc)

    def copy(self) -> Graph:
        return Graph(self)

    def __iter__(self) -> Iterator[Arc]:
        return ((source, target) for source, after in self._after.items() for target in after)

    def __len__(self) -> int:
        return sum(map(len, self._after.values()))

    def __contains__(self, arc: object) -> bool:
        return (
            isinstance(arc, tuple)
            and len(arc) == 2
            and arc[1] in self._after.get(arc[0], frozenset())
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._after == other._after

    __hash__ = None  # type: ignore[assignment]

    @property
    def nodes(self) -> frozenset[Hashable]:
        return frozenset(self._after) | frozenset(self._before)

    def successors(self, node: Hashable) -> frozenset[Hashable]:
        return frozenset(self._after.get(node, ()))

    def predecessors(self, node: Hashable) -> frozenset[Hashable]:
        return frozenset(self._before.get(node, ()))

    def reachable(self, node: Hashable) -> frozenset[Hashable]:
        """Nodes that one or more arcs lead to."""
        found: set[Hashable] = set()
        waiting = [node]
        while waiting:
            for target in self._after.get(waiting.pop(), ()):
                if target not in found:
                    found.add(target)
                    waiting.append(target)
        return frozenset(found)

    def changes(self, relation: str, before: Graph) -> Changes:
        """The transaction that makes this graph of an earlier one: arguments of `apply`."""
        new, old = set(self), set(before)
        return {
            "insert": {relation: sorted(new - old, key=repr)},
            "delete": {relation: sorted(old - new, key=repr)},
        }
