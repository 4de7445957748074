"""Grammar callbacks: parse events to nodes of the rule tree.

    edge(X, 3)   ->   Atom("edge", (Variable("X"), Constant(3, "int")))

The grammar is wider than the language; `narrowing.py` reports where a parse does not fit. Callbacks
of constraints and active rules are in `active_statements.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from lark import Transformer

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.active_statements import ActiveStatements
from deltalog.language.ast import (
    COMPARISONS,
    ActiveRule,
    Atom,
    Column,
    Comparison,
    Constant,
    Constraint,
    Declaration,
    DisjunctiveRule,
    Expression,
    Negation,
    Operation,
    Query,
    Rule,
    UpdateChoice,
    Variable,
)
from deltalog.language.narrowing import (
    Node,
    Parenthesis,
    PlacedToken,
    StatementError,
    column_type,
    narrow_atom,
    narrow_body,
    narrow_expression,
    narrow_head,
    numbered_rule,
    span_of,
    syntax_problem,
    unescape_string,
    user_name,
)
from deltalog.language.statement_hints import hint_for_operator
from deltalog.language.values import VALUE_ERRORS, parse_value
from deltalog.source import Origin, Span


@dataclass(frozen=True)
class Include:
    name: str
    span: Span


Statement: TypeAlias = (
    Declaration | Rule | DisjunctiveRule | Query | Include | Constraint | ActiveRule | UpdateChoice
)


class TreeBuilder(ActiveStatements, Transformer[Any, Any]):
    """Called by lark as it reduces, bottom-up: no recursion, however deep the text nests."""

    def statement(self, children: list[Any]) -> Statement:
        return children[0]  # type: ignore[no-any-return]

    def declaration(self, children: list[Any]) -> Declaration:
        words = [child for child in children if isinstance(child, PlacedToken)]
        columns = next((child for child in children if isinstance(child, tuple)), None)
        kinds = tuple(str(word) for word in words[:-1])
        span = words[0].span.to(words[-1].span)
        storage: Any = kinds[0] if len(kinds) == 2 else None
        if kinds not in (("base",), ("view",), ("materialized", "view"), ("virtual", "view")):
            known = ("base", "view", "materialized view", "virtual view")
            hint = did_you_mean(" ".join(kinds), known)
            raise syntax_problem(
                catalogue.UNKNOWN_STATEMENT, span, words=" ".join(kinds), hint=hint
            )
        kind: Any = kinds[-1]
        return Declaration(kind, user_name(words[-1]), columns, storage, words[-1].span)

    def columns(self, children: list[Any]) -> tuple[Column, ...]:
        return tuple(child for child in children if child is not None)

    def column(self, children: list[Any]) -> Column:
        name, type_, question, key = (*children, None, None, None)[:4]
        if key is not None and str(key) != "key":
            nearest = did_you_mean(key, ["key"])
            raise syntax_problem(catalogue.BAD_COLUMN, key.span, word=str(key), hint=nearest)
        known = None if type_ is None else column_type(type_)
        return Column(user_name(name), known, question is not None, key is not None, name.span)

    def clause(self, children: list[Any]) -> Rule | DisjunctiveRule:
        *head_nodes, arrow, body, _, text = children
        heads = tuple(map(narrow_head, head_nodes))
        span = span_of(head_nodes[0]).to(span_of(head_nodes[-1]))
        literals = () if arrow is None else narrow_body(body.branches, body.span)
        span = span if arrow is None else span.to(body.span)
        if len(heads) == 1:
            message = None if text is None else unescape_string(text)
            return numbered_rule(Rule(heads[0], literals, Origin(span), message=message))
        if text is not None:
            raise syntax_problem(
                catalogue.UNEXPECTED_TOKEN, text.span, expected="`.`", found="a sentence"
            )
        numbered = numbered_rule(Rule(Atom("heads"), (*heads, *literals))).body
        named = tuple(each for each in numbered[: len(heads)] if isinstance(each, Atom))
        return DisjunctiveRule(named, numbered[len(heads) :], Origin(span))

    def query(self, children: list[Any]) -> Query:
        mark, body = children
        literals = narrow_body(body.branches, body.span)
        numbered = numbered_rule(Rule(Atom("query"), literals))
        return Query(numbered.body, mark.span.to(body.span))

    def include(self, children: list[Any]) -> Include:
        return Include(unescape_string(children[1]), children[1].span)

    def body(self, children: list[Any]) -> Parenthesis:
        branches = tuple(child.branches[0] for child in children)
        return Parenthesis(branches, children[0].span.to(children[-1].span))

    def conjunction(self, children: list[Any]) -> Parenthesis:
        return Parenthesis((tuple(children),), span_of(children[0]).to(span_of(children[-1])))

    def bare(self, children: list[Any]) -> Node:
        return children[0]  # type: ignore[no-any-return]

    def comparison(self, children: list[Any]) -> Comparison:
        left, operator, right = children
        if str(operator) not in COMPARISONS:
            hint = hint_for_operator(operator)
            raise StatementError(
                catalogue.UNEXPECTED_TOKEN.at(
                    operator.span,
                    expected="`,`, `.` or a comparison",
                    found=f"`{operator}`",
                    hint=hint,
                )
            )
        span = span_of(left).to(span_of(right))
        return Comparison(
            str(operator), narrow_expression(left), narrow_expression(right), None, span
        )

    def negation(self, children: list[Any]) -> Negation:
        word, node = children
        atom = None if isinstance(node, Parenthesis) else narrow_atom(node)
        if atom is None:
            raise syntax_problem(
                catalogue.NOT_A_LITERAL,
                word.span.to(span_of(node)),
                hint="`not` takes one atom; define a view for a longer condition",
            )
        return Negation(atom, word.span.to(span_of(node)))

    def infix(self, children: list[Any]) -> Operation:
        left, operator, right = children
        span = span_of(left).to(span_of(right))
        return Operation(
            str(operator), (narrow_expression(left), narrow_expression(right)), None, span
        )

    def negative(self, children: list[Any]) -> Expression:
        minus, node = children
        span = minus.span.to(span_of(node))
        if isinstance(node, Constant) and node.type in ("int", "float"):
            return replace(node, value=-node.value, span=span)  # type: ignore[operator]
        operand = narrow_expression(node)
        return Operation("-", (operand,), None, span)

    def variable(self, children: list[Any]) -> Variable:
        (token,) = children
        return Variable(str(token) if token == "_" else user_name(token), token.span)

    def parameter(self, children: list[Any]) -> Variable:
        (token,) = children
        return Variable(str(token), token.span)

    def integer(self, children: list[Any]) -> Constant:
        (token,) = children
        digits = token.lstrip("0") or "0"
        value = int(digits) if len(digits) <= 30 else 10**30
        return Constant(value, "int", token.span)

    def floating(self, children: list[Any]) -> Constant:
        (token,) = children
        return Constant(float(token), "float", token.span)

    def text(self, children: list[Any]) -> Constant:
        (token,) = children
        return Constant(unescape_string(token), "str", token.span)

    def typed(self, children: list[Any]) -> Constant:
        name, token = children
        span = name.span.to(token.span)
        if str(name) not in ("date", "timestamp", "decimal"):
            hint = did_you_mean(name, ("date", "timestamp", "decimal"))
            raise StatementError(
                catalogue.UNEXPECTED_TOKEN.at(
                    token.span, expected="`(`", found=f"`{token}`", hint=hint
                )
            )
        text = unescape_string(token)
        try:
            return Constant(parse_value(text, str(name)), str(name), span)
        except VALUE_ERRORS:
            raise syntax_problem(
                catalogue.BAD_LITERAL, span, text=text, type=str(name), hint=LITERAL_HINTS[name]
            ) from None

    def word(self, children: list[Any]) -> Constant:
        (token,) = children
        if token == "null":
            return Constant(None, "null", token.span)
        return Constant(token == "true", "bool", token.span)

    def name(self, children: list[Any]) -> Operation:
        (token,) = children
        return Operation(user_name(token), (), None, token.span)

    def call(self, children: list[Any]) -> Operation:
        name, _, *arguments, closing = children
        narrowed = tuple(narrow_expression(a) for a in arguments if a is not None)
        return Operation(user_name(name), narrowed, None, name.span.to(closing.span))

    def parenthesis(self, children: list[Any]) -> Parenthesis:
        opening, body, closing = children
        return Parenthesis(body.branches, opening.span.to(closing.span))


LITERAL_HINTS = {
    "date": 'write it as in date"2026-01-31"',
    "timestamp": 'write it as in timestamp"2026-01-31 12:30:00"',
    "decimal": "a decimal has at most 20 digits before the point and 18 after it",
}
