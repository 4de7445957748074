"""Calls of procedures: their steps are carried out one after the other, in one transaction.

    create function refill(item i) -> boolean as
      begin set quantity(i) = max_stock(i); order(i, max_stock(i)); end;

A step sees what the steps before it have done. A foreign procedure is a function of Python: the one
that it names, or an action of its name that is registered with the database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics.report import DataError, ProgramError
from deltalog.language.amosql.context import Typed, widened_term
from deltalog.language.amosql.resolution import candidate_functions
from deltalog.language.amosql.schema import LITERAL_TYPES, Function, Schema, column_type
from deltalog.language.amosql.steps import CALLS_MAX, foreign_name
from deltalog.language.amosql.tree import (
    Call,
    Foreign,
    Invocation,
    Procedure,
    Step,
    Update,
)
from deltalog.language.ast import Row
from deltalog.runtime.amosql.updates import carry_out_update, definition_for
from deltalog.runtime.amosql.workspace import Workspace, as_constant
from deltalog.runtime.transaction import Transaction
from deltalog.source import Span

ForeignCall = Callable[[Transaction, str, Row, Span], None]
"""Calls the function of this name with the arguments in a row, which stand at the span."""


def is_procedure_call(schema: Schema, call: Call) -> bool:
    """Whether a call is executed: some definition of its name is a procedure."""
    return any(each.is_procedure for each in schema.resolvents(call.function))


@dataclass
class Execution:
    """Runs procedures on a workspace; `call_foreign` runs those of Python."""

    workspace: Workspace
    call_foreign: ForeignCall
    depth: int = 0

    def invoke(self, call: Call, scope: dict[str, Typed] | None = None) -> None:
        """Execute the procedure for all values of its arguments."""
        body = self.workspace.body()
        for name, typed in (scope or {}).items():
            body.bind(name, typed)
        given = [body.value(each) for each in call.arguments]
        functions = candidate_functions(self.workspace.schema, call, [each.type for each in given])
        terms = [
            widened_term(each, column_type(type_))
            for each, type_ in zip(given, functions[0].types, strict=True)
        ]
        rows = self.workspace.ask(body, terms)
        for row in dict.fromkeys(rows):
            function = functions[0]
            if len(functions) > 1:
                function = definition_for(self.workspace, functions, row, call)
            self._check_arguments(function, row, given, call.span)
            self.execute(function, row, call.span)

    def _check_arguments(
        self, function: Function, row: Row, given: list[Typed], span: Span
    ) -> None:
        for value, type_, each in zip(row, function.types, given, strict=True):
            is_known = each.type is not None and self.workspace.schema.is_subtype(each.type, type_)
            if type_ not in LITERAL_TYPES and not is_known:
                self.workspace.check_object(value, type_, span)

    def execute(self, function: Function, row: Row, span: Span) -> None:
        if self.depth >= CALLS_MAX:
            raise DataError([errors.CALLS_LIMIT.at(span, limit=CALLS_MAX)])
        scope = {
            each.name: Typed(as_constant(value), each.type)
            for each, value in zip(function.parameters, row, strict=True)
            if each.name is not None
        }
        match function.body:
            case Procedure(steps=steps):
                self.depth += 1
                for step in steps:
                    self.step(step, scope)
                self.depth -= 1
            case Foreign():
                name = foreign_name(function)
                self.call_foreign(self.workspace.transaction, name, row, span)
            case _:
                raise ProgramError([errors.NOT_EXECUTED.at(span, name=function.name)])

    def step(self, step: Step, scope: dict[str, Typed]) -> None:
        match step:
            case Update():
                carry_out_update(self.workspace, step, scope)
            case Invocation(call=call):
                self.invoke(call, scope)
            case _:
                raise ProgramError([errors.NOT_A_STEP.at(step.span)])
