"""Parameters of queries: values that are supplied when a query is asked, and never quoted.

    path($src, Y)  with {"src": 1}   →   path(1, Y)

Before: a parsed query in which a parameter is a variable whose name begins with `$`. After: the
same query with a constant in its place, of the type of the column it stands in or is compared
with; it keeps the span of the parameter, so a caret still points there. Correct because everything
that follows (checks, desugaring, Magic Sets) sees an ordinary literal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from deltalog.analysis.columns import Relations
from deltalog.analysis.rule_types import expression_type, fitting_atoms, variable_types
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import Diagnostic, raise_if_any
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Comparison, Constant, Expression, Literal, Query, Variable
from deltalog.language.parser import parse_query
from deltalog.language.values import TYPE_HINTS, VALUE_ERRORS, canonical_value, parse_value
from deltalog.language.walk import literals_of, substitute_literal, variables_of
from deltalog.runtime.checked_rows import PYTHON_HINTS, shown_value

Parameters = Mapping[str, Any]
"""Values by the names of parameters, without the `$`."""


def bound_query(text: str | Query, parameters: Parameters | None, relations: Relations) -> Query:
    """Parse a query, and put constants in the place of its parameters."""
    hint = "a query is a text, as in `path(1, Y)`"
    check_argument(isinstance(text, str | Query), "query", text, hint)
    query = parse_query(text) if isinstance(text, str) else text
    values = {} if parameters is None else parameters
    hint = 'give a mapping from names to values, as in `{"src": 1}`'
    check_argument(isinstance(values, Mapping), "parameters", values, hint)
    return bind_parameters(query, values, relations)


def bind_parameters(query: Query, values: Parameters, relations: Relations) -> Query:
    """The query with a constant in the place of each parameter."""
    wanted = query_parameters(query)
    raise_if_any(_misnamed_parameters(query, wanted, values))
    if not wanted:
        return query
    places = {name: list(_parameter_places(query, name, relations)) for name in wanted}
    constants: dict[str, Constant] = {}
    problems: list[Diagnostic] = []
    for name, parameter in wanted.items():
        if values[name] is None and not _may_be_null(query, name, relations):
            hint = "the column it stands in may not be null"
            type_ = _narrowest_type([type_ for type_, _ in places[name]]) or "a value"
            problems.append(_parameter_misfit(parameter, "null", type_, hint))
            continue
        found = _parameter_constant(values[name], parameter, places[name])
        if isinstance(found, Constant):
            constants[parameter.name] = found
        else:
            problems.append(found)
    raise_if_any(problems)

    def bound(variable: Variable) -> Expression:
        known = constants.get(variable.name)
        return variable if known is None else replace(known, span=variable.span)

    return replace(query, body=tuple(_bind_literal(each, bound) for each in query.body))


def _bind_literal(literal: Literal, bound: Callable[[Variable], Expression]) -> Literal:
    """Return the literal with its constants; `X > $z` never holds if `$z` is null."""
    found = substitute_literal(literal, bound)
    if (
        isinstance(literal, Comparison) and isinstance(found, Comparison)
    ) and literal.operator not in ("=", "!="):
        left, right = literal.left, literal.right
        for side, other in ((left, found.right), (right, found.left)):
            value = bound(side) if isinstance(side, Variable) and side.is_parameter else None
            if isinstance(value, Constant) and value.type == "null":
                return replace(found, operator="!=", left=other, right=other)
    return found


def read_parameters(query: Query, texts: Mapping[str, str], relations: Relations) -> Parameters:
    """Values that were written as text, read as the types of the places they are meant for.

    Parameters that the query does not have are left to `bind_parameters`.
    """
    values: dict[str, Any] = dict(texts)
    problems: list[Diagnostic] = []
    types = parameter_types(query, relations)
    for name, parameter in query_parameters(query).items():
        if name not in texts:
            continue
        type_ = types[name]
        if type_ is None:
            hint = "compare it with a column"
            problems.append(
                catalogue.VARIABLE_TYPE_UNKNOWN.at(parameter.span, name=parameter.name, hint=hint)
            )
            continue
        if texts[name] == "null" and type_ != "str" and _may_be_null(query, name, relations):
            values[name] = None
            continue
        try:
            values[name] = parse_value(texts[name], type_)
        except VALUE_ERRORS:
            problems.append(
                _parameter_misfit(parameter, texts[name] or '""', type_, TYPE_HINTS.get(type_))
            )
    raise_if_any(problems)
    return values


def parameter_types(query: Query, relations: Relations) -> dict[str, str | None]:
    """The type of the places that each parameter stands in, or None if that is not known."""
    return {
        name: _narrowest_type([type_ for type_, _ in _parameter_places(query, name, relations)])
        for name in query_parameters(query)
    }


def query_parameters(query: Query) -> dict[str, Variable]:
    """The parameters by name, without the `$`, each where it first occurs."""
    found: dict[str, Variable] = {}
    for literal in query.body:
        for variable in variables_of(literal):
            if variable.is_parameter:
                found.setdefault(variable.name[1:], variable)
    return found


def _misnamed_parameters(
    query: Query, wanted: Mapping[str, Variable], values: Parameters
) -> Iterator[Diagnostic]:
    unused = [str(name) for name in values if name not in wanted]
    listed = f"its parameters are {', '.join(f'`${name}`' for name in wanted)}"
    listed = listed if wanted else "the query has no parameters"
    for name in unused:
        hint = did_you_mean(name, wanted) or listed
        yield catalogue.UNKNOWN_PARAMETER.at(query.span, name=name, hint=hint)
    for name, parameter in wanted.items():
        if name not in values:
            yield catalogue.PARAMETER_MISSING.at(parameter.span, name=name)


# --- types --------------------------------------------------------------------------------------


def _parameter_places(query: Query, name: str, relations: Relations) -> Iterator[tuple[str, bool]]:
    """The types of the places where a parameter occurs, and whether each is a column's.

    In a comparison it is the type of the other side, which need not be its own: `X > 2.5` makes
    sense for an int X.
    """
    types = variable_types(query.body, relations)
    for atom, _ in fitting_atoms(query.body, relations):
        for column, term in zip(relations[atom.predicate].columns, atom.arguments, strict=True):
            if isinstance(term, Variable) and term.name == f"${name}" and column.type is not None:
                yield column.type, True
    for literal in literals_of(query.body):
        if isinstance(literal, Comparison):
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(side, Variable) and side.name == f"${name}":
                    type_ = expression_type(other, types)
                    if type_ is not None and type_ != "null":
                        yield type_, False


def _may_be_null(query: Query, name: str, relations: Relations) -> bool:
    """Whether null fits every column that a parameter stands in."""
    return all(
        column.nullable
        for atom, _ in fitting_atoms(query.body, relations)
        for column, term in zip(relations[atom.predicate].columns, atom.arguments, strict=True)
        if isinstance(term, Variable) and term.name == f"${name}"
    )


def _narrowest_type(places: list[str]) -> str | None:
    """The narrowest of these types: an int may widen where a float or decimal is wanted."""
    return min(places, key=lambda type_: _WIDTHS.get(type_, 0), default=None)


_WIDTHS = {"int": 0, "decimal": 1, "float": 2}


def _parameter_constant(
    value: Any, parameter: Variable, places: list[tuple[str, bool]]
) -> Constant | Diagnostic:
    """The value as a constant of the type of its place.

    In comparisons any number may be compared with any other.
    """
    if value is None:
        return Constant(None, "null")
    columns = [type_ for type_, is_column in places if is_column]
    own = _own_type(value)
    compared = _narrowest_type([type_ for type_, _ in places])
    fitting = [_narrowest_type(columns)] if columns else [compared]
    if not columns and (compared is None or {compared, own} <= _WIDTHS.keys()):
        fitting.append(own)
    for type_ in fitting:
        if type_ is not None:
            try:
                return Constant(canonical_value(value, type_), type_)
            except VALUE_ERRORS:
                continue
    wanted = _narrowest_type([type_ for type_, _ in places]) or own
    if wanted is None:
        return _parameter_misfit(
            parameter, shown_value(value)[:80], "a value", "use a number, text, a date or None"
        )
    return _parameter_misfit(parameter, shown_value(value)[:80], wanted, PYTHON_HINTS[wanted])


def _own_type(value: Any) -> str | None:
    """The type that a Python value has without a place."""
    for classes, type_ in _OWN_TYPES:
        if isinstance(value, classes):
            return type_
    return None


_OWN_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (Integral, "int"),
    (Decimal, "decimal"),
    (Real, "float"),
    (str, "str"),
    (datetime, "timestamp"),
    (date, "date"),
)


def _parameter_misfit(parameter: Variable, value: str, type_: str, hint: str | None) -> Diagnostic:
    return catalogue.PARAMETER_MISFIT.at(
        parameter.span, value=value, name=parameter.name[1:], type=type_, hint=hint
    )
