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

Correct because the view shows what the state holds, and the state counts and adds up the same
bindings. How the state itself changes: `fold_changes.py`.

Sums of floats and decimals are exact rational numbers (`exact__`, of the internal type `exact`).
Sums of ints are kept in two halves that are ordinary ints: S = high__(S) * 2^32 + low__(S), with
high__ in [-2^31, 2^31) and low__ in [0, 2^32). Neither sum can leave the range of int, in whatever
order it is added up: over n < 2^31 bindings |sum(H)| <= n * 2^31 < 2^62 and
0 <= sum(L) <= n * (2^32 - 1) < 2^63 - 2^32.
`fold_changes.py` keeps within these bounds.

That a group has fewer than 2^31 bindings is assumed and not tested. It is certain where bindings
are rows of one relation and rows have numbers of 31 bits, as in the embedded engine. A join could
pile up more, over many transactions; a half that left the range then would lose its group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Literal,
    Operation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import fresh_names, rule_names, variable_names
from deltalog.rewrites import names
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
        return cls(argument, type_, tuple(Variable(next(fresh)) for _ in _state_functions(type_)))

    @property
    def part_type(self) -> str:
        return "int" if self.type == "int" else "exact"

    def equations(self) -> Iterator[Literal]:
        """The parts of each value that are added up."""
        for function, part in zip(_state_functions(self.type), self.parts, strict=True):
            yield Comparison(
                "=", part, Operation(function, (self.argument,), self.type), self.part_type
            )

    def totals(self) -> Iterator[Aggregate]:
        return (Aggregate("sum", part, self.part_type) for part in self.parts)

    def shown(self, result: Variable, function: str, count: Variable) -> Comparison:
        """The value that the view shows: the sum in its own type, or the average."""
        if function == "sum":
            name = "whole__" if self.type == "int" else self.type
            value = Operation(name, self.parts, self.part_type)
            return Comparison("=", result, value, self.type)
        name = "decimal_ratio__" if self.type == "decimal" else "ratio__"
        operands = "int" if self.type == "int" else "exact,int"
        value = Operation(name, (*self.parts, count), operands)
        return Comparison("=", result, value, "decimal" if self.type == "decimal" else "float")


def _state_functions(type_: str) -> tuple[str, ...]:
    return HALVES if type_ == "int" else ("exact__",)


def group_state(rule: Rule) -> tuple[Rule, ...]:
    """The rule as group state, ends (if it has a min or max), and a view of both."""
    predicate, origin = rule.head.predicate, Origin.made_by("group_state", rule.origin)
    fresh = fresh_names(set(rule_names(rule)), "A")
    group = group_of(rule)
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
    body: list[Literal] = [Atom(names.groups_name(predicate), (*group, count, *parts))]
    made = [state]
    if ends:
        extremes = Atom(names.ends_name(predicate), (*group, *(term for _, term in ends)))
        made.append(Rule(extremes, rule.body, origin))
        body.append(Atom(names.ends_name(predicate), (*group, *(end for end, _ in ends))))
    made.append(Rule(replace(rule.head, arguments=tuple(shown)), (*body, *equations), origin))
    return tuple(made)


def group_of(rule: Rule) -> tuple[Variable, ...]:
    """The variables by which the head of an aggregate rule groups."""
    terms = (term for term in rule.head.arguments if not isinstance(term, Aggregate))
    return tuple(Variable(name) for name in variable_names(*terms))


def _state_rule(
    rule: Rule, group: tuple[Variable, ...], sums: tuple[_Sum, ...], origin: Origin
) -> Rule:
    equations = (equation for kept in sums for equation in kept.equations())
    totals = (total for kept in sums for total in kept.totals())
    head = Atom(names.groups_name(rule.head.predicate), (*group, Aggregate("count", None), *totals))
    return Rule(head, (*rule.body, *equations), origin)
