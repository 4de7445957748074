"""View updates against brute force: every small change of base facts is tried.

The universe is the values of facts, rules and request, and new ones, up to renaming of these.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations, permutations, product
from typing import Any

import pytest
from effort import IS_FUZZ, fresh_seed

import deltalog
from deltalog import ChangeSet
from deltalog.engines.base import Engine
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.language.ast import Row
from deltalog.runtime import view_updates
from deltalog.runtime.fetched_rows import FetchedRows
from deltalog.runtime.realization import Budget, Wish
from deltalog.runtime.view_updates import Search

Change = frozenset[Wish]
CONSTANTS = (1, 2)
CHANGES_MAX = 3 if IS_FUZZ else 2
NEW = tuple(range(max(CONSTANTS) + 1, max(CONSTANTS) + 1 + CHANGES_MAX))
BASES = {"b": 2, "c": 1, "d": 0}
ONE_CLASS = """
    base every(value: int).
    same(X) :- every(X).
    same(X) :- b(X, _).
    same(X) :- b(_, X).
    same(X) :- c(X).
"""
"""So that every column may hold every value."""
WRONG_ONCE = (866178892, 866179077)
"""Programs with realizations that contained others, but for the names of new values."""
FRESH = range(fresh_seed(), 10**10)[:1000]
SEEDS: list[int] = [*FRESH] if IS_FUZZ else [*range(148), *WRONG_ONCE]


class Maker:
    """A random program with negation and recursion, facts, and requests that are not fulfilled."""

    negations = 0.5
    constants: tuple[int, ...] = CONSTANTS

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.known = dict(BASES)
        self.rules: list[str] = []
        for number in range(self.random.randint(1, 3)):
            self.view(f"v{number}")

    def view(self, name: str) -> None:
        arity = self.random.choice((1, 2, 1, 0))
        lower = dict(self.known)
        self.known[name] = arity
        for _ in range(self.random.randint(1, 2)):
            self.rules.append(self.rule(name, arity, lower))

    def rule(self, name: str, arity: int, lower: dict[str, int]) -> str:
        names = ["X", "Y", "Z"]
        body: list[str] = []
        bound: list[str] = []
        for _ in range(self.random.randint(1, 2)):
            is_own = self.random.random() < 0.25 and bool(bound)
            atom = name if is_own else self.random.choice(list(lower))
            terms = [self.term(names) for _ in range(self.known[atom])]
            bound += [term for term in terms if term in names]
            body.append(f"{atom}({', '.join(terms)})")
        bound = sorted(set(bound))
        if self.random.random() < self.negations:
            atom = self.random.choice(list(lower))
            terms = [self.random.choice([*bound, "_", "1"]) for _ in range(lower[atom])]
            body.append(f"not {atom}({', '.join(terms)})")
        head = [self.random.choice(bound or ["2"]) for _ in range(arity)]
        return f"{name}({', '.join(head)}) :- {', '.join(body)}."

    def term(self, names: list[str]) -> str:
        return self.random.choice(names) if self.random.random() < 0.9 else "1"

    @property
    def program(self) -> str:
        columns = {n: ", ".join(f"c{i}: int" for i in range(a)) for n, a in self.known.items()}
        bases = [f"base {name}({columns[name]})." for name in BASES]
        views = [f"view {name}({columns[name]})." for name in self.known if name not in BASES]
        return "\n".join([*bases, *views, *self.rules, ONE_CLASS])

    @property
    def facts(self) -> dict[str, list[tuple[int, ...]]]:
        drawn = {
            name: [
                row for row in product(self.constants, repeat=arity) if self.random.random() < 0.4
            ]
            for name, arity in BASES.items()
        }
        return {**drawn, "every": [(value,) for value in self.constants]}

    def wish(self, database: deltalog.MemoryDatabase) -> Wish:
        view = self.random.choice([name for name in self.known if name not in BASES])
        row = tuple(self.random.choice(CONSTANTS) for _ in range(self.known[view]))
        return Wish(row not in database.facts(view), view, row)


def small_changes(database: deltalog.MemoryDatabase) -> Iterator[Change]:
    """All changes of base facts, few first, but for other names of new values."""
    universe = (*CONSTANTS, *NEW)
    rows = [(name, row) for name, a in BASES.items() for row in product(universe, repeat=a)]
    held = {name: database.facts(name) for name in BASES}
    single = [Wish(row not in held[name], name, row) for name, row in rows]
    for size in range(CHANGES_MAX + 1):
        for change in map(frozenset, combinations(single, size)):
            used = {value for wish in change for value in wish.row if value in NEW}
            if used == set(NEW[: len(used)]):
                yield change


def brute_force(
    database: deltalog.MemoryDatabase, wishes: list[Wish], denials: Iterable[str]
) -> set[Change]:
    found: list[Change] = []
    for change in small_changes(database):
        if any(smaller <= change for smaller in found):
            continue
        induced = database.what_if(*sides(change))
        if any(induced.inserted[name] for name in denials):
            continue
        if all(is_so(database, induced, wish) == wish.holds for wish in wishes):
            found += {renamed(change, names_of(each)) for each in permutations(NEW)}
    return {canonical(change) for change in found}


def is_so(database: deltalog.MemoryDatabase, induced: ChangeSet, wish: Wish) -> bool:
    rows = database.facts(wish.relation)
    rows = rows - induced.deleted[wish.relation] | induced.inserted[wish.relation]
    return wish.row in rows


def sides(change: Change) -> tuple[dict[str, set[object]], dict[str, set[object]]]:
    made: tuple[dict[str, set[object]], dict[str, set[object]]] = {}, {}
    for wish in change:
        made[not wish.holds].setdefault(wish.relation, set()).add(wish.row)
    return made


def canonical(change: Change) -> Change:
    """The first of all changes that are the same but for the names of new values."""
    used = sorted({value for wish in change for value in wish.row} - set(CONSTANTS))  # type: ignore[type-var]
    return min(
        (renamed(change, dict(zip(used, names, strict=False))) for names in permutations(NEW)),
        key=lambda each: sorted(map(repr, each)),
    )


def names_of(order: Iterable[int]) -> dict[object, int]:
    """Other names of the new values."""
    return dict(zip(NEW, order, strict=True))


def renamed(change: Change, names: Mapping[object, int]) -> Change:
    rows = {wish: tuple(names.get(value, value) for value in wish.row) for wish in change}
    return frozenset(wish._replace(row=rows[wish]) for wish in change)


@pytest.mark.parametrize("seed", SEEDS)
def test_minimal_realizations_are_those_of_brute_force(seed: int) -> None:
    made = Maker(seed)
    program, facts = made.program, made.facts
    database = deltalog.connect(program=program, facts=facts, engine="reference")
    slow = deltalog.connect(program=program, facts=facts, engine="reference", strategy="recompute")
    wishes = list({made.wish(database) for _ in range(made.random.randint(1, 2))})
    empty = [n for n in made.known if n not in BASES and not database.facts(n)]
    denials = [name for name in empty if all(name != wish.relation for wish in wishes)][:1]
    reasons: list[str] = []
    budget = Budget(nodes=20_000, seconds=3_600, changes=CHANGES_MAX, new_values=2 * CHANGES_MAX)
    search = Search(database, budget, lambda base: base, denials, skip=reasons.append)
    found = [as_change(each) for each in search.run(wishes)]
    assert all("more than" in reason for reason in reasons), reasons
    shown = f"{program}\n{facts}\n{[str(wish) for wish in wishes]} denied {denials}"
    canonicals = [canonical(change) for change in found]
    assert set(canonicals) == brute_force(slow, wishes, denials), shown


class Elsewhere:
    """An engine of which only rows that are looked up are known."""

    local = ReferenceEngine

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.size = engine.size

    def expect(self, relation: str, columns: tuple[int, ...], keys: Collection[Row]) -> None:
        assert columns
        assert keys

    def find(self, relation: str, columns: tuple[int, ...], keys: Collection[Row]) -> list[Row]:
        known = (dict(zip(columns, key, strict=True)) for key in keys)
        return [row for key in known for row in self._engine.lookup(relation, key)]


@pytest.mark.parametrize("seed", SEEDS[: len(SEEDS) // 2])
def test_a_search_on_fetched_rows_finds_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Maker(seed)
    is_stored = seed % 2 == 0
    database = deltalog.connect(program=made.program, facts=made.facts, materialize=is_stored)
    request, budget = str(made.wish(database)), Budget(nodes=500, changes=2)
    expected = [str(each) for each in database.realize(request, budget=budget)]
    source: Any = Elsewhere(database.engine)
    rows = FetchedRows(source, database.model.as_written)
    monkeypatch.setattr(view_updates, "fetched_rows_of", lambda _: rows)
    found = [str(each) for each in database.realize(request, budget=budget)]
    assert found == expected, f"{made.program}\n{made.facts}\n{request}"


@pytest.mark.parametrize("seed", SEEDS[: len(SEEDS) // 2])
def test_the_first_level_finds_minimal_realizations(seed: int) -> None:
    """Not all of them, but none that brute force does not find."""
    made = Maker(seed)
    program, facts = made.program, made.facts
    database = deltalog.connect(program=program, facts=facts, engine="reference")
    wish = made.wish(database)
    budget = Budget(nodes=300)
    found = database.realize(str(wish), budget=budget, mode="first_level")
    small = [each for each in found if len(each) <= CHANGES_MAX]
    if small:
        changes = {canonical(as_change(each)) for each in small}
        assert changes <= brute_force(database, [wish], ()), f"{program}\n{facts}\n{wish}"


def as_change(realization: deltalog.Realization) -> Change:
    inserted, deleted = realization.inserted, realization.deleted
    return frozenset(Wish(True, n, r) for n in inserted for r in inserted[n]) | frozenset(
        Wish(False, n, r) for n in deleted for r in deleted[n]
    )
