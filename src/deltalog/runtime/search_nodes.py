"""Nodes of a search for realizations: wishes, and what is known of them (`view_updates.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from deltalog.language.ast import Row, Rule, Value
from deltalog.language.printer import print_rule
from deltalog.language.walk import atoms_of
from deltalog.rewrites import names
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.realization import Wish


@dataclass(frozen=True)
class Node:
    """Wishes, the base changes among them, and for each derived one what it is derived from."""

    wishes: frozenset[Wish]
    change: frozenset[Wish]
    supports: Mapping[Wish, tuple[Wish, ...]] = field(default_factory=dict)
    absent: frozenset[Wish] = frozenset()
    """Wishes with placeholders; for values with which they do not hold after the change."""
    pending: tuple[Wish, ...] = ()
    """Insertions with placeholders that are certainly different facts (`placeholders.py`)."""
    least: float = 0.0
    """The least cost of every realization that comes of it, as its parents know."""
    promise: float = 0.0
    """The side effects that are estimated."""
    depth: int = 0

    @property
    def key(self) -> tuple[frozenset[Wish], frozenset[tuple[Wish, tuple[Wish, ...]]]]:
        return self.wishes, frozenset(self.supports.items())


Children = Iterator[tuple[float, float, Node | None]]
"""Nodes that follow another, each with what it and all later ones cost at least, and promise."""
Entry: TypeAlias = tuple[float, float, int, int, int, Children | Node]
"""In a queue: the least cost, the promise, nodes before what makes more of them, the deepest."""


def change_set(change: Iterable[Wish]) -> ChangeSet:
    sides: tuple[dict[str, set[Row]], dict[str, set[Row]]] = {}, {}
    for wish in change:
        sides[not wish.holds].setdefault(wish.relation, set()).add(wish.row)
    return ChangeSet(*sides)


def is_aggregated(rule: Rule) -> bool:
    """Whether a rule is an aggregate, or brings one back to its head."""
    read = (atom.predicate for atom, _ in atoms_of(rule.body))
    return rule.is_aggregate or any(map(names.is_generated, read))


def through_aggregate(rule: Rule) -> str:
    """Name the aggregate through which nothing is requested, as it is written."""
    shown = print_rule(rule) if rule.span is None else rule.span.text
    return f"`{rule.head.predicate}` is an aggregate, through which nothing is requested: {shown}"


def is_renamed_part(
    part: frozenset[Wish], whole: frozenset[Wish], is_new: Callable[[str, int, Value], bool]
) -> bool:
    """Whether a change is contained in another one, with new values in place of its own new ones.

    What is new in a column may be any other value that is new there.
    """
    wanted = [wish for wish in part if wish not in whole]
    if len(part) > len(whole) or not all(_has_new(wish, is_new) for wish in wanted):
        return False
    return _can_match(sorted(part, key=repr), whole, {}, is_new)


def _has_new(wish: Wish, is_new: Callable[[str, int, Value], bool]) -> bool:
    return any(is_new(wish.relation, i, value) for i, value in enumerate(wish.row))


def _can_match(
    wanted: list[Wish],
    whole: frozenset[Wish],
    names_: Mapping[Value, Value],
    is_new: Callable[[str, int, Value], bool],
) -> bool:
    if not wanted:
        return True
    first, *rest = wanted
    for wish in whole:
        if (wish.holds, wish.relation) == (first.holds, first.relation):
            longer = dict(names_)
            places = enumerate(zip(first.row, wish.row, strict=True))
            if all(
                _can_rename(longer, first.relation, i, *pair, is_new) for i, pair in places
            ) and (_can_match(rest, whole, longer, is_new)):
                return True
    return False


def _can_rename(
    renamed: dict[Value, Value],
    relation: str,
    position: int,
    mine: Value,
    theirs: Value,
    is_new: Callable[[str, int, Value], bool],
) -> bool:
    if not is_new(relation, position, mine):
        return mine == theirs
    if mine not in renamed and theirs not in renamed.values():
        renamed[mine] = theirs
    return renamed.get(mine) == theirs and is_new(relation, position, theirs)


def denied_rows(wishes: Iterable[Wish], relation: str) -> set[Row]:
    return {wish.row for wish in wishes if wish.relation == relation and not wish.holds}


def leads_to(
    wishes: Iterable[Wish], target: Wish, supports: Mapping[Wish, tuple[Wish, ...]]
) -> bool:
    waiting, seen = list(wishes), set()
    while waiting:
        wish = waiting.pop()
        if wish == target:
            return True
        if wish not in seen:
            seen.add(wish)
            waiting += supports.get(wish, ())
    return False
