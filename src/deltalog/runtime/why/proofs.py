"""From the instances that a search chose to proofs that people read."""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.runtime.derivation import Absence, Fact, fact_text
from deltalog.runtime.why.instances import Compared, Instance, Premise
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.search import ProofSearch


def proofs_of(search: ProofSearch, goals: Iterable[Fact]) -> dict[Fact, Proof]:
    """The chosen proofs of the goals, and of all facts that they use; equal ones are shared."""
    made: dict[Fact, Proof] = {}
    leaves: dict[Premise, Proof] = {}
    for fact in search.needed(goals):
        instance = search.chosen.get(fact)
        if instance is None:
            made[fact] = Proof(fact_text(*fact), "base", relation=fact[0], row=fact[1])
            continue
        below = [
            made[each] if isinstance(each, tuple) else leaves.setdefault(each, proof_leaf(each))
            for each in instance.premises
        ]
        made[fact] = proof_step(fact, instance, tuple(below), search.heights[fact])
    return made


def proof_step(fact: Fact, instance: Instance, premises: tuple[Proof, ...], height: int) -> Proof:
    clause = instance.clause
    return Proof(
        fact_text(*fact),
        "aggregate" if clause.is_aggregate else "derived",
        clause.text,
        clause.place,
        premises,
        *fact,
        height,
        instance.contributors,
        clause.said(instance.binding),
    )


def proof_leaf(premise: Absence | Compared | Fact) -> Proof:
    """The step of a premise that no rule is asked about."""
    kind = "absent" if isinstance(premise, Absence) else "comparison"
    relation = premise.predicate if isinstance(premise, Absence) else None
    return Proof(str(premise), kind, relation=relation)  # type: ignore[arg-type]
