"""The columns of a feed of changes, also where programs have altered those of the relation.

A feed has every column that the relation had in the versions it covers: those of the last version
first, then the ones that only programs before it had. A column that a program lacks is null.

    version 1  path(src: int, dst: int)                    src  dst  length
    version 4  path(src: int, dst: int, length: int)   →   1    2    null    insert  1
                                                           1    2    null    delete  4
                                                           1    2    1       insert  4

So a row that is deleted is a row that was inserted, and replaying a feed gives the relation. Where
a column has another type now, the one before is called `name__type`; numbers that are only wider
now stay under their name, since equal facts are not replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from deltalog.pipeline.state import State
from deltalog.pipeline.state_tables import table_at
from deltalog.pipeline.stored_table import HOLDS_COLUMN, StoredTable

_WIDER = {("int", "float"), ("int", "decimal")}


class FeedColumn(NamedTuple):
    """A column of a feed: its name and type, and the column of the relation, if it has it."""

    name: str
    type: str
    source: str | None


@dataclass(frozen=True)
class Stretch:
    """Versions in which a relation had the same columns.

    Rows that are deleted in a version are those of the one before, so of deletions it has the
    versions from `first + 1` to `last + 1`.
    """

    first: int
    last: int
    table: StoredTable
    columns: tuple[FeedColumn, ...] = ()


def stretches_between(state: State, relation: str, after: int, until: int) -> list[Stretch]:
    """The stretches from one version to another, each with the columns of the whole feed."""
    starts = [r.version for r in state.records if r.program] or [0]
    found: list[Stretch] = []
    for first, following in zip(starts, [*starts[1:], None], strict=True):
        last = until if following is None else following - 1
        table = table_at(state, relation, first)
        if table is None or last < after or first > until:
            continue
        before = found[-1] if found else None
        if before is not None and before.last == first - 1 and _are_alike(before.table, table):
            found[-1] = replace(before, last=last)
        else:
            found.append(Stretch(first, last, table))
    return _with_columns(found)


def _are_alike(one: StoredTable, other: StoredTable) -> bool:
    return (one.columns, one.types) == (other.columns, other.types)


def _with_columns(found: Sequence[Stretch]) -> list[Stretch]:
    types: dict[str, str] = {}
    sources = [_name_feed_columns(stretch.table, types) for stretch in reversed(found)]
    return [
        replace(
            stretch,
            columns=tuple(FeedColumn(name, type_, own.get(name)) for name, type_ in types.items()),
        )
        for stretch, own in zip(found, reversed(sources), strict=True)
    ]


def _name_feed_columns(table: StoredTable, types: dict[str, str]) -> dict[str, str]:
    """The column of the relation for each of the feed; those that it lacks are added to `types`."""
    own: dict[str, str] = {}
    listed = zip(table.columns or (HOLDS_COLUMN,), table.types or ("bool",), strict=True)
    for column, type_ in listed:
        known = types.setdefault(column, type_)
        is_fit = known == type_ or (type_, known) in _WIDER
        name = column if is_fit else f"{column}__{type_}"
        types.setdefault(name, type_)
        own[name] = column
    return own
