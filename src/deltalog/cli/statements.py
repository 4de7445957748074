"""Input of the prompt, split into statements at full stops.

    +edge(1, 2). -edge(2, 3). ? path(1, Y).       two changes, then a query

This reads just enough of the language to find the stops (texts, comments and numbers may contain
one) and to know how a statement begins; the parser does the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal as OneOf

Kind = OneOf["change", "query", "clause"]

_TOKEN = re.compile(
    r"""
      (?P<blank> \s+ | %[^\n]* | /\*(?:[^*]|\*(?!/))*\*/ )
    | (?P<open> /\* )
    | (?P<text> "(?:[^"\\\n]|\\[^\n])*"? )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* | [0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)? )
    | (?P<stop> \. )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Statement:
    """A piece of the input from `start` up to `end`, its stop included if it has one."""

    kind: Kind
    start: int
    end: int


def is_complete(text: str) -> bool:
    """Whether the text ends with a full stop (or says nothing), so that it can be carried out.

    >>> is_complete("path(X, Y) :-"), is_complete("edge(1, 2).  % done"), is_complete("p(1.5)")
    (False, True, False)
    """
    last = "stop"
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "open":
            return False
        if token.lastgroup != "blank":
            last = token.lastgroup or ""
    return last == "stop"


def one_line(text: str) -> str:
    """The same statements without line breaks and comments, as the history keeps them.

    >>> one_line("path(X, Y) :-  % short\\n    edge(X, Y).")
    'path(X, Y) :- edge(X, Y).'
    """
    pieces: list[str] = []
    for token in _TOKEN.finditer(text):
        if token.lastgroup != "blank":
            pieces.append(token[0])
        elif pieces and pieces[-1] != " ":
            pieces.append(" ")
    return "".join(pieces).rstrip()


def split_statements(text: str) -> Iterator[Statement]:
    """Every statement; the last may lack its stop."""
    start: int | None = None
    kind: Kind = "clause"
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "blank":
            continue
        if start is None:
            start, kind = token.start(), _statement_kind(token[0])
        if token.lastgroup == "stop":
            yield Statement(kind, start, token.end())
            start = None
    if start is not None:
        yield Statement(kind, start, len(text))


def group_statements(text: str) -> Iterator[tuple[Kind, list[Statement]]]:
    """Neighbours of one kind together: changes are one transaction, clauses one addition."""
    for kind, members in groupby(split_statements(text), key=lambda statement: statement.kind):
        yield kind, list(members)


def _statement_kind(first: str) -> Kind:
    return "change" if first in "+-" else "query" if first == "?" else "clause"
