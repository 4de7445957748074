"""Which definition a call means, and the relation that has its values.

A function that is defined once is a relation of its name. Of an overloaded one each definition
(resolvent) is a relation named after its types, and a view of the function's name decides for each
object by its most specific type:

    price(X, V) :- price_item(X, V), not special_item(X).
    price(X, V) :- price_special_item(X, V).

A call takes the relation of the one definition that fits the types of its arguments if no object of
these types could have a more specific one (early binding), or else the view (late binding).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, ProgramError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.amosql.schema import LITERAL_TYPES, Function, Schema, column_type
from deltalog.language.amosql.tree import Call
from deltalog.language.ast import AGGREGATES
from deltalog.language.functions import FUNCTIONS, widened_type


@dataclass(frozen=True)
class Target:
    """The relation that a call reads, with one column for each argument, and one for the value.

    `guaranteed` has the types that the values of each column have, the last being the result.
    `function` is the definition, if there is only one that it can be.
    """

    predicate: str
    columns: tuple[str, ...]
    guaranteed: tuple[frozenset[str], ...]
    result: str
    is_single: bool
    function: Function | None


def resolve_call(schema: Schema, call: Call, types: Sequence[str | None]) -> Target:
    """The relation that a call means for arguments of these types; None is any object's."""
    chosen = candidate_functions(schema, call, types)
    for function in chosen:
        if function.is_procedure:
            raise ProgramError([errors.PROCEDURE_IN_QUERY.at(call.span, name=call.function)])
    if len(chosen) == 1:
        return _direct_target(schema, chosen[0])
    groups = late_bound_groups(schema, call.function)
    group = next((each for each in groups if set(chosen) <= set(each)), None)
    if group is None:
        raise ProgramError([_no_resolvent(schema, call, types)])
    return _late_bound(schema, group)


def candidate_functions(
    schema: Schema, call: Call, types: Sequence[str | None]
) -> tuple[Function, ...]:
    """The definitions that a call may mean: the best that fits, and all that are more specific."""
    fit = _Fit(schema)
    known = schema.resolvents(call.function, len(types))
    possible = [f for f in known if all(map(fit.may_fit, types, f.types))]
    exact = [f for f in possible if all(map(_is_exact, types, f.types))]
    fitting = [f for f in exact or possible if all(map(fit.fits, types, f.types))]
    best = most_specific(schema, fitting)
    chosen = [f for f in exact or possible if f in best or f not in fitting]
    if not chosen:
        raise ProgramError([_no_resolvent(schema, call, types)])
    return tuple(chosen)


def most_specific(schema: Schema, functions: Iterable[Function]) -> tuple[Function, ...]:
    """Those definitions that no other of them is more specific than."""
    found = tuple(functions)
    return tuple(f for f in found if not any(g is not f and schema.covers(f, g) for g in found))


def _is_exact(given: str | None, wanted: str) -> bool:
    """Whether a value needs no widening."""
    return given == wanted or given not in LITERAL_TYPES


@dataclass(frozen=True)
class _Fit:
    schema: Schema

    def fits(self, given: str | None, wanted: str) -> bool:
        """Whether every value of a type may be an argument."""
        if wanted in LITERAL_TYPES and given in LITERAL_TYPES:
            return widened_type(column_type(given), column_type(wanted)) == column_type(wanted)
        return given is not None and self.schema.is_subtype(given, wanted)

    def may_fit(self, given: str | None, wanted: str) -> bool:
        """Whether some values may be: an object of a type may be of a subtype."""
        if given is None:
            return wanted not in LITERAL_TYPES
        return self.fits(given, wanted) or self.schema.is_subtype(wanted, given)


def _no_resolvent(schema: Schema, call: Call, types: Sequence[str | None]) -> Diagnostic:
    if call.function not in schema.functions:
        names = [*schema.functions, *FUNCTIONS, *AGGREGATES]
        hint = did_you_mean(call.function, names)
        return catalogue.UNKNOWN_FUNCTION.at(call.name_span, name=call.function, hint=hint)
    known = " and ".join(f.signature for f in schema.functions[call.function])
    shown = ", ".join("object" if each is None else each for each in types)
    return errors.NO_RESOLVENT.at(
        call.span, name=call.function, types=shown, hint=f"there is {known}"
    )


# --- relations


def predicate_of(schema: Schema, function: Function) -> str:
    """The relation of one definition of a function.

    >>> from deltalog.language.amosql.schema import EMPTY
    >>> predicate_of(EMPTY, Function("price", (), "integer", False, None, None))
    'price'
    """
    group = schema.functions.get(function.name, ())
    if len(group) <= 1:
        return function.name
    return "_".join((function.name, *(function.types or ("constant",))))


def late_bound_groups(schema: Schema, name: str) -> tuple[tuple[Function, ...], ...]:
    """Definitions of a function among which the types of objects decide."""
    groups: dict[tuple[str, ...], list[Function]] = {}
    for function in schema.resolvents(name):
        if not function.is_procedure:
            shape = tuple(t if t in LITERAL_TYPES else "object" for t in function.types)
            groups.setdefault(shape, []).append(function)
    return tuple(tuple(each) for each in groups.values() if len(each) > 1)


def late_bound_predicate(schema: Schema, group: tuple[Function, ...]) -> str:
    name = group[0].name
    number = late_bound_groups(schema, name).index(group) + 1
    return name if number == 1 else f"{name}_{number}"


def _direct_target(schema: Schema, function: Function) -> Target:
    return Target(
        predicate_of(schema, function),
        tuple(map(column_type, function.types)),
        tuple(schema.supertypes(each) for each in (*function.types, function.result)),
        function.result,
        function.body is None and not function.is_bag,
        function,
    )


def _late_bound(schema: Schema, group: tuple[Function, ...]) -> Target:
    """The view over all definitions of a group."""
    columns = zip(*((*f.types, f.result) for f in group), strict=True)
    guaranteed = tuple(frozenset.intersection(*map(schema.supertypes, types)) for types in columns)
    return Target(
        late_bound_predicate(schema, group),
        tuple(map(column_type, group[0].types)),
        guaranteed,
        _common_result_type(schema, group),
        False,
        None,
    )


def _common_result_type(schema: Schema, group: tuple[Function, ...]) -> str:
    """A type that the values of all definitions have, or that of the first."""
    common = frozenset.intersection(*(schema.supertypes(f.result) for f in group))
    return max(common, key=lambda t: len(schema.supertypes(t)), default=group[0].result)
