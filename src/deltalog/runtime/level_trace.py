"""Requests and changes of a search by levels, round by round, in the paper's notation.

    round 1
      ∇r1⁺(2) ∨ ∇s⁻(2)
      alternative 1: ∇q1⁺(2), ∇r1⁺(2) ⇒ Δr1⁺(2), Δq1⁺(2), Δp⁺(2): a realization

∇ is a request, Δ a change. Helpers of the algebra format are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deltalog.language.ast import Row
from deltalog.language.values import print_value
from deltalog.rewrites import names

Fact = tuple[str, Row]
"""A request or a change: the name that rules have for it, and its row."""


@dataclass(frozen=True)
class Alternative:
    """One alternative of a round: its new requests, what they change, and what that breaks.

    `outcome` is `false`, `a realization`, `open` or `nothing new`.
    """

    number: str
    requests: tuple[str, ...]
    changes: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    outcome: str = "open"

    def __str__(self) -> str:
        steps = [", ".join(each) for each in (self.requests, self.changes, self.repairs) if each]
        ending = "" if self.outcome == "open" else f": {self.outcome}"
        return f"alternative {self.number}: {' ⇒ '.join(steps) or 'nothing'}{ending}"


@dataclass(frozen=True)
class Round:
    """A round of the search: the base requests that it adds, as clauses, and its alternatives.

    `clauses` is empty if there are too many. The search has stopped before a round that `is_late`:
    it only shows what becomes of alternatives that were open then.
    """

    number: int
    clauses: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    is_late: bool = False

    def __str__(self) -> str:
        title = f"round {self.number}" + (", after the search has stopped" if self.is_late else "")
        return "\n".join([title, *(f"  {each}" for each in (*self.clauses, *self.alternatives))])


def fact_texts(facts: Iterable[Fact]) -> tuple[str, ...]:
    """The facts of relations that a person has written, in their order."""
    return tuple(text for fact in facts if (text := fact_text(fact)) is not None)


def fact_text(fact: Fact) -> str | None:
    """`∇p⁺(2)`, `Δic⁻(2)`; None of helpers."""
    predicate, row = fact
    for mark, read in (("∇", names.as_request), ("Δ", names.as_change)):
        found = read(predicate)
        if found is not None and not names.is_generated(found[0]):
            values = f"({', '.join(map(print_value, row))})" if row else ""
            return f"{mark}{found[0]}{'⁺' if found[1] else '⁻'}{values}"
    return None


def clause_texts(clauses: Iterable[Iterable[Fact]]) -> tuple[str, ...]:
    return tuple(sorted(" ∨ ".join(sorted(fact_texts(clause))) for clause in clauses))
