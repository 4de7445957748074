"""Text to rule tree.

The token stream is cut at full stops and each statement is parsed alone (LALR, `grammar.lark`), so
every mistake in a file is found in one go. The grammar is wider than the language; this module
narrows it and says in plain words what does not fit.

`parse` follows `include "other.dl".` through the reader it is given; a file is read once however
often it is included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from lark import Lark, Transformer, UnexpectedInput
from lark.exceptions import VisitError

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, ProgramError, raise_if_any
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
    Program,
    Query,
    Rule,
    Term,
    Variable,
)
from deltalog.language.functions import INFIX
from deltalog.language.values import VALUE_ERRORS, canonical, parse_value
from deltalog.language.walk import names, substitute, substitute_atom
from deltalog.source import Origin, Source, Span

DEPTH_MAX = 150
ERRORS_MAX = 50
QUERIES_KEPT = 256
"""Parsed queries that are remembered."""

Reader: TypeAlias = Callable[[str, Source], Source]


class PlacedToken(str):
    """A token as lark's parser takes them, that knows its span."""

    __slots__ = ("span", "type")

    type: str
    span: Span


@dataclass(frozen=True)
class _Parenthesis:
    branches: tuple[tuple[Literal | Expression | _Parenthesis, ...], ...]
    span: Span


@dataclass(frozen=True)
class _Include:
    name: str
    span: Span


_Node: TypeAlias = Expression | _Parenthesis
_Statement: TypeAlias = Declaration | Rule | Query | _Include


class _SyntaxError(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def read_file(name: str, including: Source) -> Source:
    """The default reader: a path relative to the including file."""
    path = Path(name)
    if not path.is_absolute():
        path = Path(including.name).parent / path
    return Source(os.path.normpath(path), path.read_text(encoding="utf-8-sig"))


def parse(source: Source, read: Reader = read_file, *, has_parameters: bool = False) -> Program:
    """The program in `source` and everything it includes; raises with every syntax error.

    With `has_parameters` its queries may have some: whoever asks them supplies the values.
    """
    gathered = _Gathered()
    _gather(source, read, gathered, has_parameters)
    raise_if_any(gathered.problems)
    return Program(
        tuple(gathered.declarations),
        tuple(gathered.rules),
        tuple(gathered.facts),
        tuple(gathered.queries),
    )


def parse_text(text: str, name: str = "<text>") -> Program:
    """
    >>> parse_text("path(X, Y) :- edge(X, Y).").rules[0].head.predicate
    'path'
    """
    return parse(Source(name, text))


@lru_cache(maxsize=QUERIES_KEPT)
def parse_query(text: str) -> Query:
    """A query as written at a prompt: the leading `?` and the final stop may be left out.

    What is left out is added to the tokens and not to the text, so that a caret points at what was
    typed. Queries are remembered by their text.
    """
    source = Source("<query>", text)
    problems: list[Diagnostic] = []
    found = list(_statements(_query_tokens(source), problems, has_parameters=True))
    raise_if_any(problems)
    if len(found) != 1 or not isinstance(found[0], Query):
        span = Span(source, 0, len(text))
        raise ProgramError(
            [catalogue.UNEXPECTED_TOKEN.at(span, expected="one query", found="several statements")]
        )
    return found[0]


def _query_tokens(source: Source) -> list[PlacedToken]:
    """The tokens of a query, with its mark and its stop."""
    tokens = list(_tokens(source))
    end = len(source.text.rstrip())
    if not tokens or tokens[0].type != "QUESTION":
        start = tokens[0].span.start if tokens else end
        tokens.insert(0, _token("", "QUESTION", Span(source, start, start)))
    if tokens[-1].type not in ("STOP", "UNCLOSED_TEXT"):
        tokens.append(_token("", "STOP", Span(source, end, end)))
    return tokens


@dataclass
class _Gathered:
    declarations: list[Declaration] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    facts: list[Atom] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def _gather(source: Source, read: Reader, into: _Gathered, has_parameters: bool = False) -> None:
    into.seen.add(os.path.normpath(source.name))
    for statement in _statements(_tokens(source), into.problems, has_parameters):
        match statement:
            case Declaration():
                into.declarations.append(statement)
            case Query():
                into.queries.append(statement)
            case Rule(body=()) if _is_ground(statement.head):
                into.facts.append(statement.head)
            case Rule():
                into.rules.append(statement)
            case _Include():
                _follow(statement, source, read, into)


def _follow(include: _Include, source: Source, read: Reader, into: _Gathered) -> None:
    try:
        included = read(include.name, source)
    except (OSError, UnicodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        into.problems.append(
            catalogue.INCLUDE_FAILED.at(include.span, name=include.name, reason=reason.lower())
        )
        return
    if os.path.normpath(included.name) not in into.seen:
        _gather(included, read, into)


def _is_ground(head: Atom) -> bool:
    return all(isinstance(argument, Constant) for argument in head.arguments)


# --- tokens to statements -----------------------------------------------------------------------


@cache
def _grammar() -> Lark:
    text = resources.files("deltalog.language").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        text, parser="lalr", lexer="basic", start="statement", transformer=_Build(),
        maybe_placeholders=True,
    )  # fmt: skip


def _statements(
    tokens: Iterable[PlacedToken], problems: list[Diagnostic], has_parameters: bool
) -> Iterator[_Statement]:
    for chunk in _chunks(tokens, problems):
        if len(problems) > ERRORS_MAX:
            return
        try:
            if not has_parameters or chunk[0].type != "QUESTION":
                _refuse_parameters(chunk)
            yield _parse_statement(chunk)
        except _SyntaxError as problem:
            problems.append(problem.diagnostic)


def _refuse_parameters(tokens: Iterable[PlacedToken]) -> None:
    for token in tokens:
        if token.type == "PARAMETER":
            raise _problem(catalogue.PARAMETER_PLACE, token.span, name=str(token))


def _chunks(
    tokens: Iterable[PlacedToken], problems: list[Diagnostic]
) -> Iterator[list[PlacedToken]]:
    chunk: list[PlacedToken] = []
    damaged = False
    for token in tokens:
        if len(problems) > ERRORS_MAX:
            return
        if token.type in _LEXICAL:
            problems.append(_LEXICAL[token.type](token))
            damaged = True
            if token.type == "UNCLOSED_COMMENT":
                return
            if token.type == "UNCLOSED_TEXT":  # it swallowed the stop
                chunk, damaged = [], False
        elif token.type == "STOP":
            if chunk and not damaged:
                chunk.append(token)
                yield chunk
            elif not chunk and not damaged:
                problems.append(
                    catalogue.UNEXPECTED_TOKEN.at(token.span, expected="a statement", found="`.`")
                )
            chunk, damaged = [], False
        else:
            chunk.append(token)
    if chunk and not damaged:
        problems.append(catalogue.MISSING_STOP.at(chunk[0].span.to(chunk[-1].span)))


def _tokens(source: Source) -> Iterator[PlacedToken]:
    for found in _terminals().finditer(source.text):
        kind = found.lastgroup
        if kind not in _IGNORED:
            yield _token(found[0], str(kind), Span(source, found.start(), found.end()))


def _token(text: str, kind: str, span: Span) -> PlacedToken:
    token = PlacedToken(text)
    token.type, token.span = kind, span
    return token


@cache
def _terminals() -> re.Pattern[str]:
    """The terminals of the grammar as one expression, tried in the order that lark tries them."""
    ordered = sorted(
        _grammar().terminals,
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    return re.compile("|".join(f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in ordered))


_IGNORED = ("BLANK", "COMMENT")
_LEXICAL: dict[str, Callable[[PlacedToken], Diagnostic]] = {
    "BAD": lambda token: catalogue.UNEXPECTED_CHARACTER.at(
        token.span,
        character=f"`{token}`" if token.isprintable() else f"U+{ord(token):04X}",
        hint="text is written in double quotes" if token == "'" else None,
    ),
    "UNCLOSED_TEXT": lambda token: catalogue.UNTERMINATED.at(token.span, what="this text"),
    "UNCLOSED_COMMENT": lambda token: catalogue.UNTERMINATED.at(token.span, what="this comment"),
}


def _parse_statement(tokens: list[PlacedToken]) -> _Statement:
    """One statement from its tokens, the final stop included."""
    _check_depth(tokens)
    parser: Any = _grammar().parse_interactive()
    token = tokens[0]
    try:
        for token in tokens[:-1]:
            parser.feed_token(token)
        token = tokens[-1]
        statement: _Statement = parser.feed_eof()
    except UnexpectedInput:
        raise _SyntaxError(_unexpected(parser, token)) from None
    except VisitError as error:
        raise error.orig_exc from None
    return statement


def _unexpected(parser: Any, token: PlacedToken) -> Diagnostic:
    accepted = parser.accepts()
    words = [word for word, needed in _EXPECTED if needed in accepted] or ["a statement"]
    if {"VARIABLE", "INT"} <= accepted:
        words = ["an expression"] + [w for w in words if w in ("`)`", "`not`")]
    expected = ", ".join(words[:-1]) + (" or " if len(words) > 1 else "") + words[-1]
    found = f"`{token}`" if token else "the end"
    return catalogue.UNEXPECTED_TOKEN.at(token.span, expected=expected, found=found)


_EXPECTED = (
    ("`(`", "LPAR"),
    ("`,`", "COMMA"),
    ("`)`", "RPAR"),
    ("`:-`", "IF"),
    ("`:`", "COLON"),
    ("a comparison", "COMPARISON"),
    ("text", "TEXT"),
    ("a name", "NAME"),
    ("`.`", "$END"),
)


def _check_depth(tokens: list[PlacedToken]) -> None:
    levels = [0]
    for token in tokens:
        if token.type == "LPAR":
            levels.append(0)
        elif token.type == "RPAR" and len(levels) > 1:
            levels.pop()
        elif token.type in ("PLUS", "MINUS", "TIMES", "DIVIDE", "MOD"):
            levels[-1] += 1
        elif token.type in ("COMMA", "SEMICOLON", "COMPARISON", "IF"):
            levels[-1] = 0
        if len(levels) + sum(levels) > DEPTH_MAX:
            raise _SyntaxError(catalogue.TOO_DEEP.at(token.span, depth_max=DEPTH_MAX))


# --- grammar callbacks: parse events to nodes ---------------------------------------------------


def _problem(entry: catalogue.Entry, span: Span | None, **words: Any) -> _SyntaxError:
    return _SyntaxError(entry.at(span, **words))


def _user_name(token: PlacedToken) -> str:
    if "__" in token or (token[0] == "_" and token[1:].isdecimal()):
        raise _problem(catalogue.RESERVED_NAME, token.span, name=str(token))
    return str(token)


def _span_of(node: Any) -> Span:
    span = node.span
    assert isinstance(span, Span)
    return span


def _expression(node: _Node) -> Expression:
    """Narrow a parsed node to an expression."""
    if isinstance(node, Constant) and node.type in ("int", "float"):
        return _in_range(node)
    if not isinstance(node, _Parenthesis):
        return node
    if len(node.branches) > 1:
        raise _problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a disjunction")
    if len(node.branches[0]) > 1:
        raise _problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a conjunction")
    only = node.branches[0][0]
    if isinstance(only, Comparison):
        raise _problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a comparison")
    if isinstance(only, Negation):
        raise _problem(catalogue.NOT_AN_EXPRESSION, node.span, what="a negation")
    assert not isinstance(only, Atom | Disjunction)
    return _expression(only)


def _in_range(node: Constant) -> Constant:
    """Checked where a number is used and not where it is read: `-` may still come before it."""
    try:
        return replace(node, value=canonical(node.value, node.type))
    except VALUE_ERRORS:
        span = _span_of(node)
        number = span.text if len(span.text) <= 30 else f"{span.text[:30]}…"
        raise _problem(catalogue.NUMBER_OUT_OF_RANGE, span, number=number) from None


def _atom(node: _Node) -> Atom | None:
    if isinstance(node, Operation) and node.function not in INFIX:
        return Atom(node.function, node.arguments, node.span)
    return None


def _literal(node: Literal | _Node) -> Literal:
    """Narrow a parsed node to a literal."""
    match node:
        case Comparison() | Negation() | Atom() | Disjunction():
            return node
        case _Parenthesis(branches=branches, span=span):
            body = tuple(tuple(_literal(inner) for inner in branch) for branch in branches)
            if len(body) == 1 and len(body[0]) == 1:
                return body[0][0]
            return Disjunction(body, span)
    atom = _atom(node)
    if atom is None:
        hint = "compare it with something, as in `X = 1`"
        raise _problem(catalogue.NOT_A_LITERAL, _span_of(node), hint=hint)
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


class _Build(Transformer[Any, Any]):
    """Called by lark as it reduces, bottom-up: no recursion, however deep the text nests."""

    def statement(self, children: list[Any]) -> _Statement:
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
            raise _problem(catalogue.UNKNOWN_STATEMENT, span, words=" ".join(kinds), hint=hint)
        kind: Any = kinds[-1]
        return Declaration(kind, _user_name(words[-1]), columns, storage, words[-1].span)

    def columns(self, children: list[Any]) -> tuple[Column, ...]:
        return tuple(child for child in children if child is not None)

    def column(self, children: list[Any]) -> Column:
        name, type_, question, key = (*children, None, None, None)[:4]
        if type_ is not None and str(type_) not in TYPES:
            hint = did_you_mean(type_, TYPES) or f"the types are {', '.join(TYPES)}"
            raise _problem(catalogue.UNKNOWN_TYPE, type_.span, name=str(type_), hint=hint)
        if key is not None and str(key) != "key":
            nearest = did_you_mean(key, ["key"])
            raise _problem(catalogue.BAD_COLUMN, key.span, word=str(key), hint=nearest)
        known = None if type_ is None else str(type_)
        return Column(_user_name(name), known, question is not None, key is not None, name.span)

    def clause(self, children: list[Any]) -> Rule:
        head_node, arrow, body = children
        head = _atom(head_node) if not isinstance(head_node, _Parenthesis) else None
        if head is None:
            raise _problem(catalogue.NOT_A_HEAD, _span_of(head_node))
        head = replace(head, arguments=tuple(_head_term(a) for a in head.arguments))
        span = _span_of(head_node)
        literals = () if arrow is None else _body(body.branches, body.span)
        span = span if arrow is None else span.to(body.span)
        return _numbered_rule(Rule(head, literals, Origin(span)))

    def query(self, children: list[Any]) -> Query:
        mark, body = children
        literals = _body(body.branches, body.span)
        numbered = _numbered_rule(Rule(Atom("query"), literals))
        return Query(numbered.body, mark.span.to(body.span))

    def include(self, children: list[Any]) -> _Include:
        return _Include(_unescape(children[1]), children[1].span)

    def body(self, children: list[Any]) -> _Parenthesis:
        branches = tuple(child.branches[0] for child in children)
        return _Parenthesis(branches, children[0].span.to(children[-1].span))

    def conjunction(self, children: list[Any]) -> _Parenthesis:
        return _Parenthesis((tuple(children),), _span_of(children[0]).to(_span_of(children[-1])))

    def bare(self, children: list[Any]) -> _Node:
        return children[0]  # type: ignore[no-any-return]

    def comparison(self, children: list[Any]) -> Comparison:
        left, operator, right = children
        if str(operator) not in COMPARISONS:
            hint = did_you_mean(operator, [c for c in COMPARISONS if c[0].isalpha()])
            raise _SyntaxError(
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
        atom = None if isinstance(node, _Parenthesis) else _atom(node)
        if atom is None:
            raise _problem(
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
        return Variable(str(token) if token == "_" else _user_name(token), token.span)

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
        return Constant(_unescape(token), "str", token.span)

    def typed(self, children: list[Any]) -> Constant:
        name, token = children
        span = name.span.to(token.span)
        if str(name) not in ("date", "timestamp", "decimal"):
            hint = did_you_mean(name, ("date", "timestamp", "decimal"))
            raise _SyntaxError(
                catalogue.UNEXPECTED_TOKEN.at(
                    token.span, expected="`(`", found=f"`{token}`", hint=hint
                )
            )
        text = _unescape(token)
        try:
            return Constant(parse_value(text, str(name)), str(name), span)
        except VALUE_ERRORS:
            raise _problem(
                catalogue.BAD_LITERAL, span, text=text, type=str(name), hint=_LITERAL_HINTS[name]
            ) from None

    def word(self, children: list[Any]) -> Constant:
        (token,) = children
        if token == "null":
            return Constant(None, "null", token.span)
        return Constant(token == "true", "bool", token.span)

    def name(self, children: list[Any]) -> Operation:
        (token,) = children
        return Operation(_user_name(token), (), None, token.span)

    def call(self, children: list[Any]) -> Operation:
        name, _, *arguments, closing = children
        narrowed = tuple(_expression(a) for a in arguments if a is not None)
        return Operation(_user_name(name), narrowed, None, name.span.to(closing.span))

    def parenthesis(self, children: list[Any]) -> _Parenthesis:
        opening, body, closing = children
        return _Parenthesis(body.branches, opening.span.to(closing.span))


_LITERAL_HINTS = {
    "date": 'write it as in date"2026-01-31"',
    "timestamp": 'write it as in timestamp"2026-01-31 12:30:00"',
    "decimal": "a decimal has at most 20 digits before the point and 18 after it",
}


def _head_term(term: Term) -> Term:
    if isinstance(term, Operation) and term.function in AGGREGATES and term.type is None:
        if len(term.arguments) > 1:
            raise _problem(
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


def _unescape(token: PlacedToken) -> str:
    def replaced(found: re.Match[str]) -> str:
        code = found[1]
        if code in _ESCAPES:
            return _ESCAPES[code]
        point = int(code[2:-1], 16) if len(code) > 1 else -1
        if 0 <= point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
            return chr(point)
        raise _problem(catalogue.BAD_ESCAPE, token.span, escape=found[0])

    return _ESCAPE.sub(replaced, str(token)[1:-1])


def _numbered_rule(rule: Rule) -> Rule:
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


__all__ = ["Reader", "parse", "parse_query", "parse_text", "read_file"]
