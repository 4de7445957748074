"""Keys: no two facts written in the program share one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deltalog.analysis.columns import Relation, Relations
from deltalog.analysis.rule_types import constant_fits, literal_value
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.language.ast import Atom, Column, Constant, Program, Term
from deltalog.language.values import print_value


def check_keys(program: Program, relations: Relations) -> Iterator[Diagnostic]:
    first: dict[tuple[object, ...], Atom] = {}
    for fact in program.facts:
        relation = relations[fact.predicate]
        if not relation.key or len(fact.arguments) != relation.arity:
            continue
        if not all(
            _fits_column(term, c) for term, c in zip(fact.arguments, relation.columns, strict=True)
        ):
            continue
        fact = _typed_fact(fact, relation)
        key = tuple(fact.arguments[position] for position in relation.key)
        earlier = first.setdefault((fact.predicate, key), fact)
        if earlier.arguments != fact.arguments:
            others = (Label(earlier.span, "the other one"),) if earlier.span is not None else ()
            yield catalogue.KEY_CONFLICT.at(
                fact.span, *others, name=fact.predicate, key=_format_key(key)
            )


def _fits_column(term: Term, column: Column) -> bool:
    """Values that do not fit their column are reported by the check of types."""
    if not isinstance(term, Constant) or column.type is None:
        return False
    return term.type == "null" or constant_fits(term, column.type)


def _typed_fact(fact: Atom, relation: Relation) -> Atom:
    """The fact with every literal in the type of its column: 5 and 5.0 may be the same."""
    pairs = zip(fact.arguments, relation.columns, strict=True)
    return replace(fact, arguments=tuple(_typed_term(term, column) for term, column in pairs))


def _typed_term(term: Term, column: Column) -> Term:
    if not isinstance(term, Constant) or term.type == "null" or column.type is None:
        return term
    return Constant(literal_value(term, column.type), column.type)


def _format_key(key: tuple[object, ...]) -> str:
    return ", ".join(print_value(term.value) for term in key if isinstance(term, Constant))
