"""Rules of AMOSQL as active rules: a view for the condition, effects for the action.

    create rule monitor_items() as          cnd_monitor_items(I) :-
      for each item i                           quantity(I, Quantity), threshold(I, Threshold),
      when quantity(i) < threshold(i)           Quantity < Threshold.
      do order(i, max_stock(i)              rule monitor_items when cnd_monitor_items(I)
                  - quantity(i));             do call order(I, MaxStock - Quantity)
                                              where max_stock(I, MaxStock), quantity(I, Quantity).

The instance of a rule has the values of its `for each` variables; the view has these and the
parameters, and all else that the condition binds is existential (Risch & Sköld 1999, section
1.4.2). What the action reads is no influent of the condition. A condition that does not bind a
parameter, or binds it to values of a narrower type, is not a view by itself: it stands in the rule,
where activations bind parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.language.active_statements import numbered_active_rule
from deltalog.language.amosql.bodies import Body
from deltalog.language.amosql.conditions import bound_names
from deltalog.language.amosql.context import Typed, problem_at
from deltalog.language.amosql.schema import column_type
from deltalog.language.amosql.steps import Effect, effects_of_steps
from deltalog.language.amosql.tree import CreateRule, Name, RuleEvent
from deltalog.language.ast import (
    Action,
    ActiveRule,
    Atom,
    Constant,
    Declaration,
    Event,
    Literal,
    Rule,
    Variable,
)
from deltalog.language.walk import variable_names
from deltalog.source import Origin

if TYPE_CHECKING:
    from deltalog.language.amosql.translation import SchemaTranslator

_WIDER = {"float", "decimal"}
"""Types of parameters that are compared with values of other types, too."""
EVENTS = {"insert": "insert", "delete": "delete", "update": "set"}


@dataclass(frozen=True)
class TranslatedRule:
    """An active rule, with the views that it needs beside it, and what its action does."""

    rule: ActiveRule
    declarations: tuple[Declaration, ...]
    views: tuple[Rule, ...]
    effects: tuple[Effect, ...]


def condition_name(rule: str) -> str:
    """The view of the instances for which the condition of a rule holds."""
    return f"cnd_{rule}"


def action_name(rule: str) -> str:
    return f"act_{rule}"


def translate_rule(translator: SchemaTranslator, statement: CreateRule) -> TranslatedRule:
    """The active rule that a rule of AMOSQL stands for."""
    name = condition_name(statement.name)
    body = Body(translator.schema_translation(name))
    parameters = body.declare(statement.parameters)
    instance = body.declare(statement.variables)
    event = None if statement.event is None else _translate_event(body, statement.event)
    body.require(statement.condition)
    condition, own = body.complete(), (*parameters, *instance)
    types = tuple(column_type(each.type) for each in statement.parameters)
    is_view = (
        event is None
        and {variable.name for variable in own} <= bound_names(condition)
        and not {*types} & _WIDER
    )
    given = (Atom(name, own),) if is_view else condition
    done, read = _translate_effects(translator, statement, own, given)
    views = (*body.translation.helpers, *read)
    actions = tuple(Action(e.verb, e.atom, None, e.literals, e.span) for e in done)
    rule = ActiveRule(
        statement.name,
        condition,
        actions,
        parameters=parameters,
        parameter_types=types,
        instance=instance or parameters,
        event=event,
        origin=Origin(statement.span),
    )
    declarations: tuple[Declaration, ...] = ()
    if is_view:
        head = Atom(name, own, statement.span)
        views = (Rule(head, condition, Origin(statement.span)), *views)
        declarations = (Declaration("view", name, None, "virtual", statement.span),)
        rule = replace(rule, condition=(head,), instance=None)
    return TranslatedRule(numbered_active_rule(rule), declarations, views, done)


def _translate_event(body: Body, event: RuleEvent) -> Event:
    kind: Any = EVENTS[event.kind]
    for argument in event.call.arguments:
        if not isinstance(argument, Name | Constant):
            raise problem_at(errors.NOT_A_VARIABLE, event.call.span)
    return Event(kind, body.event(event.call))


def _translate_effects(
    translator: SchemaTranslator,
    statement: CreateRule,
    own: tuple[Variable, ...],
    given: tuple[Literal, ...],
) -> tuple[tuple[Effect, ...], tuple[Rule, ...]]:
    """The effects of the action for an instance, and views that it reads.

    It shares nothing with the condition but parameters and instance.
    """
    translation = translator.schema_translation(action_name(statement.name))
    for name in variable_names(*own, *given):
        translation.names.take(name)
    body = Body(translation)
    body.given = given
    for variable, each in zip(own, (*statement.parameters, *statement.variables), strict=True):
        if each.name is not None:
            body.bind(each.name, Typed(variable, each.type))
    return tuple(effects_of_steps(body, statement.action.steps)), tuple(translation.helpers)
