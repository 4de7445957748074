"""The protocol of every engine: hold relations and run one round of a part.

An engine sees plans, never rules. A *part* is a set of rule plans that are run together; the engine
remembers, per rule and body atom, how far it has read. One *round* fires every rule of a part once
on what is new since then and adds what they derive at the end, so that no rule sees what another
derived in the same round: that is the consequence operator, and soft stratification relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from deltalog.language.arrow import arrow_rows, arrow_table, in_order, with_columns
from deltalog.language.ast import Column, Row
from deltalog.language.values import sort_key
from deltalog.plan.nodes import RankedDeletion, RulePlan

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Capabilities:
    """Properties that an engine declares; nobody finds them out by looking for methods.

    A fact takes about `fact_bytes` of this machine's memory, with what it takes to find it. With
    `has_samples` a sample costs little, as does a lookup. If its waves `drop_no_ops`, rows that are
    bound to a source may be there, or deleted, already. The others are the protocols of
    `extensions.py`, in their order.
    """

    fact_bytes: int
    has_samples: bool = False
    drops_no_ops: bool = False
    has_ranks: bool = False
    has_twins: bool = False
    prefetches: bool = False
    takes_frames: bool = False
    takes_raw_int64: bool = False


class Part(Protocol):
    """Plans prepared by an engine, with their reading positions."""

    def rewind(self) -> None:
        """Forget what has been read: the next round starts from the beginning."""


class RunResult(NamedTuple):
    """The end of a run of a sequence or a wave: all done, at a limit, or (neither) a pause.

    `productive` are the rounds that derived something, those before the run included. `generated`
    is lazy: it returns how many of the `facts` each predicate got. A deletion is aborted when it
    turns out to be more work than computing everything anew. `asked` is the station of a wave that
    the caller has to run, or -1; if the engine has aborted it, its rows are still there.
    """

    is_done: bool
    is_stopped: bool
    rounds: int
    productive: int
    facts: int = 0
    generated: Callable[[], Mapping[str, int]] = dict
    growing: tuple[str, ...] = ()
    is_aborted: bool = False
    asked: int = -1


class AbortedError(Exception):
    """The engine found that computing a component anew is less work than deleting from it."""


class Sequence(Protocol):
    """Parts that are run to their fixpoint, always the lowest one that yields something new."""

    def run(
        self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int
    ) -> RunResult:
        """Go on until nothing is new, a limit is reached, or a while has passed.

        `rounds` and `facts` have been used before; `until` is a time of `time.monotonic_ns`.
        """

    def rewind(self) -> None: ...


class LazyRows:
    """Rows as they were when they were copied; decoded into tuples only when they are read."""

    __slots__ = ("read", "size")

    def __init__(self, size: int, read: Callable[[], Iterable[Row]]) -> None:
        self.size = size
        self.read = read

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        return iter(self.read())

    def first(self, count: int) -> list[Row]:
        """Return some of the rows, in the order of storage."""
        return list(islice(self.read(), count))

    def in_order(self) -> LazyRows:
        """Return the rows sorted (see `sort_key`)."""
        rows = sorted(self.read(), key=sort_key)
        return LazyRows(len(rows), lambda: rows)

    def to_arrow(self, columns: tuple[Column, ...]) -> pyarrow.Table:
        """Return the rows as a table with these columns, in the order of storage."""
        return arrow_table(columns, self.read())


class LazyTable(LazyRows):
    """Canonical rows as an Arrow table with the schema of `arrow_schema`.

    Where rows come from a person they may repeat: an engine that takes them inserts each once.
    """

    __slots__ = ("table",)

    def __init__(self, table: pyarrow.Table) -> None:
        super().__init__(table.num_rows, lambda: arrow_rows(table))
        self.table = table

    def first(self, count: int) -> list[Row]:
        return arrow_rows(self.table.slice(0, count))

    def in_order(self) -> LazyTable:
        return LazyTable(in_order(self.table))

    def to_arrow(self, columns: tuple[Column, ...]) -> pyarrow.Table:
        return with_columns(self.table, columns)


Changed = frozenset[Row] | LazyRows
NO_ROWS: frozenset[Row] = frozenset()
Sides = tuple[dict[str, Changed], dict[str, Changed]]
"""Inserted and deleted rows, by relation; relations that do not change are left out."""


@dataclass(frozen=True)
class Station:
    """A place in a network: what flows in, what runs there, what it makes, what becomes of that.

    `flows` are the changes it reads; with as `many` rows in them the caller is asked. What is
    `made` is read by the stations numbered beside it; what is `forgotten` goes when it has run.
    Finally, what is `replaced` is emptied, `moves` are made (see `Engine.move`), and all that was
    `outlasting` the run is emptied. `shown` are its views, or the source, with the relations of
    what is inserted and deleted.
    """

    sequence: Sequence | None = None
    many: int = 0
    flows: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    made: tuple[tuple[str, int], ...] = ()
    replaced: tuple[str, ...] = ()
    moves: tuple[tuple[str, str, str], ...] = ()
    outlasting: tuple[str, ...] = ()
    shown: tuple[tuple[str, str, str], ...] = ()


class Wave(Protocol):
    """One change at a time on its way through the stations of a network, in their order.

    No-ops that are bound to a source are left out if the engine declares that it drops them;
    otherwise there may be none.
    """

    def place(self, number: int, station: Station) -> None: ...

    def bind(self, number: int, inserted: Changed, deleted: Changed) -> None:
        """Bind the change of a source: stations that read it are due."""

    def run(
        self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int
    ) -> RunResult:
        """Run what is due as far as the engine can do it by itself; else as `Sequence.run`."""

    def flows(self, number: int) -> tuple[int, ...]:
        """Return how many rows each flow had when the station was last reached."""

    def enter(self, number: int) -> None:
        """The caller runs this station."""

    def leave(self, number: int) -> None:
        """The caller has run it: who reads what it made is due."""

    def ran(self) -> tuple[int, ...]:
        """Return the stations that the last change reached, in that order."""

    def changes(self) -> Sides:
        """Return the change of sources and views, when all has been run and before the end."""

    def lazy_changes(self) -> Callable[[], Sides] | None:
        """Return the same, to be read at any time, even after the end; None if nothing changed."""

    def end(self, is_applied: bool) -> None:
        """All that ran is brought to its end; stored relations change only if it is applied."""


class Engine(Protocol):
    """Relations and rounds. Relations are named; rows are tuples of canonical values."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def fresh(self) -> Engine:
        """An engine of the same kind without any relations."""

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        """Make an empty relation; nothing happens if it exists."""

    def drop(self, relation: str) -> None: ...

    def clear(self, relation: str) -> None: ...

    def clear_all(self, relations: tuple[str, ...]) -> None: ...

    def size(self, relation: str) -> int: ...

    def rows(self, relation: str) -> Iterator[Row]: ...

    def sample(self, relation: str, count: int) -> Iterable[Row]:
        """Return `count` rows at random, the same each time; none if there are fewer."""

    def copied(self, relation: str) -> Changed:
        """The rows as they are now, whatever happens to the relation afterwards."""

    def present(self, relation: str, rows: Collection[Row]) -> Collection[bool]:
        """Return for each of the rows whether it is there."""

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        """Add rows; returns how many were new."""

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        """Remove rows; returns how many were there."""

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        """The rows with these values in these columns."""

    def history(self, relations: Collection[str]) -> Iterator[tuple[str, Row]]:
        """The rows of several relations together, in the order in which they were added."""

    def move(self, changes: tuple[tuple[str, str, str], ...]) -> None:
        """For each (stored, deleted, inserted): delete, then append in the order of derivation."""

    def settle(self) -> None:
        """A transaction is over: give back what is no longer needed."""

    def prepare(self, plans: tuple[RulePlan, ...]) -> Part: ...

    def prepare_deletion(self, plan: RankedDeletion) -> Part:
        """A part whose one round does the whole deletion."""

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        """Call this now and then inside a long round; it raises when a limit is reached."""

    def wave(self, stations: int) -> Wave:
        """A network of this many stations, none of them placed yet."""

    def sequence(self, parts: Collection[Part], is_soft: bool, may_abort: bool) -> Sequence:
        """Return the parts as one program; `SteppedSequence` where the engine has none of its own.

        If it `is_soft`, parts may have to run again after later ones; otherwise an engine may run a
        part to its fixpoint within one round. With `may_abort` it may abort a deletion (see
        `RunResult`).
        """

    def run_round(self, part: Part) -> dict[str, int]:
        """Fire every rule of the part once; returns the number of new facts per predicate."""
