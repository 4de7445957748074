"""Nodes of a search for realizations, made from others: with more wishes, or with values.

A node is made only if its wishes do not contradict each other, touch no relation that is fixed, and
no fact becomes its own reason. It knows what it costs at least (`search_bounds.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from deltalog.language.ast import Rule, Value
from deltalog.runtime.alternatives import Values
from deltalog.runtime.checked_rows import key_of
from deltalog.runtime.placeholders import (
    Unifier,
    different_facts,
    is_open,
    make_placeholder,
    placeholders_in,
    with_values,
)
from deltalog.runtime.realization import ANY, Wish, are_contradictory
from deltalog.runtime.search_bounds import Bounds
from deltalog.runtime.search_nodes import Node
from deltalog.runtime.search_values import ChosenValues
from deltalog.runtime.side_effects import Estimates

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


class NodeMaker:
    """Makes the nodes of one search."""

    def __init__(
        self,
        database: MemoryDatabase,
        rules: Mapping[str, tuple[Rule, ...]],
        cost: Callable[[Wish], float],
        fixed: Collection[str],
        chosen: ChosenValues,
        estimates: Estimates,
    ) -> None:
        self.database = database
        self.relations = database.relations
        self.cost = cost
        self.fixed = fixed
        self.refused: frozenset[Wish] = frozenset()
        """Base changes that are part of every answer, whatever is fixed."""
        self.chosen = chosen
        self.estimates = estimates
        self._rules = rules
        self._bases = [n for n, each in self.relations.items() if each.kind == "base"]
        self._arity = max((self.relations[name].arity for name in self._bases), default=1)

    # --- what a node costs

    def price(self, node: Node) -> float:
        """The least cost of a node: every new value must come with a base fact."""
        more = sum(map(self.cost, node.pending))
        if self.chosen.new:
            placed = {value for wish in node.change for value in wish.row}
            wished = {value for wish in node.wishes if wish.holds for value in wish.row}
            waiting = len(wished & self.chosen.new - placed)
            more = max(more, -(-waiting // self._arity) * self.bounds.insertion)
        return sum(map(self.cost, node.change)) + more

    @cached_property
    def bounds(self) -> Bounds:
        return Bounds(self._rules, self._bases, self.fixed, self.cost)

    def more_than(self, node: Node) -> float:
        """The least cost of what follows a node, whose base changes are not enough."""
        price = sum(map(self.cost, node.change)) + self.bounds.change
        return max(self.price(node), node.least, price)

    # --- wishes

    def with_wishes(
        self, node: Node, more: Iterable[Wish], least: float | None = None
    ) -> Node | None:
        """The node with more wishes; None if they contradict each other or must not be."""
        wishes, change = set(node.wishes), set(node.change)
        promise = 0.0
        waiting = list(more)
        while waiting:
            wish = waiting.pop()
            if wish in wishes:
                continue
            if any(are_contradictory(wish, other) for other in wishes):
                return None
            wishes.add(wish)
            if is_open(wish):
                if wish.holds and wish.relation in self.fixed:
                    return None
            elif self.is_base(wish.relation) and ANY not in wish.row:
                is_there = self._is_stored(wish)
                if is_there != wish.holds:
                    if wish.relation in self.fixed and wish not in self.refused:
                        return None
                    change.add(wish)
                if wish.holds:
                    waiting += self._replacement_wishes(wish)
            elif not self.is_base(wish.relation):
                promise = max(promise, self.estimates.of(wish.holds, wish.relation))
        opened = [w for w in wishes if w.holds and self.is_base(w.relation) and is_open(w)]
        pending = different_facts(opened, change, node.supports)
        if least is None:
            least = self.more_than(node) if node.wishes else 0.0
        return Node(
            frozenset(wishes),
            frozenset(change),
            node.supports,
            node.absent if change == node.change else frozenset(),
            pending,
            least,
            self.estimates.of_change((*change, *pending)) + promise,
            node.depth + 1,
        )

    def _replacement_wishes(self, wish: Wish) -> Iterator[Wish]:
        """The fact that must go because another one gets its key."""
        relation = self.relations[wish.relation]
        if relation.key:
            key = dict(zip(relation.key, key_of(relation, wish.row), strict=True))
            for row in self.database.engine.lookup(wish.relation, key):
                if row != wish.row:
                    yield Wish(False, wish.relation, row)

    def is_base(self, relation: str) -> bool:
        return relation in self.relations and self.relations[relation].kind == "base"

    def _is_stored(self, wish: Wish) -> bool:
        return next(iter(self.database.engine.present(wish.relation, [wish.row])))

    # --- values

    def values_for(self, node: Node) -> Values:
        """Values for columns that no literal determines, after those that a node uses."""
        used = {value for wish in node.wishes for value in wish.row}
        return self.chosen.following(used)

    def with_values(self, node: Node, unifier: Unifier, least: float) -> Node | None:
        """The node with values for some placeholders; None if that cannot be.

        An insertion with placeholders stands for facts that are not there.
        """
        if not unifier.bound:
            return node
        kept = with_values(node, unifier)
        if kept is None:
            return None
        changed = [unifier.wish(wish) for wish in node.wishes if unifier.wish(wish) != wish]
        for wish in changed:
            is_insertion = wish.holds and self.is_base(wish.relation) and not is_open(wish)
            if is_insertion and self._is_stored(wish):
                return None
        return self.with_wishes(kept, changed, least)

    def opened(self, node: Node) -> Callable[[str, int, int], Value]:
        """Placeholders that a node does not have yet."""
        first = len(placeholders_in(wish.row for wish in node.wishes))

        def opened(relation: str, position: int, index: int) -> Value:
            return make_placeholder(
                first + index, self.chosen.domains.classes.root((relation, position))
            )

        return opened
