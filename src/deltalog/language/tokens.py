"""Tokens with their places, cut from a text by the terminals of a grammar.

The parsers of both notations are fed with tokens one by one: a statement is parsed alone, and what
is wrong with it has a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from lark import Lark

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.language.narrowing import PlacedToken
from deltalog.source import Source, Span


def placed_token(text: str, kind: str, span: Span) -> PlacedToken:
    token = PlacedToken(text)
    token.type, token.span = kind, span
    return token


def tokens_of(source: Source, terminals: re.Pattern[str]) -> Iterator[PlacedToken]:
    """The tokens of a source without blanks and comments."""
    start = len(BYTE_ORDER_MARK) if source.text.startswith(BYTE_ORDER_MARK) else 0
    for found in terminals.finditer(source.text, start):
        kind = found.lastgroup
        if kind not in _IGNORED:
            yield placed_token(found[0], str(kind), Span(source, found.start(), found.end()))


def terminals_of(grammar: Lark) -> re.Pattern[str]:
    """The terminals of a grammar as one expression, tried in the order that lark tries them."""
    ordered = sorted(
        grammar.terminals,
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    return re.compile("|".join(f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in ordered))


BYTE_ORDER_MARK = "\ufeff"
_IGNORED = ("BLANK", "COMMENT")
LEXICAL: dict[str, Callable[[PlacedToken], Diagnostic]] = {
    "BAD": lambda token: catalogue.UNEXPECTED_CHARACTER.at(
        token.span,
        character=f"`{token}`" if token.isprintable() else f"U+{ord(token):04X}",
        hint=_character_hint(token),
    ),
    "UNCLOSED_TEXT": lambda token: catalogue.UNTERMINATED.at(token.span, what="this text"),
    "UNCLOSED_COMMENT": lambda token: catalogue.UNTERMINATED.at(token.span, what="this comment"),
}
"""Tokens that no statement contains, with what is wrong about each."""


def _character_hint(character: str) -> str | None:
    if character == "'":
        return "text is written in double quotes"
    if character.isalpha():
        return "names are written with the letters a to z, digits and `_`; text in double quotes"
    return None


def expected_words(accepted: Collection[str], words: Collection[tuple[str, str]]) -> str:
    """`a, b or c`: the words for those tokens that a parser would accept."""
    found = [word for word, needed in words if needed in accepted] or ["a statement"]
    return ", ".join(found[:-1]) + (" or " if len(found) > 1 else "") + found[-1]
