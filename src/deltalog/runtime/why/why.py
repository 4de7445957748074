"""`db.why("path(1, 3)")`: why a fact holds."""

from __future__ import annotations

from deltalog.diagnostics import why_catalogue as errors
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Atom, Constant, Row, Term, Value, Variable
from deltalog.language.printer import print_atom
from deltalog.rewrites.desugar import typed_atom
from deltalog.runtime.derivation import Fact, fact_text
from deltalog.runtime.why.asked import Asked
from deltalog.runtime.why.clauses import clauses_of
from deltalog.runtime.why.derivations import Derivations, derivations_of
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.proofs import proofs_of
from deltalog.runtime.why.search import FACTS_MAX, ProofSearch
from deltalog.runtime.why.sets import SetProof, set_proof
from deltalog.runtime.why.state import AskedState


def why_fact(state: AskedState, fact: Fact, when: str = "", facts_max: int = FACTS_MAX) -> Proof:
    """A proof of least height; raises if the fact does not hold, or the search is too long."""
    check_holds(state, fact, when)
    search = ProofSearch(state, clauses_of(state.model.checked), facts_max)
    if not search.least([fact]):
        raise too_long(search, fact_text(*fact))
    return proofs_of(search, [fact])[fact]


def check_holds(state: AskedState, fact: Fact, when: str = "") -> None:
    if not state.holding([fact]):
        hint = "`why_not` (`deltalog why-not`) shows what is missing"
        raise DataError(
            [errors.DOES_NOT_HOLD.at(None, fact=fact_text(*fact), when=when, hint=hint)]
        )


def too_long(search: ProofSearch, what: str) -> DataError:
    return DataError([errors.NO_PROOF_FOUND.at(None, fact=what, count=f"{len(search.found):,}")])


def every_derivation(
    state: AskedState, fact: Fact, when: str = "", facts_max: int = FACTS_MAX
) -> Derivations:
    """All rule instances that take part in a derivation of the fact."""
    check_holds(state, fact, when)
    search = ProofSearch(state, clauses_of(state.model.checked), facts_max)
    is_complete = search.every([fact])
    return derivations_of(search, fact, is_complete)


def why_set(
    state: AskedState, asked: Asked, when: str = "", facts_max: int = FACTS_MAX
) -> SetProof:
    """The proofs of all facts that an atom with variables matches, as one."""
    goals = _matching_facts(state, asked.atom)
    text = print_atom(asked.atom)
    if not goals:
        hint = "`why_not` (`deltalog why-not`) shows what is missing for one fact"
        raise DataError([errors.DOES_NOT_HOLD.at(None, fact=text, when=when, hint=hint)])
    search = ProofSearch(state, clauses_of(state.model.checked), facts_max)
    proved = goals[:GOALS_MAX]
    if not search.least(proved):
        raise too_long(search, text)
    return set_proof(search, text, len(goals), proved)


GOALS_MAX = 10_000
"""Facts that are proved together."""


def _matching_facts(state: AskedState, atom: Atom) -> list[Fact]:
    """The facts that an atom with variables matches, sorted."""
    name = atom.predicate
    typed = typed_atom(atom, state.model.relations[name]).arguments
    known = {i: term.value for i, term in enumerate(typed) if isinstance(term, Constant)}
    rows = state.matching(name, list(known), [tuple(known.values())])
    return [(name, row) for row in rows if _are_equal(typed, row)]


def _are_equal(terms: tuple[Term, ...], row: Row) -> bool:
    """Whether a row has equal values where an atom has the same variable."""
    values: dict[str, Value] = {}
    pairs = ((t.name, v) for t, v in zip(terms, row, strict=True) if isinstance(t, Variable))
    return all(values.setdefault(name, value) == value for name, value in pairs)
