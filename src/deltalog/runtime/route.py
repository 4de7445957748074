"""The part of a propagation network that a change takes to what somebody wants.

    edge ──▶ path ──▶ reach          stored
              └─────▶ one_way        virtual, and nobody wants it: not on the route

A change reaches a view only if it is stored, on the way to one that is, or wanted by the caller
(Staudt & Jarke 1996, Algorithm 3; Risch & Sköld 1999, section 1.5.2). The changes of virtual views
that are only on the way are released as soon as the last node that needs them has run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltalog.engines.base import NO_ROWS, AbortedError
from deltalog.rewrites import names
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.fixpoint import Statistics, Watch, count_run, run_fixpoint
from deltalog.runtime.limits import Limits, Meter
from deltalog.runtime.nodes import (
    SIDES,
    Node,
    sides_of,
)

if TYPE_CHECKING:
    from deltalog.runtime.propagation import Propagation


class Route:
    """The part of a network that a change takes to the `views` that are wanted, and the stored.

    A node is on it if it is stored, wanted, or read by another one that is on it. So are the views
    that constraints and active rules watch, whose change is kept for these, and not shown.

    Of the `potential` ones a superset of the change is enough. It is computed where it costs less:
    for virtual views that no other node on the route reads. `estimated` are those views. A route
    that `is_narrow` leads to the wanted views only: a change that takes it must not be made.
    """

    def __init__(
        self,
        network: Propagation,
        views: frozenset[str],
        potential: frozenset[str] = frozenset(),
        is_narrow: bool = False,
    ) -> None:
        self.network = network
        self.views = views
        self.is_narrow = is_narrow
        self._kept = views if is_narrow else views | network.watched
        self.estimated: frozenset[str] = frozenset()
        self.nodes = self._reached_nodes(potential - network.watched)
        self.is_whole = views >= network.views and not self.estimated
        self._omitted: dict[frozenset[str], tuple[str, ...]] = {}
        self.readers: dict[str, list[int]] = {}
        for node in self.nodes:
            for name in node.influents:
                self.readers.setdefault(name, []).append(node.number)
        self.released = self._released_changes()
        self.wave = network.engine.wave(len(network.stations))
        self._placed: set[int] = set()
        self._fact_bytes = network.engine.capabilities.fact_bytes
        self.is_plain = not network.is_in_place
        self._numbers = {name: source.number for name, source in network.sources.items()}
        for source in network.sources.values():
            self.wave.place(source.number, source.station(self))

    def exact_part(self, change: ChangeSet) -> ChangeSet:
        """A change without the views whose change is estimated."""
        return change.without(*self.estimated) if self.estimated else change

    def omitted_by(self, changed: frozenset[str]) -> tuple[str, ...]:
        """The views that some base relations may change, and whose exact change nobody wants."""
        found = self._omitted.get(changed)
        if found is None:
            exact = self.views - self.estimated
            views = self.network.reached_from(changed) & self.network.views
            found = self._omitted[changed] = tuple(sorted(views - exact))
        return found

    def _reached_nodes(self, potential: frozenset[str]) -> tuple[Node, ...]:
        needed = set(self._kept if self.is_narrow else self._kept | self.network.stored)
        exact = needed - potential
        found = []
        for node in reversed(self.network.nodes):
            if not needed.isdisjoint(node.choice.predicates):
                needed.update(node.influents)
                estimating = node.potential if exact.isdisjoint(node.choice.predicates) else None
                exact.update(node.influents)
                found.append(node if estimating is None else estimating)
                if estimating is not None:
                    self.estimated |= node.choice.members & self.views
        return tuple(reversed(found))

    def _released_changes(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Per node, the changes of virtual views that nobody needs any more once it has run.

        Who asks for the new state of a view that is rederived on demand reads its change, also
        through other virtual views; all others read only the changes of their influents.
        """
        on_demand = self.network.compiler.virtual.on_demand
        direct: dict[str, int] = {}
        asked: dict[str, int] = {}
        for position, node in reversed(tuple(enumerate(self.nodes))):
            virtual = (name for name in node.choice.predicates if name not in self.network.stored)
            used = max([position, *(asked.get(name, 0) for name in virtual)])
            for name in node.influents:
                direct[name] = max(position, direct.get(name, 0))
                asked[name] = max(used, asked.get(name, 0))
        found: dict[tuple[str, ...], tuple[str, ...]] = {}
        for name in direct:
            if name not in self.network.stored and name not in self._kept:
                last = asked if names.new_name(name) in on_demand else direct
                reader = self.nodes[last[name]].choice.predicates
                found[reader] = (*found.get(reader, ()), *sides_of((name,)))
        return found

    def run(self, base: ChangeSet, limits: Limits, watch: Watch | None) -> Statistics:
        """Bind the changes of base relations and derive those of views."""
        total, meter = Statistics(), Meter(limits, self._fact_bytes)
        inserted, deleted = base.sides
        numbers, bind = self._numbers, self.wave.bind
        for name, rows in inserted.items():
            bind(numbers[name], rows, deleted.get(name, NO_ROWS))
        for name, rows in deleted.items():
            if name not in inserted:
                bind(numbers[name], NO_ROWS, rows)
        while True:
            ended = self.wave.run(*meter.rest)
            count_run(ended, meter, watch, total)
            if ended.asked >= 0:
                node = self.network.stations[ended.asked]
                assert isinstance(node, Node)
                self._run_node(node, ended.is_aborted, meter, watch, total)
            elif ended.is_done:
                return total

    def _run_node(
        self, node: Node, is_aborted: bool, meter: Meter, watch: Watch | None, total: Statistics
    ) -> None:
        """Run a node that the engine does not run by itself, or not before we had a look."""
        recomputing = node.recomputing
        if is_aborted:
            self._clear_node(node)
        elif recomputing is None or not node.is_much_changed():
            try:
                self._run_placed(node, meter, watch, total)
            except AbortedError:
                self._clear_node(node)
            else:
                return
        assert recomputing is not None, "only a node that can be recomputed may be aborted"
        self._run_placed(recomputing, meter, watch, total)

    def _run_placed(self, node: Node, meter: Meter, watch: Watch | None, total: Statistics) -> None:
        if node.number not in self._placed:
            self._place_node(node)
        self.wave.enter(node.number)
        try:
            run_fixpoint(
                self.network.engine,
                node.installed,
                meter.limits,
                "semi_naive",
                watch,
                meter,
                total,
            )
        except BaseException:
            self.network.engine.clear_all(node.transient)
            raise
        finally:
            node.installed.rewind()
        self.wave.leave(node.number)

    def _place_node(self, node: Node) -> None:
        """Show the engine a node that is reached for the first time."""
        self.wave.place(node.number, node.station(self))
        self._placed.add(node.number)
        stored = [name for name, *_ in node.moves]
        shown = [name for name, *_ in node.shown(self.views)]
        self.is_plain = self.is_plain and node.is_net and len(stored) == 1 and stored == shown

    def _clear_node(self, node: Node) -> None:
        """Clear what a node made before it was aborted."""
        self.network.engine.clear_all((*node.transient, *node.outlasting))
        node.installed.rewind()

    def peak(self, change: ChangeSet, generated: Mapping[str, int]) -> int:
        """How many change facts were held at most at one time in a run."""
        sizes = Counter(generated)
        for side, rows_of in zip(SIDES, change.sides, strict=True):
            for name in self._numbers:
                sizes[side(name)] = len(rows_of.get(name, NO_ROWS))
        held = peak = sum(sizes[side] for side in sides_of(self._numbers))
        for node in self.nodes:
            if any(sizes[side] for side in sides_of(node.influents)):
                held += sum(sizes[side] for side in sides_of(node.choice.predicates))
                peak = max(peak, held)
                held -= sum(sizes[side] for side in self.released.get(node.choice.predicates, ()))
        return peak
