"""Counts, sums and averages from group state: a change costs what changed, not what a group holds.

    payroll(D, sum(S), count()) :- works_in(E, D), salary(E, S).
    →  payroll__groups(D, count(), sum(H), sum(L)) :- works_in(E, D), salary(E, S),
                                                      H = high__(S), L = low__(S).
       payroll(D, T, N) :- payroll__groups(D, N, H, L), T = whole__(H, L).

Before: an aggregate rule in desugared form for a stored view, over values that cannot be null.
After: an equivalent pair, the group state stored beside the view. Sums are kept exactly, since one
that was rounded or had no value for a while cannot be continued; the view shows them in its own
type. Smallest and largest values cannot be continued when they go, so they get a helper of their
own that is looked at again for touched groups only (`aggregate_changes`).

`fold_changes` gives the change of the group state itself:

       payroll__groups__gained(D, E, S, H, L) :- works_in__plus(E, D), salary__new(E, S), …
       payroll__groups__more(D, count(), sum(H), sum(L)) :- payroll__groups__gained(D, E, S, H, L).
       … the same with lost and less …
       payroll__groups__now(D, N, H, L) :- payroll__groups__touched(D), held - less + more, N > 0.

Correct because a body binding has exactly one derivation, so gained and lost are exact without any
test, and counting and exact summing can be undone.

Sums of floats and decimals are exact rational numbers (`exact__`, of the internal type `exact`).
Sums of ints are kept in two halves that are ordinary ints: S = high__(S) * 2^32 + low__(S), with
high__ in [-2^31, 2^31) and low__ in [0, 2^32). Neither sum can leave the range of int, in whatever
order it is added up: over n < 2^31 bindings |sum(H)| <= n * 2^31 < 2^62 and
0 <= sum(L) <= n * (2^32 - 1) < 2^63 - 2^32. What went is taken from what was held before what came
is added, because lost bindings are among those held: held - less is the sum over the bindings that
stay, and with more over those of the new state. So every intermediate result is a sum over bindings
that hold together in one state, and within these bounds; held + more would not be.

That a group has fewer than 2^31 bindings is assumed and not tested. It is certain where bindings
are rows of one relation and rows have numbers of 31 bits, as in the embedded engine. A join could
pile up more, over many transactions; a half that left the range then would lose its group.

A sum of ints that somebody wrote is not continued: it has no value while it does not fit, and a
sum without a value is lost. What tells halves from it is the equation in the body (`is_foldable`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from deltalog.language.walk import fresh_names, rule_names
from deltalog.language.walk import names as variable_names
from deltalog.rewrites import names
from deltalog.rewrites.states import Rename, becomes, changing, in_state
from deltalog.source import Origin

CONTINUED = ("count", "sum", "avg")
HALVES = ("high__", "low__")


@dataclass(frozen=True)
class _Sum:
    """The sum of one argument as it is kept: in two halves, or as one exact number."""

    argument: Variable
    type: str
    parts: tuple[Variable, ...]

    @classmethod
    def of(cls, argument: Variable, type_: str, fresh: Iterator[str]) -> _Sum:
        return cls(argument, type_, tuple(Variable(next(fresh)) for _ in _functions(type_)))

    @property
    def part_type(self) -> str:
        return "int" if self.type == "int" else "exact"

    def equations(self) -> Iterator[Literal]:
        """What of each value is added up."""
        for function, part in zip(_functions(self.type), self.parts, strict=True):
            yield Comparison(
                "=", part, Operation(function, (self.argument,), self.type), self.part_type
            )

    def totals(self) -> Iterator[Aggregate]:
        return (Aggregate("sum", part, self.part_type) for part in self.parts)

    def shown(self, result: Variable, function: str, count: Variable) -> Comparison:
        """What the view shows of it: the sum in its own type, or the average."""
        if function == "sum":
            name = "whole__" if self.type == "int" else self.type
            value = Operation(name, self.parts, self.part_type)
            return Comparison("=", result, value, self.type)
        name = "decimal_ratio__" if self.type == "decimal" else "ratio__"
        operands = "int" if self.type == "int" else "exact,int"
        value = Operation(name, (*self.parts, count), operands)
        return Comparison("=", result, value, "decimal" if self.type == "decimal" else "float")


def _functions(type_: str) -> tuple[str, ...]:
    return HALVES if type_ == "int" else ("exact__",)


def group_state(rule: Rule) -> tuple[Rule, ...]:
    """The rule as group state, ends (if it has a min or max), and a view of both."""
    predicate, origin = rule.head.predicate, Origin.made_by("group_state", rule.origin)
    fresh = fresh_names(set(rule_names(rule)), "A")
    group = _group(rule)
    count = Variable(next(fresh))
    sums: dict[Variable, _Sum] = {}
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
            if term.argument not in sums:
                sums[term.argument] = _Sum.of(term.argument, str(term.type), fresh)
            result = Variable(next(fresh))
            equations.append(sums[term.argument].shown(result, term.function, count))
            shown.append(result)
        else:
            ends.append((Variable(next(fresh)), term))
            shown.append(ends[-1][0])
    state = _state_rule(rule, group, tuple(sums.values()), origin)
    parts = tuple(part for kept in sums.values() for part in kept.parts)
    body: list[Literal] = [Atom(names.groups(predicate), (*group, count, *parts))]
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
    rule: Rule, group: tuple[Variable, ...], sums: tuple[_Sum, ...], origin: Origin
) -> Rule:
    equations = (equation for kept in sums for equation in kept.equations())
    totals = (total for kept in sums for total in kept.totals())
    head = Atom(names.groups(rule.head.predicate), (*group, Aggregate("count", None), *totals))
    return Rule(head, (*rule.body, *equations), origin)


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
    """What was held, minus what went, plus what came; a group without bindings is gone."""
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
        type_ = "int" if term.function == "count" else str(term.type)
        rest = Operation("-", (columns["H"][i], columns["L"][i]), type_)
        value = Operation("+", (rest, columns["M"][i]), type_)
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
    return Constant(Fraction(), "exact") if term.type == "exact" else Constant(0, "int")


def _with_totals(rule: Rule, totals: tuple[Term, ...]) -> tuple[Term, ...]:
    """The head's arguments with these terms in the places of its aggregates."""
    remaining = iter(totals)
    return tuple(
        next(remaining) if isinstance(term, Aggregate) else term for term in rule.head.arguments
    )
