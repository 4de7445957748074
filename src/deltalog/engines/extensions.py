"""Protocols of engines that can do more than every engine must, and how to ask for each.

An engine declares what it can do (`Capabilities`), and these functions read only that: a method
that happens to have the right name promises nothing.

    if is_ranked(engine):
        engine.ranks(relation, rows)
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol, Self, TypeGuard

from deltalog.engines.base import Engine
from deltalog.language.ast import Row, Value


class RankedEngine(Engine, Protocol):
    """An engine that returns ranks and takes them, as a database in a file needs it."""

    @property
    def clock(self) -> int:
        """The rank that the next row will get, whichever relation it is added to."""

    def ranks(self, relation: str, rows: Collection[Row]) -> list[int]:
        """The ranks of rows that are there."""

    def ranked(self, relation: str) -> Iterator[tuple[int, Row]]:
        """Every row with its rank, lowest first."""

    def load(self, relation: str, ranked: Collection[Row]) -> int:
        """Append rows that begin with their rank, lowest first; returns how many were new."""


class TwinnedEngine(Engine, Protocol):
    """An engine that compares relations with those of its twin where they are, undecoded."""

    def twin(self) -> Self:
        """An engine of the same kind without relations, to copy to and to compare with.

        While it is in use neither may settle.
        """

    def copy_from(self, relation: str, twin: Self) -> None:
        """Fill an empty relation with the rows that it has in the twin."""

    def beyond(self, relation: str, twin: Self) -> list[Row]:
        """The rows of a relation that it does not have in the twin."""


class PrefetchingEngine(Engine, Protocol):
    """An engine that fetches rows from elsewhere, those that it expects together."""

    @property
    def local(self) -> Callable[[], Engine]:
        """Makes an engine of this process, for what has been fetched."""

    def find(self, relation: str, columns: tuple[int, ...], keys: Collection[Row]) -> list[Row]:
        """The rows that have one of these keys."""

    def values(self, relation: str, column: int) -> set[Value]:
        """The different values of a column; the rows stay where they are."""

    def expect(self, relation: str, columns: tuple[int, ...], keys: Collection[Row]) -> None:
        """These keys will be looked up."""

    def look_ahead(self, relation: str, rows: Collection[Row]) -> None:
        """These rows may come to a relation: rules will look up what follows from them."""


class FrameEngine(Engine, Protocol):
    """An engine that takes DataFrames as they are."""

    def load_frame(self, relation: str, data: Any) -> int:
        """Add the rows of a DataFrame with canonical values; returns how many were new."""


NULL_WORD = -(2**63)
"""Null, where rows are words."""


class RawInt64Engine(Engine, Protocol):
    """An engine that takes and returns rows of ints as 64-bit words, row after row.

    Where there are millions of them, nobody has to make tuples.
    """

    def insert_words(self, relation: str, words: array[int]) -> int: ...

    def words(self, relation: str) -> array[int]:
        """In the order in which the rows were added."""


def is_ranked(engine: Engine) -> TypeGuard[RankedEngine]:
    return engine.capabilities.has_ranks


def is_twinned(engine: Engine) -> TypeGuard[TwinnedEngine]:
    return engine.capabilities.has_twins


def is_prefetching(engine: Engine) -> TypeGuard[PrefetchingEngine]:
    return engine.capabilities.prefetches


def takes_frames(engine: Engine) -> TypeGuard[FrameEngine]:
    return engine.capabilities.takes_frames


def takes_raw_int64(engine: Engine) -> TypeGuard[RawInt64Engine]:
    return engine.capabilities.takes_raw_int64
