"""A commit that is being put together: rows for the log, and files for what the driver lacks.

Each relation contributes what is inserted and deleted, exactly, and, if it is stored with ranks,
the rows that have another rank now. Few rows go into the log. If some of them are on the cluster,
Spark writes them to files:

    only inserted            more files for the table, which are also the change
    deleted, or new ranks    files with the whole relation for the table, and files with the change
    of a view without table  files with the change
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import RANK, frame_of_rows, names_of
from deltalog.engines.spark.probes import count_columns, spread_of
from deltalog.pipeline.log import Files
from deltalog.pipeline.log_rows import DELETE, INSERT, RERANK, Changes
from deltalog.pipeline.stored_table import Ranked, StoredTable
from deltalog.pipeline.table_files import GROUP_ROWS, new_folder

FILE_ROWS_MAX = 250_000
"""Rows of a file: what a change of one row rewrites."""


class Held(NamedTuple):
    """Rows with ranks: few of them as they are, or many as a frame of the engine."""

    size: int = 0
    rows: Sequence[Ranked] = ()
    data: DataFrame | None = None

    def frame(self, spark: SparkSession, types: tuple[str, ...]) -> DataFrame:
        if self.data is not None:
            return self.data
        rows, ranks = [row for row, _ in self.rows], [rank for _, rank in self.rows]
        return frame_of_rows(spark, rows, types, ranks)


NOTHING = Held()


def hold_rows(rows: Sequence[Ranked]) -> Held:
    return Held(len(rows), rows)


@dataclass
class Draft:
    """The changes of every relation in a commit to come."""

    spark: SparkSession
    changes: list[Changes] = field(default_factory=list)
    files: dict[str, Files] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    spread: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def add(
        self,
        name: str,
        table: StoredTable,
        inserted: Held,
        deleted: Held = NOTHING,
        reranked: Held = NOTHING,
        whole: Callable[[], DataFrame] | None = None,
    ) -> None:
        """Add the change of a relation; `whole`, of a stored one, gives what it will hold."""
        if not (inserted.size or deleted.size or reranked.size):
            return
        self.counts[name] = inserted.size, deleted.size
        sides = ((INSERT, inserted), (DELETE, deleted), (RERANK, reranked))
        if all(side.data is None for _, side in sides):
            self.changes += [
                _changes_of_rows(name, kind, table, side) for kind, side in sides if side.size
            ]
        elif whole is not None and not deleted.size and not reranked.size:
            folder = self.write(name, table, inserted.frame(self.spark, table.types))
            self.files[name] = Files(inserted=folder)
        else:
            self._add_large(name, table, inserted, deleted, whole)

    def _add_large(
        self,
        name: str,
        table: StoredTable,
        inserted: Held,
        deleted: Held,
        whole: Callable[[], DataFrame] | None,
    ) -> None:
        apart = StoredTable(table.location, f"changes/{name}", table.columns, table.types)
        folders = [
            self.write(None, apart, side.frame(self.spark, table.types)) if side.size else None
            for side in (inserted, deleted)
        ]
        folder = None if whole is None else self.write(name, table, whole())
        self.files[name] = Files(folder, *folders)

    def add_load(self, name: str, table: StoredTable, held: Held) -> None:
        """Add a relation that was empty before."""
        if held.data is None:
            self.add(name, table, held)
        elif held.size:
            folder = self.write(name, table, held.data)
            self.files[name] = Files(whole=folder, inserted=folder)
            self.counts[name] = held.size, 0

    def write(self, name: str | None, table: StoredTable, data: DataFrame) -> str:
        """Write a folder of files below a table, and count values if it is a table with a name."""
        folder = new_folder(table.relative)
        if name is not None and table.types:
            counting = Observation()
            columns = names_of(table.types)
            named = [c.alias(f"n{i}") for i, c in enumerate(count_columns(columns))]
            data = data.observe(counting, *named)
        writer = table.outwards(data).write.mode("error")
        writer = writer.option("maxRecordsPerFile", FILE_ROWS_MAX)
        writer = writer.option("parquet.block.row.count.limit", GROUP_ROWS)
        writer.parquet(table.location.path(folder))
        if name is not None and table.types:
            found = counting.get
            self.spread[name] = spread_of([found[f"n{i}"] for i in range(len(columns) + 1)])
        return folder


def _changes_of_rows(name: str, kind: str, table: StoredTable, held: Held) -> Changes:
    rows, ranks = [row for row, _ in held.rows], [rank for _, rank in held.rows]
    is_ranked = table.is_ranked and kind != DELETE
    return Changes(name, kind, table.types, rows, ranks if is_ranked else None)


def with_zero_ranks(data: DataFrame) -> DataFrame:
    """A frame of the engine that has no ranks, with ranks."""
    return data.withColumn(RANK, F.lit(0).cast("long"))
