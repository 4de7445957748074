"""Model states: what holds in every one of several models, as clauses.

    {r(1)}, {r("a"), s("a")}, {r("a"), t("a")}   ⇒   r(1) ∨ r("a");  r(1) ∨ s("a") ∨ t("a")

A clause, a disjunction of facts, is in the state if each model has one of its facts, and no part of
it is such a clause. (The positive portion of a perfect model state, Behrend & Manthey
2007, section 2.3.) These are the minimal hitting sets of the models, computed one model at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

Fact = TypeVar("Fact")


def model_state(
    models: Iterable[Collection[Fact]], clauses_max: int
) -> tuple[frozenset[Fact], ...] | None:
    """The minimal clauses; None if there were more than `clauses_max` on the way."""
    clauses: list[frozenset[Fact]] = [frozenset()]
    for model in models:
        hit = [clause for clause in clauses if not clause.isdisjoint(model)]
        longer = {
            clause | {fact} for clause in clauses for fact in model if clause.isdisjoint(model)
        }
        clauses = hit + [c for c in longer if not any(each <= c for each in hit)]
        clauses = minimal_sets(clauses)
        if len(clauses) > clauses_max:
            return None
    return tuple(clauses)


def minimal_sets(sets: Iterable[frozenset[Fact]]) -> list[frozenset[Fact]]:
    """The sets that contain no other of them."""
    found: list[frozenset[Fact]] = []
    for each in sorted(set(sets), key=len):
        if not any(smaller <= each for smaller in found):
            found.append(each)
    return found
