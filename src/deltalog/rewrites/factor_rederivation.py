"""The shared prefix of rederivations, evaluated once for all facts that share it.

    can__red(U, D) :- can__overdeleted(U, D), in(U, G), grant(G, F), under(D, F).
    →  can__prefix_keys1(D) :- can__overdeleted(U, D).
       can__prefix1(D, G) :- can__prefix_keys1(D), under(D, F), grant(G, F).
       can__red(U, D) :- can__overdeleted(U, D), can__prefix1(D, G), in(U, G).

When a grant is deleted, every user of a group may lose every document below a folder: as many facts
as there are pairs, and for each of them its other derivations are looked for. Going on from D, the
folders above it and the grants on them are the same for all users.

Before: the maintenance rules of views that do not use themselves. Rewritten are those of (R), whose
first literal, the estimate, has all variables of the head. The rest of the body is put into the
order in which it would be evaluated (`fanout` decides as it does there). Its *prefix* are the
literals up to the first atom that has further variables of the head than its first atom; tests that
use further ones wait, and so do literals that use what these bind. If the prefix has fewer than two
atoms, or all variables of the head or none, the rule stays as it is.

It also stays if many rows are expected from one key. A search for a single fact may end at the
first of them; the prefix finds them all.

After: rules for the same head, for the keys, and for the prefix.

Correct because `exists` moves inwards past what does not use its variable (`split_joins.py`): the
prefix has the variables of its literals that the head or the rest still need. Its keys are all
values that the estimate has, so no row is missing; none is too many, since each is a match of the
literals. The new predicates read what the rule read, and nothing else reads them: the strata stay
as they are.

A fact costs three steps more than before, and the prefix costs each fact nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from deltalog.analysis.binding import (
    Fanout,
    bound_columns,
    evaluation_order,
    variables_bound_by,
    variables_needed_by,
)
from deltalog.language.ast import Atom, Literal, Rule, Variable
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.source import Origin

PREFIX_ROWS_MAX = 64
"""The largest number of rows that may be expected from one key."""


def factor_rederivation(
    rules: Iterable[Rule], views: Iterable[str], fanout: Fanout | None = None
) -> tuple[Rule, ...]:
    """The rules that maintain some views, shared prefixes of their rederivations apart."""
    rederived = {names.rederived_name(view): (view, count(1)) for view in views}
    made: list[Rule] = []
    for rule in rules:
        if rule.head.predicate in rederived:
            view, numbers = rederived[rule.head.predicate]
            made += _factor_rule(rule, view, next(numbers), fanout)
        else:
            made.append(rule)
    return tuple(made)


def _factor_rule(rule: Rule, view: str, number: int, fanout: Fanout | None) -> Iterator[Rule]:
    estimate, *_ = rule.body
    assert isinstance(estimate, Atom)
    _, *rest = evaluation_order(rule.body, first=estimate, fanout=fanout)
    prefix = _find_prefix(estimate, rest)
    atoms = [literal for literal in prefix if isinstance(literal, Atom)]
    if len(atoms) < 2 or _expected_rows(atoms, variable_names(estimate), fanout) > PREFIX_ROWS_MAX:
        yield rule
        return
    others = [literal for literal in rest if literal not in prefix]
    own, needed = variable_names(*prefix), variable_names(rule.head, *others)
    shared = (Variable(name) for name in variable_names(estimate) if name in own)
    keys = Atom(names.prefix_keys_name(view, number), tuple(shared))
    found = Atom(
        names.shared_prefix_name(view, number),
        tuple(Variable(name) for name in own if name in needed),
    )
    made = replace(rule, origin=Origin.made_by("factor_rederivation", rule.origin))
    yield replace(made, head=keys, body=(estimate,))
    yield replace(made, head=found, body=(keys, *prefix))
    yield replace(made, body=(estimate, found, *others))


def _find_prefix(estimate: Atom, rest: list[Literal]) -> list[Literal]:
    """The literals that go on from some variables of the estimate, and not from the others."""
    outer = set(variable_names(estimate))
    nearest = next((literal for literal in rest if isinstance(literal, Atom)), estimate)
    own = outer & set(variable_names(nearest))
    if own == outer or not own:
        return []
    known, foreign = set(own), outer - own
    found: list[Literal] = []
    for literal in rest:
        bound = variables_bound_by(literal, known)
        if (
            not foreign & set(variable_names(literal))
            and variables_needed_by(literal) - bound <= known
        ):
            found.append(literal)
            known |= bound
        elif isinstance(literal, Atom):
            break
        else:
            foreign |= variables_bound_by(literal, known | foreign) - known
    return found


def _expected_rows(atoms: list[Atom], bound: Iterable[str], fanout: Fanout | None) -> float:
    """About how many rows are looked at from one key; where nothing is known, one at a time."""
    known, rows, total = set(bound), 1.0, 0.0
    for atom in atoms:
        columns = bound_columns(atom, known)
        if fanout is not None and len(columns) < len(atom.arguments):
            rows *= max(1.0, fanout(atom.predicate, columns))
        total += rows
        known |= variables_bound_by(atom, known)
    return total
