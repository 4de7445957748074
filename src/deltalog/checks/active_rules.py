"""Active rules: conditions and events that can be asked, actions that can be carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from deltalog.analysis.active_rules import (
    driving_body,
    event_variables,
    hidden_relations,
    instance_variables,
    parameter_types,
)
from deltalog.analysis.binding import bound_variables
from deltalog.analysis.columns import Relation, Relations
from deltalog.analysis.triggering import triggering_cycles
from deltalog.checks.constraints import check_message
from deltalog.checks.declarations import check_atoms
from deltalog.checks.safety import check_body
from deltalog.checks.types import check_body_types
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.language.ast import (
    Action,
    ActiveRule,
    Atom,
    Comparison,
    Expression,
    Literal,
    Negation,
    Program,
    Variable,
)
from deltalog.language.walk import variable_names, variables_of


def check_active_rules(program: Program, relations: Relations) -> Iterator[Diagnostic]:
    known = {**relations, **hidden_relations(program, relations)}
    first: dict[str, ActiveRule] = {}
    for rule in program.active_rules:
        earlier = first.setdefault(rule.name, rule)
        if earlier is not rule:
            span = earlier.origin.span
            labels = () if span is None else (Label(span, "the other one"),)
            yield catalogue.RULE_TWICE.at(rule.origin.span, *labels, name=rule.name)
        yield from _check_condition(rule, known)
        yield from _check_parameters(rule, relations)
        yield from _check_event(rule, known)
        bound = bound_variables(driving_body(rule))
        for action in rule.actions:
            yield from _check_action(rule, action, known, bound)
        for action in rule.otherwise:
            yield from _check_action(rule, action, known, _otherwise_variables(rule))


def _otherwise_variables(rule: ActiveRule) -> set[str]:
    """The variables that have a value where the condition does not hold."""
    own = instance_variables(rule) if rule.event is None else event_variables(rule)
    return {variable.name for variable in (*rule.parameters, *own)}


def _check_condition(rule: ActiveRule, known: Relations) -> Iterator[Diagnostic]:
    body = driving_body(rule)
    yield from check_atoms(body, known)
    yield from check_body(body, _used_outside(rule))
    yield from check_body_types(body, known)
    if not body:
        yield catalogue.BAD_RULE.at(
            rule.origin.span, reason=f"the rule `{rule.name}` has no condition and no event"
        )
    bound = bound_variables(body)
    for variable in rule.instance or ():
        if variable.name not in bound:
            yield catalogue.UNBOUND_IN_RULE.at(
                variable.span, name=variable.name, where="the instance"
            )


def _used_outside(rule: ActiveRule) -> set[str]:
    """Variables that actions use, so that every branch of a disjunction must bind them."""
    atoms = [action.atom for action in rule.actions if action.atom is not None]
    used = {name for name in variable_names(*atoms) if name != "_"}
    return used | {variable.name for variable in rule.instance or ()}


def _check_parameters(rule: ActiveRule, relations: Relations) -> Iterator[Diagnostic]:
    types = parameter_types(rule, relations)
    seen: set[str] = set()
    for variable in rule.parameters:
        if variable.name in seen:
            reason = f"the parameter `{variable.name}` of `{rule.name}` appears twice"
            yield catalogue.BAD_RULE.at(variable.span, reason=reason)
        elif variable.name not in types:
            hint = f"declare it, as in `rule {rule.name}({variable.name}: int)`"
            yield catalogue.VARIABLE_TYPE_UNKNOWN.at(variable.span, name=variable.name, hint=hint)
        seen.add(variable.name)


def _check_event(rule: ActiveRule, known: Relations) -> Iterator[Diagnostic]:
    if rule.event is None:
        return
    atom = rule.event.atom
    relation = known.get(atom.predicate)
    if rule.event.kind == "set" and relation is not None and not relation.key:
        reason = f"`{atom.predicate}` has no key, so nothing is ever set in it"
        yield catalogue.BAD_RULE.at(atom.span, reason=reason)
    for term in atom.arguments:
        if not isinstance(term, Variable) and set(variables_of(term)):
            reason = "the arguments of an event are variables and constants"
            yield catalogue.BAD_RULE.at(atom.span, reason=reason)


def _check_action(
    rule: ActiveRule, action: Action, known: Relations, bound: Set[str]
) -> Iterator[Diagnostic]:
    where = f"`{rule.name}`"
    if action.atom is None:
        own = {variable.name for variable in (*rule.parameters, *instance_variables(rule))}
        is_otherwise = any(action is each for each in rule.otherwise)
        said = bound if is_otherwise else own & bound
        yield from check_message(action.message, said, where, action.span)
        return
    yield from _check_where(rule, action, known, bound)
    bound = bound_variables(action.where, bound)
    for variable in variables_of(action.atom):
        if variable.name == "_" and action.verb != "delete":
            yield catalogue.WILDCARD_VALUE.at(variable.span, hint="give it a name and a value")
        elif variable.name != "_" and variable.name not in bound:
            yield catalogue.UNBOUND_IN_RULE.at(
                variable.span, name=variable.name, where=f"`{action.verb}`"
            )
    if action.verb in ("call", "emit"):
        assigned = _argument_equations(action.atom)
        yield from check_body_types((*driving_body(rule), *action.where, *assigned), known)
        return
    yield from _check_change(action, known)
    atom = _without_wildcards(action.atom)
    yield from check_atoms((atom,), known)
    yield from check_body_types((*driving_body(rule), *action.where, Negation(atom)), known)


def _check_where(
    rule: ActiveRule, action: Action, known: Relations, bound: Set[str]
) -> Iterator[Diagnostic]:
    """The literals that an action reads, beside variables that have a value already."""
    if action.where:
        yield from check_atoms(action.where, known)
        given = Atom("given", tuple(map(Variable, sorted(bound))))
        used = variable_names(action.atom) if action.atom is not None else ()
        yield from check_body((given, *action.where), used)
        yield from check_body_types((*driving_body(rule), *action.where), known)


def _argument_equations(atom: Atom) -> Iterable[Literal]:
    """Equations that give the arguments names, so that their types are checked."""
    for number, term in enumerate(atom.arguments):
        if not isinstance(term, Variable):
            value: Expression = term  # type: ignore[assignment]
            yield Comparison("=", Variable(f"argument{number}"), value, None, atom.span)


def _without_wildcards(atom: Atom) -> Atom:
    arguments = tuple(
        Variable(f"_{number}") if isinstance(term, Variable) and term.name == "_" else term
        for number, term in enumerate(atom.arguments, start=1_000)
    )
    return Atom(atom.predicate, arguments, atom.span)


def _check_change(action: Action, known: Relations) -> Iterator[Diagnostic]:
    assert action.atom is not None
    relation: Relation | None = known.get(action.atom.predicate)
    if relation is None:
        return
    if relation.kind != "base":
        reason = f"`{relation.name}` is a view, and only base relations are changed"
        yield catalogue.BAD_RULE.at(action.span, reason=reason)
    elif action.verb == "set" and not relation.key:
        reason = f"`{relation.name}` has no key, so `set` cannot replace anything"
        yield catalogue.BAD_RULE.at(action.span, reason=reason)


def endless_rules(program: Program) -> Iterator[Diagnostic]:
    """Warnings: sets of rules that may trigger each other for ever."""
    for cycle in triggering_cycles(program):
        first, *rest = cycle
        labels = [Label(r.origin.span, "and this") for r in rest if r.origin.span is not None]
        shown = " → ".join(f"`{rule.name}`" for rule in (*cycle, first))
        yield catalogue.WARNINGS["may_not_end"].at(first.origin.span, *labels, cycle=shown)
