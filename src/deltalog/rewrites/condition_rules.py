"""The condition of an active rule becomes a view, so that its change is what triggers the rule.

    rule low(L) for I when quantity(I, Q), Q < L do insert scarce(I).
    →  low__condition(L, I) :- low__active(L), quantity(I, Q), Q < L.

Before: a checked program. After: every rule without an event has a view of its instances; what else
its condition binds is existential. Correct because an instance is in `low__condition__plus` exactly
if its condition became true (Risch & Sköld 1999, section 1.4.2): strict semantics. The view of a
`nervous` rule has all variables: another way to fulfil the condition triggers it, too. Rules
with the same condition share a view. A rule with an event needs none: its condition is asked when
the event has happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deltalog.analysis.active_rules import driving_body, instance_variables
from deltalog.analysis.binding import bound_variables
from deltalog.language.ast import ActiveRule, Atom, Program, Rule, Variable
from deltalog.language.walk import substitute_atom, substitute_literal, variable_names
from deltalog.rewrites import names
from deltalog.source import Origin


def condition_rules(program: Program) -> Program:
    """The program with a view for each condition; the same object if there are none."""
    if not program.active_rules:
        return program
    shared: dict[Rule, None] = {}
    made: list[Rule] = []
    for rule in condition_views(program):
        general = _generalize_names(rule)
        if general not in shared:
            shared[general] = None
            made.append(rule)
    return replace(program, rules=(*program.rules, *made), active_rules=())


def condition_views(program: Program) -> Iterator[Rule]:
    """The views of the conditions, each under the name of the first rule that has it."""
    named: dict[Rule, str] = {}
    for rule in program.active_rules:
        if rule.event is None:
            view = _condition_view(rule)
            name = named.setdefault(_generalize_names(view), view.head.predicate)
            yield replace(view, head=replace(view.head, predicate=name))


def _condition_view(rule: ActiveRule) -> Rule:
    body = driving_body(rule)
    own = (*rule.parameters, *instance_variables(rule))
    if rule.is_nervous:
        bound = bound_variables(body)
        rest = (v for v in map(Variable, variable_names(*body)) if not v.is_wildcard)
        own += tuple(v for v in rest if v not in own and v.name in bound)
    origin = Origin.made_by("condition_rules", rule.origin)
    return Rule(Atom(names.condition_name(rule.name), own), body, origin)


def _generalize_names(rule: Rule) -> Rule:
    """The same condition whatever its variables and its rule are called."""
    order = variable_names(rule.head, *rule.body)
    number = {name: f"V{i}" for i, name in enumerate(order)}

    def renamed(variable: Variable) -> Variable:
        return Variable(number[variable.name])

    head = substitute_atom(replace(rule.head, predicate="general__condition"), renamed)
    return Rule(head, tuple(substitute_literal(literal, renamed) for literal in rule.body))
