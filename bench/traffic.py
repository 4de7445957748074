"""A mixed program, and an endless stream of random single-fact transactions for it.

Closure of a graph with cycles and negation over it, mutual recursion, aggregates of every kind over
every type that has an order, joins with comparisons and arithmetic, keys. Every relation keeps
about its size, so a transaction costs about the same in the end as in the beginning; but texts,
decimals, floats and timestamps are ever new, and deleted again: whoever keeps them for good grows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import deltalog
from deltalog import ChangeSet

PROGRAM = """\
base node(n: int).
base link(a: int, b: int).
base start(n: int).
base sale(id: int key, item: str, amount: int, price: decimal, day: date).
base note(item: str, text: str).
base stock(item: str key, amount: int, least: int).
base reading(sensor: str, at: timestamp, value: float, is_valid: bool).

% recursion through cycles, negation over it
reach(X, Y) :- link(X, Y).
reach(X, Z) :- reach(X, Y), link(Y, Z).
apart(X, Y) :- node(X), node(Y), not reach(X, Y).
one_way(X, Y) :- reach(X, Y), not reach(Y, X).
sink(X) :- node(X), not link(X, _).
reached(X, count(), min(Y), max(Y)) :- reach(X, Y).

% mutual recursion
even(X) :- start(X).
even(Y) :- odd(X), link(X, Y).
odd(Y) :- even(X), link(X, Y).
never(X) :- node(X), not even(X), not odd(X).

% aggregates over ints, decimals, dates, texts, floats and timestamps
amounts(I, count(), sum(A), min(A), max(A), avg(A)) :- sale(_, I, A, _, _).
prices(I, sum(P), min(P), max(P), avg(P)) :- sale(_, I, _, P, _).
days(I, min(D), max(D)) :- sale(_, I, _, _, D).
takings(sum(A * P), count()) :- sale(_, _, A, P, _).
notes(I, count(), min(T), max(T)) :- note(I, T).
readings(S, sum(V), avg(V), min(T), max(T)) :- reading(S, T, V, true).

% joins with comparisons and arithmetic, keys
low(I, L - A) :- stock(I, A, L), A < L.
together(I, J, A + B) :- stock(I, A, _), stock(J, B, _), I < J, A + B > 120.
worth(I, A * P) :- stock(I, A, _), prices(I, _, _, P, _).
urgent(I, T, M) :- low(I, M), note(I, T), M > 10.
silent(I) :- stock(I, _, _), not note(I, _).
long(T, length(T)) :- note(_, T), length(T) > 18.
"""

ITEMS = tuple(f"item {letter}" for letter in "abcdefghij")
SENSORS = ("north", "south", "east")
NODES = 14
REPLACED_SHARE = 0.3
FIRST_DAY, FIRST_TIME = date(2020, 1, 1), datetime(2020, 1, 1)

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """One transaction: a fact inserted, deleted, or set by its key."""

    op: str
    relation: str
    row: Row

    def apply(self, database: deltalog.MemoryDatabase) -> ChangeSet:
        if self.op == "insert":
            return database.apply(insert={self.relation: [self.row]})
        if self.op == "delete":
            return database.apply(delete={self.relation: [self.row]})
        with database.transaction() as transaction:
            transaction.set(self.relation, self.row)
        assert transaction.delta is not None
        return transaction.delta


@dataclass
class Held:
    """The facts of a relation by key, to draw from at random."""

    keys: list[Any] = field(default_factory=list)
    rows: dict[Any, tuple[int, Row]] = field(default_factory=dict)

    def put(self, key: Any, row: Row) -> None:
        place = self.rows[key][0] if key in self.rows else len(self.keys)
        if place == len(self.keys):
            self.keys.append(key)
        self.rows[key] = place, row

    def take(self, draw: random.Random) -> Row:
        """Remove one; the last takes its place."""
        place = draw.randrange(len(self.keys))
        key, last = self.keys[place], self.keys.pop()
        if place < len(self.keys):
            self.keys[place] = last
            self.rows[last] = place, self.rows[last][1]
        return self.rows.pop(key)[1]


class Traffic:
    """Steps without end; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._made = 0
        self._held: dict[str, Held] = {name: Held() for name in _SIZES}

    def steps(self) -> Iterator[Step]:
        names, weights = list(_SIZES), [weight for _, weight in _SIZES.values()]
        while True:
            yield self._step(self._draw.choices(names, weights)[0])

    def _step(self, relation: str) -> Step:
        """The fuller a relation is, the more probably it loses a fact."""
        held, (size, _) = self._held[relation], _SIZES[relation]
        if self._draw.random() * 2 * size < len(held.keys):
            return Step("delete", relation, held.take(self._draw))
        self._made += 1
        row = _MAKE[relation](self._draw, self._made)
        if relation in _KEYED and held.keys and self._draw.random() < REPLACED_SHARE:
            row = (self._draw.choice(held.keys), *row[1:])
        key = row[0] if relation in _KEYED else row
        held.put(key, row)
        return Step("set" if relation in _KEYED else "insert", relation, row)


def _letters(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyzäöüß€", k=draw.randrange(1, 16)))


def _node(draw: random.Random, _: int) -> Row:
    return (draw.randrange(NODES),)


def _link(draw: random.Random, _: int) -> Row:
    return draw.randrange(NODES), draw.randrange(NODES)


def _sale(draw: random.Random, number: int) -> Row:
    price = Decimal(draw.randrange(1, 10**9)) / 1000
    day = FIRST_DAY + timedelta(days=draw.randrange(10_000))
    return number, draw.choice(ITEMS), draw.randrange(1, 50), price, day


def _note(draw: random.Random, number: int) -> Row:
    return draw.choice(ITEMS), f"{_letters(draw)} {number}"


def _stock(draw: random.Random, _: int) -> Row:
    return draw.choice(ITEMS), draw.randrange(100), draw.randrange(60)


def _reading(draw: random.Random, number: int) -> Row:
    at = FIRST_TIME + timedelta(seconds=number)
    return draw.choice(SENSORS), at, draw.uniform(-1e6, 1e6), draw.random() < 0.8


_SIZES: Mapping[str, tuple[int, int]] = {
    "node": (9, 1),
    "link": (18, 6),
    "start": (2, 1),
    "sale": (40, 3),
    "note": (24, 4),
    "stock": (7, 3),
    "reading": (20, 2),
}
"""About how many facts a relation has, and how often it changes."""
_KEYED = ("sale", "stock")
_MAKE: Mapping[str, Callable[[random.Random, int], Row]] = {
    "node": _node,
    "link": _link,
    "start": _node,
    "sale": _sale,
    "note": _note,
    "stock": _stock,
    "reading": _reading,
}
