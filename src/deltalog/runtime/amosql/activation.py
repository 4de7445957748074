"""`activate` and `deactivate`: a rule, for the objects and values that it is named with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.amosql.context import widened_term
from deltalog.language.amosql.schema import LITERAL_TYPES, column_type
from deltalog.language.amosql.tree import Activation, CreateRule
from deltalog.language.ast import Row
from deltalog.runtime.amosql.workspace import Workspace

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


def change_activation(
    database: MemoryDatabase, workspace: Workspace, statement: Activation
) -> None:
    """Activate or deactivate a rule; nothing fires by that."""
    known = workspace.schema.rules
    if statement.rule not in known:
        hint = did_you_mean(statement.rule, known)
        raise DataError([catalogue.UNKNOWN_RULE.at(statement.span, name=statement.rule, hint=hint)])
    row = _argument_values(workspace, known[statement.rule], statement)
    rules = database.model.checked.program.active_rules
    parameters = next(rule.parameters for rule in rules if rule.name == statement.rule)
    named = {variable.name: value for variable, value in zip(parameters, row, strict=True)}
    verb = database.activate if statement.verb == "activate" else database.deactivate
    verb(statement.rule, **named)


def _argument_values(workspace: Workspace, rule: CreateRule, statement: Activation) -> Row:
    """The values of the arguments, which must be of the types of the parameters."""
    types = [parameter.type for parameter in rule.parameters]
    given = len(statement.arguments)
    if len(types) != given:
        wanted = ", ".join(types) or "no parameters"
        raise DataError(
            [
                catalogue.BAD_ACTIVATION.at(
                    statement.span, name=rule.name, wanted=wanted, given=given
                )
            ]
        )
    body = workspace.body()
    terms = []
    for argument, type_ in zip(statement.arguments, types, strict=True):
        typed = body.value(argument)
        body.check_type(typed, type_, statement.span)
        terms.append(widened_term(typed, column_type(type_)))
    (row,) = workspace.ask(body, terms)
    for value, type_ in zip(row, types, strict=True):
        if type_ not in LITERAL_TYPES:
            workspace.check_object(value, type_, statement.span)
    return row
