"""Text to rule tree.

The token stream is cut at full stops and each statement is parsed alone (LALR, `grammar.lark`), so
every mistake in a file is found in one run. The nodes are built by `tree_builder.py`.

`parse_program` follows `include "other.dl".` through the `read` argument; a file is read once
however often it is included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TypeAlias

from lark import Lark

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, ProgramError, raise_if_any
from deltalog.language.ast import (
    ActiveRule,
    Atom,
    Constant,
    Constraint,
    Declaration,
    DisjunctiveRule,
    Program,
    Query,
    Rule,
    UpdateChoice,
)
from deltalog.language.grammars import load_grammar
from deltalog.language.keywords import mark_keywords
from deltalog.language.narrowing import PlacedToken, StatementError, syntax_problem
from deltalog.language.statement_hints import hint_for
from deltalog.language.statement_parser import check_depth, parse_statement
from deltalog.language.tokens import LEXICAL, expected_words, placed_token, terminals_of, tokens_of
from deltalog.language.tree_builder import Include, Statement, TreeBuilder
from deltalog.source import Source, Span

ERRORS_MAX = 50
QUERIES_KEPT = 256
"""Parsed queries that are remembered."""

Reader: TypeAlias = Callable[[str, Source], Source]


def read_file(name: str, including: Source) -> Source:
    """The default reader: a path relative to the including file."""
    path = Path(name)
    if not path.is_absolute():
        path = Path(including.name).parent / path
    return Source(os.path.normpath(path), path.read_text(encoding="utf-8-sig"))


def parse_program(
    source: Source, read: Reader = read_file, *, has_parameters: bool = False
) -> Program:
    """The program in `source` and everything it includes; raises with every syntax error.

    With `has_parameters` its queries may have some: whoever asks them supplies the values.
    """
    gathered = _Gathered()
    _gather_statements(source, read, gathered, has_parameters)
    raise_if_any(gathered.problems)
    return Program(
        tuple(gathered.declarations),
        tuple(gathered.rules),
        tuple(gathered.facts),
        tuple(gathered.queries),
        tuple(gathered.constraints),
        tuple(gathered.active_rules),
        tuple(gathered.disjunctive_rules),
        tuple(gathered.update_choices),
    )


def parse_text(text: str, name: str = "<text>") -> Program:
    """
    >>> parse_text("path(X, Y) :- edge(X, Y).").rules[0].head.predicate
    'path'
    """
    return parse_program(Source(name, text))


@lru_cache(maxsize=QUERIES_KEPT)
def parse_query(text: str) -> Query:
    """A query as written at a prompt: the leading `?` and the final stop may be left out.

    What is left out is added to the tokens and not to the text, so that a caret points at what was
    typed. Queries are remembered by their text.
    """
    source = Source("<query>", text)
    problems: list[Diagnostic] = []
    found = list(_parse_statements(_query_tokens(source), problems, has_parameters=True))
    raise_if_any(problems)
    if len(found) != 1 or not isinstance(found[0], Query):
        span = Span(source, 0, len(text))
        raise ProgramError(
            [catalogue.UNEXPECTED_TOKEN.at(span, expected="one query", found="several statements")]
        )
    return found[0]


def _query_tokens(source: Source) -> list[PlacedToken]:
    """The tokens of a query, with its mark and its stop."""
    tokens = list(tokens_of(source, _terminal_pattern()))
    end = len(source.text.rstrip())
    if not tokens or tokens[0].type != "QUESTION":
        start = tokens[0].span.start if tokens else end
        tokens.insert(0, placed_token("", "QUESTION", Span(source, start, start)))
    if tokens[-1].type not in ("STOP", "UNCLOSED_TEXT"):
        tokens.append(placed_token("", "STOP", Span(source, end, end)))
    return tokens


@dataclass
class _Gathered:
    declarations: list[Declaration] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    facts: list[Atom] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    active_rules: list[ActiveRule] = field(default_factory=list)
    disjunctive_rules: list[DisjunctiveRule] = field(default_factory=list)
    update_choices: list[UpdateChoice] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def _gather_statements(
    source: Source, read: Reader, into: _Gathered, has_parameters: bool = False
) -> None:
    into.seen.add(os.path.normpath(source.name))
    for statement in _parse_statements(
        tokens_of(source, _terminal_pattern()), into.problems, has_parameters
    ):
        match statement:
            case Declaration():
                into.declarations.append(statement)
            case Query():
                into.queries.append(statement)
            case Rule(body=()) if _is_ground(statement.head):
                into.facts.append(statement.head)
            case Rule():
                into.rules.append(statement)
            case Constraint():
                into.constraints.append(statement)
            case ActiveRule():
                into.active_rules.append(statement)
            case DisjunctiveRule():
                into.disjunctive_rules.append(statement)
            case UpdateChoice():
                into.update_choices.append(statement)
            case Include():
                _follow_include(statement, source, read, into)


def _follow_include(include: Include, source: Source, read: Reader, into: _Gathered) -> None:
    try:
        included = read(include.name, source)
    except (OSError, UnicodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        into.problems.append(
            catalogue.INCLUDE_FAILED.at(include.span, name=include.name, reason=reason.lower())
        )
        return
    if os.path.normpath(included.name) not in into.seen:
        _gather_statements(included, read, into)


def _is_ground(head: Atom) -> bool:
    return all(isinstance(argument, Constant) for argument in head.arguments)


# --- tokens to statements -----------------------------------------------------------------------


@cache
def _load_grammar() -> Lark:
    return load_grammar(Path(__file__).parent, TreeBuilder())


def _parse_statements(
    tokens: Iterable[PlacedToken], problems: list[Diagnostic], has_parameters: bool
) -> Iterator[Statement]:
    for chunk in _split_statements(tokens, problems):
        if len(problems) > ERRORS_MAX:
            return
        try:
            if not has_parameters or chunk[0].type != "QUESTION":
                _refuse_parameters(chunk)
            yield _parse_statement(chunk)
        except StatementError as problem:
            problems.append(problem.diagnostic)


def _refuse_parameters(tokens: Iterable[PlacedToken]) -> None:
    for token in tokens:
        if token.type == "PARAMETER":
            raise syntax_problem(catalogue.PARAMETER_PLACE, token.span, name=str(token))


def _split_statements(
    tokens: Iterable[PlacedToken], problems: list[Diagnostic]
) -> Iterator[list[PlacedToken]]:
    chunk: list[PlacedToken] = []
    damaged = False
    for token in tokens:
        if len(problems) > ERRORS_MAX:
            return
        if token.type in LEXICAL:
            problems.append(LEXICAL[token.type](token))
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


@cache
def _terminal_pattern() -> re.Pattern[str]:
    return terminals_of(_load_grammar())


def _parse_statement(tokens: list[PlacedToken]) -> Statement:
    """One statement from its tokens, the final stop included."""
    check_depth(tokens, _DEEPENING, ("COMMA", "SEMICOLON", "COMPARISON", "IF"))
    mark_keywords(tokens)
    if _SYSTEM_FACT.match(tokens[0]) and {t.type for t in tokens}.isdisjoint(("IF", "VARIABLE")):
        tokens[0].is_system = True
    unexpected = partial(_unexpected_token, tokens)
    statement: Statement = parse_statement(_load_grammar(), tokens, unexpected)
    return statement


_SYSTEM_FACT = re.compile(r"[a-z]\w*__\w")
"""The name of a hidden relation; a dump has facts of these."""
_DEEPENING = ("PLUS", "MINUS", "TIMES", "DIVIDE", "MOD")


def _unexpected_token(
    tokens: Sequence[PlacedToken], accepted: Collection[str], token: PlacedToken
) -> Diagnostic:
    is_value = {"VARIABLE", "INT"} <= {*accepted}
    expected = expected_words(accepted, _EXPECTED_IN_VALUES if is_value else _EXPECTED)
    found = f"`{token}`" if token else "the end"
    hint = hint_for(tokens, token)
    if token.type == "LPAR" and _CAPITALIZED.search(token.span.source.text, 0, token.span.start):
        hint = "the name of a relation begins with a small letter; a capital makes a variable"
    return catalogue.UNEXPECTED_TOKEN.at(token.span, expected=expected, found=found, hint=hint)


_WORDS_OF_RULES = "for priority immediate nervous on when do where else"
_CAPITALIZED = re.compile(r"\b[A-Z]\w*$")
_EXPECTED_IN_VALUES = (("an expression", "VARIABLE"), ("`)`", "RPAR"))
_EXPECTED = (
    ("`(`", "LPAR"),
    ("`,`", "COMMA"),
    ("`)`", "RPAR"),
    ("`:-`", "IF"),
    ("`:`", "COLON"),
    ("a comparison", "COMPARISON"),
    ("text", "TEXT"),
    ("a name", "NAME"),
    ("a variable", "VARIABLE"),
    ("a whole number", "INT"),
    *((f"`{word}`", word.upper()) for word in _WORDS_OF_RULES.split()),
    ("`.`", "$END"),
)


__all__ = ["Reader", "parse_program", "parse_query", "parse_text", "read_file"]
