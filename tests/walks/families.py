"""Little programs to walk over, in families: a walk changes back and forth between programs of one.

Relations are few and have few columns; `domain` gives each type three or four values. So rows
leave and return, keys clash, and the same question meets another state. Together the families have
keys, joins by every column, recursion (linear, nonlinear, mutual), negation, aggregates,
arithmetic, text, nulls, other types, virtual, materialised and undeclared views, facts in the
program, active rules, and programs that differ in rules, columns, keys, kinds and storage.
"""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache

from hypothesis import HealthCheck, Phase, given, seed, settings
from programs import Features
from test_rule_changes import PAIRS, RuleChange, rule_changes

from deltalog.analysis.columns import Relation
from deltalog.language.ast import Row
from deltalog.language.printer import print_program

EDGE = "base edge(src: int, dst: int).\n"
CLOSURE = "path(X, Y) :- edge(X, Y).\npath(X, Y) :- edge(X, Z), path(Z, Y).\n"
NODE = "node(X) :- edge(X, _) ; edge(_, X).\n"
SALE = "base sale(id: int key, who: str, amount: int).\n"
BASE_BC = "base b(x: int, y: int).\nbase c(x: int).\n"
RULED = """base a(x: int). base b(x: int). base k(x: int key, y: int). base log(x: int, y: int).
"""
PQRST = "base q(x: int, y: int).\nbase s(x: int).\nbase t(x: int).\n"

OWN: dict[str, tuple[str, ...]] = {
    "keys": (
        "base acc(id: int key, state: str).\n",
        "base acc(id: int key, state: str).\n"
        'on(X) :- acc(X, "on").\nhow_many(S, count()) :- acc(X, S).\n'
        "quiet(X) :- acc(X, _), not on(X).\n",
        "base acc(id: int, state: str).\nsame(X, Y) :- acc(X, S), acc(Y, S), X < Y.\n",
    ),
    "joins": (
        BASE_BC,
        f"{BASE_BC}w(X) :- c(Y), b(X, Y).\n",
        f"{BASE_BC}w(X) :- c(Y), b(X, Y).\nback(Y) :- c(X), b(X, Y).\nboth(X) :- w(X), back(X).\n",
    ),
    "columns": (
        "base d(x: int, y: int, z: int).\nbase e(x: int, y: int).\n"
        "first(X, Z) :- e(X, Y), d(X, Y, Z).\nlast(X, Y) :- e(Y, Z), d(X, Y, Z).\n"
        "ends(X) :- d(X, _, Z), e(Z, X).\nloop(X) :- d(X, X, _).\n",
        "base d(x: int, y: int, z: int).\nbase e(x: int, y: int).\n"
        "first(X, Z) :- e(X, Y), d(X, Y, Z).\ntriangle(X, Y, Z) :- e(X, Y), e(Y, Z), e(Z, X).\n"
        "lonely(X) :- e(X, _), not triangle(X, _, _).\n",
    ),
    "linear": (
        EDGE,
        f"{EDGE}{CLOSURE}",
        f"{EDGE}{CLOSURE}reach(X, count()) :- path(X, Y).\ncyclic() :- path(X, X).\n"
        "end(X) :- edge(_, X), not path(X, _).\n",
        f"{EDGE}base start(x: int).\nvirtual view path.\n{CLOSURE}"
        "far(Y) :- start(X), path(X, Y).\nout(X) :- edge(X, _), not far(X).\n",
    ),
    "nonlinear": (
        f"{EDGE}path(X, Y) :- edge(X, Y).\npath(X, Y) :- path(X, Z), path(Z, Y).\n"
        "one_way(X, Y) :- path(X, Y), not path(Y, X).\n",
        f"{EDGE}path(X, Y) :- edge(X, Y).\npath(X, Y) :- edge(A, X), path(A, B), path(B, Y).\n",
        f"{EDGE}path(X, Y) :- edge(X, Y).\npath(X, Y) :- path(X, A), edge(B, A), path(B, Y).\n"
        "same(X) :- path(X, X).\n",
    ),
    "mutual": (
        f"{EDGE}base start(x: int).\neven(X) :- start(X).\nodd(Y) :- even(X), edge(X, Y).\n"
        "even(Y) :- odd(X), edge(X, Y).\nmixed(X) :- even(X), odd(X).\n"
        "never(X) :- edge(_, X), not even(X), not odd(X).\n",
        f"{EDGE}base start(x: int).\neven(X) :- start(X).\nodd(Y) :- even(X), edge(X, Y).\n"
        "evens(count()) :- even(X).\n",
    ),
    "negation": (
        f"{PQRST}p(X) :- q(X, _).\nr(X) :- s(X), not p(X).\nr(X) :- t(X).\n",
        f"{PQRST}p(X) :- q(X, _).\np(X) :- t(X).\nr(X) :- s(X), not p(X).\n"
        "u(X) :- s(X), not r(X).\n",
        f"{PQRST}p(X) :- q(X, _).\nopen(X) :- q(X, Y), not p(Y).\nshut(X) :- s(X), not open(X).\n",
        f"{PQRST}p(X) :- s(X).\np(X) :- t(X).\nr(X, Y) :- q(X, Y), not q(Y, X).\n"
        "none(X) :- s(X), not q(X, _).\nboth(X) :- p(X), none(X).\n",
    ),
    "aggregates": (
        f"{SALE}total(W, sum(A), count()) :- sale(_, W, A).\nbest(max(A)) :- sale(_, _, A).\n"
        "mean(W, avg(A)) :- sale(_, W, A).\nleast_of(W, min(A)) :- sale(_, W, A).\n"
        "top(W) :- total(W, A, _), best(A).\n",
        f"{SALE}base of(who: str, team: str).\n"
        "total(T, sum(A)) :- of(W, T), sale(_, W, A).\n"
        "range(T, min(A), max(A)) :- of(W, T), sale(_, W, A).\n"
        "idle(T) :- of(_, T), not total(T, _).\nteams(count()) :- total(T, _).\n",
        f"{SALE}total(W, sum(A)) :- sale(_, W, A).\nlow(W) :- total(W, A), A < 3.\n"
        "lows(count()) :- low(W).\nover(avg(A)) :- total(_, A).\n",
    ),
    "arithmetic": (
        f"{BASE_BC}sums(X, X + Y) :- b(X, Y).\nparts(X, Y / X, Y mod X) :- b(X, Y).\n"
        "near(X) :- c(X), sums(_, X).\nup(X) :- c(X).\nup(X + 1) :- up(X), X < 4.\n",
        f"{BASE_BC}sums(X, X * Y) :- b(X, Y).\nup(X) :- c(X).\nup(X - 1) :- up(X), X > 0.\n"
        "gap(X) :- b(X, _), not up(X).\nless(X, Y) :- b(X, Y), X < Y ; b(Y, X), X < Y.\n",
    ),
    "text": (
        "base name(id: int key, first: str, last: str?).\n"
        "whole(I, concat(F, L)) :- name(I, F, L).\nshort(F) :- name(_, F, _), length(F) <= 2.\n"
        "nameless(I) :- name(I, _, null).\nshared(A, B) :- name(A, _, L), name(B, _, L), A < B.\n",
        "base name(id: int key, first: str, last: str?).\nloud(upper(F)) :- name(_, F, _).\n"
        "known(I, L) :- name(I, _, L), L != null.\nno(F) :- name(_, F, _), not name(_, _, F).\n"
        "latest(max(L)) :- name(_, _, L).\n",
    ),
    "storage": (
        f"{EDGE}virtual view path.\n{CLOSURE}materialized view node.\n"
        f"{NODE}isolated(X, Y) :- node(X), node(Y), not path(X, Y).\n",
        f"{EDGE}materialized view path.\n{CLOSURE}virtual view node.\n"
        f"{NODE}isolated(X, Y) :- node(X), node(Y), not path(X, Y).\n",
        f"{EDGE}virtual view link(a: int, b: int).\nlink(X, Y) :- edge(X, Y).\n"
        "link(X, Y) :- edge(X, Z), edge(Z, Y).\nlinks(X, count()) :- link(X, Y).\n",
    ),
    "types": (
        "base m(id: int key, at: date, price: decimal?, is_new: bool).\nbase n(x: int).\n"
        "per_day(D, sum(P)) :- m(_, D, P, _).\nnewest(max(D)) :- m(_, D, _, true).\n"
        "half(X / 2) :- n(X).\nold(I) :- m(I, _, _, B), B = false.\n",
        "base m(id: int key, at: date, price: decimal?, is_new: bool).\nbase n(x: float).\n"
        "per_day(D, avg(P)) :- m(_, D, P, _).\nhalf(X / 2) :- n(X).\n"
        "free(I) :- m(I, _, null, _).\n",
    ),
    "constrained": (
        EDGE,
        f"{EDGE}{CLOSURE}deny cycle(X) :- path(X, X).\n",
        f"{EDGE}{CLOSURE}deny view cycle(X) :- path(X, X).\nout(X, count()) :- edge(X, _).\n"
        "deny many(X, N) :- out(X, N), N > 2.\n",
        f"{EDGE}view next(src: int key, dst: int).\nnext(X, Y) :- edge(X, Y), X > 1.\n"
        "virtual view busy.\nbusy(X) :- edge(X, Y), edge(Y, X).\n"
        "require calm :- not busy(1).\n",
    ),
    "rules": (
        f"{RULED}rule up on insert a(X) do insert b(X).\n",
        f"{RULED}rule chain for X priority 1 when a(X), not b(X)\n"
        "  do insert b(X), emit new(X, X + 1)\n"
        "  else delete b(X).\n"
        "rule note for X when b(X), k(X, Y) do call noted(X, Y) else delete log(X, _).\n"
        "rule up immediate on insert a(X) when X > 1 do set k(X, 1), emit up(X)\n"
        "  else insert log(X, X).\n",
        f"{RULED}number(count()) :- b(X).\n"
        "rule low(L) for X immediate when k(X, Y), Y < L do insert a(X) else delete a(X).\n"
        'rule full priority -1 when number(N), N > 2 do reject "{N}".\n'
        "rule moved on set k(X, Y) do emit moved(X, Y), insert b(Y).\n"
        "rule seen(L) on delete a(X) when b(L) do insert log(X, L) else insert log(L, X).\n",
        f"{RULED}rule turn when a(X), not b(X) do delete a(X), insert b(X).\n"
        "rule back for X nervous when b(X), k(_, X) do insert a(X) where not log(X, _).\n"
        "rule low(L, M) for X when k(X, Y), Y > L, Y != M do call heard(X, L)\n"
        "  else emit gone(X, M).\n"
        "deny both(X) :- a(X), k(X, X).\n",
    ),
    "rules on paths": (
        f"{EDGE}{CLOSURE}base log(x: int, y: int).\n"
        "rule cyclic for X when path(X, X) do insert log(X, X) else delete log(X, _).\n"
        "rule cut priority 2 on insert edge(X, Y) when X > Y, path(Y, X) do delete edge(Y, X).\n",
        f"{EDGE}{CLOSURE}base log(x: int, y: int).\nvirtual view end.\n"
        "end(X) :- edge(_, X), not path(X, _).\n"
        "rule cyclic for X nervous when path(X, X) do insert log(X, X) else delete log(X, _).\n"
        "rule ends immediate on insert end(X) do emit end(X), insert log(X, 1).\n"
        "rule far(L) for X priority -1 when path(X, Y), Y > L do call noted(X, L).\n"
        "deny immediate many(X) :- edge(X, 1), edge(X, 2), edge(X, 3).\n",
        f"{EDGE}{CLOSURE}base log(x: int, y: int).\nreach(X, count()) :- path(X, Y).\n"
        "rule wide for X when reach(X, N), N > 1 do insert log(X, N) where reach(X, N)\n"
        "  else delete log(X, _).\n"
        "rule back on delete path(X, Y) when edge(Y, X) do insert edge(X, X).\n",
    ),
    "written": (
        f"{BASE_BC}b(1, 2). b(2, 3).\nv(X) :- b(X, _).\nv(9).\nz() :- v(X), c(X).\n",
        f"{BASE_BC}b(2, 3). b(3, 1). c(2).\nv(X) :- b(_, X).\nz() :- v(X), not c(X).\n",
        "base b(x: int key, y: int).\nb(3, 2).\nv(Y) :- b(_, Y).\n",
    ),
}
FAMILIES: dict[str, tuple[str, ...]] = {**OWN, **{f"pair: {k}": v for k, v in PAIRS.items()}}

DOMAINS: dict[str, tuple[object, ...]] = {
    "int": (1, 2, 3),
    "str": ("on", "off", "c"),
    "float": (0.5, 1.0, 2.0),
    "bool": (True, False),
    "date": (date(2026, 1, 31), date(2026, 2, 1)),
    "timestamp": (datetime(2026, 1, 31, 12, 30), datetime(2026, 2, 1)),
    "decimal": (Decimal("0.5"), Decimal("2"), Decimal("-1.25")),
}


def domain(type_: str | None, nullable: bool) -> tuple[object, ...]:
    """The values that a column takes in a walk."""
    values = DOMAINS[type_ or "int"]
    return (*values, None) if nullable else values


def drawn_rows(rng: random.Random, relation: Relation, at_most: int) -> list[Row]:
    """Some rows for a relation, up to so many."""
    rows = (
        tuple(rng.choice(domain(c.type, c.nullable)) for c in relation.columns)
        for _ in range(rng.randint(1, at_most))
    )
    return list(dict.fromkeys(rows))  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def random_family(number: int) -> tuple[str, ...]:
    """Two random programs of which the second alters rules of the first."""
    found: list[RuleChange] = []

    @settings(
        max_examples=4,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @seed(number)
    @given(rule_changes(Features(view_declarations=True)))
    def draw(change: RuleChange) -> None:
        found.append(change)

    draw()
    return print_program(found[-1].old), print_program(found[-1].new)
