"""What every engine can do: hold relations and run one round of a part.

An engine sees plans, never rules. A *part* is a set of rule plans that are run together; the engine
remembers, per rule and body atom, how far it has read. One *round* fires every rule of a part once
on what is new since then and adds what they derive at the end, so that no rule sees what another
derived in the same round: that is the consequence operator, and soft stratification relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from deltalog.language.ast import Row
from deltalog.plan.nodes import RankedDeletion, RulePlan


class Part(Protocol):
    """Plans prepared by an engine, with their reading positions.

    If it `is_soft`, parts below it may have to run between two of its rounds. Otherwise an engine
    may run it to its fixpoint within one round.
    """

    is_soft: bool

    def rewind(self) -> None:
        """Forget what has been read: the next round starts from the beginning."""


class Engine(Protocol):
    """Relations and rounds. Relations are named; rows are tuples of canonical values."""

    @property
    def name(self) -> str: ...

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        """Make an empty relation; nothing happens if it exists."""

    def drop(self, relation: str) -> None: ...

    def clear(self, relation: str) -> None: ...

    def size(self, relation: str) -> int: ...

    def rows(self, relation: str) -> Iterator[Row]: ...

    def contains(self, relation: str, row: Row) -> bool: ...

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        """Add rows; answers how many were new."""

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        """Remove rows; answers how many were there."""

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        """The rows with these values in these columns."""

    def history(self, relations: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """The rows of several relations together, in the order in which they were added."""

    def prepare(self, plans: tuple[RulePlan, ...]) -> Part: ...

    def prepare_deletion(self, plan: RankedDeletion) -> Part:
        """A part whose one round does the whole deletion."""

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        """Call this now and then inside a long round; it raises when a limit is reached."""

    def run_round(self, part: Part) -> dict[str, int]:
        """Fire every rule of the part once; answers the number of new facts per predicate."""
