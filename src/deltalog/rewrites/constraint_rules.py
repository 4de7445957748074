"""Constraints become views, whose change tells what a transaction violates.

    deny cycle(X) :- path(X, X).
    →  cycle(X) :- path(X, X).                 must stay empty: checked from cycle__plus

    require ic :- not path(3, 3).
    →  ic :- not path(3, 3).                   ic must hold: checked from ic__minus

    view boss(name: str key, of: str).
    →  boss__key(X1, X2) :- boss(X1, X2), boss(X1, Y2), X2 != Y2.

Before: a checked program. After: the rules of all constraints are rules of the program. Correct
because a state is consistent if each of these views has the facts that its constraint wants, and
update propagation is exact: a transaction that inserts nothing into a view that was empty leaves it
empty (Behrend & Manthey 2007, section 2.1). Where it does not apply: whether a violation is refused
is not a matter of rules; `runtime/constraints.py` decides it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deltalog.analysis.columns import Relation, Relations
from deltalog.language.ast import Atom, Comparison, Program, Rule, Variable
from deltalog.rewrites import names
from deltalog.source import Origin


def constraint_rules(program: Program, relations: Relations) -> Program:
    """The program with the rules of its constraints; the same object if there are none."""
    keyed = [rule for relation in keyed_views(relations) for rule in _key_denial(relation)]
    if not program.constraints and not keyed:
        return program
    return replace(program, rules=(*program.definitions, *keyed), constraints=())


def keyed_views(relations: Relations) -> Iterator[Relation]:
    """The views whose key does not have all columns."""
    for relation in relations.values():
        if relation.kind == "view" and 0 < len(relation.key) < relation.arity:
            yield relation


def _key_denial(relation: Relation) -> Iterator[Rule]:
    """A rule for each column in which two facts with one key can differ."""
    row = names.row_variables(relation.arity)
    other = tuple(
        variable if i in relation.key else Variable(f"Y{i + 1}") for i, variable in enumerate(row)
    )
    origin = Origin.made_by("constraint_rules", Origin(relation.span))
    for mine, others in zip(row, other, strict=True):
        if mine != others:
            body = (
                Atom(relation.name, row),
                Atom(relation.name, other),
                Comparison("!=", mine, others),
            )
            yield Rule(Atom(names.key_denial_name(relation.name), row), body, origin)
