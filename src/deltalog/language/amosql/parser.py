"""Text to statements of AMOSQL.

The token stream is cut at every `;` outside of a `begin … end` block, and each statement is parsed
alone (LALR, `grammar.lark`), as those of the rule language are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from lark import Lark

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, ProgramError, raise_if_any
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.amosql.tree import Statement
from deltalog.language.amosql.tree_builder import TreeBuilder
from deltalog.language.grammars import load_grammar
from deltalog.language.narrowing import PlacedToken, StatementError
from deltalog.language.parser import ERRORS_MAX
from deltalog.language.statement_parser import check_depth, parse_statement
from deltalog.language.tokens import LEXICAL, expected_words, terminals_of, tokens_of
from deltalog.source import Source, Span


@dataclass(frozen=True)
class Parsed:
    """A statement and all of its text, the final `;` included."""

    statement: Statement
    span: Span

    @property
    def text(self) -> str:
        return self.span.text


@dataclass(frozen=True)
class Piece:
    """The tokens of one statement, the last of them its `;` unless that is missing."""

    tokens: tuple[PlacedToken, ...]
    is_ended: bool

    @property
    def span(self) -> Span:
        return self.tokens[0].span.to(self.tokens[-1].span)


def parse_statements(source: Source) -> tuple[Parsed, ...]:
    """All statements of a source; raises with every syntax error."""
    problems: list[Diagnostic] = []
    found: list[Parsed] = []
    for piece in statement_pieces(source):
        try:
            found.append(parse_piece(piece))
        except ProgramError as error:
            problems += error.diagnostics
        if len(problems) > ERRORS_MAX:
            break
    raise_if_any(problems)
    return tuple(found)


def statement_pieces(source: Source) -> Iterator[Piece]:
    """The statements of a source, not parsed yet.

    >>> [each.span.text for each in statement_pieces(Source("<text>", "begin; f(1); commit;"))]
    ['begin;', 'f(1);', 'commit;']
    """
    waiting: list[PlacedToken] = []
    depth = 0
    for token in tokens_of(source, _terminal_pattern()):
        if token.type == "SEMICOLON" and waiting and waiting[-1].type == "BEGIN":
            depth = max(depth - 1, 0)  # `begin;` opens a transaction, and not a block
        depth += (token.type == "BEGIN") - (token.type == "END" and depth > 0)
        waiting.append(token)
        if token.type == "SEMICOLON" and depth == 0:
            yield Piece(tuple(waiting), True)
            waiting = []
    if waiting:
        yield Piece(tuple(waiting), False)


def parse_piece(piece: Piece) -> Parsed:
    """The statement of a piece, or a `ProgramError`."""
    damaged = [LEXICAL[token.type](token) for token in piece.tokens if token.type in LEXICAL]
    raise_if_any(damaged)
    if not piece.is_ended:
        raise ProgramError([errors.MISSING_SEMICOLON.at(piece.span)])
    try:
        check_depth(piece.tokens, _DEEPENING, ("COMMA", "SEMICOLON"))
        unexpected = partial(_unexpected_token, piece.tokens)
        return Parsed(parse_statement(_load_grammar(), piece.tokens, unexpected), piece.span)
    except StatementError as problem:
        raise ProgramError([problem.diagnostic]) from None


def _unexpected_token(
    tokens: Sequence[PlacedToken], accepted: Collection[str], token: PlacedToken
) -> Diagnostic:
    expected = expected_words(accepted, _EXPECTED)
    if {"OBJECT", "INT"} <= {*accepted}:
        expected = "an expression"
    found = f"`{token}`"
    hint = _word_meant(tokens)
    return catalogue.UNEXPECTED_TOKEN.at(token.span, expected=expected, found=found, hint=hint)


def _word_meant(tokens: Sequence[PlacedToken]) -> str | None:
    """A hint for a statement that begins with a name: a call, or a word that is misspelt."""
    kinds = [token.type for token in tokens[:2]]
    if kinds == ["NAME", "LPAR"]:
        return None
    if kinds[0] == "NAME":
        return did_you_mean(tokens[0].lower(), _BEGINNINGS)
    return did_you_mean(tokens[1].lower(), _CREATED) if kinds == ["CREATE", "NAME"] else None


_BEGINNINGS = [
    "create",
    "set",
    "add",
    "remove",
    "delete",
    "select",
    "activate",
    "deactivate",
    "begin",
    "commit",
    "rollback",
]
_CREATED = ("type", "function", "rule")
_KEYWORDS = (
    "under as for each on when do to from end select into where of type function rule instances"
)
_EXPECTED = (
    ("`(`", "LPAR"),
    ("`,`", "COMMA"),
    ("`)`", "RPAR"),
    ("`->`", "ARROW"),
    ("`=`", "EQUALS"),
    ("text", "TEXT"),
    ("a name", "NAME"),
    ("an object like `:x`", "OBJECT"),
    *((f"`{word}`", word.upper()) for word in _KEYWORDS.split()),
    ("`;`", "$END"),
)


_DEEPENING = ("PLUS", "MINUS", "TIMES", "DIVIDE", "MOD", "AND", "OR", "NOT")


@cache
def _load_grammar() -> Lark:
    return load_grammar(Path(__file__).parent, TreeBuilder())


@cache
def _terminal_pattern() -> re.Pattern[str]:
    return terminals_of(_load_grammar())
