"""Relational plans: what an engine gets instead of rules.

One rule becomes one pipeline of steps over numbered slots, in the order they are to be done:

    path(X, Y) :- edge(X, Z), path(Z, Y).
    match path -> Z=0 Y=1 (new rows)  |  match edge with dst=0 -> X=2  |  emit path(2, 1)

A rule has a variant per body atom that may grow: that atom reads only what is new, atoms before it
only what is old, atoms after it everything. Together the variants join every combination once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from deltalog.language.ast import Value
from deltalog.source import Origin


@dataclass(frozen=True, slots=True)
class Slot:
    """A numbered place for the value of a variable."""

    index: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant; the type keeps equal-looking values of different types apart."""

    value: Value
    type: str


@dataclass(frozen=True, slots=True)
class Compute:
    """A function of operands; it has no value where an operand is null or the result undefined."""

    function: str
    type: str
    operands: tuple[Operand, ...]


Operand: TypeAlias = Slot | Fixed | Compute


@dataclass(frozen=True, slots=True)
class Overlay:
    """A state that is not stored: a stored relation without `minus` and with `plus`.

    The new state while the old one is stored, the old one after an update in place (the logical
    rollback of Risch & Sköld 1999), or what is left after deletions. Nothing is copied.
    """

    stored: str
    minus: str
    plus: str | None = None


class Window(Enum):
    """Which rows of a relation a match reads, seen from the last time the rule read it."""

    ALL = "all"
    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Match:
    """For every row whose `key` columns have these values, bind the others.

    `same` holds columns that must equal a slot bound by this very match: `edge(X, X)`. Of an
    overlay only the `plus` rows can be new. A ranked match reads only rows that are older than the
    fact whose support is examined.
    """

    relation: str | Overlay
    key: tuple[tuple[int, Slot | Fixed], ...] = ()
    bind: tuple[tuple[int, Slot], ...] = ()
    same: tuple[tuple[int, Slot], ...] = ()
    window: Window = Window.ALL
    occurrence: int = 0
    is_ranked: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """Go on only if no row has these values in its `key` columns."""

    relation: str | Overlay
    key: tuple[tuple[int, Slot | Fixed], ...] = ()


@dataclass(frozen=True, slots=True)
class Test:
    """Go on only if the comparison holds; nothing holds of an operand without a value."""

    operator: str
    left: Operand
    right: Operand
    type: str


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a slot a value; go on only if there is one."""

    slot: Slot
    value: Operand


Step: TypeAlias = Match | Absent | Test | Assign


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps, and the row to emit for every way through them; the first slots are `inputs`."""

    steps: tuple[Step, ...]
    output: tuple[Slot | Fixed, ...]
    slots: int
    inputs: int = 0


@dataclass(frozen=True, slots=True)
class Total:
    """One aggregate of a head: the function over the values in a column of the bindings."""

    function: str
    column: int | None
    type: str | None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How a group becomes a head row: from the group's values, constants, and totals.

    `bindings` has the group's values in its first slots and emits every body binding.
    """

    head: tuple[Slot | Fixed | Total, ...]
    bindings: Pipeline


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule ready to run.

    `variants` each start from what is new in one occurrence; `initial` (if there is nothing that
    may grow) runs once. With an aggregation they emit the values of groups to be computed anew.
    """

    head: str
    variants: tuple[Pipeline, ...]
    initial: Pipeline | None
    occurrences: tuple[str, ...]
    aggregation: Aggregation | None = None
    origin: Origin = field(default=Origin(), compare=False, repr=False)

    @property
    def is_test(self) -> bool:
        """Whether its head has no columns, so that it holds or not."""
        return self.aggregation is None and not self.pipelines[0].output

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        own = (self.initial,) if self.initial is not None else ()
        bindings = (self.aggregation.bindings,) if self.aggregation is not None else ()
        return (*own, *self.variants, *bindings)


@dataclass(frozen=True, slots=True)
class RankedDeletion:
    """Estimate the deletions of a recursive component, stopping where support remains.

    Per predicate: `suspects` are the facts that lost a derivation to begin with, `deleted` receives
    those that must go, `doubtful` those of them that had support but for its rank. `lost` holds,
    for a deleted fact (its columns are inputs), the heads of all rules of the component that used
    it; `support` the rules that may still derive a fact (its columns are inputs) from standing
    facts of lower rank.
    """

    predicates: tuple[str, ...]
    suspects: tuple[str, ...]
    deleted: tuple[str, ...]
    doubtful: tuple[str, ...]
    lost: tuple[tuple[tuple[str, Pipeline], ...], ...]
    support: tuple[tuple[Pipeline, ...], ...]
