"""Facts as they are asked about: `path(1, 3)`, or with variables `path(1, X)`."""

from __future__ import annotations

from dataclasses import dataclass

from deltalog.analysis.columns import Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics import why_catalogue as errors
from deltalog.diagnostics.arguments import check_text
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Atom, Constant, Variable
from deltalog.language.parser import parse_query
from deltalog.rewrites.desugar import typed_row
from deltalog.runtime.checked_rows import checked_row
from deltalog.runtime.derivation import Fact


@dataclass(frozen=True)
class Asked:
    """An atom of a known relation; `fact` is it as a row if every argument has a value."""

    atom: Atom
    fact: Fact | None


def parse_asked(text: str, relations: Relations, has_variables: bool = False) -> Asked:
    """Read what is asked about; its stop is optional."""
    check_text("fact", text, 'a fact is a text, `"path(1, 3)"`')
    body = parse_query(text).body
    atom = body[0] if len(body) == 1 else None
    if not isinstance(atom, Atom):
        raise _not_a_fact(text)
    relation = relations.get(atom.predicate)
    if relation is None:
        hint = did_you_mean(atom.predicate, relations)
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=atom.predicate, hint=hint)])
    values = [term.value for term in atom.arguments if isinstance(term, Constant)]
    if len(values) == len(atom.arguments):
        checked_row(relation, values)
        return Asked(atom, (atom.predicate, checked_row(relation, typed_row(atom, relation))))
    known = all(isinstance(term, Constant | Variable) for term in atom.arguments)
    if not (known and has_variables) or any(
        isinstance(term, Variable) and term.is_parameter for term in atom.arguments
    ):
        raise _not_a_fact(text)
    return Asked(atom, None)


def parse_fact(text: str, relations: Relations) -> Fact:
    """Read a fact."""
    fact = parse_asked(text, relations).fact
    assert fact is not None
    return fact


def _not_a_fact(text: str) -> DataError:
    return DataError([errors.NOT_A_FACT.at(None, text=text)])
