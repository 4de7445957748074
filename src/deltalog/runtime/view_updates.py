"""View updating: the minimal changes of base relations that make derived facts true or false.

    db.realize("+path(1, 9)")

A search node is a set of wishes for the new state, and the base changes these amount to. As long as
a wish is not fulfilled in the state that the base changes lead to, it is replaced by what can
fulfil it: for a fact that shall hold, the literals of an instance of one of its rules; for one that
shall not, the opposite of one literal of an instance that derives it. Side effects that undo a
wish, and violated constraints, are unfulfilled wishes like any other. (Behrend & Manthey 2007:
requests go down by view-update rules, changes come up by propagation, and what they break is
requested again.)

Nodes are taken by the cost of their base changes. A realization R fulfils every wish on one path at
least, on which base changes stay within R: so every minimal one is found, and none is found after
one that it contains.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Atom, Row, Rule, Value
from deltalog.language.values import sort_key
from deltalog.language.walk import atoms
from deltalog.rewrites import names
from deltalog.runtime.alternatives import (
    Instance,
    Values,
    breaks,
    completions,
    derivation,
    phases,
    rules_by_head,
)
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import key_of
from deltalog.runtime.hypothetical import Hypothetical
from deltalog.runtime.realization import ANY, Budget, Realization, Wish, contradict
from deltalog.runtime.search_values import Domains, new_values

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Costs = Callable[[Wish], float]


@dataclass(frozen=True)
class Node:
    """Wishes, the base changes among them, and for each derived one what it is derived from."""

    wishes: frozenset[Wish]
    change: frozenset[Wish]
    supports: Mapping[Wish, tuple[Wish, ...]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[frozenset[Wish], frozenset[Wish]]:
        return self.wishes, frozenset(self.supports)


Children = Iterator[tuple[float, Node | None]]
"""Nodes that follow another, each with what it and all later ones cost at least."""


class Search:
    """The search for the minimal realizations of some wishes."""

    def __init__(
        self,
        database: MemoryDatabase,
        budget: Budget,
        commit: Callable[[ChangeSet], ChangeSet],
        denials: Iterable[str] = (),
        cost: Costs = lambda wish: 1.0,
        fixed: Iterable[str] = (),
        skip: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`denials` are views that must have no facts, `fixed` relations that stay as they are.

        `skip` is called with the reason when something is left out.
        """
        self.database = database
        self.version = database.version
        self.budget = budget
        self.commit = commit
        self.denials = frozenset(denials)
        self.cost = cost
        self.fixed = frozenset(fixed)
        self.refused: frozenset[Wish] = frozenset()
        """Base changes that are part of every answer, whatever is fixed."""
        self.skip = skip
        self.rules = rules_by_head(database.model.as_written.rules)
        self.relations = database.relations
        self.domains = Domains(database)
        self.new: set[Value] = set()
        self._arity = max((r.arity for r in self.relations.values() if r.kind == "base"), default=1)
        self._nodes = 0
        self._order = count()

    # --- the search

    def run(self, wishes: Iterable[Wish]) -> Iterator[Realization]:
        """Minimal realizations, cheapest first, until there are no more or the budget is spent."""
        self.domains.wished = tuple(wishes)
        begun = time.monotonic()
        found: list[frozenset[Wish]] = []
        first = self._with(Node(frozenset(), frozenset()), self.domains.wished)
        queue: list[tuple[float, int, int, Children | Node]] = []
        seen = set()
        if first is not None:
            self._push(queue, self._price(first), first)
        while queue:
            if self.database.version != self.version:
                raise DataError([view_catalogue.REQUEST_OUTDATED.at(None, version=self.version)])
            if self._nodes >= self.budget.nodes:
                return self.skip(f"the budget of {self.budget.nodes} nodes is spent")
            if time.monotonic() - begun > self.budget.seconds:
                return self.skip(f"the budget of {self.budget.seconds} seconds is spent")
            bound, *_, item = heapq.heappop(queue)
            if self.budget.changes is not None and bound > self.budget.changes:
                return self.skip(f"realizations of more than {self.budget.changes} changes")
            if isinstance(item, Node):
                if item.key in seen or any(each <= item.change for each in found):
                    continue
                seen.add(item.key)
                self._nodes += 1
                state = Hypothetical(self.database, change_set(item.change), self.denials)
                children = self._alternatives(item, state)
                if children is None:
                    found.append(item.change)
                    yield self._realization(item.change)
                    if self.budget.answers is not None and len(found) >= self.budget.answers:
                        if queue:
                            self.skip(f"the budget of {self.budget.answers} answers is spent")
                        return
                    continue
                item = children
            for bound, child in item:
                if child is not None:
                    self._push(queue, self._price(child), child)
                if queue and queue[0][0] <= bound:
                    heapq.heappush(queue, (bound, 1, next(self._order), item))
                    break
        return None

    def _push(self, queue: list, price: float, node: Node) -> None:  # type: ignore[type-arg]
        heapq.heappush(queue, (price, 0, next(self._order), node))

    def _price(self, node: Node) -> float:
        """The least cost of a node: every new value must come with a base fact."""
        placed = {value for wish in node.change for value in wish.row}
        wished = {value for wish in node.wishes if wish.holds for value in wish.row}
        waiting = len(wished & self.new - placed)
        return sum(map(self.cost, node.change)) + -(-waiting // self._arity) * self._cheapest

    @property
    def _cheapest(self) -> float:
        base = (name for name, relation in self.relations.items() if relation.kind == "base")
        return min((self.cost(Wish(True, name, ())) for name in base), default=0.0)

    # --- one node

    def _alternatives(self, node: Node, state: Hypothetical) -> Children | None:
        """The nodes that follow one, each with what it costs at least; None if all is fulfilled."""
        price = self._price(node)
        if node.change:
            for name in sorted(self.denials):
                new = state.delta.inserted[name] - _denied(node.wishes, name)
                for row in sorted(new, key=sort_key):
                    return iter([(price, self._with(node, [Wish(False, name, row)]))])
        is_fulfilled = True
        for wish in sorted(node.wishes, key=lambda wish: (wish.holds, repr(wish))):
            if wish in node.supports:
                continue
            if ANY in wish.row:
                known = {i: value for i, value in enumerate(wish.row) if value is not ANY}
                rows = state.matching(wish.relation, known)
                more = [Wish(False, wish.relation, row) for row in rows]
                if not node.wishes.issuperset(more):
                    return iter([(price, self._with(node, more))])
            elif state.holds(wish.relation, wish.row) != wish.holds:
                found = self._fulfilled(node, wish, state, price)
                if found is not None:
                    return found
                is_fulfilled = False
        assert is_fulfilled, f"nothing follows {node}"
        return None

    def _fulfilled(
        self, node: Node, wish: Wish, state: Hypothetical, price: float
    ) -> Children | None:
        """The nodes in which a wish is fulfilled; None if others will fulfil it."""
        rules = self.rules.get(wish.relation, ())
        plain = tuple(rule for rule in rules if not is_aggregated(rule))
        if len(plain) < len(rules):
            self.skip(f"`{wish.relation}` is an aggregate, through which nothing is requested")
        if wish.holds:
            return self._supported(node, wish, plain, state, price)
        made = derivation(plain, wish.row, state, node.wishes)
        if made is None:
            return iter(()) if len(plain) < len(rules) else None
        return ((price, self._with(node, [each])) for each in breaks(made, self._values_for(node)))

    def _supported(
        self, node: Node, wish: Wish, rules: Sequence[Rule], state: Hypothetical, price: float
    ) -> Children:
        values = self._values_for(node)
        for phase in phases(rules):
            bound = max(price, sum(map(self.cost, node.change)) + self._least(phase.missing))
            yield bound, None
            for made in completions(phase, wish.row, state, values):
                yield bound, self._derived(node, wish, made)

    def _least(self, missing: Iterable[Atom]) -> float:
        """The least cost of missing atoms: two of one relation may be the same fact."""
        read = {atom.predicate for atom in missing}
        return sum(self.cost(Wish(True, name, ())) for name in read if self._is_base(name))

    def _derived(self, node: Node, wish: Wish, made: Instance) -> Node | None:
        """The node with an instance chosen for a wish, unless it would be its own reason."""
        if _leads_to(made.positive, wish, node.supports):
            return None
        longer = self._with(node, made.wishes)
        if longer is None:
            return None
        return Node(longer.wishes, longer.change, {**node.supports, wish: made.positive})

    # --- wishes

    def _with(self, node: Node, more: Iterable[Wish]) -> Node | None:
        """The node with more wishes; None if they contradict each other or must not be."""
        wishes, change = set(node.wishes), set(node.change)
        waiting = list(more)
        while waiting:
            wish = waiting.pop()
            if wish in wishes:
                continue
            if any(contradict(wish, other) for other in wishes):
                return None
            wishes.add(wish)
            if self._is_base(wish.relation) and ANY not in wish.row:
                is_there = self._is_stored(wish)
                if is_there != wish.holds:
                    if wish.relation in self.fixed and wish not in self.refused:
                        return None
                    change.add(wish)
                if wish.holds:
                    waiting += self._replaced(wish)
        return Node(frozenset(wishes), frozenset(change), node.supports)

    def _replaced(self, wish: Wish) -> Iterator[Wish]:
        """The fact that must go because another one gets its key."""
        relation = self.relations[wish.relation]
        if relation.key:
            key = dict(zip(relation.key, key_of(relation, wish.row), strict=True))
            for row in self.database.engine.lookup(wish.relation, key):
                if row != wish.row:
                    yield Wish(False, wish.relation, row)

    def _is_base(self, relation: str) -> bool:
        return relation in self.relations and self.relations[relation].kind == "base"

    def _is_stored(self, wish: Wish) -> bool:
        return next(iter(self.database.engine.present(wish.relation, [wish.row])))

    # --- values

    def _values_for(self, node: Node) -> Values:
        """Values for columns that no literal determines, after those that a node uses."""
        used = {value for wish in node.wishes for value in wish.row}

        def values(relation: str, position: int, others: Collection[Value]) -> list[Value]:
            place = self.domains.classes.root((relation, position))
            known = self.domains.known(place)
            type_ = self.domains.type_of((relation, position))
            found = list(known)
            invented = {value for value in (*used, *others) if value in self.new}
            for value in new_values(type_, known):
                if value not in invented and len(invented) >= self.budget.new_values:
                    self.skip(f"no more than {self.budget.new_values} new values are invented")
                    break
                found.append(value)
                self.new.add(value)
                if value not in used and value not in others:
                    break
            return found

        return values

    # --- answers

    def _realization(self, change: frozenset[Wish]) -> Realization:
        base = change_set(change)
        delta = self.database.propagate_wanted(base, False, None)
        new = {value for wish in change for value in wish.row} & self.new
        additions = change_set(change - self.refused)
        return Realization(delta, base, tuple(sorted(new, key=repr)), self.commit, additions)


def change_set(change: Iterable[Wish]) -> ChangeSet:
    sides: tuple[dict[str, set[Row]], dict[str, set[Row]]] = {}, {}
    for wish in change:
        sides[not wish.holds].setdefault(wish.relation, set()).add(wish.row)
    return ChangeSet(*sides)


def is_aggregated(rule: Rule) -> bool:
    """Whether a rule is an aggregate, or brings one back to its head."""
    read = (atom.predicate for atom, _ in atoms(rule.body))
    return rule.is_aggregate or any(map(names.is_generated, read))


def _denied(wishes: Iterable[Wish], relation: str) -> set[Row]:
    return {wish.row for wish in wishes if wish.relation == relation and not wish.holds}


def _leads_to(
    wishes: Iterable[Wish], target: Wish, supports: Mapping[Wish, tuple[Wish, ...]]
) -> bool:
    waiting, seen = list(wishes), set()
    while waiting:
        wish = waiting.pop()
        if wish == target:
            return True
        if wish not in seen:
            seen.add(wish)
            waiting += supports.get(wish, ())
    return False
