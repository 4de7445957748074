"""Realizations of view updates, and the budget of the search for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, cast

from deltalog.diagnostics.arguments import check_argument
from deltalog.language.ast import Row, Value
from deltalog.language.values import print_value
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.level_trace import Round


class Wish(NamedTuple):
    """A fact that shall hold in the new state, or shall not; in what shall not, ANY is allowed."""

    holds: bool
    relation: str
    row: Row

    def __str__(self) -> str:
        shown = ", ".join("_" if value is ANY else print_value(value) for value in self.row)
        return f"{'+' if self.holds else '-'}{self.relation}({shown})"


ANY = cast("Value", object())
"""Any value, in a fact that shall not hold."""


def are_contradictory(wish: Wish, other: Wish) -> bool:
    """Whether one shall hold and the other, which is the same fact or covers it, shall not."""
    if wish.holds == other.holds or wish.relation != other.relation:
        return False
    pairs = zip(wish.row, other.row, strict=True)
    return all(mine is ANY or theirs is ANY or mine == theirs for mine, theirs in pairs)


@dataclass(frozen=True)
class Budget:
    """How far a search goes before it stops and says that it is not complete."""

    nodes: int = 100_000
    seconds: float = 60.0
    answers: int | None = None
    changes: float | None = None
    """The most that a realization may cost: base facts that change, if each costs one."""
    new_values: int = 2
    """How many values that occur nowhere may be invented: rules that invent them may go on for
    ever."""

    def __post_init__(self) -> None:
        is_count = isinstance(self.new_values, int) and not isinstance(self.new_values, bool)
        hint = "it is a whole number, 0 or more"
        check_argument(
            is_count and self.new_values >= 0, "Budget.new_values", self.new_values, hint
        )
        for name in ("nodes", "seconds", "answers", "changes"):
            value = getattr(self, name)
            if value is None and name in ("answers", "changes"):
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            hint = "it is a number, more than 0"
            check_argument(is_number and value > 0, f"Budget.{name}", value, hint)


class Realization:
    """A change of base relations that brings about what was requested, and all that it induces.

    `delta` is propagated when it is first asked for, in the state that was searched. `new_values`
    are values that occur nowhere else: any other new value would do as well. In a repair of a
    refused change, `additions` are the base changes beside those that were refused. If it
    `is_default`, it is the choice that the program declares.
    """

    def __init__(
        self,
        delta: Callable[[], ChangeSet],
        base: ChangeSet,
        new_values: tuple[Value, ...],
        commit: Callable[[ChangeSet], ChangeSet],
        additions: ChangeSet | None = None,
        is_default: bool = False,
        wishes: tuple[Wish, ...] = (),
    ) -> None:
        self.is_default = is_default
        self._read_delta = delta
        self._wishes = wishes
        self.additions = base if additions is None else additions
        self.base = base
        self.new_values = new_values
        self._commit = commit

    @cached_property
    def delta(self) -> ChangeSet:
        """The exact change of all relations and views."""
        return self._read_delta()

    @cached_property
    def side_effects(self) -> ChangeSet:
        """The changes of views beside what was requested."""
        views = self.delta.without(*self.base.relations)
        inserted = {name: set(views.inserted[name]) for name in views.inserted}
        deleted = {name: set(views.deleted[name]) for name in views.deleted}
        for wish in self._wishes:
            (inserted if wish.holds else deleted).get(wish.relation, set()).discard(wish.row)
        return ChangeSet(inserted, deleted)

    @cached_property
    def side_effect_count(self) -> int:
        """How many facts of views change beside what was requested, counted without reading all."""
        delta = self.delta
        wished = (
            wish.row in (delta.inserted if wish.holds else delta.deleted)[wish.relation]
            for wish in set(self._wishes)
            if wish.relation not in self.base.relations
        )
        return len(delta) - len(self.base) - sum(wished)

    @property
    def inserted(self) -> Mapping[str, frozenset[Row]]:
        """Base facts to be inserted, by relation."""
        return self.base.inserted

    @property
    def deleted(self) -> Mapping[str, frozenset[Row]]:
        """Base facts to be deleted, by relation."""
        return self.base.deleted

    def apply(self, values: Mapping[Value, Value] | None = None) -> ChangeSet:
        """Commit it as one transaction, new values replaced by those in `values`."""
        shown = ", ".join(map(print_value, self.new_values)) or "none"
        hint = f"it replaces new values, which are: {shown}"
        is_mapping = values is None or isinstance(values, Mapping)
        check_argument(
            is_mapping and {*(values or ())} <= {*self.new_values}, "values", values, hint
        )
        change = self._commit(_replace_values(self.base, values or {}))
        if not values:
            self.__dict__.setdefault("delta", change)
        return change

    def __len__(self) -> int:
        """How many base facts change."""
        return len(self.base)

    def __repr__(self) -> str:
        return str(self.base).replace("ChangeSet", "Realization", 1)


def _replace_values(change: ChangeSet, values: Mapping[Value, Value]) -> ChangeSet:
    if not values:
        return change

    def rows(facts: frozenset[Row]) -> set[Row]:
        return {tuple(values.get(value, value) for value in row) for row in facts}

    return ChangeSet(
        {name: rows(facts) for name, facts in change.inserted.items()},
        {name: rows(facts) for name, facts in change.deleted.items()},
    )


@dataclass
class Realizations:
    """Minimal realizations, as they are found, the smallest first.

    When all are read, `is_complete` says whether these are all there are; otherwise `reasons` tell
    what was left out. `already` are the requests that hold without any change. A search by levels
    tells in `rounds` what it requested and changed.
    """

    already: tuple[str, ...]
    hints: tuple[str, ...]
    source: Iterator[Realization] = field(repr=False)
    reasons: dict[str, None] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    is_exhausted: bool = False

    @property
    def is_complete(self) -> bool:
        return self.is_exhausted and not self.reasons

    def __iter__(self) -> Iterator[Realization]:
        yield from self.source
