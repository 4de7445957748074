"""Every short history over a small universe, under every strategy that makes a difference.

Random tests miss what happens once in a thousand; here nothing is left to chance. A program comes
with a handful of facts that may hold or not. *Sequences*: from a starting state, every sequence of
up to three transactions that each insert or delete one of the facts. *Transactions*: from every
state to every other in one transaction. Both are walks of one live database; after each step its
delta and its state are those of recomputation. A step that changes nothing runs nothing, and leads
to a state whose continuations are sequences as well, so only its delta is looked at.

With DELTALOG_FUZZ the universe is larger.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import pytest
from effort import IS_FUZZ

import deltalog
from deltalog import ChangeSet
from deltalog.language.ast import Constant, Program, Row
from deltalog.language.parser import parse_text
from deltalog.runtime import nodes
from treatments import PROPER_UPKEEP, Facts, Upkeep, contents, difference, naive

Fact = tuple[str, Row]
State = frozenset[Fact]


@dataclass(frozen=True)
class World:
    """A program, the facts that may hold, and those that do to begin with.

    `more` facts make the universe larger when there is time; transactions are tried on the first
    four facts, or five.
    """

    rules: str
    facts: str
    start: str
    more: str

    @property
    def universe(self) -> tuple[Fact, ...]:
        return facts_in(self.facts + (self.more if IS_FUZZ else ""))


def facts_in(text: str) -> tuple[Fact, ...]:
    return tuple(
        (fact.predicate, tuple(t.value for t in fact.arguments if isinstance(t, Constant)))
        for fact in parse_text(text).facts
    )


EDGE = "base edge(src: int, dst: int)."
CLOSURE = f"{EDGE} path(X, Y) :- edge(X, Y). path(X, Y) :- edge(X, Z), path(Z, Y)."
RING = {
    "facts": "edge(0, 1). edge(1, 2). edge(2, 0). edge(1, 0).",
    "start": "edge(0, 1). edge(1, 2). edge(2, 0).",
    "more": "edge(0, 0). edge(2, 1).",
}
WORLDS = {
    "closure": World(
        CLOSURE,
        facts="edge(0, 1). edge(1, 2). edge(2, 0). edge(0, 0). edge(1, 0).",
        start="edge(0, 1). edge(1, 2). edge(0, 0).",
        more="edge(2, 1).",
    ),
    "one_way": World(f"{CLOSURE} one_way(X) :- path(X, Y), not path(Y, X).", **RING),
    "non_linear": World(
        f"{EDGE} path(X, Y) :- edge(X, Y). path(X, Y) :- path(X, Z), path(Z, Y).", **RING
    ),
    "split": World(
        """base load(x: int, y: int). base alloc(x: int, y: int).
        pt(V, O) :- alloc(V, O).
        pt(V, O) :- load(V, P), pt(P, Q), pt(Q, O).
        pt(V, V) :- pt(V, P), pt(P, Q), load(Q, R), pt(R, V).""",
        facts="alloc(0, 1). load(0, 0). load(1, 0). alloc(1, 0). load(1, 1).",
        start="alloc(0, 1). alloc(1, 0). load(1, 0).",
        more="alloc(1, 1).",
    ),
    "even_odd": World(
        f"""{EDGE} base zero(x: int).
        even(X) :- zero(X).
        even(Y) :- odd(X), edge(X, Y).
        odd(Y) :- even(X), edge(X, Y).
        only_odd(X) :- odd(X), not even(X).""",
        facts="zero(0). edge(0, 1). edge(1, 0). edge(1, 1).",
        start="zero(0). edge(0, 1). edge(1, 1).",
        more="zero(1). edge(0, 0).",
    ),
    "algebra": World(
        """base a(x: int, y: int). base b(y: int, z: int). base c(x: int).
        joined(X, Y, Z) :- a(X, Y), b(Y, Z).
        two(X, Z) :- joined(X, _, Z).
        met(X) :- a(X, Y), b(Y, _).
        some(X) :- a(X, _).
        some(X) :- c(X).
        some(X) :- two(X, X).
        square(X, Z) :- two(X, Y), two(Y, Z), some(Z).""",
        facts="a(0, 0). a(0, 1). b(0, 0). b(1, 0). c(0).",
        start="a(0, 0). b(0, 0). b(1, 0).",
        more="a(1, 0).",
    ),
    "rights": World(
        """base member(x: int, y: int). base grant(x: int, y: int). base under(x: int, y: int).
        allow(U, D) :- member(U, G), grant(G, F), under(D, F).
        allow(U, U) :- member(U, G), grant(G, G).""",
        facts="member(0, 0). grant(0, 0). grant(0, 1). under(1, 0). under(0, 1).",
        start="member(0, 0). grant(0, 0). grant(0, 1). under(1, 0).",
        more="member(0, 1). grant(1, 0).",
    ),
    "existence": World(
        """base a(x: int). base b(x: int). base c(x: int, y: int).
        some(X) :- a(X), b(Y), c(Y, Z), not a(Z).
        other(X) :- a(X), c(_, _), not some(_).
        both :- b(_), c(_, 0).
        grown(X) :- a(X).
        grown(X) :- b(X), grown(Y), c(Y, _).""",
        facts="a(0). b(1). c(1, 2). b(0). c(0, 1).",
        start="a(0). b(1). c(1, 2).",
        more="c(0, 0).",
    ),
    "aggregates": World(
        f"""{CLOSURE}
        reach(X, count(), min(Y)) :- path(X, Y).
        weight(sum(N)) :- reach(_, N, _).
        best(X) :- reach(X, N, _), weight(W), N + N >= W.
        tours(X, count()) :- path(X, Y), path(Y, Z), path(Z, X).""",
        **RING,
    ),
    "wildcards": World(
        """base a(x: int). base b(x: int, y: int).
        lone(X) :- a(X), not b(X, _).
        target(Y) :- b(_, Y), not lone(Y).
        empty :- not a(_), not b(_, 0).
        pair(X, Y) :- a(X), b(Y, _), not b(_, X), not empty.""",
        facts="a(0). a(1). b(0, 0). b(0, 1). b(1, 1).",
        start="a(0). b(0, 0). b(1, 1).",
        more="b(1, 0).",
    ),
}


@cache
def program_of(world: str) -> Program:
    return parse_text(WORLDS[world].rules)


def grouped(facts: Iterable[Fact]) -> Facts:
    rows: Facts = {}
    for name, row in facts:
        rows.setdefault(name, set()).add(row)
    return rows


@cache
def recomputed(world: str, state: State) -> Facts:
    return naive(program_of(world), grouped(state))


@dataclass
class Walk:
    """A live database that goes from state to state and is checked at every step."""

    world: str
    upkeep: Upkeep
    state: State
    steps: list[str] = field(default_factory=list)
    seen: set[State] = field(default_factory=set)

    def __post_init__(self) -> None:
        facts = grouped(self.state)
        self.database = self.upkeep.connect(program_of(self.world), facts)
        assert contents(self.database) == recomputed(self.world, self.state)

    def go(self, inserted: Iterable[Fact], deleted: Iterable[Fact]) -> None:
        new, gone = frozenset(inserted), frozenset(deleted)
        after = (self.state - gone) | new
        self.steps.append(f"+{sorted(new)} -{sorted(gone)}")
        before, expected = recomputed(self.world, self.state), recomputed(self.world, after)
        delta = self.database.apply(insert=grouped(new), delete=grouped(gone))
        self.state = after
        assert delta == difference(before, expected), self.told()
        assert self.stored() == {name: expected[name] for name in self.stored()}, self.told()
        if after not in self.seen:
            self.seen.add(after)
            assert contents(self.database) == expected, self.told()

    def stored(self) -> Facts:
        """What is stored; virtual views follow from it and are asked once per state."""
        known = self.database.relations.keys() & self.database.model.stored
        return {name: self.database.facts(name) for name in known}

    def told(self) -> str:
        return "\n".join([f"{self.world} under {self.upkeep}", *self.steps[-20:]])

    def idle(self, fact: Fact) -> None:
        """Inserting what holds or deleting what does not is no change, and nothing is run."""
        rows = grouped([fact])
        is_held = fact in self.state
        delta = self.database.apply(insert=rows if is_held else {}, delete={} if is_held else rows)
        assert delta == ChangeSet()
        assert self.database.statistics.rounds == 0

    def toggle(self, fact: Fact) -> None:
        self.go([fact] if fact not in self.state else [], [fact] if fact in self.state else [])


def sequences(walk: Walk, universe: tuple[Fact, ...], length: int = 3) -> None:
    """Every sequence of steps, each undone again after all that continue it."""
    for fact in universe if length else ():
        walk.idle(fact)
        walk.toggle(fact)
        sequences(walk, universe, length - 1)
        walk.toggle(fact)


def transactions(walk: Walk, universe: tuple[Fact, ...]) -> None:
    """Every transaction from a state to another: there and back for every pair."""
    facts = universe[: 5 if IS_FUZZ else 4]
    rest = walk.state - frozenset(facts)
    states = [
        rest.union(chosen)
        for size in range(len(facts) + 1)
        for chosen in itertools.combinations(facts, size)
    ]
    for position, one in enumerate(states):
        walk.go(one - walk.state, walk.state - one)
        for other in states[position + 1 :]:
            walk.go(other - one, one - other)
            walk.go(one - other, other - one)


def different_upkeep() -> Iterator[tuple[str, str]]:
    """Per world the treatments that do something of their own.

    A strategy that applies to none of the views has fallen back to another one, and `auto` comes
    down to those it chooses.
    """
    for world in WORLDS:
        seen = set()
        for name, upkeep in PROPER_UPKEEP.items():
            model = upkeep.model(program_of(world))
            chosen = tuple((c.predicates, c.rules, c.strategy) for c in model.choices)
            applies = upkeep.strategy in {choice.strategy for choice in model.choices}
            different = (chosen, model.stored, model.is_in_place, upkeep.engine)
            if applies and different not in seen:
                seen.add(different)
                yield world, name


CASES = list(different_upkeep())


def quick(engines: tuple[str, ...], is_stored: bool | None = None) -> list[tuple[str, str]]:
    """The cases that are worth their time; all of them if there is time."""
    return [
        (world, name)
        for world, name in CASES
        if IS_FUZZ
        or (
            PROPER_UPKEEP[name].engine in engines
            and is_stored in (None, PROPER_UPKEEP[name].materialize)
        )
    ]


def walked(world: str, upkeep: str, walking: Callable[[Walk, tuple[Fact, ...]], None]) -> None:
    start = frozenset(facts_in(WORLDS[world].start))
    walk = Walk(world, PROPER_UPKEEP[upkeep], start)
    walking(walk, WORLDS[world].universe)
    assert isinstance(walk.database, deltalog.MemoryDatabase)
    assert walk.database.audit() == ()


@pytest.mark.parametrize(("world", "upkeep"), quick(("reference",)))
def test_every_sequence(world: str, upkeep: str) -> None:
    walked(world, upkeep, sequences)


@pytest.mark.parametrize(("world", "upkeep"), quick(("reference", "embedded"), is_stored=True))
def test_every_transaction(world: str, upkeep: str) -> None:
    walked(world, upkeep, transactions)


@pytest.mark.parametrize("world", WORLDS)
def test_every_transaction_if_auto_often_starts_afresh(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts as much is so little that recomputation and maintenance take turns."""
    monkeypatch.setattr(nodes, "MUCH_MIN", 2)
    monkeypatch.setattr(nodes, "LOST_MIN", 2)
    walked(world, "auto-stored", transactions)
