"""`set`, `add` and `remove`: values of stored functions, for one argument or for each of a query.

    set quantity(i) = 0 for each item i where supplies(s) = i;

All values are computed before the first is changed. Objects must be of the declared types: what a
query returned is, since functions contain nothing else; what was named is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics.report import DataError, ProgramError
from deltalog.language.amosql.bodies import Body
from deltalog.language.amosql.context import Typed, widened_term
from deltalog.language.amosql.resolution import candidate_functions, most_specific, predicate_of
from deltalog.language.amosql.schema import LITERAL_TYPES, Function, column_type
from deltalog.language.amosql.tree import Call, Expression, Update
from deltalog.language.ast import Row, Value
from deltalog.runtime.amosql.workspace import Workspace
from deltalog.source import Span


def carry_out_update(
    workspace: Workspace, statement: Update, scope: dict[str, Typed] | None = None
) -> None:
    """Carry out an update; `scope` has the parameters of a procedure that it is a step of."""
    body = workspace.body()
    for name, argument in (scope or {}).items():
        body.bind(name, argument)
    body.declare(statement.variables)
    body.require(statement.condition)
    call = statement.target
    given = [body.value(each) for each in call.arguments]
    functions = candidate_functions(workspace.schema, call, [each.type for each in given])
    value = None if statement.value is None else _typed_value(body, statement.value, functions[0])
    terms = [
        widened_term(each, column_type(type_))
        for each, type_ in zip(given, functions[0].types, strict=True)
    ]
    rows = workspace.ask(body, terms if value is None else [*terms, value.term])
    typed = given if value is None else [*given, value]
    for function, chosen in _by_function(workspace, functions, rows, call).items():
        _check_stored(function, call)
        _check_objects(workspace, function, typed, chosen, call.span)
        _change_function(workspace, function, statement.verb, chosen)


def _check_stored(function: Function, call: Call) -> None:
    if function.body is not None:
        raise ProgramError(
            [errors.NOT_STORED.at(call.span, name=call.function, kind=function.kind)]
        )


def _typed_value(body: Body, expression: Expression, function: Function) -> Typed:
    found = body.value(expression)
    span = expression.span
    assert span is not None
    body.check_type(found, function.result, span)
    return Typed(widened_term(found, column_type(function.result)), found.type)


def _by_function(
    workspace: Workspace, functions: tuple[Function, ...], rows: list[Row], call: Call
) -> dict[Function, list[Row]]:
    """The rows of each definition: of several, the types of a row's objects decide."""
    if len(functions) == 1:
        return {functions[0]: rows}
    found: dict[Function, list[Row]] = {}
    for row in rows:
        found.setdefault(definition_for(workspace, functions, row, call), []).append(row)
    return found


def definition_for(
    workspace: Workspace, functions: Iterable[Function], row: Row, call: Call
) -> Function:
    """The most specific definition that fits the arguments at the beginning of a row."""
    fitting = [
        function
        for function in functions
        if all(
            type_ in LITERAL_TYPES or workspace.is_of(str(value), type_)
            for value, type_ in zip(row, function.types, strict=False)
        )
    ]
    best = most_specific(workspace.schema, fitting)
    if not best:
        shown = ", ".join(map(str, row[: len(call.arguments)]))
        raise DataError([errors.NO_RESOLVENT.at(call.span, name=call.function, types=shown)])
    return best[0]


def _check_objects(
    workspace: Workspace, function: Function, typed: list[Typed], rows: list[Row], span: Span
) -> None:
    """Look up objects of which the query does not say that they have the type they need."""
    types = (*function.types, function.result)
    for place, (each, type_) in enumerate(zip(typed, types, strict=False)):
        is_known = each.type is not None and workspace.schema.is_subtype(each.type, type_)
        if type_ not in LITERAL_TYPES and not is_known:
            for value in {row[place] for row in rows}:
                workspace.check_object(value, type_, span)


def _change_function(workspace: Workspace, function: Function, verb: str, rows: list[Row]) -> None:
    relation, transaction = predicate_of(workspace.schema, function), workspace.transaction
    arity = len(function.types)
    if verb == "set" and function.parameters and not function.is_bag:
        transaction.set(relation, rows)
        return
    if verb == "set":
        _delete_all(workspace, relation, {row[:arity] for row in rows}, arity + 1)
    if verb in ("set", "add"):
        transaction.insert(relation, rows)
    elif rows and len(rows[0]) == arity:
        _delete_all(workspace, relation, set(rows), arity + 1)
    else:
        transaction.delete(relation, rows)


def _delete_all(
    workspace: Workspace, relation: str, arguments: set[tuple[Value, ...]], arity: int
) -> None:
    for each in arguments:
        found = workspace.matching(relation, each, arity)
        workspace.transaction.delete(relation, found)
