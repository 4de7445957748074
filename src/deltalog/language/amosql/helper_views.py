"""Views beside a rule for what its body cannot say: negated conditions and aggregates.

    not (quantity(i) < threshold(i))     r_not1(I) :- quantity(I, Q), threshold(I, T), Q < T.
                                         … not r_not1(I)
    count(select s for each supplier s   r_count1(I, count()) :- supplies(S, I).
          where supplies(s) = i)         r_count1(I, 0) :- item(I), not r_some1(I).

Their columns are the variables that the rule shares with them. A variable that they do not bind
themselves gets its values from its type, or from the literals of the rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from deltalog.diagnostics import catalogue
from deltalog.language.amosql.conditions import OPPOSITE, bound_names, false_comparison
from deltalog.language.amosql.context import Typed, only_value, problem_at
from deltalog.language.amosql.schema import LITERAL_TYPES, column_type
from deltalog.language.amosql.tree import Call, Select
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Rule,
    Variable,
)
from deltalog.language.functions import AGGREGATE_OPERANDS
from deltalog.language.walk import variable_names
from deltalog.source import Origin, Span

if TYPE_CHECKING:
    from deltalog.language.amosql.bodies import Body


def negate_literals(body: Body, literals: tuple[Literal, ...], span: Span) -> Literal:
    """The literal that holds where these do not hold together."""
    match literals:
        case ():
            return false_comparison(span)
        case (Comparison(operator=operator, left=left, right=right),):
            return Comparison(OPPOSITE[operator], left, right, None, span)
        case (Atom() as atom,):
            return Negation(_without_local(body, atom), span)
    shared = _shared_variables(body, literals)
    name = body.translation.helper_name("not")
    _define_helper_view(body, Atom(name, shared), literals, span)
    return Negation(Atom(name, shared, span), span)


def aggregate_value(body: Body, call: Call) -> Typed:
    """`count(select …)`: a variable, with the literal of a view that has its values."""
    if len(call.arguments) != 1:
        wanted, given = "one argument", len(call.arguments)
        raise problem_at(
            catalogue.AGGREGATE_ARITY, call.span, name=call.function, wanted=wanted, given=given
        )
    (argument,) = call.arguments
    if not isinstance(argument, Select):
        argument = Select((argument,), (), None, call.span)
    inner = body.inner()
    inner.declare(argument.variables)
    inner.require(argument.condition)
    value = inner.value(only_value(argument))
    type_ = _aggregate_type(call, value)
    name = body.translation.helper_name(call.function)
    literals = inner.complete()
    shared = _shared_variables(body, literals)
    operand = None if call.function == "count" else value.term
    result = Aggregate(call.function, operand, None, call.span)
    _define_helper_view(body, Atom(name, (*shared, result)), literals, call.span)
    if call.function == "count":
        _define_zero(body, name, shared, literals, call.span)
    variable = body.translation.fresh(call.function, call.span)
    body.literals.append(Atom(name, (*shared, variable), call.span))
    return Typed(variable, type_)


def _define_zero(
    body: Body, name: str, shared: tuple[Variable, ...], literals: tuple[Literal, ...], span: Span
) -> None:
    """The count of nothing is 0, although an aggregate over nothing has no row."""
    some = body.translation.helper_name("some")
    _define_helper_view(body, Atom(some, shared), literals, span)
    none = (*_binding_literals(body, list(shared), span), Negation(Atom(some, shared, span), span))
    zero = Atom(name, (*shared, Constant(0, "int")))
    body.translation.helpers.append(Rule(zero, none, Origin(span)))


def _aggregate_type(call: Call, value: Typed) -> str:
    column = column_type(value.type or "")
    if call.function == "count":
        return "integer"
    if column not in AGGREGATE_OPERANDS[call.function] or value.type not in LITERAL_TYPES:
        shown = value.type or "object"
        raise problem_at(catalogue.AGGREGATE_TYPE, call.span, function=call.function, type=shown)
    if call.function == "avg":
        return "decimal" if column == "decimal" else "real"
    return str(value.type)


def _without_local(body: Body, atom: Atom) -> Atom:
    """The atom with a wildcard for each variable that only it has."""
    outside = _outside_variables(body)
    arguments = [
        Variable("_", term.span)
        if isinstance(term, Variable) and term.name not in outside
        else term
        for term in atom.arguments
    ]
    return Atom(atom.predicate, tuple(arguments), atom.span)


def _outside_variables(body: Body) -> dict[str, Variable]:
    """Variables that mean something outside of an inner body."""
    found = {t.term.name: t.term for t in body.scope.values() if isinstance(t.term, Variable)}
    for literal in body.visible():
        found |= {name: Variable(name) for name in variable_names(literal) if name not in found}
    return found


def _shared_variables(body: Body, literals: Iterable[Literal]) -> tuple[Variable, ...]:
    outside = _outside_variables(body)
    return tuple(outside[name] for name in variable_names(*literals) if name in outside)


def _define_helper_view(body: Body, head: Atom, literals: tuple[Literal, ...], span: Span) -> None:
    """A view of the shared variables, all of which get values."""
    bound = bound_names(literals)
    plain = [term for term in head.arguments if isinstance(term, Variable)]
    binding = _binding_literals(body, [each for each in plain if each.name not in bound], span)
    body.translation.helpers.append(Rule(head, (*binding, *literals), Origin(span)))


def _binding_literals(body: Body, variables: list[Variable], span: Span) -> tuple[Literal, ...]:
    """Literals that give variables all values that they may have outside."""
    types = body.declared_types()
    if all(types.get(each.name, "integer") not in LITERAL_TYPES for each in variables):
        return tuple(Atom(types[each.name], (each,), span) for each in variables)
    name = body.translation.helper_name("values")
    head = Atom(name, tuple(variables))
    body.translation.helpers.append(Rule(head, body.enclosing(), Origin(span)))
    return (head,)
