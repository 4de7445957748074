"""Procedures as lists of effects: what a rule does when it is triggered, with nothing left to call.

    create function refill(item i) -> boolean as
      begin set quantity(i) = max_stock(i); order(i, max_stock(i)); end;

    refill(i)   →   set quantity(I, MaxStock)   where max_stock(I, MaxStock)
                    call order(I, MaxStock)     where max_stock(I, MaxStock)

The literals of an effect are evaluated when it is executed; they are no part of a rule's condition.
All effects of an execution read one state, so a step must not read what an earlier one changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.language.amosql.bodies import Body
from deltalog.language.amosql.conditions import bound_names
from deltalog.language.amosql.context import Typed, problem_at, widened_term
from deltalog.language.amosql.resolution import candidate_functions, predicate_of
from deltalog.language.amosql.schema import Function, column_type
from deltalog.language.amosql.tree import Call, Foreign, Invocation, Procedure, Step, Update
from deltalog.language.ast import (
    Atom,
    Comparison,
    Disjunction,
    Literal,
    Operation,
    Rule,
    Variable,
)
from deltalog.language.ast import Expression as Term
from deltalog.language.walk import atoms_of, variable_names
from deltalog.source import Origin, Span

CALLS_MAX = 100
"""How deep calls of procedures may nest."""


@dataclass(frozen=True)
class Effect:
    """One change, or one call of a foreign procedure, for each binding of the literals.

    A `_` in what is deleted stands for any value.
    """

    verb: OneOf["insert", "delete", "set", "call"]
    atom: Atom
    literals: tuple[Literal, ...]
    span: Span


def check_steps(body: Body, procedure: Procedure) -> None:
    """Raise if a step of a procedure does not fit the schema; its calls are not followed."""
    for step in procedure.steps:
        own = body.continued()
        match step:
            case Update():
                own.declare(step.variables)
                own.require(step.condition)
                target = _require_stored(_candidate_definitions(own, step.target)[0], step.target)
                if step.value is not None:
                    own.result(step.value, target.result)
            case Invocation(call=call):
                _require_procedure(_candidate_definitions(own, call)[0], call)
            case _:
                raise problem_at(errors.NOT_A_STEP, step.span)


def effects_of_steps(body: Body, steps: Iterable[Step], depth: int = 0) -> Iterator[Effect]:
    """The effects of steps, each under the literals that are in the body already."""
    for step in steps:
        own = body.continued()
        match step:
            case Update():
                yield from _effects_of_update(own, step)
            case Invocation(call=call):
                yield from _effects_of_call(own, call, depth)
            case _:
                raise problem_at(errors.NOT_A_STEP, step.span)


def check_one_state(found: Iterable[Effect], rules: Iterable[Rule]) -> None:
    """Raise if an effect reads what an earlier one changes."""
    changed: set[str] = set()
    defined = tuple(rules)
    for effect in found:
        read = _read_by(effect.literals, defined) | _matched_by(effect)
        read &= changed
        if read:
            raise problem_at(errors.READS_CHANGED, effect.span, name=min(read))
        if effect.verb != "call":
            changed.add(effect.atom.predicate)


def _matched_by(effect: Effect) -> set[str]:
    """The relation of a deletion that takes whatever facts there are."""
    return {effect.atom.predicate} if "_" in variable_names(effect.atom) else set()


def _read_by(body: tuple[Literal, ...], rules: tuple[Rule, ...]) -> set[str]:
    """Relations that a body reads, directly or through views."""
    found: set[str] = set()
    waiting = [atom.predicate for atom, _ in atoms_of(body)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            for rule in rules:
                if rule.head.predicate == name:
                    waiting += (atom.predicate for atom, _ in atoms_of(rule.body))
    return found


def _effects_of_update(body: Body, step: Update) -> Iterator[Effect]:
    body.declare(step.variables)
    body.require(step.condition)
    function, arguments = _resolve_definition(body, step.target)
    relation = predicate_of(body.schema, _require_stored(function, step.target))
    values = () if step.value is None else (body.result(step.value, function.result),)
    one = Atom(relation, (*arguments, *values), step.span)
    every = Atom(relation, (*arguments, Variable("_")), step.span)
    if step.verb == "set" and function.parameters and not function.is_bag:
        yield Effect("set", one, _literals_to_read(body, one), step.span)
        return
    if step.verb == "set" or not values:
        yield Effect("delete", every, _literals_to_read(body, every), step.span)
    if values:
        verb: OneOf["insert", "delete"] = "delete" if step.verb == "remove" else "insert"
        yield Effect(verb, one, _literals_to_read(body, one), step.span)


def _literals_to_read(body: Body, atom: Atom) -> tuple[Literal, ...]:
    """The literals of an effect; those of a disjunction in a view, since they have variables of it.

    The view has the variables of the atom, and of the rule: it is read for its instances only.
    """
    literals = body.complete()
    if not any(isinstance(literal, Disjunction) for literal in literals):
        return literals
    whole = body.enclosing()
    own = [typed.term for typed in body.scope.values() if isinstance(typed.term, Variable)]
    bound = bound_names(whole)
    shared = tuple(Variable(name) for name in variable_names(atom, *own) if name in bound)
    head = Atom(body.translation.helper_name("where"), shared, atom.span)
    body.translation.helpers.append(Rule(head, whole, Origin(atom.span)))
    return (head,)


def _effects_of_call(body: Body, call: Call, depth: int) -> Iterator[Effect]:
    function, arguments = _resolve_definition(body, call)
    _require_procedure(function, call)
    if depth >= CALLS_MAX:
        raise problem_at(errors.CALLS_LIMIT, call.span, limit=CALLS_MAX)
    if isinstance(function.body, Foreign):
        atom = Atom(foreign_name(function), arguments, call.span)
        yield Effect("call", atom, _literals_to_read(body, atom), call.span)
        return
    assert isinstance(function.body, Procedure)
    inner = body.continued()
    inner.scope = {}
    for parameter, term in zip(function.parameters, arguments, strict=True):
        if parameter.name is not None:
            inner.bind(parameter.name, Typed(_name_operation(inner, term), parameter.type))
    yield from effects_of_steps(inner, function.body.steps, depth + 1)


def _name_operation(body: Body, term: Term) -> Term:
    """A variable in the place of a term that would be computed again at each use."""
    if not isinstance(term, Operation):
        return term
    variable = body.translation.fresh("argument", term.span)
    body.literals.append(Comparison("=", variable, term, None, term.span))
    return variable


def foreign_name(function: Function) -> str:
    """The name under which a function of Python is registered."""
    assert isinstance(function.body, Foreign)
    return function.body.function or function.name


def _resolve_definition(body: Body, call: Call) -> tuple[Function, tuple[Term, ...]]:
    """The definition that a call means, which must not depend on the object, and its arguments."""
    given = [body.value(each) for each in call.arguments]
    found = candidate_functions(body.schema, call, [each.type for each in given])
    if len(found) > 1:
        raise problem_at(errors.BOUND_LATE, call.span, name=call.function)
    pairs = zip(given, found[0].types, strict=True)
    return found[0], tuple(widened_term(each, column_type(type_)) for each, type_ in pairs)


def _candidate_definitions(body: Body, call: Call) -> tuple[Function, ...]:
    types = [body.value(each).type for each in call.arguments]
    return candidate_functions(body.schema, call, types)


def _require_stored(function: Function, call: Call) -> Function:
    if function.body is not None:
        raise problem_at(errors.NOT_STORED, call.span, name=call.function, kind=function.kind)
    return function


def _require_procedure(function: Function, call: Call) -> None:
    if not function.is_procedure:
        raise problem_at(errors.NOT_EXECUTED, call.span, name=call.function)
