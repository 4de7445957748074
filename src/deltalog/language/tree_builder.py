"""Grammar callbacks: parse events to nodes of the rule tree.

    edge(X, 3)   ->   Atom("edge", (Variable("X"), Constant(3, "int")))

The grammar is wider than the language. Where a parse does not fit, a `StatementError` carries the
diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from lark import Transformer

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import (
    AGGREGATES,
    COMPARISONS,
    TYPES,
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Declaration,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Query,
    Rule,
    Term,
    Variable,
)
from deltalog.language.functions import INFIX
from deltalog.language.values import VALUE_ERRORS, canonical, parse_value
from deltalog.language.walk import names, substitute, substitute_atom
from deltalog.source import Origin, Span


class PlacedToken(str):
    """A token as lark's parser takes them, that knows its span."""

    __slots__ = ("span", "type")

    type: str
    span: Span


@dataclass(frozen=True)
class Parenthesis:
    branches: tuple[tuple[Literal | Expression | Parenthesis, ...], ...]
    span: Span


@dataclass(frozen=True)
class Include:
    name: str
    span: Span


Node: TypeAlias = Expression | Parenthesis
Statement: TypeAlias = Declaration | Rule | Query | Include


class StatementError(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def syntax_problem(entry: catalogue.Entry, span: Span | None, **words: Any) -> StatementError:
    return StatementError(entry.at(span, **words))


def user_name(token: PlacedToken) -> str:
    if "__" in token or (token[0] == "_" and token[1:].isdecimal()):
        raise syntax_problem(catalogue.RESERVED_NAME, token.span, name=str(token))
    return str(token)


def _span_of(node: Any) -> Span:
    span = node.span
    assert isinstance(span, Span)
    return span


def _expression(node: Node) -> Expression:
    """Narrow a parsed node to an expression."""
    if isinstance(node, Constant) and node.type in ("int", "float"):
        return _in_range(node)
    if not isinstance(node, Parenthesis):
        return node
    if len(node.branches) > 1:
        raise syntax_problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a disjunction")
    if len(node.branches[0]) > 1:
        raise syntax_problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a conjunction")
    only = node.branches[0][0]
    if isinstance(only, Comparison):
        raise syntax_problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a comparison")
    if isinstance(only, Negation):
        raise syntax_problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a negation")
    assert not isinstance(only, Atom | Disjunction)
    return _expression(only)


def _in_range(node: Constant) -> Constant:
    """Checked where a number is used and not where it is read: `-` may still come before it."""
    try:
        return replace(node, value=canonical(node.value, node.type))
    except VALUE_ERRORS:
        span = _span_of(node)
        number = span.text if len(span.text) <= 30 else f"{span.text[:30]}…"
        raise syntax_problem(catalogue.NUMBER_OUT_OF_RANGE, span, number=number) from None


def _atom(node: Node) -> Atom | None:
    if isinstance(node, Operation) and node.function not in INFIX:
        return Atom(node.function, node.arguments, node.span)
    return None


def _literal(node: Literal | Node) -> Literal:
    """Narrow a parsed node to a literal."""
    match node:
        case Comparison() | Negation() | Atom() | Disjunction():
            return node
        case Parenthesis(branches=branches, span=span):
            body = tuple(tuple(_literal(inner) for inner in branch) for branch in branches)
            if len(body) == 1 and len(body[0]) == 1:
                return body[0][0]
            return Disjunction(body, span)
    atom = _atom(node)
    if atom is None:
        hint = "compare it with something, as in `X = 1`"
        raise syntax_problem(catalogue.NOT_A_LITERAL, _span_of(node), hint=hint)
    return atom


def _body(branches: Iterable[tuple[Any, ...]], span: Span) -> tuple[Literal, ...]:
    narrowed = tuple(_flatten(_literal(node) for node in branch) for branch in branches)
    if len(narrowed) == 1:
        return narrowed[0]
    return (Disjunction(narrowed, span),)


def _flatten(body: Iterable[Literal]) -> tuple[Literal, ...]:
    """Parentheses around a mere conjunction add nothing."""
    flat: list[Literal] = []
    for literal in body:
        if isinstance(literal, Disjunction):
            branches = tuple(_flatten(branch) for branch in literal.branches)
            if len(branches) == 1:
                flat += branches[0]
            else:
                flat.append(replace(literal, branches=branches))
        else:
            flat.append(literal)
    return tuple(flat)


class TreeBuilder(Transformer[Any, Any]):
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
        if type_ is not None and str(type_) not in TYPES:
            hint = did_you_mean(type_, TYPES) or f"the types are {', '.join(TYPES)}"
            raise syntax_problem(catalogue.UNKNOWN_TYPE, type_.span, name=str(type_), hint=hint)
        if key is not None and str(key) != "key":
            nearest = did_you_mean(key, ["key"])
            raise syntax_problem(catalogue.BAD_COLUMN, key.span, word=str(key), hint=nearest)
        known = None if type_ is None else str(type_)
        return Column(user_name(name), known, question is not None, key is not None, name.span)

    def clause(self, children: list[Any]) -> Rule:
        head_node, arrow, body = children
        head = _atom(head_node) if not isinstance(head_node, Parenthesis) else None
        if head is None:
            raise syntax_problem(catalogue.NOT_A_HEAD, _span_of(head_node))
        head = replace(head, arguments=tuple(_head_term(a) for a in head.arguments))
        span = _span_of(head_node)
        literals = () if arrow is None else _body(body.branches, body.span)
        span = span if arrow is None else span.to(body.span)
        return numbered_rule(Rule(head, literals, Origin(span)))

    def query(self, children: list[Any]) -> Query:
        mark, body = children
        literals = _body(body.branches, body.span)
        numbered = numbered_rule(Rule(Atom("query"), literals))
        return Query(numbered.body, mark.span.to(body.span))

    def include(self, children: list[Any]) -> Include:
        return Include(unescape(children[1]), children[1].span)

    def body(self, children: list[Any]) -> Parenthesis:
        branches = tuple(child.branches[0] for child in children)
        return Parenthesis(branches, children[0].span.to(children[-1].span))

    def conjunction(self, children: list[Any]) -> Parenthesis:
        return Parenthesis((tuple(children),), _span_of(children[0]).to(_span_of(children[-1])))

    def bare(self, children: list[Any]) -> Node:
        return children[0]  # type: ignore[no-any-return]

    def comparison(self, children: list[Any]) -> Comparison:
        left, operator, right = children
        if str(operator) not in COMPARISONS:
            hint = did_you_mean(operator, [c for c in COMPARISONS if c[0].isalpha()])
            raise StatementError(
                catalogue.UNEXPECTED_TOKEN.at(
                    operator.span,
                    expected="`,`, `.` or a comparison",
                    found=f"`{operator}`",
                    hint=hint,
                )
            )
        span = _span_of(left).to(_span_of(right))
        return Comparison(str(operator), _expression(left), _expression(right), None, span)

    def negation(self, children: list[Any]) -> Negation:
        word, node = children
        atom = None if isinstance(node, Parenthesis) else _atom(node)
        if atom is None:
            raise syntax_problem(
                catalogue.NOT_A_LITERAL,
                word.span.to(_span_of(node)),
                hint="`not` takes one atom; define a view for a longer condition",
            )
        return Negation(atom, word.span.to(_span_of(node)))

    def infix(self, children: list[Any]) -> Operation:
        left, operator, right = children
        span = _span_of(left).to(_span_of(right))
        return Operation(str(operator), (_expression(left), _expression(right)), None, span)

    def negative(self, children: list[Any]) -> Expression:
        minus, node = children
        span = minus.span.to(_span_of(node))
        if isinstance(node, Constant) and node.type in ("int", "float"):
            return replace(node, value=-node.value, span=span)  # type: ignore[operator]
        operand = _expression(node)
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
        return Constant(unescape(token), "str", token.span)

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
        text = unescape(token)
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
        narrowed = tuple(_expression(a) for a in arguments if a is not None)
        return Operation(user_name(name), narrowed, None, name.span.to(closing.span))

    def parenthesis(self, children: list[Any]) -> Parenthesis:
        opening, body, closing = children
        return Parenthesis(body.branches, opening.span.to(closing.span))


LITERAL_HINTS = {
    "date": 'write it as in date"2026-01-31"',
    "timestamp": 'write it as in timestamp"2026-01-31 12:30:00"',
    "decimal": "a decimal has at most 20 digits before the point and 18 after it",
}


def _head_term(term: Term) -> Term:
    if isinstance(term, Operation) and term.function in AGGREGATES and term.type is None:
        if len(term.arguments) > 1:
            raise syntax_problem(
                catalogue.AGGREGATE_ARITY,
                term.span,
                name=term.function,
                wanted="one argument" if term.function != "count" else "no arguments",
                given=len(term.arguments),
            )
        argument = term.arguments[0] if term.arguments else None
        return Aggregate(term.function, argument, None, term.span)
    return term


_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_ESCAPE = re.compile(r"\\(u\{[0-9A-Fa-f]{1,6}\}|.)")


def unescape(token: PlacedToken) -> str:
    def replaced(found: re.Match[str]) -> str:
        code = found[1]
        if code in _ESCAPES:
            return _ESCAPES[code]
        point = int(code[2:-1], 16) if len(code) > 1 else -1
        if 0 <= point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
            return chr(point)
        raise syntax_problem(catalogue.BAD_ESCAPE, token.span, escape=found[0])

    return _ESCAPE.sub(replaced, str(token)[1:-1])


def numbered_rule(rule: Rule) -> Rule:
    """Give every `_` a name of its own."""
    nodes = (rule.head, *rule.body)
    taken = set(names(*nodes))
    if "_" not in taken:
        return rule
    count = 0

    def numbered(variable: Variable) -> Variable:
        nonlocal count
        if variable.name != "_":
            return variable
        count += 1
        while f"_{count}" in taken:
            count += 1
        return replace(variable, name=f"_{count}")

    return replace(
        rule,
        head=substitute_atom(rule.head, numbered),
        body=tuple(substitute(literal, numbered) for literal in rule.body),
    )
