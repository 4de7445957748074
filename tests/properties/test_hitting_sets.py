"""Deletions by a second method: without negation they are the minimal hitting sets of all proofs.

The base facts of all proofs are found bottom-up from the ground rules, as sets of which none
contains another; clingo finds what hits every one of them. The 1,000 programs of `make fuzz` took
ten minutes on a quarter of a core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import clingo
import pytest
from effort import IS_FUZZ
from test_realizations import BASES, FRESH, Maker

import deltalog
from deltalog.language.ast import Atom, Constant, Row, Rule, Term, Value, Variable
from deltalog.runtime.derivation import Fact, fact_text
from deltalog.runtime.realization import Budget

Proofs = frozenset[frozenset[Fact]]
"""The base facts of proofs, without those that contain others."""
DRAWN = 6
"""Facts of which those with the most proofs are requested to go."""
SEEDS: Sequence[int] = FRESH if IS_FUZZ else range(40)


class PositiveMaker(Maker):
    """A random program without negation above a closure, over facts of two more values."""

    negations = 0.0
    constants = (1, 2, 3, 4)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.known["path"] = 2
        self.rules += ["path(X, Y) :- b(X, Y).", "path(X, Y) :- b(X, Z), path(Z, Y)."]
        self.view("above")


def instances(rule: Rule, facts: Mapping[Fact, object]) -> Iterator[tuple[Fact, list[Fact]]]:
    """Yield every ground instance of a rule whose body holds: its head and its body."""

    def matches(body: Sequence[object], known: dict[str, Value]) -> Iterator[dict[str, Value]]:
        if not body:
            yield known
            return
        atom = body[0]
        assert isinstance(atom, Atom)
        for name, row in list(facts):
            if name == atom.predicate:
                bound = matched(atom.arguments, row, known)
                if bound is not None:
                    yield from matches(body[1:], bound)

    for known in matches(rule.body, {}):
        body = [ground(atom, known) for atom in rule.body if isinstance(atom, Atom)]
        yield ground(rule.head, known), body


def matched(terms: Iterable[Term], row: Row, known: dict[str, Value]) -> dict[str, Value] | None:
    bound = dict(known)
    for term, value in zip(terms, row, strict=True):
        if isinstance(term, Variable):
            if bound.setdefault(term.name, value) != value:
                return None
        elif not isinstance(term, Constant) or term.value != value:
            return None
    return bound


def ground(atom: Atom, known: Mapping[str, Value]) -> Fact:
    values = (known[t.name] if isinstance(t, Variable) else t.value for t in atom.arguments)  # type: ignore[union-attr]
    return atom.predicate, tuple(values)


def minimal(sets: Iterable[frozenset[Fact]]) -> Proofs:
    found: list[frozenset[Fact]] = []
    for each in sorted(set(sets), key=len):
        if not any(smaller <= each for smaller in found):
            found.append(each)
    return frozenset(found)


def all_proofs(rules: Sequence[Rule], facts: Iterable[Fact]) -> dict[Fact, Proofs]:
    """The proofs of every fact, a least fixpoint over the instances of the rules."""
    proofs: dict[Fact, Proofs] = {fact: frozenset({frozenset({fact})}) for fact in facts}
    is_changed = True
    while is_changed:
        is_changed = False
        for rule in rules:
            for head, body in list(instances(rule, proofs)):
                ways = product(*(proofs[each] for each in body))
                found = minimal((*proofs.get(head, ()), *(frozenset().union(*w) for w in ways)))
                if found != proofs.get(head):
                    proofs[head], is_changed = found, True
    return proofs


def minimal_hitting_sets(sets: Proofs) -> set[frozenset[Fact]]:
    """The answer sets of one disjunction for each set: minimal models, by clingo."""
    facts = sorted({fact for each in sets for fact in each})
    number = {fact: i for i, fact in enumerate(facts)}
    clauses = (" | ".join(f"cut({number[fact]})" for fact in sorted(each)) for each in sets)
    control = clingo.Control(["0"])
    control.add("base", [], "\n".join(f"{clause}." for clause in clauses))
    control.ground([("base", [])])
    found: set[frozenset[Fact]] = set()

    def add(model: clingo.Model) -> None:
        cuts = (symbol.arguments[0].number for symbol in model.symbols(atoms=True))
        found.add(frozenset(facts[cut] for cut in cuts))

    control.solve(on_model=add)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_deletions_are_the_minimal_hitting_sets_of_all_proofs(seed: int) -> None:
    made = PositiveMaker(seed)
    program, facts = made.program, made.facts
    database = deltalog.connect(program=program, facts=facts, engine="reference")
    rules = database.model.checked.program.rules
    proofs = all_proofs(rules, ((name, row) for name in facts for row in facts[name]))
    views = [name for name in made.known if name not in BASES]
    for view in views:
        assert {row for name, row in proofs if name == view} == database.facts(view)
    held = sorted(fact for fact in proofs if fact[0] in views)
    drawn = made.random.sample(held, min(len(held), DRAWN))
    drawn.sort(key=lambda fact: len(proofs[fact]), reverse=True)
    wanted = drawn[: made.random.randint(1, 2)]
    if not wanted:
        return
    requests = [f"-{fact_text(*fact)}" for fact in wanted]
    found = database.realize(*requests, budget=Budget(seconds=3_600))
    ours = [each.deleted for each in found]
    assert found.is_complete, found.reasons
    expected = minimal_hitting_sets(frozenset().union(*(proofs[fact] for fact in wanted)))
    assert {frozenset((n, row) for n in each for row in each[n]) for each in ours} == expected, (
        f"{program}\n{facts}\n{requests}"
    )
