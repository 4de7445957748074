"""Relations as the rest of the system sees them: names, kinds, typed columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal as OneOf
from typing import TypeAlias

from deltalog.language.ast import (
    Column,
)
from deltalog.language.values import PlainTypes, plain_types
from deltalog.source import Span

Storage: TypeAlias = OneOf["materialized", "virtual"]


@dataclass(frozen=True)
class Relation:
    """A base relation or view as the rest of the system sees it."""

    name: str
    kind: OneOf["base", "view"]
    columns: tuple[Column, ...]
    storage: Storage = "materialized"
    is_declared: bool = True  # its columns were, that is; otherwise they are inferred
    inferred: frozenset[int] = frozenset()
    span: Span | None = field(default=None, compare=False, repr=False)

    @cached_property
    def arity(self) -> int:
        return len(self.columns)

    @cached_property
    def is_nullable(self) -> bool:
        """Whether some column is."""
        return any(column.nullable for column in self.columns)

    @cached_property
    def types(self) -> tuple[str | None, ...]:
        return tuple(column.type for column in self.columns)

    @cached_property
    def plain_types(self) -> PlainTypes:
        return plain_types(self.types)

    @cached_property
    def key(self) -> tuple[int, ...]:
        """Positions of the key columns; empty when the relation has no key."""
        return tuple(i for i, column in enumerate(self.columns) if column.key)


Relations = Mapping[str, Relation]
