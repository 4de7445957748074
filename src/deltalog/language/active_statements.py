"""Grammar callbacks of constraints and active rules (see `tree_builder.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import (
    Action,
    ActiveRule,
    Atom,
    Constraint,
    Event,
    Literal,
    Rule,
    UpdateChoice,
    Variable,
)
from deltalog.language.narrowing import (
    Parenthesis,
    column_type,
    narrow_atom,
    narrow_body,
    narrow_head,
    numbered_rule,
    span_of,
    syntax_problem,
    unescape_string,
    user_name,
)
from deltalog.source import Origin

EVENTS = ("insert", "delete", "set")


class ActiveStatements:
    """The part of the tree builder that makes `Constraint` and `ActiveRule`."""

    def constraint(self, children: list[Any]) -> Constraint:
        word, mode, immediate, head_node, arrow, body, _, text = children
        head = narrow_head(head_node)
        literals = () if arrow is None else narrow_body(body.branches, body.span)
        span = span_of(head_node) if arrow is None else span_of(head_node).to(body.span)
        rule = numbered_rule(Rule(head, literals, Origin(span)))
        chosen: Any = "enforce" if mode is None else str(mode)
        message = None if text is None else unescape_string(text)
        kind: Any = str(word)
        return Constraint(
            kind, rule.head, rule.body, chosen, immediate is not None, message, rule.origin
        )

    def active_rule(self, children: list[Any]) -> ActiveRule:
        word, name, _, parameters, _, _, instance, _, priority, *rest = children
        immediate, nervous, event, _, body, _, actions, _, otherwise = rest
        types = tuple(type_ for _, type_ in parameters or ())
        rule = ActiveRule(
            user_name(name),
            () if body is None else narrow_body(body.branches, body.span),
            actions,
            otherwise or (),
            tuple(variable for variable, _ in parameters or ()),
            instance,
            priority or 0,
            immediate is not None,
            nervous is not None,
            event,
            types if any(types) else (),
            Origin(word.span.to(name.span)),
        )
        return numbered_active_rule(rule)

    def update_choice(self, children: list[Any]) -> UpdateChoice:
        word, verb, node, _, actions = children
        kind: Any = str(verb)
        head = _plain_atom(node)
        return UpdateChoice(kind, head, actions, Origin(word.span.to(span_of(node))))

    def parameters(self, children: list[Any]) -> tuple[tuple[Variable, str | None], ...]:
        return tuple(children)

    def rule_parameter(self, children: list[Any]) -> tuple[Variable, str | None]:
        name, type_ = children
        (variable,) = self.variables([name])
        return variable, None if type_ is None else column_type(type_)

    def variables(self, children: list[Any]) -> tuple[Variable, ...]:
        return tuple(Variable(user_name(token), token.span) for token in children)

    def priority(self, children: list[Any]) -> int:
        minus, number = children
        if len(number) > 9:
            raise syntax_problem(catalogue.NUMBER_OUT_OF_RANGE, number.span, number=number[:30])
        return -int(number) if minus is not None else int(number)

    def event(self, children: list[Any]) -> Event:
        _, kind, node = children
        if str(kind) not in EVENTS:
            hint = did_you_mean(kind, EVENTS)
            expected = "`insert`, `delete` or `set`"
            raise syntax_problem(
                catalogue.UNEXPECTED_TOKEN,
                kind.span,
                expected=expected,
                found=f"`{kind}`",
                hint=hint,
            )
        known: Any = str(kind)
        return Event(known, _plain_atom(node))

    def actions(self, children: list[Any]) -> tuple[Action, ...]:
        return tuple(child for child in children if isinstance(child, Action))

    def change(self, children: list[Any]) -> Action:
        word, node, _, body = children
        verb: Any = str(word)
        where = () if body is None else narrow_body(body.branches, body.span)
        return Action(verb, _plain_atom(node), None, where, word.span.to(span_of(node)))

    def reject(self, children: list[Any]) -> Action:
        word, text = children
        return Action("reject", None, unescape_string(text), (), word.span.to(text.span))


def numbered_active_rule(rule: ActiveRule) -> ActiveRule:
    """Give every `_` of event, condition and what actions read a name of its own."""
    driven = () if rule.event is None else (rule.event.atom,)
    before = numbered_rule(Rule(Atom("rule"), (*driven, *rule.condition))).body
    event = rule.event
    if event is not None:
        assert isinstance(before[0], Atom)
        event = Event(event.kind, before[0])
    return replace(
        rule,
        event=event,
        condition=before[len(driven) :],
        actions=_number_wildcards(rule.actions, before),
        otherwise=_number_wildcards(rule.otherwise, before),
    )


def _number_wildcards(
    actions: tuple[Action, ...], before: tuple[Literal, ...]
) -> tuple[Action, ...]:
    """The actions with a name for each `_` that they read, other than those of the condition."""

    def numbered(action: Action) -> Action:
        whole = numbered_rule(Rule(Atom("rule"), (*before, *action.where)))
        return replace(action, where=whole.body[len(before) :])

    return tuple(numbered(action) if action.where else action for action in actions)


def _plain_atom(node: Any) -> Atom:
    atom = None if isinstance(node, Parenthesis) else narrow_atom(node)
    if atom is None:
        raise syntax_problem(catalogue.NOT_A_LITERAL, span_of(node))
    return atom
