"""Keys: no two facts written in the program share one."""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.analysis.columns import Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.language.ast import Atom, Constant, Program
from deltalog.language.values import print_value


def check_keys(program: Program, relations: Relations) -> Iterator[Diagnostic]:
    first: dict[tuple[object, ...], Atom] = {}
    for fact in program.facts:
        relation = relations[fact.predicate]
        if not relation.key or len(fact.arguments) != relation.arity:
            continue
        key = tuple(fact.arguments[position] for position in relation.key)
        earlier = first.setdefault((fact.predicate, key), fact)
        if earlier.arguments != fact.arguments:
            others = (Label(earlier.span, "the other one"),) if earlier.span is not None else ()
            yield catalogue.KEY_CONFLICT.at(
                fact.span, *others, name=fact.predicate, key=_shown(key)
            )


def _shown(key: tuple[object, ...]) -> str:
    return ", ".join(print_value(term.value) for term in key if isinstance(term, Constant))
