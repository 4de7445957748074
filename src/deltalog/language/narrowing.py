"""Narrowing: from what the grammar accepts to what a statement may contain.

    edge(X, 3)   an operation when it is parsed, an `Atom` where a literal or a head is expected

The grammar is wider than the language. Where a node does not fit, a `StatementError` carries the
diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import (
    AGGREGATES,
    TYPES,
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.functions import INFIX
from deltalog.language.values import VALUE_ERRORS, canonical_value
from deltalog.language.walk import substitute_atom, substitute_literal, variable_names
from deltalog.source import Span


class PlacedToken(str):
    """A token as lark's parser takes them, that knows its span."""

    __slots__ = ("is_system", "span", "type")

    type: str
    span: Span
    is_system: bool
    """Whether it may be the name of a hidden relation: set for the name of a fact only."""


@dataclass(frozen=True)
class Parenthesis:
    branches: tuple[tuple[Literal | Expression | Parenthesis, ...], ...]
    span: Span


Node: TypeAlias = Expression | Parenthesis


class StatementError(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def syntax_problem(entry: catalogue.Entry, span: Span | None, **words: Any) -> StatementError:
    return StatementError(entry.at(span, **words))


def user_name(token: PlacedToken) -> str:
    is_reserved = "__" in token and not getattr(token, "is_system", False)
    if is_reserved or (token[0] == "_" and token[1:].isdecimal()):
        raise syntax_problem(catalogue.RESERVED_NAME, token.span, name=str(token))
    return str(token)


def column_type(token: PlacedToken) -> str:
    if str(token) not in TYPES:
        hint = did_you_mean(token, TYPES) or f"the types are {', '.join(TYPES)}"
        raise syntax_problem(catalogue.UNKNOWN_TYPE, token.span, name=str(token), hint=hint)
    return str(token)


def span_of(node: Any) -> Span:
    span = node.span
    assert isinstance(span, Span)
    return span


def narrow_expression(node: Node) -> Expression:
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
    return narrow_expression(only)


def _in_range(node: Constant) -> Constant:
    """Checked where a number is used and not where it is read: `-` may still come before it."""
    try:
        return replace(node, value=canonical_value(node.value, node.type))
    except VALUE_ERRORS:
        span = span_of(node)
        number = span.text if len(span.text) <= 30 else f"{span.text[:30]}…"
        raise syntax_problem(catalogue.NUMBER_OUT_OF_RANGE, span, number=number) from None


def narrow_atom(node: Node) -> Atom | None:
    if isinstance(node, Operation) and node.function not in INFIX:
        return Atom(node.function, node.arguments, node.span)
    return None


def narrow_head(node: Node) -> Atom:
    """Narrow a parsed node to the head of a rule, whose arguments may be aggregates."""
    head = None if isinstance(node, Parenthesis) else narrow_atom(node)
    if head is None:
        raise syntax_problem(catalogue.NOT_A_HEAD, span_of(node))
    return replace(head, arguments=tuple(head_term(a) for a in head.arguments))


def narrow_literal(node: Literal | Node) -> Literal:
    """Narrow a parsed node to a literal."""
    match node:
        case Comparison() | Negation() | Atom() | Disjunction():
            return node
        case Parenthesis(branches=branches, span=span):
            body = tuple(tuple(narrow_literal(inner) for inner in branch) for branch in branches)
            if len(body) == 1 and len(body[0]) == 1:
                return body[0][0]
            return Disjunction(body, span)
    atom = narrow_atom(node)
    if atom is None:
        hint = "compare it with something, as in `X = 1`"
        raise syntax_problem(catalogue.NOT_A_LITERAL, span_of(node), hint=hint)
    return atom


def narrow_body(branches: Iterable[tuple[Any, ...]], span: Span) -> tuple[Literal, ...]:
    narrowed = tuple(
        _flatten_conjunctions(narrow_literal(node) for node in branch) for branch in branches
    )
    if len(narrowed) == 1:
        return narrowed[0]
    return (Disjunction(narrowed, span),)


def _flatten_conjunctions(body: Iterable[Literal]) -> tuple[Literal, ...]:
    """Parentheses around a mere conjunction add nothing."""
    flat: list[Literal] = []
    for literal in body:
        if isinstance(literal, Disjunction):
            branches = tuple(_flatten_conjunctions(branch) for branch in literal.branches)
            if len(branches) == 1:
                flat += branches[0]
            else:
                flat.append(replace(literal, branches=branches))
        else:
            flat.append(literal)
    return tuple(flat)


def head_term(term: Term) -> Term:
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


def unescape_string(token: PlacedToken) -> str:
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
    taken = set(variable_names(*nodes))
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
        body=tuple(substitute_literal(literal, numbered) for literal in rule.body),
    )
