"""The change log: for every commit its version, its time, and what it changed.

    number    version  time                        kind         changes
    17 << 20  17       2026-01-31 12:30:00.000001  transaction  {"+edge":[[1,2]],"+path":[[1,2]]}

Base changes and induced changes stand together. The change of a virtual view that nobody wanted is
omitted: `{"?":["path"],"+edge":[[1,2]]}` says so, and `history.py` derives it for whoever asks.
A commit of many facts has several rows; only the first has a time, and says what it omits. The
oldest state that can be had is the one before the oldest row; the newest row is never dropped,
since it has the version of the file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, reduce
from itertools import chain, groupby, repeat
from operator import add
from time import time_ns
from types import MappingProxyType
from typing import Any

import apsw
import orjson

from deltalog.engines.base import Changed
from deltalog.language.ast import Row
from deltalog.runtime.changes import ChangeSet
from deltalog.store.cells import Cells, Types, from_cells, to_cells, with_types
from deltalog.store.schema import PARTS, types_of

ROWS_EACH = 10_000
"""Facts in one row of the log."""
APPEND = "INSERT INTO deltalog__log (number, time, kind, changes) VALUES (?, ?, ?, ?)"
OMITTED = "?"
"""The key of the views whose change a commit omits; it comes first."""
CREATED, TRANSACTION, PROGRAM = "created", "transaction", "program"

Columns = Mapping[str, Types]
"""The types of the columns of every relation."""


@dataclass(frozen=True)
class Commit:
    """A commit as the log has it; `kind` is `created`, `transaction` or `program`.

    Views in `omitted` may have changed, too: their change is not here.
    """

    version: int
    time: datetime
    kind: str
    change: ChangeSet
    omitted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Summary:
    """A commit without its facts: how many of each relation it inserts and deletes."""

    version: int
    time: datetime
    kind: str
    counts: Mapping[str, int]
    omitted: frozenset[str] = frozenset()


def current_timestamp() -> str:
    """The time in UTC, as timestamps are written; a second is put into words only once."""
    global _second
    digits = str(time_ns())
    second, words = _second
    if second != digits[:-9]:
        second = digits[:-9]
        words = datetime.fromtimestamp(int(second), UTC).strftime("%Y-%m-%d %H:%M:%S.")
        _second = second, words
    return words + digits[-9:-3]


_second = "", ""
"""The second that was put into words last: one pair, since threads may share it."""


class Log:
    """The log of one connection. What it reads belongs to the transaction that is open on it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    # --- writing

    def append(
        self, version: int, kind: str, change: ChangeSet, before: Columns, after: Columns
    ) -> None:
        """Write a commit; facts that go have the columns of before, those that come of after."""
        self._connection.executemany(
            APPEND, entries_of_commit(version, kind, change, before, after)
        )

    def append_program(self, version: int, text: str, relations: str) -> None:
        self._connection.execute(
            "INSERT INTO deltalog__programs VALUES (?, ?, ?, ?)",
            (version, current_timestamp(), text, relations),
        )
        self.forget_programs()

    def forget_programs(self) -> None:
        """Read the programs again when they are next needed."""
        self.__dict__.pop("_columns_by_version", None)

    # --- reading

    @property
    def last(self) -> int:
        """The version of the file."""
        return self._select_number("SELECT max(number) FROM deltalog__log") >> PARTS

    @property
    def first(self) -> int:
        """The oldest version whose state can be had."""
        oldest = self._select_number("SELECT min(number) FROM deltalog__log")
        is_whole = oldest & ((1 << PARTS) - 1) == 0  # else the rest of it was being dropped
        return max((oldest >> PARTS) - is_whole, 0)

    @property
    def program_version(self) -> int:
        """The version from which on the program counts."""
        return self._select_number("SELECT max(version) FROM deltalog__programs")

    @property
    def program(self) -> str:
        """The text of the program that counts now."""
        return str(self.programs()[-1][2])

    def program_at(self, version: int) -> str:
        """The text of the program that counted at a version."""
        programs = self.programs()
        before = [text for since, _, text in programs if since <= version]
        return before[-1] if before else programs[0][2]

    def programs(self) -> list[tuple[int, str, str]]:
        """Version, time and text of every program there was."""
        found = self._connection.execute(
            "SELECT version, time, text FROM deltalog__programs ORDER BY version"
        )
        return [(int(version), str(time), str(text)) for version, time, text in found]

    def commits(self, after: int, until: int) -> Iterator[Commit]:
        """The commits after a version, up to another one."""
        with _report_unreadable_rows():
            for version, time, kind, omitted, pieces in self._pieces_between(after, until):
                changes = [self._change_of_sides(version, sides) for sides in pieces]
                yield Commit(version, time, kind, reduce(add, changes), omitted)

    def summaries(self, after: int, until: int) -> Iterator[Summary]:
        """The same commits without their facts, which are not decoded."""
        with _report_unreadable_rows():
            for version, time, kind, omitted, pieces in self._pieces_between(after, until):
                counts = Counter[str]()
                for side, rows in chain.from_iterable(sides.items() for sides in pieces):
                    counts[side[1:]] += len(rows)
                yield Summary(version, time, kind, counts, omitted)

    def _pieces_between(
        self, after: int, until: int
    ) -> Iterator[tuple[int, datetime, str, frozenset[str], list[dict[str, Any]]]]:
        """Version, time, kind and omitted views of each commit, and the sides of its rows."""
        rows = self._rows_between(after, until, "changes")
        for version, parts in groupby(rows, lambda row: row[0] >> PARTS):
            _, time, kind, text = next(parts)
            if time is not None:  # else the rest of it was being dropped
                pieces = [orjson.loads(text), *(orjson.loads(part[3]) for part in parts)]
                omitted = frozenset(pieces[0].pop(OMITTED, ()))
                yield version, datetime.fromisoformat(time), kind, omitted, pieces

    def omitted(self, after: int, until: int) -> frozenset[str]:
        """The views whose change some commit after a version, up to another one, omits."""
        found = self._connection.execute(
            f"SELECT DISTINCT changes -> '$.\"{OMITTED}\"' FROM deltalog__log "
            f"WHERE number >= ? AND number < ? AND substr(changes, 1, 4) = '{{\"{OMITTED}\"'",
            ((after + 1) << PARTS, (until + 1) << PARTS),
        )
        with _report_unreadable_rows():
            return frozenset(name for (text,) in found for name in orjson.loads(text))

    def net(self, after: int, until: int, relation: str | None = None) -> ChangeSet:
        """All changes after a version, up to another one, as one; `relation` selects its part.

        Without it views that a commit in between omits are left out (`omitted`).
        """
        column = "changes"
        if relation is not None:  # names have no quotes
            sides = ", ".join(f"'{s}{relation}', changes -> '$.\"{s}{relation}\"'" for s in "+-")
            column = f"json_object({sides})"
        inserted: dict[str, set[Row]] = {}
        deleted: dict[str, set[Row]] = {}
        passed = {"", *(self.omitted(after, until) if relation is None else ())}
        with _report_unreadable_rows():
            for number, _, _, text in self._rows_between(after, until, column):
                change = orjson.loads(text)
                for key in sorted(change, reverse=True):  # what goes, goes first
                    if change[key] and key[1:] not in passed:
                        rows = self._decode_rows(number >> PARTS, key, change[key])
                        into, other = (inserted, deleted) if key[0] == "+" else (deleted, inserted)
                        _add_to_side(
                            rows, into.setdefault(key[1:], set()), other.get(key[1:], set())
                        )
        return ChangeSet(self._with_types_of(inserted, until), self._with_types_of(deleted, after))

    def _with_types_of(self, found: dict[str, set[Row]], version: int) -> dict[str, set[Row]]:
        """Rows written with the columns of several programs, with the columns of one version."""
        if len(self._columns_by_version) == 1:
            return found
        columns = self.columns_at(version)
        return {name: with_types(rows, columns[name]) for name, rows in found.items() if rows}

    def columns_at(self, version: int) -> Columns:
        """The columns of every relation that the program had at that version."""
        versions = [each for each, _ in self._columns_by_version]
        return self._columns_by_version[max(bisect_right(versions, version) - 1, 0)][1]

    @cached_property
    def _columns_by_version(self) -> list[tuple[int, Columns]]:
        found = self._connection.execute(
            "SELECT version, relations FROM deltalog__programs ORDER BY version"
        )
        with _report_unreadable_rows():
            return [
                (int(version), {name: types_of(each) for name, each in orjson.loads(text).items()})
                for version, text in found
            ]

    def _rows_between(
        self, after: int, until: int, column: str
    ) -> Iterator[tuple[int, str | None, str, str]]:
        return self._connection.execute(
            f"SELECT number, time, kind, {column} FROM deltalog__log "
            "WHERE number >= ? AND number < ? ORDER BY number",
            ((after + 1) << PARTS, (until + 1) << PARTS),
        )

    def _change_of_sides(self, version: int, sides: Mapping[str, Any]) -> ChangeSet:
        found: dict[str, dict[str, Changed]] = {"+": {}, "-": {}}
        for key, rows in sides.items():
            found[key[0]][key[1:]] = frozenset(self._decode_rows(version, key, rows))
        return ChangeSet.exact(found["+"], found["-"])

    def _decode_rows(self, version: int, key: str, rows: Any) -> list[Row]:
        types = self.columns_at(version if key[0] == "+" else version - 1)[key[1:]]
        if key[0] not in "+-" or set(map(len, rows)) - {len(types)}:
            raise ValueError("other columns")
        return from_cells(map(tuple, rows), types)

    def _select_number(self, statement: str) -> int:
        return int(self._connection.execute(statement).get)


@contextmanager
def _report_unreadable_rows() -> Iterator[None]:
    """Report a row of the log that cannot be read as damage: it is not what was written."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise apsw.CorruptError("a row of its change log cannot be read") from error
    except apsw.SQLError as error:  # of its functions for JSON
        raise apsw.CorruptError("a row of its change log cannot be read") from error


def _add_to_side(rows: list[Row], into: set[Row], other: set[Row]) -> None:
    """Add rows to a side of a net change; what is on the other side is cancelled."""
    into.update(row for row in rows if row not in other)
    other.difference_update(rows)


def entries_of_commit(
    version: int,
    kind: str,
    change: ChangeSet,
    before: Columns,
    after: Columns,
    known: Mapping[str, Cells] = MappingProxyType({}),
    omitted: Sequence[str] = (),
) -> Iterable[tuple[Any, ...]]:
    """The rows of a commit: one, unless it is large; some sides may be `known` already."""
    sides: dict[str, Cells] = {}
    for name in change.deleted:
        sides["-" + name] = to_cells(change.deleted[name], before[name])
    for name in change.inserted:
        side = "+" + name
        sides[side] = known.get(side) or to_cells(change.inserted[name], after[name])
    times = chain([current_timestamp()], repeat(None))
    pieces = (sides,) if sum(map(len, sides.values())) <= ROWS_EACH else _cut_into_parts(sides)
    return (
        ((version << PARTS) + part, time, kind, piece_text(piece, () if part else omitted))
        for part, (time, piece) in enumerate(zip(times, pieces, strict=False))
    )


def piece_text(sides: Mapping[str, Cells], omitted: Sequence[str] = ()) -> str:
    """The JSON of one row, behind the views whose change its commit omits."""
    return orjson.dumps({OMITTED: omitted, **sides} if omitted else sides).decode()


def _cut_into_parts(sides: dict[str, Cells]) -> Iterator[dict[str, Cells]]:
    """The sides of a change, cut into pieces that are not too large."""
    held: dict[str, Cells] = {}
    for key, cells in sides.items():
        for start in range(0, len(cells), ROWS_EACH):
            piece = cells[start : start + ROWS_EACH]
            if held and sum(map(len, held.values())) + len(piece) > ROWS_EACH:
                yield held
                held = {}
            held[key] = piece
    yield held
