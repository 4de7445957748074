"""An action is a rule that derives its arguments from the instances that are triggered.

    rule reorder for I when quantity(I, Q), max_stock(I, M), Q < 9 do call order(I, M - Q).
    →  reorder__action1(I, V1) :-
           reorder__triggered(I), quantity(I, Q), max_stock(I, M), Q < 9, V1 = M - Q.

It is asked when the action is executed, in the state of that moment, once for all instances: a
query whose first literal has them as its rows. An `else` has the instances alone: its condition
does not hold. A `_` in `delete old(X, _)` stands for whatever facts there are. Literals
of the action itself (`where`) are read there, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deltalog.analysis.active_rules import (
    activation_relation,
    event_variables,
    instance_variables,
)
from deltalog.analysis.binding import bound_variables
from deltalog.analysis.columns import Relation, Relations
from deltalog.analysis.rule_types import variable_types
from deltalog.language.ast import (
    Action,
    ActiveRule,
    Atom,
    Column,
    Comparison,
    Constant,
    Literal,
    Operation,
    Query,
    Term,
    Variable,
)
from deltalog.language.walk import fresh_names, variable_names
from deltalog.rewrites import names


@dataclass(frozen=True)
class AskedAction:
    """An action, with the query for its arguments and where these are among the answers."""

    action: Action
    query: Query
    instance: tuple[int, ...]
    arguments: tuple[int | Constant, ...]

    def rows(self, answers: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
        """The distinct argument tuples of all answers."""
        found = {
            tuple(a.value if isinstance(a, Constant) else row[a] for a in self.arguments): None
            for row in answers
        }
        return list(found)


def triggered_relation(rule: ActiveRule, relations: Relations) -> Relation:
    """The relation that has the triggered instances, or the events, when an action is asked."""
    body = (*_activation_atoms(rule), *_event_atoms(rule), *rule.condition)
    types = variable_types(body, relations)
    columns = (Column(v.name.lower(), types.get(v.name), True) for v in driven_by(rule))
    return Relation(names.triggered_name(rule.name), "base", tuple(columns))


def driven_by(rule: ActiveRule) -> tuple[Variable, ...]:
    """The variables whose values are known when a rule is executed."""
    own = instance_variables(rule) if rule.event is None else event_variables(rule)
    return tuple(dict.fromkeys((*rule.parameters, *own)))


def fired_query(rule: ActiveRule) -> tuple[Query, tuple[int, ...], tuple[int, ...]]:
    """The query for those instances, or events, that are triggered and whose condition holds.

    Beside it, where an instance and where what drives the rule is among its answers.
    """
    body = _execution_body(rule)
    order = _answer_order(body)
    instance = (*rule.parameters, *instance_variables(rule))
    places = tuple(order.index(v.name) for v in instance)
    asked = Query(body, outputs=tuple(order))
    return asked, places, tuple(order.index(v.name) for v in driven_by(rule))


def asked_action(rule: ActiveRule, action: Action, is_otherwise: bool) -> AskedAction:
    """The query for the arguments of an action of a rule."""
    body: list[Literal] = [_triggered_atom(rule)] if is_otherwise else [*_execution_body(rule)]
    body += action.where
    terms = () if action.atom is None else action.atom.arguments
    fresh = fresh_names({*variable_names(*body), *variable_names(*terms)}, "V")
    arguments: list[Term] = []
    for term in terms:
        if isinstance(term, Operation):
            variable = Variable(next(fresh))
            body.append(Comparison("=", variable, term, None, term.span))
            arguments.append(variable)
        elif isinstance(term, Variable) and term.name == "_":
            arguments.append(Variable(next(fresh)))
        else:
            arguments.append(term)
    if action.atom is not None and any(
        isinstance(term, Variable) and term.name == "_" for term in terms
    ):
        body.append(Atom(action.atom.predicate, tuple(arguments)))
    order = _answer_order(tuple(body))
    instance = driven_by(rule) if is_otherwise else rule.parameters + instance_variables(rule)
    return AskedAction(
        action,
        Query(tuple(body), outputs=tuple(order)),
        tuple(order.index(v.name) for v in instance),
        tuple(
            order.index(term.name) if isinstance(term, Variable) else term
            for term in arguments
            if isinstance(term, Variable | Constant)
        ),
    )


def _execution_body(rule: ActiveRule) -> tuple[Literal, ...]:
    return (_triggered_atom(rule), *rule.condition)


def _triggered_atom(rule: ActiveRule) -> Atom:
    return Atom(names.triggered_name(rule.name), driven_by(rule))


def _activation_atoms(rule: ActiveRule) -> tuple[Atom, ...]:
    return (Atom(activation_relation(rule), rule.parameters),) if rule.parameters else ()


def _event_atoms(rule: ActiveRule) -> tuple[Atom, ...]:
    return () if rule.event is None else (rule.event.atom,)


def _answer_order(body: tuple[Literal, ...]) -> list[str]:
    """The variables of a query that have a value in every branch, in the order of its answers."""
    bound = bound_variables(body)
    found = (name for name in variable_names(*body) if not Variable(name).is_wildcard)
    return [name for name in found if name in bound]
