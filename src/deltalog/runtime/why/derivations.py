"""All derivations of a fact as a graph: every rule instance that takes part in one.

path(1, 3)
  by graph.dl:3   edge(1, 3)
  by graph.dl:4   edge(1, 2), path(2, 3)
path(2, 3)
  by graph.dl:3   edge(2, 3)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deltalog.runtime.derivation import Fact, fact_text
from deltalog.runtime.why.instances import Instance
from deltalog.runtime.why.proof import LINES_MAX, Proof
from deltalog.runtime.why.proofs import proof_leaf, proof_step
from deltalog.runtime.why.search import ProofSearch


@dataclass(frozen=True, eq=False)
class Derivations:
    """The steps by which a fact can be derived, that of the fact first; each is one level high.

    `is_complete` is False if the search ended at its bound.
    """

    conclusion: str
    steps: tuple[Proof, ...]
    is_complete: bool

    rule = None

    @property
    def premises(self) -> tuple[Proof, ...]:
        """The steps, which stand where one proof has its premises."""
        return self.steps

    def sentences(self) -> list[str]:
        """The sentence of each derivation, once; without a sentence it is the fact."""
        return list(dict.fromkeys(each.sentence or each.conclusion for each in self.steps))

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has; premises are named, not nested."""
        steps = [
            {
                "conclusion": each.conclusion,
                "rule": each.rule,
                "place": each.place,
                "premises": [premise.conclusion for premise in each.premises],
                **({} if each.contributors is None else {"contributors": each.contributors}),
                **({} if each.sentence is None else {"sentence": each.sentence}),
            }
            for each in self.steps
        ]
        found = {"conclusion": self.conclusion, "is_complete": self.is_complete}
        return {**found, "derivations": steps}

    def __str__(self) -> str:
        lines: list[str] = []
        last = None
        for each in self.steps:
            lines += [] if each.conclusion == last else [each.conclusion]
            last = each.conclusion
            premises = ", ".join(premise.conclusion for premise in each.premises)
            lines.append("  by " + "   ".join(filter(None, (each.place or each.rule, premises))))
        more = [] if self.is_complete else ["there are more: the search ended at its bound"]
        return "\n".join(
            [*(lines if len(lines) <= LINES_MAX else [*lines[:LINES_MAX], "…"]), *more]
        )

    def __repr__(self) -> str:
        return f"Derivations({self.conclusion}, {len(self.steps):,} steps)"


def derivations_of(search: ProofSearch, goal: Fact, is_complete: bool) -> Derivations:
    """The instances that a search of all derivations has found, nearest first."""
    leaves: dict[Any, Proof] = {}

    def shown(instance: Instance) -> tuple[Proof, ...]:
        return tuple(
            leaves.setdefault(
                each,
                Proof(fact_text(*each), "base" if each[0] not in search.clauses else "derived")
                if isinstance(each, tuple)
                else proof_leaf(each),
            )
            for each in instance.premises
        )

    steps = [
        proof_step(fact, instance, shown(instance), 1)
        for fact, found in search.found.items()
        for instance in found
    ]
    return Derivations(fact_text(*goal), tuple(steps), is_complete)
