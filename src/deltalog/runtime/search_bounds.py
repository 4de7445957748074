"""The least cost of what a search has to change still.

    missing: in_group(ann, G), deny(G, plan)        at least 2: a member or a subgroup, and a deny

A missing base fact has to be inserted. A missing fact of a view needs a change of a relation below
it, so views that have no such relation in common, with each other or with missing base facts,
need a change each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import product

from deltalog.language.ast import Rule
from deltalog.language.walk import atoms_of
from deltalog.runtime.placeholders import wishes_above
from deltalog.runtime.realization import Wish
from deltalog.runtime.search_nodes import Node, is_aggregated
from deltalog.runtime.search_reach import Reach

Cost = Callable[[Wish], float]
Request = tuple[bool, str]
"""Insertions into a relation, or deletions from it."""


class Bounds:
    """The least cost of insertions into relations, and of requests for facts of views."""

    def __init__(
        self,
        rules: Mapping[str, tuple[Rule, ...]],
        bases: Iterable[str],
        fixed: Collection[str],
        cost: Cost,
    ) -> None:
        self._rules = rules
        self._empty = views_without_facts(rules)
        self._bases = frozenset(bases)
        self._cost = {
            (holds, name): cost(Wish(holds, name, ()))
            for name in self._bases.difference(fixed)
            for holds in (True, False)
        }
        self._below: dict[Request, frozenset[Request]] = {}
        self._reach = Reach(rules)

    @property
    def insertion(self) -> float:
        """The least cost of any insertion."""
        return min((cost for (holds, _), cost in self._cost.items() if holds), default=0.0)

    @property
    def change(self) -> float:
        """The least cost of any change."""
        return min(self._cost.values(), default=0.0)

    def is_base(self, relation: str) -> bool:
        return relation in self._bases

    def least(self, missing: Iterable[str], pending: Iterable[str]) -> float:
        """The least cost of facts of `missing` relations, and of the insertions that are `pending`.

        Facts of one base relation may be the same, but for those that are pending.
        """
        pending, missing = list(pending), set(missing)
        inserted = {*missing & self._bases, *pending}
        if any((True, name) not in self._cost for name in inserted):
            return float("inf")
        total = sum(self._cost[True, name] for name in pending)
        total += sum(self._cost[True, name] for name in inserted.difference(pending))
        return total + self.of_views(missing - self._bases, {(True, name) for name in inserted})

    def of_views(self, views: Iterable[str], taken: Collection[Request] = ()) -> float:
        """The least cost of missing facts of views, beside changes that are `taken`."""
        total, spent = 0.0, set(taken)
        found = [self.below(True, name) for name in views]
        for below in sorted(found, key=lambda each: (len(each), sorted(each))):
            if not below:
                return float("inf")
            if below.isdisjoint(spent):
                total += min(self._cost[each] for each in below)
                spent |= below
        return total

    def further(self, node: Node, before: Node, missing: Iterable[Wish]) -> float:
        """The least cost of changes that a node needs beside its own, which `before` had not.

        The `missing` facts, and what was absent before, do not hold without more changes.
        """
        made = node.change - before.change
        if any(not wish.holds for wish in made):
            return 0.0
        new = [*made, *node.pending]
        views = {*missing, *before.absent.intersection(node.wishes)}
        return self.of_views(
            wish.relation
            for wish in views
            if not self.is_base(wish.relation)
            and not any(
                self._reach.helps(each, wish, wishes_above(wish, node.supports)) for each in new
            )
        )

    def below(self, holds: bool, relation: str) -> frozenset[Request]:
        """The changes of base relations that may make a fact of a view true, or false."""
        if (holds, relation) not in self._below:
            self._below[holds, relation] = frozenset(self._reached_requests((holds, relation)))
        return self._below[holds, relation]

    def _reached_requests(self, first: Request) -> Iterable[Request]:
        waiting, seen = [first], set()
        while waiting:
            request = waiting.pop()
            if request in seen or (request[0] and request[1] in self._empty):
                continue
            seen.add(request)
            if request in self._cost:
                yield request
            for rule in self._rules.get(request[1], ()):
                signs = (True, False) if is_aggregated(rule) else (request[0],)
                for (atom, is_positive), sign in product(atoms_of(rule.body), signs):
                    waiting.append((sign == is_positive, atom.predicate))


def views_without_facts(rules: Mapping[str, tuple[Rule, ...]]) -> frozenset[str]:
    """Views that never have a fact: each of their rules reads one of them, as in `p(X) :- p(X)`."""
    empty = set(rules)
    while True:
        derived = {
            name
            for name in empty
            if any(empty.isdisjoint(_positive_predicates(rule)) for rule in rules[name])
        }
        if not derived:
            return frozenset(empty)
        empty -= derived


def _positive_predicates(rule: Rule) -> set[str]:
    return {atom.predicate for atom, is_positive in atoms_of(rule.body) if is_positive}
