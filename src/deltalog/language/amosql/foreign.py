"""Deterministic foreign functions: functions of Python whose values are kept in a table.

    create function tax(real price) -> real as foreign deterministic;
    create function cost(item i) -> real as select price(i) + tax(price(i));

    base tax(price: float key, value: float).
    base tax_undefined(price: float).
    tax_wanted(Price) :- price(I, Price).
    tax_missing(Price) :- tax_wanted(Price), not tax(Price, _), not tax_undefined(Price).
    cost(I, Price + Tax) :- price(I, Price), tax(Price, Tax).
    rule tabulate_tax priority 1000000 when tax_missing(Price) do call tabulate_tax(Price).

Engines know no functions of Python, and need not: a view has the arguments for which values are
wanted, and an active rule, before all others, puts those that are missing into the table. Correct
because the function is deterministic, and because no other rule is checked before nothing is
missing. Arguments are wanted for all bindings of the literals before the call, so a function may be
called for more than is finally needed; conditions that restrict its arguments belong before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.language.amosql.naming import VariableNames
from deltalog.language.amosql.schema import Function
from deltalog.language.amosql.tree import Foreign
from deltalog.language.ast import Action, ActiveRule, Atom, Negation, Rule, Variable
from deltalog.source import Origin

PRIORITY = 1_000_000
"""Higher than that of any rule of AMOSQL: values are there before conditions are checked."""


def is_tabulated(function: Function) -> bool:
    return isinstance(function.body, Foreign) and function.body.is_deterministic


def wanted_name(predicate: str) -> str:
    """The view of the arguments for which values are wanted."""
    return f"{predicate}_wanted"


def missing_name(predicate: str) -> str:
    """The view of those that have not been computed yet."""
    return f"{predicate}_missing"


def undefined_name(predicate: str) -> str:
    """The relation of the arguments for which a function has returned None."""
    return f"{predicate}_undefined"


def tabulation_name(predicate: str) -> str:
    """The rule, and the action, that computes values."""
    return f"tabulate_{predicate}"


def is_wanted(predicate: str, rules: Iterable[Rule]) -> bool:
    """Whether something calls the function, so that values may be missing."""
    return any(rule.head.predicate == wanted_name(predicate) for rule in rules)


def tabulation_rules(predicate: str, function: Function) -> tuple[Rule, ActiveRule]:
    """The view of missing arguments, and the rule that computes values for them."""
    fresh = VariableNames().fresh
    arguments = tuple(Variable(fresh(each.name or each.type)) for each in function.parameters)
    origin = Origin(function.span)
    missing = Atom(missing_name(predicate), arguments, function.span)
    body = (
        Atom(wanted_name(predicate), arguments),
        Negation(Atom(predicate, (*arguments, Variable("_")))),
        Negation(Atom(undefined_name(predicate), arguments)),
    )
    name = tabulation_name(predicate)
    call = Action("call", Atom(name, arguments, function.span), None, (), function.span)
    rule = ActiveRule(name, (missing,), (call,), priority=PRIORITY, origin=origin)
    return Rule(missing, body, origin), rule
