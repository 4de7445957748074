"""Counts, sums and averages from group state: a change costs what changed, not what a group holds.

    payroll(D, sum(S), count()) :- works_in(E, D), salary(E, S).
    →  payroll__groups(D, count(), sum(A1)) :- works_in(E, D), salary(E, S), A1 = exact__(S).
       payroll(D, T1, N) :- payroll__groups(D, N, A1), T1 = int(A1).

Before: an aggregate rule in desugared form for a stored view, over values that cannot be null.
After: an equivalent pair, the group state stored beside the view. Sums are kept as exact numbers,
since a rounded sum cannot be continued exactly; the view shows them in its own type. Smallest and
largest values cannot be continued when they go, so they get a helper of their own that is looked at
again for touched groups only (`aggregate_changes`).

`fold_changes` gives the change of the group state itself:

       payroll__groups__gained(D, E, S, A1) :- works_in__plus(E, D), salary__new(E, S), …
       payroll__groups__more(D, count(), sum(A1)) :- payroll__groups__gained(D, E, S, A1).
       … the same with lost and less …
       payroll__groups__now(D, N, A1) :- payroll__groups__touched(D), held + more - less, N > 0.

Correct because a body binding has exactly one derivation, so gained and lost are exact without any
test, and counting and summing exact numbers can be undone.
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
    Expression,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import fresh_names, rule_names
from deltalog.language.walk import names as variable_names
from deltalog.rewrites import names
from deltalog.rewrites.states import Rename, becomes, changing, in_state
from deltalog.source import Origin

CONTINUED = ("count", "sum", "avg")


def group_state(rule: Rule) -> tuple[Rule, ...]:
    """The rule as group state, ends (if it has a min or max), and a view of both."""
    predicate, origin = rule.head.predicate, Origin.made_by("group_state", rule.origin)
    fresh = fresh_names(set(rule_names(rule)), "A")
    group = _group(rule)
    count = Variable(next(fresh))
    sums: dict[Expression, tuple[Variable, str]] = {}
    ends: list[tuple[Variable, Aggregate]] = []
    shown: list[Term] = []
    equations: list[Literal] = []
    for term in rule.head.arguments:
        if not isinstance(term, Aggregate):
            shown.append(term)
        elif term.function == "count":
            shown.append(count)
        elif term.function in CONTINUED:
            assert isinstance(term.argument, Variable)
            kept, _ = sums.setdefault(term.argument, (Variable(next(fresh)), str(term.type)))
            result = Variable(next(fresh))
            equations.append(_finished(result, term, kept, count))
            shown.append(result)
        else:
            ends.append((Variable(next(fresh)), term))
            shown.append(ends[-1][0])
    state = _state_rule(rule, group, sums, origin)
    kept_sums = tuple(kept for kept, _ in sums.values())
    body: list[Literal] = [Atom(names.groups(predicate), (*group, count, *kept_sums))]
    made = [state]
    if ends:
        extremes = Atom(names.ends(predicate), (*group, *(term for _, term in ends)))
        made.append(Rule(extremes, rule.body, origin))
        body.append(Atom(names.ends(predicate), (*group, *(end for end, _ in ends))))
    made.append(Rule(replace(rule.head, arguments=tuple(shown)), (*body, *equations), origin))
    return tuple(made)


def _group(rule: Rule) -> tuple[Variable, ...]:
    terms = (term for term in rule.head.arguments if not isinstance(term, Aggregate))
    return tuple(Variable(name) for name in variable_names(*terms))


def _state_rule(
    rule: Rule,
    group: tuple[Variable, ...],
    sums: dict[Expression, tuple[Variable, str]],
    origin: Origin,
) -> Rule:
    equations = tuple(
        Comparison("=", kept, Operation("exact__", (argument,), type_), "exact")
        for argument, (kept, type_) in sums.items()
    )
    totals = tuple(Aggregate("sum", kept, "exact") for kept, _ in sums.values())
    head = Atom(names.groups(rule.head.predicate), (*group, Aggregate("count", None), *totals))
    return Rule(head, (*rule.body, *equations), origin)


def _finished(result: Variable, term: Aggregate, kept: Variable, count: Variable) -> Comparison:
    """What the view shows of a sum that is kept exactly."""
    if term.function == "sum":
        value = Operation(str(term.type), (kept,), "exact")
        return Comparison("=", result, value, term.type)
    function = "decimal_ratio__" if term.type == "decimal" else "ratio__"
    value = Operation(function, (kept, count), "exact,int")
    return Comparison("=", result, value, "decimal" if term.type == "decimal" else "float")


def is_foldable(rule: Rule) -> bool:
    """Whether a rule defines group state: nothing but counts and exact sums."""
    totals = [term for term in rule.head.arguments if isinstance(term, Aggregate)]
    return bool(totals) and all(
        term.function == "count" or (term.function == "sum" and term.type == "exact")
        for term in totals
    )


# --- the change of group state ------------------------------------------------------------------


def fold_changes(rule: Rule, old: Rename, new: Rename) -> Iterator[Rule]:
    """The change of group state from the bindings that came and went."""
    predicate, origin = rule.head.predicate, Origin.made_by("group_state", rule.origin)
    group = _group(rule)
    bound = (literal for literal in rule.body if not isinstance(literal, Negation))
    binding = tuple(Variable(name) for name in variable_names(*bound))
    touched = Atom(names.touched(predicate), group)
    sides = ((True, new, names.gained, names.more), (False, old, names.lost, names.less))
    for truth, state, bindings, totals in sides:
        row = Atom(bindings(predicate), binding)
        for position, _, _ in changing(rule):
            delta = becomes(rule, position, truth, state)
            rest = (in_state(x, state) for i, x in enumerate(rule.body) if i != position)
            yield Rule(row, (*delta, *rest), origin, leads=True)
        total = replace(rule.head, predicate=totals(predicate))
        yield Rule(total, (row,), origin, leads=True)
        blank = tuple(Variable(f"_{i + 1}") for i in range(len(rule.head.arguments) - len(group)))
        head_row = _with_totals(rule, blank)
        yield Rule(touched, (Atom(totals(predicate), head_row),), origin, leads=True)
    yield from _continued(rule, touched, origin)


def _continued(rule: Rule, touched: Atom, origin: Origin) -> Iterator[Rule]:
    """What was held, plus what came, minus what went; a group without bindings is gone."""
    predicate = rule.head.predicate
    totals = [term for term in rule.head.arguments if isinstance(term, Aggregate)]
    fresh = {side: fresh_names(set(rule_names(rule)), side) for side in "HMLN"}
    columns = {side: tuple(Variable(next(fresh[side])) for _ in totals) for side in "HMLN"}
    operands: list[Literal] = []
    for side, source in (
        ("H", predicate),
        ("M", names.more(predicate)),
        ("L", names.less(predicate)),
    ):
        known = Atom(names.or_zero(source), _with_totals(rule, columns[side]))
        yield Rule(known, (touched, Atom(source, known.arguments)), origin, leads=True)
        blank = tuple(Variable(f"_{i + 1}") for i in range(len(totals)))
        absent = Negation(Atom(source, _with_totals(rule, blank)))
        zero = Atom(known.predicate, _with_totals(rule, tuple(_zero(term) for term in totals)))
        yield Rule(zero, (touched, absent), origin, leads=True)
        operands.append(known)
    sums: list[Literal] = []
    for i, term in enumerate(totals):
        type_ = "int" if term.function == "count" else "exact"
        added = Operation("+", (columns["H"][i], columns["M"][i]), type_)
        value = Operation("-", (added, columns["L"][i]), type_)
        sums.append(Comparison("=", columns["N"][i], value, type_))
        if term.function == "count":
            sums.append(Comparison(">", columns["N"][i], Constant(0, "int"), "int"))
    now = Atom(names.current(predicate), _with_totals(rule, columns["N"]))
    yield Rule(now, (touched, *operands, *sums), origin, leads=True)
    row = _with_totals(rule, columns["N"])
    held, holds = Atom(predicate, row), Atom(names.current(predicate), row)
    yield Rule(Atom(names.plus(predicate), row), (holds, Negation(held)), origin, leads=True)
    minus = Atom(names.minus(predicate), row)
    yield Rule(minus, (touched, held, Negation(holds)), origin, leads=True)


def _zero(term: Aggregate) -> Constant:
    if term.function == "count":
        return Constant(0, "int")
    return Constant(Fraction(), "exact")


def _with_totals(rule: Rule, totals: tuple[Term, ...]) -> tuple[Term, ...]:
    """The head's arguments with these terms in the places of its aggregates."""
    remaining = iter(totals)
    return tuple(
        next(remaining) if isinstance(term, Aggregate) else term for term in rule.head.arguments
    )
