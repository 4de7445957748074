"""One statement from its tokens, by the grammar of either notation.

The token stream is cut into statements before (`parser.py`, `amosql/parser.py`); each is parsed
alone, so every mistake in a file is found in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from lark import Lark, UnexpectedInput
from lark.exceptions import VisitError

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.language.narrowing import PlacedToken, StatementError

DEPTH_MAX = 150

Unexpected = Callable[[Collection[str], PlacedToken], Diagnostic]
"""Makes the diagnostic for a token where a parser accepts others."""


def parse_statement(grammar: Lark, tokens: Sequence[PlacedToken], unexpected: Unexpected) -> Any:
    """The tree of a statement; the last of its tokens ends it, and belongs to no grammar."""
    parser: Any = grammar.parse_interactive()
    token = tokens[0]
    try:
        for token in tokens[:-1]:
            parser.feed_token(token)
        token = tokens[-1]
        return parser.feed_eof()
    except UnexpectedInput:
        raise StatementError(unexpected(parser.accepts(), token)) from None
    except VisitError as error:
        raise error.orig_exc from None


def check_depth(
    tokens: Sequence[PlacedToken], deepening: Collection[str], ending: Collection[str]
) -> None:
    """Refuse deep nesting before the parser meets it.

    Parentheses deepen, and so do operators in a row until one of the `ending` tokens.
    """
    levels = [0]
    for token in tokens:
        if token.type == "LPAR":
            levels.append(0)
        elif token.type == "RPAR" and len(levels) > 1:
            levels.pop()
        elif token.type in deepening:
            levels[-1] += 1
        elif token.type in ending:
            levels[-1] = 0
        if len(levels) + sum(levels) > DEPTH_MAX:
            raise StatementError(catalogue.TOO_DEEP.at(token.span, depth_max=DEPTH_MAX))
