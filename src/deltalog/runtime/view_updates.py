"""View updating: the minimal changes of base relations that make derived facts true or false.

    db.realize("+path(1, 9)")

A search node is a set of wishes for the new state, and the base changes these amount to. As long as
a wish is not fulfilled in the state that the base changes lead to, it is replaced by what can
fulfil it: for a fact that shall hold, the literals of an instance of one of its rules; for one that
shall not, the opposite of one literal of an instance that derives it. Side effects that undo a
wish, and violated constraints, are unfulfilled wishes like any other. (Behrend & Manthey 2007:
requests go down by view-update rules, changes come up by propagation, and what they break is
requested again.)

A variable that nothing determines is a placeholder of the node (`placeholders.py`): it gets values
when nothing else is left to do, or a comparison needs one.

Nodes are taken by the least cost of what can come of them: that of their base changes, and of those
that are known to be missing (`search_bounds.py`). A realization R fulfils every wish on one path at
least, on which base changes stay within R: so every minimal one is found, and none is found after
one that it contains. Of nodes that cost the same, the one that promises few side effects is taken,
then the deepest, so that the first answer comes soon. Nothing is propagated for a node: it asks a
hypothetical state, which rederives what is asked for (`hypothetical.py`). Only views that
constraints keep empty are propagated to, once everything else is fulfilled.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from deltalog.analysis.domains import Place
from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Atom, Rule, Value
from deltalog.language.values import sort_key
from deltalog.runtime.alternatives import (
    Completion,
    Instance,
    Phase,
    breaking_wishes,
    find_derivation,
    phase_completions,
    rule_phases,
    rules_by_head,
)
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.fetched_rows import fetched_rows_of
from deltalog.runtime.hypothetical import Hypothetical, Pace
from deltalog.runtime.node_maker import NodeMaker
from deltalog.runtime.placeholders import (
    Placeholder,
    Unifier,
    is_open,
    placeholders_in,
    renumber_placeholders,
    wishes_above,
)
from deltalog.runtime.realization import ANY, Budget, Realization, Wish
from deltalog.runtime.search_nodes import (
    Children,
    Entry,
    Node,
    change_set,
    denied_rows,
    is_aggregated,
    is_renamed_part,
    leads_to,
    through_aggregate,
)
from deltalog.runtime.search_values import ChosenValues, Domains
from deltalog.runtime.side_effects import Estimates, by_side_effects

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Costs = Callable[[Wish], float]


STATES_MAX = 512
"""Hypothetical states that are remembered, with the answers of what they were asked."""


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
        declared: Mapping[Place, Sequence[Value]] | None = None,
    ) -> None:
        """`denials` are views that must have no facts, `fixed` relations that stay as they are.

        `skip` is called with the reason when something is left out. `declared` are the values of
        columns that are to be used and no others.
        """
        self.database = database
        self.version = database.version
        self.budget = budget
        self.commit = commit
        self.denials = frozenset(denials)
        self.cost = cost
        self.skip = skip
        self.rules = rules_by_head(database.model.as_written.rules)
        self.estimates = Estimates(database, self.rules)
        self.domains = Domains(database, declared=declared)
        self.chosen = ChosenValues(self.domains, budget.new_values, skip)
        self.nodes = NodeMaker(
            database, self.rules, cost, frozenset(fixed), self.chosen, self.estimates
        )
        self.wishes: tuple[Wish, ...] = ()
        self._states: dict[frozenset[Wish], Hypothetical] = {}
        self._pace = Pace()
        self._fetched = fetched_rows_of(database)
        self._nodes = 0
        self._order = count()

    # --- the search

    def run(self, wishes: Iterable[Wish], is_ranked: bool = False) -> Iterator[Realization]:
        """Minimal realizations, cheapest first, until there are no more or the budget is spent.

        If it `is_ranked`, those that cost the same are held back until there are no others, and
        come with the fewest side effects first.
        """
        self.domains.wished = self.wishes = tuple(wishes)
        if is_ranked:
            return by_side_effects(self._run_search(None), self.budget, self.skip)
        return (each for each in self._run_search(self.budget.answers) if each is not None)

    def _run_search(self, answers: int | None) -> Iterator[Realization | None]:
        """Realizations, and None where what follows costs more."""
        begun = time.monotonic()
        found: list[frozenset[Wish]] = []
        first = self.nodes.with_wishes(Node(frozenset(), frozenset()), self.wishes)
        queue: list[Entry] = []
        seen = set()
        level = 0.0
        if first is not None:
            self._push_node(queue, first)
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
            if bound > level:
                level = bound
                yield None
            if isinstance(item, Node):
                if item.key in seen or self._is_contained(found, item.change):
                    continue
                seen.add(item.key)
                self._nodes += 1
                children = self._children_of(item, self._state_after(item.change))
                if children is None:
                    found.append(item.change)
                    yield self._realization_of(item.change)
                    if answers is not None and len(found) >= answers:
                        if queue:
                            self.skip(f"the budget of {answers} answers is spent")
                        return None
                    continue
                item = children
            for bound, promise, child in item:
                if child is not None and not self._is_contained(found, child.change):
                    self._push_node(queue, child)
                if queue and queue[0][:2] <= (bound, promise):
                    heapq.heappush(queue, (bound, promise, 1, 0, next(self._order), item))
                    break
        return None

    def _is_contained(self, found: Iterable[frozenset[Wish]], change: frozenset[Wish]) -> bool:
        """Whether a change contains a realization, up to the names of new values."""
        new = self.chosen.is_new
        if not self.chosen.new:
            return any(each <= change for each in found)
        return any(each <= change or is_renamed_part(each, change, new) for each in found)

    def _push_node(self, queue: list[Entry], node: Node) -> None:
        price = max(self.nodes.price(node), node.least)
        heapq.heappush(queue, (price, node.promise, 0, -node.depth, next(self._order), node))

    def _state_after(self, change: frozenset[Wish]) -> Hypothetical:
        """The state after a change, with all that it was asked before."""
        if change not in self._states:
            if len(self._states) >= STATES_MAX:
                del self._states[next(iter(self._states))]
            self._states[change] = Hypothetical(
                self.database, change_set(change), self.denials, self._pace, self._fetched
            )
        return self._states[change]

    # --- one node

    def _children_of(self, node: Node, state: Hypothetical) -> Children | None:
        """The nodes that follow one, each with what it costs at least; None if all is fulfilled."""
        is_fulfilled = True
        for wish in sorted(node.wishes, key=lambda wish: (wish.holds, repr(wish))):
            if wish in node.supports or is_open(wish):
                continue
            if ANY in wish.row:
                known = {i: value for i, value in enumerate(wish.row) if value is not ANY}
                rows = state.matching(wish.relation, known)
                more = [Wish(False, wish.relation, row) for row in rows]
                if not node.wishes.issuperset(more):
                    return self._only_child(node, more)
            elif state.holds(wish.relation, wish.row) != wish.holds:
                found = self._fulfilling_nodes(node, wish, state)
                if found is not None:
                    return found
                is_fulfilled = False
        opened = sorted(filter(is_open, node.wishes), key=repr)
        if opened:
            return self._determining_nodes(node, opened, state)
        assert is_fulfilled, f"nothing follows {node}"
        for name in sorted(self.denials) if node.change else ():
            new = state.watched_delta.inserted[name] - denied_rows(node.wishes, name)
            for row in sorted(new, key=sort_key):
                return self._only_child(node, [Wish(False, name, row)])
        return None

    def _only_child(self, node: Node, more: Iterable[Wish]) -> Children:
        """The only node that follows one, which has more wishes."""
        return iter([(self.nodes.more_than(node), 0.0, self.nodes.with_wishes(node, more))])

    def _fulfilling_nodes(self, node: Node, wish: Wish, state: Hypothetical) -> Children | None:
        """The nodes in which a wish is fulfilled; None if others will fulfil it."""
        rules = self.rules.get(wish.relation, ())
        plain = tuple(rule for rule in rules if not is_aggregated(rule))
        if len(plain) < len(rules):
            rule = next(rule for rule in rules if is_aggregated(rule))
            self.skip(through_aggregate(rule))
        if wish.holds:
            return self._supporting_nodes(node, wish, plain, state)
        made = find_derivation(plain, wish.row, state, node.wishes)
        if made is None:
            return iter(()) if len(plain) < len(rules) else None
        return self._breaking_nodes(node, made, self.nodes.more_than(node))

    def _breaking_nodes(self, node: Node, made: Instance, least: float) -> Children:
        """The nodes in which one of the literals of an instance does not hold."""
        found = (
            self.nodes.with_wishes(node, [each])
            for each in breaking_wishes(made, self.nodes.opened(node))
        )
        return ((least, each.promise, each) for each in found if each is not None)

    def _supporting_nodes(
        self, node: Node, wish: Wish, rules: Sequence[Rule], state: Hypothetical
    ) -> Children:
        """The nodes in which an instance of a rule is to derive a fact that does not hold."""
        values = self.nodes.values_for(node)
        spent, least = sum(map(self.cost, node.change)), self.nodes.more_than(node)
        promised = self.estimates.of_change(node.change)
        open_views = {each.relation for each in node.absent - node.supports.keys()} - {
            wish.relation
        }
        pending = [each.relation for each in node.pending]
        waiting = []
        for phase in rule_phases(rules):
            views = [atom.predicate for atom in phase.missing]
            bound = spent + self.nodes.bounds.least({*views, *open_views}, pending)
            if bound < float("inf"):
                promise = promised + self._promise_of(phase.missing)
                waiting.append((max(least, bound), promise, phase))
        for bound, promise, phase in sorted(waiting, key=lambda each: each[:2]):
            yield bound, promise, None
            unsolved = partial(self.chosen.unsolved, phase.rule)
            opened = self.nodes.opened(node)
            for made in phase_completions(phase, wish.row, state, values, opened, unsolved):
                child = self._derived_node(node, wish, phase, made, state)
                yield max(bound, least if child is None else child.least), promise, child

    def _promise_of(self, missing: Iterable[Atom]) -> float:
        """The estimated side effects of missing atoms."""
        base = [atom.predicate for atom in missing if self.nodes.is_base(atom.predicate)]
        views = [atom.predicate for atom in missing if not self.nodes.is_base(atom.predicate)]
        below = max((self.estimates.of(True, name) for name in views), default=0.0)
        return sum(self.estimates.of(True, name) for name in base) + below

    def _derived_node(
        self, node: Node, wish: Wish, phase: Phase, found: Completion, state: Hypothetical
    ) -> Node | None:
        """The node with an instance chosen for a wish, unless it would be its own reason."""
        made, reason = found.made, found.unifier.wish(wish)
        if is_open(wish) and not is_open(reason) and state.holds(reason.relation, reason.row):
            return None  # which is another alternative
        parent = self.nodes.with_values(node, found.unifier, self.nodes.more_than(node))
        if parent is None or leads_to(made.positive, reason, parent.supports):
            return None
        parent = replace(parent, supports={**parent.supports, reason: made.positive})
        longer = self.nodes.with_wishes(parent, made.wishes, self.nodes.more_than(node))
        if longer is None:
            return None
        missing = made.missing(phase.missing)
        more = self.nodes.bounds.further(longer, node, missing)
        longer = replace(longer, least=max(longer.least, self.nodes.price(longer) + more))
        if longer.change == node.change:
            views = (each for each in made.positive if not self.nodes.is_base(each.relation))
            longer = replace(longer, absent=longer.absent.union(filter(is_open, views)))
        return renumber_placeholders(longer)

    # --- placeholders

    def _determining_nodes(
        self, node: Node, opened: Sequence[Wish], state: Hypothetical
    ) -> Children:
        """The nodes that determine a placeholder, or ask for what can.

        A wish for a fact of a view is replaced as it is, as long as what this adds costs something.
        """
        views = [
            each
            for each in opened
            if each.holds and each not in node.supports and not self.nodes.is_base(each.relation)
        ]
        paid = len(node.change) + len(node.pending)
        for wish in sorted(views, key=lambda each: (len(placeholders_in([each.row])), repr(each))):
            alike = [
                each
                for each in wishes_above(wish, node.supports)
                if each.relation == wish.relation and is_open(each)
            ]
            if len(alike) <= paid:
                yield from self._holding_nodes(node, wish, state)
                yield from self._fulfilling_nodes(node, wish, state) or ()
                return
        first = min(placeholders_in(each.row for each in views or opened))
        price = max(self.nodes.price(node), node.least)
        relation, position = next(
            (each.relation, i) for each in opened for i, v in enumerate(each.row) if v == first
        )
        for value in self.nodes.values_for(node)(relation, position, (), ()):
            child = self.nodes.with_values(node, Unifier({first: value}), price)
            yield price, node.promise, None if child is None else renumber_placeholders(child)

    def _holding_nodes(self, node: Node, wish: Wish, state: Hypothetical) -> Children:
        """The nodes in which a wish with placeholders is one of the facts that hold."""
        price = max(self.nodes.price(node), node.least)
        yield price, node.promise, None
        if wish in node.absent:
            return
        known = {i: v for i, v in enumerate(wish.row) if not isinstance(v, Placeholder)}
        for row in state.matching(wish.relation, known):
            unifier = Unifier()
            if unifier.equate_rows(wish.row, row):
                child = self.nodes.with_values(node, unifier, price)
                yield price, node.promise, None if child is None else renumber_placeholders(child)

    # --- answers

    def _realization_of(self, change: frozenset[Wish]) -> Realization:
        base = change_set(change)
        delta = deferred_delta(self.database, base)
        new = {value for wish in change for value in wish.row} & self.chosen.invented
        additions = change_set(change - self.nodes.refused)
        shown = tuple(sorted(new, key=repr))
        return Realization(delta, base, shown, self.commit, additions, wishes=self.wishes)


def deferred_delta(database: MemoryDatabase, base: ChangeSet) -> Callable[[], ChangeSet]:
    """The exact change that a base change induces, propagated when it is first asked for."""
    version = database.version

    def delta() -> ChangeSet:
        with database.turn():
            if database.version != version:
                raise DataError([view_catalogue.REQUEST_OUTDATED.at(None, version=version)])
            return database.propagate_wanted(base, False, None)

    return delta
