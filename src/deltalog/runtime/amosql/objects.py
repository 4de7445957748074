"""Objects: created, given more types, taken out of them, deleted.

An object is a text, its name. Its direct types are facts of `item_direct` and the like. A value of
a function does not outlive the type that it needs: removing an object from a type removes it from
every function that is declared for that type.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.amosql.context import Typed
from deltalog.language.amosql.resolution import predicate_of
from deltalog.language.amosql.schema import check_different_names
from deltalog.language.amosql.translation import direct_instances
from deltalog.language.amosql.tree import ChangeTypes, CreateInstances, DeleteObjects, ObjectName
from deltalog.language.ast import Atom, Constant, Query, Term, Variable
from deltalog.language.values import print_value
from deltalog.runtime.amosql.workspace import Workspace
from deltalog.source import Span


def create_instances(workspace: Workspace, statement: CreateInstances) -> None:
    """Make an object for each variable, named after it, and bind the variable to it."""
    _check_type(workspace, statement.type, statement.span)
    check_different_names(statement.objects)
    for variable in statement.objects:
        name = _free_name(workspace, variable.name)
        workspace.transaction.insert(direct_instances(statement.type), [(name,)])
        workspace.variables[variable.name] = Typed(Constant(name, "str"), None)


def change_types(workspace: Workspace, statement: ChangeTypes) -> None:
    _check_type(workspace, statement.type, statement.span)
    for variable in statement.objects:
        object_ = _object_of(workspace, variable)
        if statement.verb == "add":
            if not workspace.is_of(object_, statement.type):
                workspace.transaction.insert(direct_instances(statement.type), [(object_,)])
        else:
            _remove_type(workspace, object_, statement.type, variable.span)


def delete_objects(workspace: Workspace, statement: DeleteObjects) -> None:
    """Take objects out of all types and functions."""
    for variable in statement.objects:
        object_ = _object_of(workspace, variable)
        _delete_types(workspace, object_, workspace.types_of(object_), workspace.schema.types)
        workspace.variables.pop(variable.name, None)


def _check_type(workspace: Workspace, name: str, span: Span) -> None:
    if name not in workspace.schema.types:
        hint = did_you_mean(name, workspace.schema.types)
        raise DataError([catalogue.UNKNOWN_TYPE.at(span, name=name, hint=hint)])


def _object_of(workspace: Workspace, variable: ObjectName) -> str:
    found = workspace.find_object(variable)
    assert isinstance(found.term, Constant)
    if found.type is not None:
        shown = print_value(found.term.value, found.term.type)
        raise DataError([errors.OBJECT_MISFIT.at(variable.span, value=shown, type="object")])
    return str(found.term.value)


def _free_name(workspace: Workspace, wanted: str) -> str:
    """`item1`, or `item1_2` if there is an object of that name."""
    name, number = wanted, 1
    while workspace.types_of(name):
        number += 1
        name = f"{wanted}_{number}"
    return name


def _remove_type(workspace: Workspace, object_: str, type_: str, span: Span) -> None:
    """Take an object out of a type and its subtypes; it stays in the types above."""
    workspace.check_object(object_, type_, span)
    schema, before = workspace.schema, workspace.types_of(object_)
    below = schema.subtypes(type_)
    above = {each for name in below for each in schema.types[name].supertypes} - set(below)
    kept = {each for each in above if each in before}
    _delete_types(workspace, object_, before.intersection(below), below)
    for each in sorted(kept):
        workspace.transaction.insert(direct_instances(each), [(object_,)])


def _delete_types(
    workspace: Workspace, object_: str, lost: Iterable[str], direct: Iterable[str]
) -> None:
    """Delete direct types, and the values of functions that are declared for types that end."""
    ending, term = set(lost), Constant(object_, "str")
    for function in workspace.schema.stored():
        columns = (*function.types, function.result)
        relation = predicate_of(workspace.schema, function)
        for place, type_ in enumerate(columns):
            if type_ in ending:
                arguments: list[Term] = [Variable(f"V{each}") for each in range(len(columns))]
                arguments[place] = term
                rows = workspace.transaction.query(Query((Atom(relation, tuple(arguments)),)))
                whole = [(*row[:place], object_, *row[place:]) for row in rows]
                workspace.transaction.delete(relation, whole)
    for type_ in direct:
        workspace.transaction.delete(direct_instances(type_), [(object_,)])
