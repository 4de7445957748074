"""Where things were written: sources, spans, and the origin of every rule.

An error found after six rewrites must still point at the user's line, so every rule carries an
`Origin`: either the span where a person wrote it, or the rewrite that made it and the origins of
the rules it was made from. `Origin.span` follows that chain to the text.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """A text with a name: a file, or something typed or passed in (`<text>`)."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0] + [i + 1 for i, character in enumerate(self.text) if character == "\n"]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from one."""
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a source, from `start` up to but not including `end`."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        return Span(self.source, self.start, max(self.end, other.end))

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Written at a span, or made by a rewrite from the rules that had these parent origins."""

    written: Span | None = None
    rewrite: str | None = None
    parents: tuple[Origin, ...] = ()

    @classmethod
    def made_by(cls, rewrite: str, *parents: Origin) -> Origin:
        return cls(None, rewrite, parents)

    @property
    def span(self) -> Span | None:
        if self.written is not None:
            return self.written
        return next((parent.span for parent in self.parents if parent.span is not None), None)

    def chain(self) -> str:
        """`magic_sets ← desugar ← graph.dl:4:1`, for explain and error notes."""
        if self.written is not None:
            return str(self.written)
        rest = self.parents[0].chain() if self.parents else "built in"
        return f"{self.rewrite} ← {rest}"
