"""One relation as a Delta table that others can read: it follows the log, and says how far it is.

    state/tables/path      src, dst, rank__        stands for version 17 of the state

A table is brought up to a version of the state by one transaction of Delta, which also says that
version (as the transaction of the application `deltalog`), so a crash in between costs a repeat and
nothing else. What is small is rewritten; of what is large only the files that hold changed rows.

The driver reads a table where it lies: `find` looks rows up by files and groups of rows whose
statistics do not exclude them, without a job of Spark.

Views that use themselves have one column more, `rank__`: the order of derivation, which deletion
from them needs (`docs/decisions/0011`). A relation without columns has the column `holds__`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import ARROW_TYPES, RANK, arrow_columns, name_of, rows_in
from deltalog.engines.spark.probes import RANGED, cover_with_ranges
from deltalog.engines.spark.relation import OnDisk
from deltalog.language.ast import Row
from deltalog.pipeline.copy_on_write import files_without
from deltalog.pipeline.location import Location
from deltalog.pipeline.log_table import APPLICATION, SETTINGS
from deltalog.pipeline.row_groups import COMPARABLE, RowGroups
from deltalog.pipeline.table_files import (
    SMALL_FILE_ROWS,
    Actions,
    TableFiles,
    dataset_of,
    new_folder,
    relative_path,
    remove_action,
)

RANK_COLUMN = "rank__"
HOLDS_COLUMN = "holds__"
REWRITTEN_ROWS_MAX = 100_000
"""A table of at most this many rows is rewritten as a whole."""
SMALL_FILES_MAX = 16
"""Files of fewer rows than a group, before they are made one."""
Columns = tuple[int, ...]
Ranked = tuple[Row, int]


@dataclass(frozen=True)
class Fold:
    """The net effect of a stretch of the log on a table: rows with ranks, and rows to delete."""

    inserted: Sequence[Ranked] = ()
    updated: Sequence[Ranked] = ()
    deleted: Sequence[Row] = ()

    @property
    def lost(self) -> set[Row]:
        """Rows of the table that do not stay as they are."""
        return {*self.deleted, *(row for row, _ in self.updated)}


@dataclass
class StoredTable:
    """The table of one relation; `columns` are those of the relation, with their `types`."""

    location: Location
    relative: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    is_ranked: bool = False
    _delta: DeltaTable | None = field(default=None, repr=False, compare=False)
    _version: int | None = field(default=None, repr=False, compare=False)
    groups: RowGroups = field(default_factory=RowGroups, repr=False, compare=False)

    @property
    def path(self) -> str:
        return self.location.path(self.relative)

    @property
    def files(self) -> TableFiles:
        return TableFiles(*self.location.files(self.relative))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, as the table has them."""
        return (*(self.columns or (HOLDS_COLUMN,)), *((RANK_COLUMN,) if self.is_ranked else ()))

    @property
    def schema(self) -> pyarrow.Schema:
        types = [ARROW_TYPES[type_] for type_ in self.types] or [pyarrow.bool_()]
        types += [pyarrow.int64()] if self.is_ranked else []
        return pyarrow.schema(list(zip(self.names, types, strict=True)))

    # --- reading

    @property
    def delta(self) -> DeltaTable | None:
        """The table on disk, if there is one."""
        if self._delta is None:
            if not self.location.may_have(f"{self.relative}/_delta_log"):
                return None  # without a look of delta-rs, which a load of many tables would repeat
            try:
                self._delta = DeltaTable(self.path)
            except TableNotFoundError:
                return None
        return self._delta

    @property
    def exists(self) -> bool:
        return self.delta is not None

    @property
    def version(self) -> int:
        """The version of the state that the table stands for; 0 if there is none."""
        if self._version is None and self.delta is not None:
            self._version = self.delta.transaction_version(APPLICATION) or 0
        return self._version or 0

    def is_behind(self, version: int) -> bool:
        return not self.exists or self.version < version

    @property
    def size(self) -> int:
        if self.delta is None:
            return 0
        actions = pyarrow.table(self.delta.get_add_actions(flatten=True))
        return int(pc.sum(actions.column("num_records")).as_py() or 0)

    def ranked_rows(self) -> list[Ranked]:
        """All rows, with their ranks."""
        if self.delta is None:
            return []
        return self.decoded(self.dataset().to_table())

    def dataset(self) -> pyarrow.dataset.Dataset:
        """The files of the table, to be read by filters."""
        assert self.delta is not None
        ints = [n for n, type_ in zip(self.columns, self.types, strict=True) if type_ == "int"]
        found = dataset_of(self.delta, self.files, self.schema, ints)
        self.groups.forget_others({fragment.path for fragment in found.get_fragments()})
        return found

    def files_for(self, wanted: pc.Expression | None) -> list[str]:
        """The files that can have rows which fulfil a condition."""
        found = self.dataset().get_fragments(filter=wanted)
        return [relative_path(fragment.path, self.files.root) for fragment in found]

    def rows(self, table: pyarrow.Table) -> list[Row]:
        """The rows in columns of Arrow."""
        columns = [table.column(name) for name in self.columns]
        return rows_in(columns, self.types, table.num_rows)

    def decoded(self, table: pyarrow.Table) -> list[Ranked]:
        rows = self.rows(table)
        ranks = table.column(RANK_COLUMN).to_pylist() if self.is_ranked else [0] * len(rows)
        return list(zip(rows, ranks, strict=True))

    def encoded(self, rows: Sequence[Ranked]) -> pyarrow.Table:
        plain = self.encoded_plain([row for row, _ in rows])
        if not self.is_ranked:
            return plain
        ranks = pyarrow.array([rank for _, rank in rows], pyarrow.int64())
        return plain.append_column(self.schema.field(RANK_COLUMN), ranks)

    def encoded_plain(self, rows: Sequence[Row]) -> pyarrow.Table:
        """Rows without ranks."""
        arrays = arrow_columns(rows, self.types) or [pyarrow.repeat(True, len(rows))]
        names = self.columns or (HOLDS_COLUMN,)
        return pyarrow.Table.from_arrays(arrays, names=list(names))

    def snapshot(self, spark: SparkSession, spread: tuple[float, ...]) -> OnDisk:
        """The table as it is now, whatever becomes of it."""
        assert self.delta is not None
        return Snapshot(self, spark, self.delta.version(), spread)

    # --- frames

    def frame(self, spark: SparkSession) -> DataFrame:
        """The table as it is now."""
        assert self.delta is not None
        return self.frame_at(spark, self.delta.version())

    def frame_at(self, spark: SparkSession, version: int) -> DataFrame:
        """The table as of a version of Delta."""
        return spark.read.format("delta").option("versionAsOf", version).load(self.path)

    def outwards(self, data: DataFrame) -> DataFrame:
        """A frame of the engine (`c0`, `c1`, …, `rank`) with the columns of the table."""
        if not self.columns:
            return data.select(F.lit(True).alias(HOLDS_COLUMN))
        found = [F.col(name_of(i)).alias(name) for i, name in enumerate(self.columns)]
        rank = F.col(RANK).cast("long").alias(RANK_COLUMN)  # Spark may have counted them in ints
        return data.select(*found, *([rank] if self.is_ranked else []))

    def inwards(self, data: DataFrame) -> DataFrame:
        """The table as a frame of the engine, always with ranks."""
        rank = F.col(RANK_COLUMN) if self.is_ranked else F.lit(0).cast("long")
        found = [F.col(f"`{name}`").alias(name_of(i)) for i, name in enumerate(self.columns)]
        return data.select(*found, rank.alias(RANK))

    # --- following the log

    def follow(self, fold: Fold, version: int) -> None:
        """Bring the table to a version, in one transaction."""
        if self.delta is None or self.size + len(fold.inserted) <= REWRITTEN_ROWS_MAX:
            self._rewrite_table(fold, version)
        else:
            self._commit_actions(self._copy_on_write(fold), version)

    def _rewrite_table(self, fold: Fold, version: int) -> None:
        kept = [each for each in self.ranked_rows() if each[0] not in fold.lost]
        rows = [*kept, *fold.updated, *fold.inserted]
        removing = (
            [] if self.delta is None else [remove_action(path) for path in self._rows_per_file()]
        )
        self._commit_actions(
            [*([self.write_rows(self.encoded(rows))] if rows else []), *removing], version
        )

    def _rows_per_file(self) -> Mapping[str, int]:
        """The files of the table, with the number of their rows."""
        assert self.delta is not None
        actions = pyarrow.table(self.delta.get_add_actions(flatten=True))
        names, sizes = (actions.column(name).to_pylist() for name in ("path", "num_records"))
        return dict(zip(names, sizes, strict=True))

    def write_rows(self, rows: pyarrow.Table) -> AddAction:
        return self.files.write(rows, self.columns[0] if self.columns else None)

    def _copy_on_write(self, fold: Fold) -> Actions:
        """Copy on write: the files that hold changed rows, and a new one for what is new."""
        assert self.delta is not None
        actions: Actions = []
        updated = dict(fold.updated) if self.is_ranked else {}
        lost = {*fold.deleted, *updated}
        known = self._rows_per_file()
        small = {path for path, size in known.items() if (size or 0) < SMALL_FILE_ROWS}
        new = [self.encoded(fold.inserted)]
        for path, rewritten in files_without(self, lost, updated) if lost else ():
            assert path in known, "only files of the table are rewritten"
            small.discard(path)
            actions += rewritten
        if len(small) >= SMALL_FILES_MAX:
            new += [self.files.read(path, self.schema) for path in small]
            actions += [remove_action(path) for path in small]
        together = pyarrow.concat_tables(new)
        return [*actions, *([self.write_rows(together)] if together.num_rows else [])]

    def write_whole(self, rows: Sequence[Ranked]) -> str:
        """Write rows to a new folder below the table; returns the folder."""
        folder = new_folder(self.relative)
        files = TableFiles(*self.location.files(folder))
        files.write(self.encoded(rows), self.columns[0] if self.columns else None)
        return folder

    def adopt(self, folder: str, version: int, is_whole: bool = True) -> None:
        """Take the Parquet files of a folder below the table, which are not read.

        They are all it holds then, or else more than it held.
        """
        adding = self.files.added(folder)
        is_first = self.delta is None or not is_whole
        removing = [] if is_first else [remove_action(path) for path in self._rows_per_file()]
        self._commit_actions([*adding, *removing], version)

    def _commit_actions(self, actions: Actions, version: int) -> None:
        schema = Schema.from_arrow(self.schema)
        said = CommitProperties(
            app_transactions=[Transaction(APPLICATION, version)],
            custom_metadata={"userMetadata": stands_for(version)},  # where Spark looks
        )
        self._version = None
        if self.delta is None or self.delta.schema() != schema:  # of a program before
            create_table_with_add_actions(
                self.path,
                schema,
                [each for each in actions if isinstance(each, AddAction)],
                mode="error" if self.delta is None else "overwrite",
                configuration=SETTINGS,
                commit_properties=said,
            )
            self._delta = None
            return
        self.delta.create_write_transaction(actions, "append", schema, commit_properties=said)
        self.delta.update_incremental()

    def rows_with(
        self, dataset: pyarrow.dataset.Dataset, columns: Columns, keys: Sequence[Row]
    ) -> pyarrow.Table:
        """The rows of its files that have these keys, and perhaps others."""
        if not columns:
            return dataset.to_table()
        condition = self.wanted(columns, keys)
        values = zip(columns, map(set, zip(*keys, strict=True)), strict=True)
        in_order = {
            self.columns[column]: sorted(wanted)
            for column, wanted in values
            if self.types[column] in COMPARABLE and None not in wanted
        }
        near = self.groups.that_may_hold(dataset, in_order, condition)
        return near.to_table(filter=condition)

    def wanted(self, columns: Columns, keys: Sequence[Row]) -> pc.Expression:
        """A condition that all rows with these keys fulfil, and perhaps others."""
        values = zip(*keys, strict=True)
        return reduce(
            and_,
            (
                one_of(self.columns[column], self.types[column], list(dict.fromkeys(each)))
                for column, each in zip(columns, values, strict=True)
            ),
        )


def stands_for(version: int) -> str:
    """Return the metadata of a transaction that brings a table to a version."""
    return f"{APPLICATION}:{version}"


# --- lookups --------------------------------------------------------------------------------------


class Snapshot:
    """A table at a version of its own; the rows of the engine that lie on disk."""

    def __init__(
        self, table: StoredTable, spark: SparkSession, version: int, spread: tuple[float, ...]
    ) -> None:
        self.size = table.size
        self.spread = spread
        self._table = table
        self._spark = spark
        self._version = version
        self._dataset = table.dataset()

    def frame(self) -> DataFrame:
        """Made when a rule reads it all: Spark takes seconds for its first look at a table."""
        return self._table.inwards(self._table.frame_at(self._spark, self._version))

    def find(self, columns: Columns, keys: Sequence[Row]) -> Iterable[Ranked]:
        return self._table.decoded(self._table.rows_with(self._dataset, columns, keys))


def one_of(name: str, type_: str, values: list[Any]) -> pc.Expression:
    """Whether a column has one of the values; ranges exclude what lies outside by statistics."""
    own = pc.field(name)
    listed = arrow_columns([(value,) for value in values], (type_,))[0]
    wanted = own.isin(listed)
    if type_ not in RANGED or None in values:
        return wanted
    bounds = [
        (own >= _arrow_scalar(first, type_)) & (own <= _arrow_scalar(last, type_))
        for first, last in cover_with_ranges(sorted(values))
    ]
    return reduce(or_, bounds) & wanted


def _arrow_scalar(value: Any, type_: str) -> pyarrow.Scalar:
    return pyarrow.scalar(value, ARROW_TYPES[type_])
