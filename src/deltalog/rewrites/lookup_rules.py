"""The keys with which rules look up stored relations, as relations of their own.

    path__bf(X, Y) :- path__bf__magic(X), edge(X, Y).
    →  edge__bf__lookup(X) :- path__bf__magic(X).

Where `edge` is far away, the rules can run on the part of it that has been fetched: the keys that
are not among it yet are fetched next, and the rules run again.

Before: rules in desugared form. After: rules to run behind them, which read what these read. A
literal is looked up with what the literals before it bind, in the evaluation order of
`analysis/binding.py`.

Correct because, once every key that is derived has been fetched, each instance of a rule over the
whole relations is one over the fetched rows, literal by literal; whether a negated literal has a
match is known then, too. Until then, a negated one may hold by mistake: what is derived in such a
run is worth nothing, and at most fetches too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from deltalog.analysis.binding import bound_columns, evaluation_order, variables_bound_by
from deltalog.language.ast import Atom, Literal, Negation, Rule
from deltalog.rewrites import names
from deltalog.source import Origin


class Lookup(NamedTuple):
    """Columns of a stored relation that are bound when a rule reads it."""

    relation: str
    columns: tuple[int, ...]

    def predicate(self, arity: int) -> str:
        """The predicate of its keys."""
        marks = ("b" if i in self.columns else "f" for i in range(arity))
        return names.lookup_name(names.adorned_name(self.relation, "".join(marks)))


def lookup_rules(rules: Iterable[Rule], stored: Set[str]) -> tuple[dict[str, Lookup], list[Rule]]:
    """The rules that derive keys of `stored` relations, and the lookup of each of their heads."""
    lookups: dict[str, Lookup] = {}
    made: dict[Rule, None] = {}
    for rule in rules:
        origin = Origin.made_by("lookup_rules", rule.origin)
        for atom, before in _read_atoms(rule):
            if atom.predicate in stored:
                lookup = Lookup(atom.predicate, bound_columns(atom, _bound_by(before)))
                predicate = lookup.predicate(len(atom.arguments))
                head = Atom(predicate, tuple(atom.arguments[i] for i in lookup.columns))
                lookups[predicate] = lookup
                made[Rule(head, before, origin)] = None
    return lookups, list(made)


def _read_atoms(rule: Rule) -> Iterator[tuple[Atom, tuple[Literal, ...]]]:
    """The atoms of a body, each with the literals that are evaluated before it."""
    first = rule.body[0] if rule.leads and rule.body else None
    ordered = evaluation_order(rule.body, first=first if isinstance(first, Atom) else None)
    for position, literal in enumerate(ordered):
        if isinstance(literal, Atom):
            yield literal, ordered[:position]
        elif isinstance(literal, Negation):
            yield literal.atom, ordered[:position]


def _bound_by(body: Iterable[Literal]) -> set[str]:
    """The variables that a body binds, in this order."""
    bound: set[str] = set()
    for literal in body:
        bound |= variables_bound_by(literal, bound)
    return bound
