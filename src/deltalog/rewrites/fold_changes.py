"""The change of group state: the totals of bindings that were inserted and deleted are folded in.

    payroll__groups(D, count(), sum(H), sum(L)) :- works_in(E, D), salary(E, S), …
    →  payroll__groups__inserted(D, E, S, H, L) :- works_in__plus(E, D), salary__new(E, S), …
       payroll__groups__inserted_totals(D, count(), sum(H), sum(L)) :-
           payroll__groups__inserted(D, E, S, H, L).
       … the same with deleted ones …
       payroll__groups__now(D, N, H, L) :-
           payroll__groups__touched(D), held - deleted + inserted, N > 0.

Before: a rule that defines stored group state (`group_state.py`). After: the exact change of that
state. Correct because a body binding has exactly one derivation, so the bindings that are inserted
and deleted are exact without any test, and counting and exact summing can be undone.

Totals of deleted bindings are subtracted before those of inserted ones are added, because deleted
bindings are among those held: held - deleted is the sum over the bindings that stay, and with
inserted ones over those of the new state. So every intermediate result is a sum over bindings that
hold together in one state, and within the bounds that `group_state.py` gives; held + inserted would
not be.

A sum of ints that a person wrote is not continued: it has no value while it does not fit, and a
sum without a value is lost. The equation in the body tells halves from it (`is_foldable`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import fresh_names, rule_names, variable_names
from deltalog.rewrites import names
from deltalog.rewrites.group_state import HALVES, group_of
from deltalog.rewrites.states import Rename, changing_literals, in_state, transition_literals
from deltalog.source import Origin


def is_foldable(rule: Rule) -> bool:
    """Whether a rule defines group state: nothing but counts, exact sums and sums of halves."""
    totals = [term for term in rule.head.arguments if isinstance(term, Aggregate)]
    halves = {
        literal.left
        for literal in rule.body
        if isinstance(literal, Comparison)
        and isinstance(literal.right, Operation)
        and literal.right.function in HALVES
    }
    return bool(totals) and all(
        term.function == "count"
        or (term.function == "sum" and (term.type == "exact" or term.argument in halves))
        for term in totals
    )


def fold_changes(rule: Rule, old: Rename, new: Rename) -> Iterator[Rule]:
    """The change of group state from the bindings that are inserted and deleted."""
    predicate, origin = rule.head.predicate, Origin.made_by("fold_changes", rule.origin)
    group = group_of(rule)
    bound = (literal for literal in rule.body if not isinstance(literal, Negation))
    binding = tuple(Variable(name) for name in variable_names(*bound))
    touched = Atom(names.touched_name(predicate), group)
    sides = (
        (True, new, names.inserted_bindings_name, names.inserted_totals_name),
        (False, old, names.deleted_bindings_name, names.deleted_totals_name),
    )
    for truth, state, bindings, totals in sides:
        row = Atom(bindings(predicate), binding)
        for position, _, _ in changing_literals(rule):
            delta = transition_literals(rule, position, truth, state)
            rest = (in_state(x, state) for i, x in enumerate(rule.body) if i != position)
            yield Rule(row, (*delta, *rest), origin, leads=True)
        total = replace(rule.head, predicate=totals(predicate))
        yield Rule(total, (row,), origin, leads=True)
        blank = tuple(Variable(f"_{i + 1}") for i in range(len(rule.head.arguments) - len(group)))
        head_row = _with_totals(rule, blank)
        yield Rule(touched, (Atom(totals(predicate), head_row),), origin, leads=True)
    yield from _continue_totals(rule, touched, origin)


def _continue_totals(rule: Rule, touched: Atom, origin: Origin) -> Iterator[Rule]:
    """Held totals minus deleted plus inserted ones; a group without bindings is deleted."""
    predicate = rule.head.predicate
    totals = [term for term in rule.head.arguments if isinstance(term, Aggregate)]
    fresh = {side: fresh_names(set(rule_names(rule)), side) for side in "HMLN"}
    columns = {side: tuple(Variable(next(fresh[side])) for _ in totals) for side in "HMLN"}
    operands: list[Literal] = []
    for side, source in (
        ("H", predicate),
        ("M", names.inserted_totals_name(predicate)),
        ("L", names.deleted_totals_name(predicate)),
    ):
        known = Atom(names.or_zero_name(source), _with_totals(rule, columns[side]))
        yield Rule(known, (touched, Atom(source, known.arguments)), origin, leads=True)
        blank = tuple(Variable(f"_{i + 1}") for i in range(len(totals)))
        absent = Negation(Atom(source, _with_totals(rule, blank)))
        zero = Atom(
            known.predicate, _with_totals(rule, tuple(_zero_total(term) for term in totals))
        )
        yield Rule(zero, (touched, absent), origin, leads=True)
        operands.append(known)
    sums: list[Literal] = []
    for i, term in enumerate(totals):
        type_ = "int" if term.function == "count" else str(term.type)
        rest = Operation("-", (columns["H"][i], columns["L"][i]), type_)
        value = Operation("+", (rest, columns["M"][i]), type_)
        sums.append(Comparison("=", columns["N"][i], value, type_))
        if term.function == "count":
            sums.append(Comparison(">", columns["N"][i], Constant(0, "int"), "int"))
    now = Atom(names.current_name(predicate), _with_totals(rule, columns["N"]))
    yield Rule(now, (touched, *operands, *sums), origin, leads=True)
    row = _with_totals(rule, columns["N"])
    held, holds = Atom(predicate, row), Atom(names.current_name(predicate), row)
    yield Rule(Atom(names.plus_name(predicate), row), (holds, Negation(held)), origin, leads=True)
    minus = Atom(names.minus_name(predicate), row)
    yield Rule(minus, (touched, held, Negation(holds)), origin, leads=True)


def _zero_total(term: Aggregate) -> Constant:
    return Constant(Fraction(), "exact") if term.type == "exact" else Constant(0, "int")


def _with_totals(rule: Rule, totals: tuple[Term, ...]) -> tuple[Term, ...]:
    """The head's arguments with these terms in the places of its aggregates."""
    remaining = iter(totals)
    return tuple(
        next(remaining) if isinstance(term, Aggregate) else term for term in rule.head.arguments
    )
