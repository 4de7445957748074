"""A relation in pieces: frames on the cluster, rows on the driver, in the order they came.

A *frame* is a DataFrame that is kept on the cluster and never written again; what was deleted from
it is a small mask on the driver. What came later in small amounts is a *local* piece, as in the
reference engine. A small relation is one local piece and nothing else. Together:

    relation  =  (frame1 - mask1) + (frame2 - mask2) + … + local rows       (all disjoint)

A relation that a database keeps in tables is read when somebody wants it (`read_later`): a small
one becomes rows on the driver, a large one a frame that is probed on disk (`TableFrame`).

So a small change costs no write on the cluster. The pieces are made one (`engine.py` folds them)
when masks and local rows grow.

The relation is `Walkable` (see `engines/interpreter.py`): positions count rows, a frame is read
whole or not at all, since rounds read up to the end. A row of a frame is known to the driver only
once it has been probed. What was probed stays right, because a frame never changes: `probed` tells
what the frame holds, and the mask, which is looked at after it, what was deleted since. A row that
is deleted and returns stays masked in its frame and is a local row; deleted once more, it is found
there first. Folding makes a new frame, of which nothing has been probed. If a row has not been
probed, what is needed is noted in `Needs`, an answer is made up, and whoever asked must fetch what
is noted and ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame

from deltalog.engines.relation import Relation
from deltalog.language.ast import Row

Columns = tuple[int, ...]


class Clock:
    """The ranks to come: every row added gets the next one, many rows at once a range."""

    def __init__(self) -> None:
        self.now = 0

    def __iter__(self) -> Clock:
        return self

    def __next__(self) -> int:
        self.now += 1
        return self.now

    def skip(self, ranks: int) -> int:
        """Reserve ranks above all given so far; returns the last one given before."""
        before = self.now
        self.now += ranks
        return before


@dataclass
class Needs:
    """Keys that were looked up in frames and not found on the driver, by relation and columns."""

    keys: dict[tuple[str, Columns], dict[Row, None]] = field(default_factory=dict)
    misses: int = 0

    def note(self, relation: str, columns: Columns, key: Row) -> None:
        self.misses += 1  # also when the key is noted already: this answer is made up, too
        self.keys.setdefault((relation, columns), {})[key] = None

    def __len__(self) -> int:
        return sum(map(len, self.keys.values()))

    def take(self, other: Needs, relations: Container[str]) -> None:
        """Move what another one holds of these relations to this one."""
        for (name, columns), keys in other.keys.items():
            if name in relations:
                self.keys.setdefault((name, columns), {}).update(keys)
        other.clear()

    def clear(self) -> None:
        self.keys.clear()


class Frame:
    """Rows on the cluster with their ranks; what has been probed of them is remembered."""

    def __init__(self, data: DataFrame | None, start: int, count: int) -> None:
        self._data = data
        self.kept = data  # what is given back when nobody needs the frame any more
        self.start = start
        self.count = count
        self.mask: set[Row] = set()
        self.probed: dict[Columns, dict[Row, list[Row]]] = {}
        self._by_more: dict[tuple[Columns, Columns, Row], dict[Row, list[Row]]] = {}
        self.ranks: dict[Row, int] = {}
        self.spread: tuple[float, ...] = ()  # rows per value of each column, if it was looked for

    @property
    def data(self) -> DataFrame:
        assert self._data is not None
        return self._data

    @property
    def end(self) -> int:
        return self.start + self.count

    def __len__(self) -> int:
        return self.count - len(self.mask)

    def at(self, start: int) -> Frame:
        """The same rows from another position on, with nothing probed."""
        made = Frame(self._data, start, self.count)
        made.kept, made.spread, made.mask = self.kept, self.spread, set(self.mask)
        return made

    def narrow(self, columns: Columns, rows_max: float) -> int | None:
        """The column with the fewest rows per value, if that is few; the first of about equal ones.

        Frames are in the order of their first column, so that is where probes skip most.
        """
        least = min((self.spread[c] for c in columns), default=0.0) if self.spread else rows_max + 1
        if not columns or least > rows_max:
            return None
        return min(c for c in columns if self.spread[c] <= 2 * least)

    def known(self, columns: Columns, key: Row) -> list[Row] | None:
        """The rows with this key, or None if that has not been probed.

        A probe with fewer columns knows it, too.
        """
        found = self.probed.get(columns)
        rows = None if found is None else found.get(key)
        if rows is None:
            rows = self._known_by_fewer(columns, key)
        return None if rows is None else [row for row in rows if row not in self.mask]

    def _known_by_fewer(self, columns: Columns, key: Row) -> list[Row] | None:
        """The rows with this key if a probe with fewer columns has found them.

        What that probe has found is put in order by these columns once, for all keys.
        """
        for probed, found in self.probed.items():
            if set(probed) < set(columns):
                part = tuple(key[columns.index(column)] for column in probed)
                rows = found.get(part)
                if rows is not None:
                    return self._rows_in_order(columns, probed, part, rows).get(key, [])
        return None

    def _rows_in_order(
        self, columns: Columns, probed: Columns, part: Row, rows: list[Row]
    ) -> dict[Row, list[Row]]:
        ordered = self._by_more.get((columns, probed, part))
        if ordered is None:
            ordered = self._by_more[columns, probed, part] = {}
            for row in rows:
                ordered.setdefault(tuple(row[c] for c in columns), []).append(row)
        return ordered

    def remember(
        self, columns: Columns, keys: Iterable[Row], rows: Iterable[tuple[Row, int]]
    ) -> None:
        """Take what a probe with these keys found: all rows that have them, and perhaps others."""
        asked: dict[Row, list[Row]] = {key: [] for key in keys}
        for row, rank in rows:
            key = tuple(row[c] for c in columns)
            if key in asked:
                asked[key].append(row)
                self.ranks[row] = rank
        self.probed.setdefault(columns, {}).update(asked)

    def forget(self) -> None:
        self.probed.clear()
        self._by_more.clear()
        self.ranks.clear()


class OnDisk(Protocol):
    """A table that does not change, which the driver can read."""

    @property
    def size(self) -> int: ...
    @property
    def spread(self) -> tuple[float, ...]: ...
    def frame(self) -> DataFrame:
        """All rows, with ranks, as a frame of the engine."""
        ...

    def find(self, columns: Columns, keys: Sequence[Row]) -> Iterable[tuple[Row, int]]:
        """All rows that have one of these keys, and perhaps others, with their ranks."""
        ...


class TableFrame(Frame):
    """Rows in a table on disk, probed where they lie; Spark reads it where a rule reads it all."""

    def __init__(self, table: OnDisk, start: int) -> None:
        super().__init__(None, start, table.size)
        self.table = table
        self.spread = table.spread

    @property
    def data(self) -> DataFrame:
        if self._data is None:
            self._data = self.table.frame()
        return self._data

    def at(self, start: int) -> Frame:
        made = TableFrame(self.table, start)
        made.mask = set(self.mask)
        return made


class Local(Relation):
    """Rows on the driver, from a position on."""

    def __init__(self, clock: Clock, start: int) -> None:
        super().__init__(clock)
        self.start = start

    def put(self, row: Row, rank: int) -> None:
        """Add a row that has a rank already."""
        if self.add(row):
            self.stamps[-1] = rank


class SparkRelation:
    """See the module; `name` is what it is called in `Needs`."""

    def __init__(self, name: str, types: tuple[str, ...], clock: Clock, needs: Needs) -> None:
        self.name = name
        self.types = types
        self.clock = clock
        self.needs = needs
        self._pieces: list[Frame | Local] = []
        self._unread: tuple[int, Callable[[SparkRelation], None]] | None = None

    def read_later(self, size: int, read: Callable[[SparkRelation], None]) -> None:
        """The relation has `size` rows, with ranks; `read` adds them when somebody wants them.

        Whoever does that sets the clock to what it was when they were kept.
        """
        self._unread = (size, read)

    @property
    def pieces(self) -> list[Frame | Local]:
        if self._unread is not None:
            (_, read), self._unread = self._unread, None
            read(self)
        return self._pieces

    @pieces.setter
    def pieces(self, pieces: list[Frame | Local]) -> None:
        self._unread, self._pieces = None, pieces

    @property
    def frames(self) -> list[Frame]:
        return [piece for piece in self.pieces if isinstance(piece, Frame)]

    @property
    def locals(self) -> list[Local]:
        return [piece for piece in self.pieces if isinstance(piece, Local)]

    def only(self, pieces: Sequence[Frame | Local]) -> SparkRelation:
        """Some of the pieces as a relation of their own."""
        made = SparkRelation(self.name, self.types, self.clock, self.needs)
        made.pieces = list(pieces)
        return made

    @property
    def all_columns(self) -> Columns:
        return tuple(range(len(self.types)))

    @property
    def end(self) -> int:
        pieces = self.pieces
        if not pieces:
            return 0
        last = pieces[-1]
        return last.end if isinstance(last, Frame) else last.start + last.end

    def __len__(self) -> int:
        if self._unread is not None:
            return self._unread[0]
        pieces = self._pieces
        return len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))

    def __contains__(self, row: object) -> bool:
        assert isinstance(row, tuple)
        if any(row in piece for piece in self.locals):
            return True
        return any(self._known_or_needed(piece, self.all_columns, row) for piece in self.frames)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.matching((), (), 0, self.end))

    def _known_or_needed(self, piece: Frame, columns: Columns, key: Row) -> list[Row]:
        known = piece.known(columns, key)
        if known is None:
            self.needs.note(self.name, columns, key)
            return []
        return known

    def rank(self, row: Row) -> int:
        for piece in self.locals:
            if row in piece:
                return piece.rank(row)
        for frame in self.frames:
            if self._known_or_needed(frame, self.all_columns, row):
                return frame.ranks[row]
        return 0  # not known yet, or not there

    def matching(self, columns: Columns, key: Row, start: int, end: int) -> Iterable[Row]:
        """Rows between two positions that have these values in these columns."""
        rows: list[Row] = []
        for piece in self.pieces:
            if isinstance(piece, Frame):
                if start <= piece.start and piece.end <= end:
                    rows += self._known_or_needed(piece, columns, key)
            else:
                first, last = max(0, start - piece.start), min(piece.end, end - piece.start)
                if first < last:
                    rows += piece.matching(columns, key, first, last)
        return rows

    def add(self, row: Row) -> bool:
        """Add a row; whether it is in a frame must be known."""
        return row not in self and self._last_local().add(row)

    def put(self, row: Row, rank: int) -> None:
        """Add a row that is new for certain, with the rank it has."""
        for frame in self.frames:
            if frame.known(self.all_columns, row) is None:
                frame.remember(self.all_columns, [row], [])
        self._last_local().put(row, rank)

    def _last_local(self) -> Local:
        """The piece of the driver at the end."""
        if not self.pieces or isinstance(self.pieces[-1], Frame):
            self.pieces.append(Local(self.clock, self.end))
        last = self.pieces[-1]
        assert isinstance(last, Local)
        return last

    def remove(self, row: Row) -> bool:
        """Take a row away; whether it is in a frame must be known."""
        for piece in self.locals:
            if piece.remove(row):
                return True
        for frame in self.frames:
            if self._known_or_needed(frame, self.all_columns, row):
                frame.mask.add(row)
                return True
        return False

    def append(
        self,
        data: DataFrame,
        count: int,
        kept: DataFrame | None = None,
        spread: tuple[float, ...] = (),
    ) -> None:
        """Add a frame whose rows are new; `kept` is given back with it."""
        if count:
            self.pieces.append(Frame(data, self.end, count))
            self.frames[-1].kept = data if kept is None else kept
            self.frames[-1].spread = spread

    def take_over(self, frame: Frame) -> None:
        """Add what another relation has in a frame; both have it then."""
        if frame.count:
            self.pieces.append(frame.at(self.end))

    def clear(self) -> None:
        self.pieces = []

    def has_frames(self, start: int = 0, end: int | None = None) -> bool:
        """Whether rows between two positions are on the cluster."""
        for piece in self.pieces:  # a loop, since every round of every rule looks here
            if (
                isinstance(piece, Frame)
                and start <= piece.start
                and (end is None or piece.end <= end)
            ):
                return True
        return False
