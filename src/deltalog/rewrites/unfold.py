"""Unfolding: views used positively are replaced by their definitions, as far as that goes.

    low(I) :- quantity(I, Q), threshold(I, T), Q < T.
    threshold(I, T) :- base_need(I, N), min_stock(I, M), T = N + M.
    →  low(I) :- quantity(I, Q), base_need(I, N), min_stock(I, M), T = N + M, Q < T.

Before: rules in desugared form. After: equivalent rules in which no positive literal refers to one
of the given views, which must not be recursive nor aggregates. Correct because a positive literal
holds exactly where the body of one of its rules does. Makes the flat propagation network of
Risch & Sköld 1999: fewer nodes, more freedom for the evaluation order, nothing shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from deltalog.language.ast import Atom, Comparison, Literal, Rule, Variable
from deltalog.language.walk import fresh_names, rule_names, substitute_atom, substitute_literal
from deltalog.source import Origin

RULES_MAX = 1_000


def unfold(rules: Iterable[Rule], definitions: Mapping[str, tuple[Rule, ...]]) -> tuple[Rule, ...]:
    """The rules with every positive literal of a defined view expanded."""
    waiting = list(rules)
    done: list[Rule] = []
    while waiting:
        rule = waiting.pop(0)
        position = next(
            (
                i
                for i, literal in enumerate(rule.body)
                if isinstance(literal, Atom) and literal.predicate in definitions
            ),
            None,
        )
        if position is None or len(waiting) + len(done) > RULES_MAX:
            done.append(rule)
        else:
            waiting[:0] = _expand_literal(rule, position, definitions)
    return tuple(done)


def _expand_literal(
    rule: Rule, position: int, definitions: Mapping[str, tuple[Rule, ...]]
) -> Iterator[Rule]:
    atom = rule.body[position]
    assert isinstance(atom, Atom)
    for definition in definitions[atom.predicate]:
        apart = _renamed_apart(definition, set(rule_names(rule)))
        equations = [
            Comparison("=", given, wanted, "any")  # type: ignore[arg-type]
            for given, wanted in zip(atom.arguments, apart.head.arguments, strict=True)
        ]
        body: tuple[Literal, ...] = (
            *rule.body[:position],
            *apart.body,
            *equations,
            *rule.body[position + 1 :],
        )
        origin = Origin.made_by("unfold", rule.origin, definition.origin)
        yield replace(rule, body=body, origin=origin)


def _renamed_apart(rule: Rule, taken: set[str]) -> Rule:
    names = rule_names(rule)
    fresh = fresh_names(taken | set(names), "U")
    renaming = {name: Variable(next(fresh)) for name in names if not Variable(name).is_wildcard}
    for name in names:
        if Variable(name).is_wildcard:
            renaming[name] = Variable(_free_wildcard(taken, renaming))

    def rename(variable: Variable) -> Variable:
        return renaming[variable.name]

    return replace(
        rule,
        head=substitute_atom(rule.head, rename),
        body=tuple(substitute_literal(literal, rename) for literal in rule.body),
    )


def _free_wildcard(taken: set[str], used: Mapping[str, Variable]) -> str:
    """Wildcards stay wildcards: inside `not` they mean that nothing matches."""
    names = taken | {variable.name for variable in used.values()}
    number = 1
    while f"_{number}" in names:
        number += 1
    return f"_{number}"
