"""Active rules: what drives them, for which instances, and the base relations they need.

    rule low(L) for I when quantity(I, Q), Q < L do insert scarce(I).
    driven by     low__active(L), quantity(I, Q), Q < L
    instances     (I), for each activation (L)

Activations are facts, so they are durable and versioned like others. The relations for them have a
double underscore in their names: no program can name them.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.analysis.binding import bound_variables
from deltalog.analysis.relation import Relation, Relations
from deltalog.analysis.rule_types import expression_type, variable_types
from deltalog.language.ast import (
    Action,
    ActiveRule,
    Atom,
    Column,
    Comparison,
    Literal,
    Program,
    Variable,
)
from deltalog.language.walk import literals_of, variable_names

INACTIVE = "rules__inactive"
"""The rules without parameters that have been deactivated."""
STATISTICS = "rules__statistics"
"""How often each rule has fired, how long it took, and when it fired last."""
MESSAGES = "rules__messages"
"""Messages that rules have emitted."""


def activation_relation(rule: ActiveRule) -> str:
    """The relation of the parameters for which a rule is active."""
    return f"{rule.name}__active"


def event_variables(rule: ActiveRule) -> tuple[Variable, ...]:
    """The named variables of the event, each once."""
    return () if rule.event is None else _named_variables((rule.event.atom,))


def instance_variables(rule: ActiveRule) -> tuple[Variable, ...]:
    """The variables whose values are an instance: those declared, or all that have a value."""
    if rule.instance is not None:
        return rule.instance
    event = () if rule.event is None else (rule.event.atom,)
    bound = bound_variables(driving_body(rule))
    parameters = {variable.name for variable in rule.parameters}
    found = _named_variables((*event, *rule.condition))
    return tuple(v for v in found if v.name in bound and v.name not in parameters)


def _named_variables(body: tuple[Literal, ...]) -> tuple[Variable, ...]:
    return tuple(v for v in map(Variable, variable_names(*body)) if not v.is_wildcard)


def driving_body(rule: ActiveRule) -> tuple[Literal, ...]:
    """Literals that must hold for an instance: activation, event and condition."""
    active = (Atom(activation_relation(rule), rule.parameters),) if rule.parameters else ()
    event = () if rule.event is None else (rule.event.atom,)
    return (*active, *event, *rule.condition)


def hidden_relations(program: Program, relations: Relations) -> dict[str, Relation]:
    """The base relations that active rules need and that nobody declares."""
    if not program.active_rules:
        return {}
    found = [_base_relation(INACTIVE, Column("rule", "str", key=True))]
    found.append(
        _base_relation(
            STATISTICS,
            Column("rule", "str", key=True),
            Column("firings", "int"),
            Column("seconds", "float"),
            Column("last", "timestamp"),
        )
    )
    if emitted_names(program):
        texts = (Column(name, "str") for name in ("id", "rule", "name", "payload"))
        found.append(_base_relation(MESSAGES, Column("sequence", "int", key=True), *texts))
    for rule in program.active_rules:
        if rule.parameters:
            types = parameter_types(rule, relations)
            columns = (Column(v.name.lower(), types.get(v.name)) for v in rule.parameters)
            found.append(_base_relation(activation_relation(rule), *columns))
    return {relation.name: relation for relation in found}


def emitted_names(program: Program) -> frozenset[str]:
    """The names of the messages that the rules of a program may emit."""
    actions = (action for rule in program.active_rules for action in _all_actions(rule))
    emitting = (action.atom for action in actions if action.verb == "emit")
    return frozenset(atom.predicate for atom in emitting if atom is not None)


def _action_literals(rule: ActiveRule) -> Iterator[Literal]:
    """The literals that actions read, and the facts that they change."""
    for action in _all_actions(rule):
        yield from action.where
        if action.atom is not None and action.verb in ("insert", "delete", "set"):
            yield action.atom


def _base_relation(name: str, *columns: Column) -> Relation:
    return Relation(name, "base", columns)


def _all_actions(rule: ActiveRule) -> Iterator[Action]:
    yield from rule.actions
    yield from rule.otherwise


def parameter_types(rule: ActiveRule, relations: Relations) -> dict[str, str]:
    """The types of parameters: declared, or by the atoms and comparisons that they occur in."""
    event = () if rule.event is None else (rule.event.atom,)
    body = (*event, *rule.condition, *_action_literals(rule))
    types = variable_types(body, relations)
    for literal in literals_of(body):
        if isinstance(literal, Comparison):
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                type_ = expression_type(other, types)
                if isinstance(side, Variable) and type_ not in (None, "null"):
                    types.setdefault(side.name, str(type_))
    types |= {
        variable.name: type_
        for variable, type_ in zip(rule.parameters, rule.parameter_types, strict=False)
        if type_ is not None
    }
    return {v.name: types[v.name] for v in rule.parameters if v.name in types}
