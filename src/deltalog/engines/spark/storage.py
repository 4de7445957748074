"""The relations of the Spark engine: where their rows are, and how they get to the driver.

Small relations are rows on the driver, large ones frames on the cluster with small changes beside
them (`relation.py`). This module puts them in order between transactions: what has grown on the
driver goes to the cluster, and many pieces become one. A question about rows that the driver does
not know is answered by fetching them (`probes.py`) and asking again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.base import AbortedError, LazyRows
from deltalog.engines.spark.columns import RANK, names_of, rows_in
from deltalog.engines.spark.frames import relation_frame, rows_without
from deltalog.engines.spark.lazy_frame import LazyFrame
from deltalog.engines.spark.lookahead import Lookup
from deltalog.engines.spark.probes import (
    FETCHED_MAX,
    NEIGHBOURS_MAX,
    count_columns,
    fetch_probes,
    is_little,
    probes_needed,
    spread_of,
)
from deltalog.engines.spark.relation import (
    Clock,
    Columns,
    Frame,
    Needs,
    OnDisk,
    SparkRelation,
    TableFrame,
)
from deltalog.engines.spark.settings import Settings
from deltalog.language.ast import Row

Answer = TypeVar("Answer")
PROBES_MAX = 10_000
"""Jobs that one question may take before something must be wrong."""


class Storage:
    """Relations in pieces, and the jobs that were spent on them."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark = spark
        self.settings = settings
        self.needs = Needs()
        self.ahead = Needs()
        self.lookups: dict[str, set[Lookup]] = {}
        self.clock = Clock()
        self.relations: dict[str, SparkRelation] = {}
        self.jobs: Counter[str] = Counter()
        self.grown: set[str] = set()

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        if relation not in self.relations:
            made = SparkRelation(relation, types, self.clock, self.needs)
            self.relations[relation] = made

    def drop(self, relation: str) -> None:
        known = self.relations.pop(relation, None)
        if known is not None:
            self._release_frames(known.frames)
        self.lookups.pop(relation, None)  # another one of this name may have other columns

    def clear(self, relation: str) -> None:
        self.clear_all((relation,))

    def clear_all(self, relations: tuple[str, ...]) -> None:
        for relation in relations:
            store = self.relations[relation]
            frames = store.frames
            store.clear()
            self._release_frames(frames)
        self._tidy_grown()

    def settle(self) -> None:
        self.ahead.clear()
        self._tidy_grown()

    # --- reading

    def size(self, relation: str) -> int:
        return len(self.relations[relation])

    def rows(self, relation: str) -> Iterator[Row]:
        return (row for _, row in self.ranked(relation))

    def sample(self, relation: str, count: int) -> Iterable[Row]:
        return ()

    def ranked(self, relation: str) -> list[tuple[int, Row]]:
        """All rows with their ranks, lowest first; those of frames are brought to the driver."""
        store = self.relations[relation]
        found = [(piece.rank(row), row) for piece in store.locals for row in piece]
        if store.has_frames():
            data = relation_frame(self.spark, store.only(store.frames), is_ranked=True)
            self.jobs["collect"] += 1
            found += collect_rows(data, store.types)
            found.sort(key=lambda entry: entry[0])
        return found

    def copied(self, relation: str) -> LazyRows | frozenset[Row]:
        store = self.relations[relation]
        if not store.has_frames():
            return frozenset(row for piece in store.locals for row in piece)
        data = relation_frame(self.spark, store, is_ranked=True)

        def read() -> list[Row]:
            self.jobs["collect"] += 1
            return [row for _, row in collect_rows(data, store.types)]

        def some(count: int) -> list[Row]:
            self.jobs["collect"] += 1
            return [row for _, row in collect_rows(data.limit(count), store.types)]

        return LazyFrame(len(store), read, data.drop(RANK), some)

    def copy_from(self, relation: str, twin: Storage) -> None:
        self.insert(relation, twin.copied(relation))

    def beyond(self, relation: str, twin: Storage) -> list[Row]:
        """Compared on the cluster if one of the two is there."""
        store, other = self.relations[relation], twin.relations[relation]
        if not store.types or not (store.has_frames() or other.has_frames()):
            return list(set(self.rows(relation)) - set(twin.rows(relation)))
        held = relation_frame(self.spark, store, is_ranked=True)
        self.jobs["compare"] += 1
        apart = rows_without(held, relation_frame(self.spark, other), len(store.types))
        return [row for _, row in collect_rows(apart, store.types)]

    def frame(self, relation: str) -> DataFrame:
        """The rows of a relation as they are now, as a DataFrame with columns `c0`, `c1`, …"""
        return relation_frame(self.spark, self.relations[relation])

    def present(self, relation: str, rows: Collection[Row]) -> list[bool]:
        store = self.relations[relation]
        return self.asked(lambda: [row in store for row in rows])

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        store = self.relations[relation]
        columns = tuple(sorted(key))
        values: Row = tuple(key[column] for column in columns)  # type: ignore[misc]
        found = self.find(relation, columns, (values,))
        return iter(sorted(found, key=store.rank) if columns and store.has_frames() else found)

    def find(self, relation: str, columns: Columns, keys: Collection[Row]) -> list[Row]:
        """The rows that have one of these keys."""
        if not columns:
            return list(self.rows(relation))
        store = self.relations[relation]
        return self.asked(
            lambda: [row for key in keys for row in store.matching(columns, key, 0, store.end)]
        )

    def history(self, relations: Collection[str]) -> Iterator[tuple[str, Row]]:
        stamped = [(rank, name, row) for name in relations for rank, row in self.ranked(name)]
        return ((name, row) for _, name, row in sorted(stamped, key=lambda entry: entry[0]))

    # --- writing

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        if isinstance(rows, LazyFrame):
            return self.load_frame(relation, rows.data)
        store, new = self._open_for_change(relation, rows)
        self.look_ahead(relation, new)
        return sum(store.add(row) for row in new)

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        store, new = self._open_for_change(relation, rows)
        count = sum(store.remove(row) for row in new)
        for piece in store.locals if len(store.pieces) == 1 else ():
            piece.compact()
        return count

    def _open_for_change(
        self, relation: str, rows: Iterable[Row]
    ) -> tuple[SparkRelation, list[Row]]:
        """A relation that will change, and the rows; what is there of them is known."""
        store = self.relations[relation]
        found = list(rows)
        if store.has_frames():
            self.asked(lambda: [row in store for row in found])
        self.grown.add(relation)
        return store, found

    def move(self, changes: tuple[tuple[str, str, str], ...]) -> None:
        """Rows keep the ranks they were derived with: all later than what is stored."""
        for stored, deleted, _ in changes:
            if self.size(stored) and self.size(deleted):
                self._delete_all_of(self.relations[stored], self.relations[deleted])
        for stored, _, inserted in changes:
            self._insert_all_of(self.relations[stored], self.relations[inserted])

    def _delete_all_of(self, store: SparkRelation, deleted: SparkRelation) -> None:
        if deleted.has_frames():
            self._fold_pieces(store, deleted)
        else:
            self.delete(store.name, [row for piece in deleted.locals for row in piece])

    def _insert_all_of(self, store: SparkRelation, inserted: SparkRelation) -> None:
        for piece in inserted.pieces:
            if isinstance(piece, Frame):
                store.take_over(piece)
            else:
                for row in piece:
                    store.put(row, piece.rank(row))
        self.grown.add(store.name)

    def load_frame(self, relation: str, data: DataFrame) -> int:
        """Add the rows of a DataFrame, column by column in this order; returns how many are new.

        They stay on the cluster. Values must be canonical (`columns.py`).
        """
        store = self.relations[relation]
        named = data.toDF(*names_of(store.types)).distinct()
        if len(store):
            named = rows_without(named, relation_frame(self.spark, store), len(store.types))
        kept = named.withColumn(RANK, F.lit(next(self.clock)))
        kept = kept.sortWithinPartitions(*names_of(store.types)[:1])  # so that probes can skip
        kept = kept.persist(StorageLevel.MEMORY_AND_DISK_DESER)  # else every probe unpacks it all
        self.jobs["load"] += 1
        found = kept.select(*count_columns(names_of(store.types))).first()
        assert found is not None
        self.place(store, kept, found[0], spread=spread_of(found))
        return int(found[0])

    def keep_on_disk(self, relation: str, table: OnDisk) -> None:
        """A large relation is what a table holds: it is probed there, and not kept by Spark."""
        store = self.relations[relation]
        frames = store.frames
        store.pieces = [TableFrame(table, 0)]
        self._release_frames(frames)

    def place(
        self,
        store: SparkRelation,
        data: DataFrame,
        count: int,
        kept: DataFrame | None = None,
        spread: tuple[float, ...] = (),
    ) -> None:
        """New rows stay on the cluster if there are many, else they come to the driver."""
        if count > self.settings.driver_rows_max and store.types:
            store.append(data, count, kept, spread)
        elif count:
            self.jobs["collect"] += 1
            found = collect_rows(data, store.types) if store.types else [(next(self.clock), ())]
            for rank, row in found:
                store.put(row, rank)
            (data if kept is None else kept).unpersist()

    # --- asking the cluster

    def expect(self, relation: str, columns: Columns, keys: Collection[Row]) -> None:
        """Fetched together with what is asked for next."""
        if self.relations[relation].has_frames():
            for key in keys:
                self.ahead.note(relation, columns, key)

    def look_ahead(self, relation: str, rows: Collection[Row]) -> None:
        """New rows of a relation: expect what rules will look up for them, where that is little."""
        for columns, target, target_columns in self.lookups.get(relation, ()):
            store = self.relations.get(target)
            keys = dict.fromkeys(tuple(row[c] for c in columns) for row in rows)
            if (
                store is not None
                and len(keys) <= self.settings.literal_keys_max
                and all(is_little(piece, target_columns, len(keys)) for piece in store.frames)
            ):
                self.expect(target, target_columns, keys)

    def asked(
        self,
        question: Callable[[], Answer],
        look_around: Callable[[], None] | None = None,
        jobs_max: int = PROBES_MAX,
    ) -> Answer:
        """Return the result of a question once everything it needs is on the driver.

        If somebody looks around before each job, neighbours are welcome. Aborted after `jobs_max`.
        """
        for number in range(PROBES_MAX):
            self.needs.clear()
            result = question()
            if not self.needs:
                return result
            if number == jobs_max:
                self.needs.clear()
                raise AbortedError
            if look_around is not None:
                look_around()
            self.fetch(is_widened=look_around is not None)
        raise AssertionError("a question does not come to an end")

    def fetch(self, is_widened: bool = False) -> None:
        """Get what is needed, and what is expected, in one job."""
        self.needs.take(self.ahead, self.relations)
        wanted = probes_needed(self.needs, self.relations, is_widened)
        self.needs.clear()
        elsewhere = [probe for probe in wanted if not probe.read_on_disk()]
        if elsewhere:
            self.jobs["probe"] += 1
            fetch_probes(self.spark, elsewhere, self.settings.literal_keys_max)

    def look_around(self, relation: str, rows: Iterable[Row]) -> None:
        """Expect what is looked up for the neighbours of rows, as far as they are here."""
        store = self.relations[relation]
        for piece in store.frames:
            column = piece.narrow(store.all_columns, NEIGHBOURS_MAX)
            if column is not None:
                known = piece.probed.get((column,), {})
                values = dict.fromkeys((row[column],) for row in rows)
                around = (row for value in values for row in known.get(value, ()))
                self.look_ahead(relation, list(islice(around, FETCHED_MAX)))

    # --- in order

    def _release_frames(self, frames: Iterable[Frame]) -> None:
        """Give frames back that no relation has any more."""
        released = {id(piece.kept): piece.kept for piece in frames if piece.kept is not None}
        if released:
            held = {id(piece.kept) for store in self.relations.values() for piece in store.frames}
            for data in (data for key, data in released.items() if key not in held):
                data.unpersist()

    def _tidy_grown(self) -> None:
        """Send what has grown to the cluster, and merge pieces.

        Positions in the relation change, so this is done only where nothing is being read: when
        relations are cleared, between transactions, and when a new run is prepared.
        """
        grown, self.grown = self.grown, set()
        for name in grown & self.relations.keys():
            if self.relations[name].types:
                self._tidy_one(self.relations[name])

    def _tidy_one(self, store: SparkRelation) -> None:
        settings = self.settings
        local = sum(len(piece) for piece in store.locals)
        masked = sum(len(piece.mask) for piece in store.frames)
        limit = settings.overlay_rows_max if store.frames else settings.driver_rows_max
        if masked > settings.overlay_rows_max or len(store.frames) > settings.pieces_max:
            self._fold_pieces(store)
        elif local > limit:
            self._promote_local(store)
        for piece in store.frames:
            if len(piece.ranks) > settings.cached_rows_max:
                piece.forget()

    def _promote_local(self, store: SparkRelation) -> None:
        """Local rows become a frame; the frames that are there stay as they are."""
        local = store.only(store.locals)
        data, count = self.cut(relation_frame(self.spark, local, is_ranked=True), "promote")
        frames = store.frames
        store.pieces = []
        for piece in frames:
            piece.start = store.end
            store.pieces.append(piece)
        store.append(data, count)

    def _fold_pieces(self, store: SparkRelation, deleted: SparkRelation | None = None) -> None:
        """All pieces become one frame, without deleted rows."""
        data = relation_frame(self.spark, store, is_ranked=True)
        if deleted is not None:
            data = rows_without(data, relation_frame(self.spark, deleted), len(store.types))
        data, count = self.cut(data, "fold")
        frames = store.frames
        spread = max(frames, key=len).spread if frames else ()
        store.clear()
        store.append(data, count, spread=spread)
        self._release_frames(frames)

    def cut(self, data: DataFrame, purpose: str) -> tuple[DataFrame, int]:
        """Computed now, its lineage cut; and how many rows there are."""
        counted = Observation()
        self.jobs[purpose] += 1
        observed = data.observe(counted, F.count(F.lit(1)).alias("rows"))
        kept = observed.localCheckpoint(True, StorageLevel.MEMORY_AND_DISK)
        rows = counted.get.get("rows")  # Spark Connect (4.2) does not tell it for checkpoints
        return kept, kept.count() if rows is None else int(rows)


def collect_rows(data: DataFrame, types: tuple[str, ...]) -> list[tuple[int, Row]]:
    """The rows of a frame with their ranks, lowest first, on the driver."""
    table = data.toArrow().sort_by(RANK)
    columns = [table.column(name) for name in names_of(types)]
    rows = rows_in(columns, types, table.num_rows)
    return list(zip(table.column(RANK).to_pylist(), rows, strict=True))
