"""Placeholders: values of a search node that no fact has determined yet.

    wanted: +denied(ann, plan)      denied(U, D) :- in_group(U, G), deny(G, D).
    node:   +in_group(ann, ?1), +deny(?1, plan)

A node with placeholders stands for all nodes that have values in their place. It is expanded as it
is as long as that is possible, and costs at least what its open insertions cost: so most of what
it stands for is never made. A fact that a literal is joined with determines a placeholder;
otherwise it gets a value of its columns, or a new one, when nothing else is left to do.

Placeholders are typed: by the columns that can hold the same values (`analysis/domains.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from deltalog.analysis.domains import Place
from deltalog.language.ast import Row, Value
from deltalog.runtime.realization import Wish
from deltalog.runtime.search_nodes import Node


@dataclass(frozen=True, slots=True, order=True)
class Placeholder:
    """A value that is not determined, of the columns that `place` stands for."""

    number: int
    place: Place


Bound = Mapping[Placeholder, Value]


def make_placeholder(number: int, place: Place) -> Value:
    return cast("Value", Placeholder(number, place))


def placeholders_in(rows: Iterable[Row]) -> set[Placeholder]:
    values: Iterator[object] = (value for row in rows for value in row)
    return {value for value in values if isinstance(value, Placeholder)}


def is_open(wish: Wish) -> bool:
    """Whether a wish has placeholders."""
    return any(isinstance(value, Placeholder) for value in wish.row)


class Unifier:
    """Values that are equal, and what that means for placeholders."""

    def __init__(self, bound: Bound | None = None) -> None:
        self.bound = dict(bound or {})

    def value(self, value: Value) -> Value:
        while isinstance(value, Placeholder) and value in self.bound:
            value = self.bound[value]
        return value

    def row(self, row: Row) -> Row:
        return tuple(map(self.value, row))

    def wish(self, wish: Wish) -> Wish:
        return wish._replace(row=self.row(wish.row))

    def equate(self, one: Value, other: Value) -> bool:
        """Make two values equal; False if they are not and cannot be."""
        one, other = self.value(one), self.value(other)
        if isinstance(one, Placeholder):
            if one != other:
                self.bound[one] = other
            return True
        if isinstance(other, Placeholder):
            self.bound[other] = one
            return True
        return one == other

    def equate_rows(self, one: Row, other: Row) -> bool:
        return all(self.equate(*pair) for pair in zip(one, other, strict=True))


def with_values(node: Node, unifier: Unifier) -> Node | None:
    """A node without the wishes that a substitution changes; None if a wish is its own reason."""
    supports = {
        unifier.wish(wish): tuple(map(unifier.wish, reasons))
        for wish, reasons in node.supports.items()
    }
    if any(_is_reached(wish, supports[wish], supports) for wish in supports):
        return None
    kept = frozenset(wish for wish in node.wishes if unifier.wish(wish) == wish)
    absent = frozenset(filter(is_open, map(unifier.wish, node.absent)))
    return replace(node, wishes=kept, supports=supports, absent=absent)


def renumber_placeholders(node: Node) -> Node:
    """The node with its placeholders numbered in the order of its wishes, to recognise equals."""
    order: dict[Placeholder, int] = {}
    ranks = _wish_ranks(node)
    for wish in sorted(
        filter(is_open, node.wishes), key=lambda each: (ranks[each], _masked_text(each))
    ):
        for value in wish.row:
            if isinstance(value, Placeholder):
                order.setdefault(value, len(order))
    names: dict[Value, Value] = {
        cast("Value", each): make_placeholder(i, each.place)
        for each, i in order.items()
        if each.number != i
    }
    if not names:
        return node

    def named(wish: Wish) -> Wish:
        return wish._replace(row=tuple(names.get(value, value) for value in wish.row))

    return replace(
        node,
        wishes=frozenset(map(named, node.wishes)),
        supports={named(w): tuple(map(named, s)) for w, s in node.supports.items()},
        absent=frozenset(map(named, node.absent)),
        pending=tuple(map(named, node.pending)),
    )


def _wish_ranks(node: Node) -> dict[Wish, int]:
    """The order of wishes by what they have in common with others, whatever numbers they have."""
    opened = list(filter(is_open, node.wishes))
    shown: dict[Wish, str] = {wish: _masked_text(wish)[0] for wish in opened}
    ranks = _ranks_by_text(shown)
    for _ in range(3):
        near: dict[Wish, list[str]] = {wish: [] for wish in opened}
        for wish, reasons in node.supports.items():
            for reason in reasons:
                if wish in near:
                    near[wish].append(f"below {ranks.get(reason, reason)}")
                if reason in near:
                    near[reason].append(f"above {ranks.get(wish, wish)}")
        uses: dict[object, list[str]] = {}
        for wish in opened:
            for i, value in enumerate(wish.row):
                uses.setdefault(value, []).append(f"{ranks[wish]} {i}")
        for wish in opened:
            joined = [sorted(uses[v]) for v in wish.row if isinstance(v, Placeholder)]
            shown[wish] = f"{ranks[wish]:6} {sorted(near[wish])} {joined}"
        ranks = _ranks_by_text(shown)
    return ranks


def _ranks_by_text(shown: Mapping[Wish, str]) -> dict[Wish, int]:
    order = {text: i for i, text in enumerate(sorted(set(shown.values())))}
    return {wish: order[text] for wish, text in shown.items()}


def _masked_text(wish: Wish) -> tuple[str, str]:
    shown = [v.place if isinstance(v, Placeholder) else repr(v) for v in wish.row]
    return f"{not wish.holds} {wish.relation} {shown}", repr(wish.row)


# --- what is certain of a node with placeholders


def different_facts(
    wishes: Iterable[Wish], change: Iterable[Wish], supports: Mapping[Wish, tuple[Wish, ...]]
) -> tuple[Wish, ...]:
    """Insertions with placeholders, no two of which can be the same fact, nor one of a change."""
    opened = sorted(wishes, key=_masked_text)
    if not opened:
        return ()
    apart = tuple(_differing_rows(supports))
    known = [wish for wish in change if wish.holds]
    found: list[Wish] = []
    for wish in opened:
        if not any(_can_be_equal(wish, other, apart) for other in (*known, *found)):
            found.append(wish)
    return tuple(found)


def _can_be_equal(wish: Wish, other: Wish, apart: Iterable[tuple[Row, Row]]) -> bool:
    if wish.relation != other.relation:
        return False
    unifier = Unifier()
    if not unifier.equate_rows(wish.row, other.row):
        return False
    return all(unifier.row(one) != unifier.row(two) for one, two in apart)


def _differing_rows(supports: Mapping[Wish, tuple[Wish, ...]]) -> Iterator[tuple[Row, Row]]:
    """Rows that differ, since no fact is its own reason."""
    for wish in supports:
        for below in reached_wishes(supports[wish], supports):
            if below.relation == wish.relation and (is_open(wish) or is_open(below)):
                yield wish.row, below.row


def wishes_above(wish: Wish, supports: Mapping[Wish, tuple[Wish, ...]]) -> list[Wish]:
    """The wishes that one is a reason of."""
    return [each for each in supports if _is_reached(wish, supports[each], supports)]


def reached_wishes(
    wishes: Iterable[Wish], supports: Mapping[Wish, tuple[Wish, ...]]
) -> Iterator[Wish]:
    """Some wishes, and all their reasons."""
    waiting, seen = list(wishes), set()
    while waiting:
        wish = waiting.pop()
        if wish not in seen:
            seen.add(wish)
            yield wish
            waiting += supports.get(wish, ())


def _is_reached(
    target: Wish, wishes: Iterable[Wish], supports: Mapping[Wish, tuple[Wish, ...]]
) -> bool:
    return any(wish == target for wish in reached_wishes(wishes, supports))
