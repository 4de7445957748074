"""Algorithm 1 of Behrend & Manthey 2007: view updates round by round, all alternatives at once.

    db.realize("+p(2)", mode="first_level")

A round goes down and up again. Down: the disjunctive rules R∇ turn requests into requests for base
facts; their minimal models are the alternatives. Up: in each alternative the requested base changes
are propagated by RΔ, and Rτ∇ finds contradictions, which make it false, and requests that repair
what broke. The next round begins in the state that an alternative has reached. The search stops
after the first round in which alternatives are realizations, or if no alternative is left.

The paper computes with model states; an alternative is one model of such a state, and both say the
same. Values come from the columns joined with a variable's own, as its section 4.1 proposes; one
new value is introduced per round, which is all that the algorithm has: where two different ones are
needed at once it finds nothing. The rules are those that `explain --after view_update_rules` shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Atom, Comparison, DisjunctiveRule, Rule, Value
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.rewrites.forms import RequestForm
from deltalog.runtime.alternatives import Values, completed_bindings, unify_head
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import key_of
from deltalog.runtime.hypothetical import Binding, Hypothetical
from deltalog.runtime.level_trace import Alternative, Fact, Round, clause_texts, fact_texts
from deltalog.runtime.model_state import minimal_sets, model_state
from deltalog.runtime.realization import Budget, Realization, Wish
from deltalog.runtime.request_facts import (
    by_predicate,
    derived_facts,
    has_contradiction,
    is_seeding,
    request_of,
    requested_back,
    rules_by_first,
    split_by_state,
    wish_of,
)
from deltalog.runtime.rule_states import RuleState, row_of
from deltalog.runtime.search_nodes import change_set
from deltalog.runtime.search_values import Domains, new_values
from deltalog.runtime.view_updates import deferred_delta

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

CLAUSES_MAX = 200
"""Clauses that a round is shown by; with more, only its alternatives are shown."""
SUBSETS_OF = 8
"""Realizations of up to this many changes are compared with all their parts."""
ONE_LEVEL = "the first level that has realizations, with one new value in each round"


@dataclass(frozen=True)
class World:
    """An alternative: all its requests so far, and the base changes they have led to."""

    number: str
    requests: Mapping[Fact, None]
    change: frozenset[Wish] = frozenset()


@dataclass
class FirstLevel:
    """The search of Algorithm 1 for some wishes; `rounds` tells what it did."""

    database: MemoryDatabase
    form: RequestForm
    budget: Budget
    commit: Callable[[ChangeSet], ChangeSet]
    fixed: frozenset[str]
    cost: Callable[[Wish], float]
    skip: Callable[[str], None]
    rounds: list[Round] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.version = self.database.version
        self.helpers: dict[str, list[Rule]] = {}
        for rule in self.form.rules:
            if names.is_generated(rule.head.predicate):
                self.helpers.setdefault(rule.head.predicate, []).append(rule)
        self.domains = Domains(self.database, self.form.rules)
        self.requests = rules_by_first(self.form.requests)
        self.changes = rules_by_first(self.form.changes)
        self.seeding = [r for r in self.form.transitions if is_seeding(r)]
        self.repairing = [r for r in self.form.transitions if r.heads and not is_seeding(r)]
        self.new: dict[Value, str] = {}
        self._round_new: dict[str, Value] = {}
        self._nodes = 0

    # --- Algorithm 1

    def run(self, wishes: Sequence[Wish], follows_open: bool) -> Iterator[Realization]:
        """The realizations of the first level that has some, cheapest first.

        If it `follows_open`, `rounds` has one more, for the alternatives that were not yet closed.
        """
        self.domains.wished = tuple(wishes)
        self._begun = time.monotonic()
        kept = [wish for wish in wishes if not self._holds_already(wish)]
        worlds = [World("", dict.fromkeys(request_of(wish) for wish in kept))]
        found: list[frozenset[Wish]] = []
        while worlds and not found and not self._is_spent():
            found, worlds = self._run_round(worlds, wishes)
        if found and worlds and follows_open and not self._is_spent():
            self._run_round(worlds, wishes, is_late=True)
        self.skip(ONE_LEVEL)
        for change in sorted(self._minimal_changes(found, wishes), key=self._change_order):
            yield self._realization_of(change)

    def _holds_already(self, wish: Wish) -> bool:
        state = Hypothetical(self.database, ChangeSet())
        return state.holds(wish.relation, wish.row) == wish.holds

    def _is_spent(self) -> bool:
        if self.database.version != self.version:
            raise DataError([view_catalogue.REQUEST_OUTDATED.at(None, version=self.version)])
        if self._nodes >= self.budget.nodes:
            self.skip(f"the budget of {self.budget.nodes} nodes is spent")
        elif time.monotonic() - self._begun > self.budget.seconds:
            self.skip(f"the budget of {self.budget.seconds} seconds is spent")
        else:
            return False
        return True

    def _run_round(
        self, worlds: list[World], wishes: Sequence[Wish], is_late: bool = False
    ) -> tuple[list[frozenset[Wish]], list[World]]:
        """One round: the realizations it finds, and the alternatives that stay open."""
        self._round_new = {}
        found: list[frozenset[Wish]] = []
        left: list[World] = []
        shown: list[Alternative] = []
        models: list[list[Fact]] = []
        for world in worlds:
            state = self._state_after(world.change)
            for number, (requests, is_false) in enumerate(self._request_models(world, state), 1):
                label = f"{world.number}.{number}".lstrip(".")
                new = [fact for fact in requests if fact not in world.requests]
                models.append([fact for fact in new if self._is_base(fact)])
                line = Alternative(label, fact_texts(new))
                if is_false:
                    shown.append(replace(line, outcome="false"))
                    continue
                after, line = self._world_after(World(label, requests, world.change), state, line)
                if line.outcome == "open" and self._is_realized(after.change, wishes):
                    line = replace(line, outcome="a realization")
                    found.append(after.change)
                elif line.outcome == "open" and is_same(after, world):
                    line = replace(line, outcome="nothing new")
                elif line.outcome == "open":
                    left.append(after)
                shown.append(line)
                if self._is_spent():
                    break
        clauses = model_state(models, CLAUSES_MAX) or ()
        texts = clause_texts(clause for clause in clauses if clause)
        self.rounds.append(Round(len(self.rounds) + 1, texts, tuple(shown), is_late))
        return found, left

    # --- down: R∇

    def _request_models(
        self, world: World, state: RuleState
    ) -> list[tuple[Mapping[Fact, None], bool]]:
        """The minimal models of a world under R∇; those that contradict themselves are false."""
        complete: list[tuple[Mapping[Fact, None], bool]] = []
        waiting: list[Mapping[Fact, None]] = [world.requests]
        while waiting and not self._is_spent():
            requests = waiting.pop()
            self._nodes += 1
            if has_contradiction(requests):
                complete.append((requests, True))
                continue
            missing = self._missing_heads(requests, state)
            if missing is None:
                complete.append((requests, False))
            else:
                waiting += [{**requests, fact: None} for fact in reversed(missing)]
        consistent = set(
            minimal_sets(frozenset(each) for each, is_false in complete if not is_false)
        )
        kept: dict[frozenset[Fact], tuple[Mapping[Fact, None], bool]] = {}
        for each, is_false in complete:
            if is_false or frozenset(each) in consistent:
                kept.setdefault(frozenset(each), (each, is_false))
        return list(kept.values())

    def _missing_heads(self, requests: Mapping[Fact, None], state: RuleState) -> list[Fact] | None:
        """The heads of an instance of a rule none of which is requested yet; single ones first."""
        found = None
        for predicate, row in requests:
            for rule in self.requests.get(predicate, ()):
                lead = rule.body[0]
                assert isinstance(lead, Atom)
                given = unify_head(lead, row)
                if given is None:
                    continue
                for heads in self._instance_heads(rule, given, requests, state):
                    if not any(fact in requests for fact in heads):
                        if len(heads) == 1:
                            return heads
                        found = found if found is not None else heads
        return found

    def _instance_heads(
        self, rule: DisjunctiveRule, given: Binding, requests: Iterable[Fact], state: RuleState
    ) -> Iterator[list[Fact]]:
        """For each instance of a rule, the facts of which one must be requested."""
        rest = rule.body[1:]
        bound = {*given, *variable_names(*(x for x in rest if not isinstance(x, Comparison)))}
        open_ = [x for x in rest if not bound.issuperset(variable_names(x))]
        tests = [x for x in open_ if isinstance(x, Comparison)]
        for binding in state.solved([x for x in rest if x not in open_], given):
            if bound.issuperset(variable_names(*rule.heads)):
                yield [(head.predicate, row_of(head, binding)) for head in rule.heads]
                continue
            (head,) = rule.heads  # a projection
            named = names.as_request(head.predicate)
            assert named is not None
            missing = [Atom(named[0], head.arguments)]
            some = completed_bindings(binding, missing, tests, self._values_for(requests))
            yield list(dict.fromkeys((head.predicate, row_of(head, each)) for each in some))

    def _values_for(self, requests: Iterable[Fact]) -> Values:
        used = {value for _, row in requests for value in row}

        def values(
            relation: str, position: int, others: Collection[Value], compared: Sequence[Value]
        ) -> list[Value]:
            place = self.domains.classes.root((relation, position))
            type_ = self.domains.type_of(place)
            earlier = [v for v, own in self.new.items() if own == type_ and v in used]
            return list(
                dict.fromkeys((*self.domains.known(place), *earlier, *self._newest_values(type_)))
            )

        return values

    def _newest_values(self, type_: str) -> list[Value]:
        """The new value of a type in this round: the only one that it introduces."""
        if type_ not in self._round_new:
            taken = self.domains.universe(type_) | {
                v for v, own in self.new.items() if own == type_
            }
            made = next(new_values(type_, taken), None)
            if made is None:
                return []
            self._round_new[type_] = made
            self.new[made] = type_
        return [self._round_new[type_]]

    # --- up: RΔ and Rτ∇

    def _world_after(
        self, world: World, state: RuleState, line: Alternative
    ) -> tuple[World, Alternative]:
        """The world after its base changes, with the requests that repair what they break."""
        asked = by_predicate(world.requests)
        seeds = [fact for rule in self.seeding for fact in derived_facts(rule, state, asked)]
        replaced = [fact for fact in map(self._replaced_fact, seeds) if fact is not None]
        requests = {**world.requests, **{requested_back(fact): None for fact in replaced}}
        seeds = list(dict.fromkeys((*seeds, *replaced)))
        made = frozenset(wish_of(fact) for fact in seeds)
        if any(wish.relation in self.fixed for wish in made) or has_contradiction(requests):
            is_fixed = not has_contradiction(requests)
            outcome = "changes what must not be touched" if is_fixed else "false"
            return world, replace(line, changes=fact_texts(seeds), outcome=outcome)
        change = world.change | made
        changes = self._induced_changes(seeds, state, self._state_after(change))
        known = {**by_predicate(requests), **by_predicate(changes)}
        repairs = dict.fromkeys(
            fact for rule in self.repairing for fact in derived_facts(rule, state, known)
        )
        more = [fact for fact in repairs if fact not in requests]
        after = World(world.number, {**requests, **dict.fromkeys(more)}, change)
        outcome = "false" if has_contradiction(after.requests) else "open"
        changed, repaired = fact_texts(changes), fact_texts(more)
        return after, replace(line, changes=changed, repairs=repaired, outcome=outcome)

    def _induced_changes(self, seeds: Iterable[Fact], old: RuleState, new: RuleState) -> list[Fact]:
        """The seeds and the changes that they induce, in the order in which these are derived."""
        found = dict.fromkeys(seeds)
        waiting = list(found)
        for fact in waiting:
            for rule in self.changes.get(fact[0], ()):
                lead = rule.body[0]
                assert isinstance(lead, Atom)
                given = unify_head(lead, fact[1])
                if given is None:
                    continue
                in_new, in_old = split_by_state(rule.body[1:])
                for half in new.solved(in_new, given):
                    for binding in old.solved(in_old, half):
                        made = rule.head.predicate, row_of(rule.head, binding)
                        if made not in found:
                            found[made] = None
                            waiting.append(made)
        return waiting

    def _replaced_fact(self, fact: Fact) -> Fact | None:
        """The deletion of the fact that has the key of one that is inserted."""
        wish = wish_of(fact)
        relation = self.database.relations[wish.relation]
        if wish.holds and relation.key:
            key = dict(zip(relation.key, key_of(relation, wish.row), strict=True))
            for row in self.database.engine.lookup(wish.relation, key):
                if row != wish.row:
                    return names.minus_name(wish.relation), row
        return None

    # --- states and answers

    def _state_after(self, change: Iterable[Wish]) -> RuleState:
        denied = frozenset(self.form.denied)
        return RuleState(Hypothetical(self.database, change_set(change), denied), self.helpers)

    def _is_base(self, fact: Fact) -> bool:
        named = names.as_request(fact[0])
        return named is not None and named[0] in self.form.base

    def _is_realized(self, change: frozenset[Wish], wishes: Iterable[Wish]) -> bool:
        state = Hypothetical(self.database, change_set(change), frozenset(self.form.denied))
        if any(state.holds(wish.relation, wish.row) != wish.holds for wish in wishes):
            return False
        return not change or not any(state.delta.inserted[name] for name in self.form.denied)

    def _minimal_changes(
        self, found: Iterable[frozenset[Wish]], wishes: Sequence[Wish]
    ) -> Iterator[frozenset[Wish]]:
        for change in minimal_sets(found):
            parts = (
                frozenset(part)
                for size in range(len(change))
                for part in combinations(change, size)
                if len(change) <= SUBSETS_OF
            )
            valid = (part for part in parts if self._keeps_keys(part))
            if not any(self._is_realized(part, wishes) for part in valid):
                yield change

    def _keeps_keys(self, change: frozenset[Wish]) -> bool:
        """Whether every fact whose key another one gets is deleted."""
        inserted = ((names.plus_name(wish.relation), wish.row) for wish in change if wish.holds)
        replaced = (fact for fact in map(self._replaced_fact, inserted) if fact is not None)
        return all(wish_of(fact) in change for fact in replaced)

    def _change_order(self, change: frozenset[Wish]) -> tuple[float, list[str]]:
        return sum(map(self.cost, change)), sorted(map(str, change))

    def _realization_of(self, change: frozenset[Wish]) -> Realization:
        base = change_set(change)
        delta = deferred_delta(self.database, base)
        new = {value for wish in change for value in wish.row} & self.new.keys()
        shown = tuple(sorted(new, key=repr))
        return Realization(delta, base, shown, self.commit, wishes=self.domains.wished)


def is_same(world: World, before: World) -> bool:
    return world.requests.keys() == before.requests.keys() and world.change == before.change
