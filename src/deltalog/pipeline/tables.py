"""The tables of a state: Delta Lake tables in one folder, and where each of them is.

    state/tables/path       every base relation and materialised view, columns as declared
    state/changes/path      its exact changes: version, op (`+` or `-`), columns
    state/helpers/…         what views are computed from: group state and the like
    state/commits           one row for each commit; the last one decides (`commits.py`)
    state/quarantine        rows that were not taken, with the reason

Views that use themselves have one column more, `rank__`: the order of derivation, which deletion
from them needs (`docs/decisions/0011`). A relation without columns has the column `holds__`.

A change of a table is one transaction of Delta, so a reader sees it whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from deltalog.engines.spark.columns import RANK, name_of

RANK_COLUMN = "rank__"
HOLDS_COLUMN = "holds__"
SMALL_ROWS_MAX = 100_000
"""At most this many rows are written as one file."""
THREADS_MAX = 4


@dataclass(frozen=True)
class Table:
    """A table and how its columns are called: `columns` are those of the relation."""

    path: str
    columns: tuple[str, ...]
    is_ranked: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, as the table has them."""
        return (*(self.columns or (HOLDS_COLUMN,)), *((RANK_COLUMN,) if self.is_ranked else ()))

    def outwards(self, data: DataFrame) -> DataFrame:
        """A frame of the engine (`c0`, `c1`, …, `rank`) with the columns of the table."""
        if not self.columns:
            return data.select(F.lit(True).alias(HOLDS_COLUMN))
        found = [F.col(name_of(i)).alias(name) for i, name in enumerate(self.columns)]
        return data.select(*found, *([F.col(RANK).alias(RANK_COLUMN)] if self.is_ranked else []))

    def inwards(self, data: DataFrame) -> DataFrame:
        """The table as a frame of the engine, always with ranks."""
        rank = F.col(RANK_COLUMN) if self.is_ranked else F.lit(0).cast("long")
        found = [F.col(f"`{name}`").alias(name_of(i)) for i, name in enumerate(self.columns)]
        return data.select(*found, rank.alias(RANK))


class Tables:
    """Reads and writes the tables of one state."""

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark = spark
        self.name = state
        # Spark has a working directory of its own, which stays where it was started.
        self.state = (state if "://" in state else str(Path(state).absolute())).rstrip("/")

    @property
    def folder(self) -> Path | None:
        """The folder of the state if it is on this machine."""
        return None if "://" in self.state else Path(self.state)

    def path(self, *names: str) -> str:
        return "/".join((self.state, *names))

    def read(self, path: str, version: int | None = None) -> DataFrame:
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(path)

    def version(self, path: str) -> int | None:
        """The last version of a table, or None if there is none."""
        folder = self.folder
        if folder is not None:  # the log has a file for each version; no job is needed to list it
            found = (Path(path) / "_delta_log").glob("*.json")
            return max((int(each.stem) for each in found if each.stem.isdigit()), default=None)
        if not DeltaTable.isDeltaTable(self.spark, path):
            return None
        (row,) = DeltaTable.forPath(self.spark, path).history(1).select("version").collect()
        return int(row["version"])

    def append(self, path: str, data: DataFrame, rows: int) -> None:
        _few(data, rows).write.format("delta").mode("append").save(path)

    def replace(self, path: str, data: DataFrame, rows: int) -> None:
        """The table becomes this, whatever it was before, its columns too."""
        writer = _few(data, rows).write.format("delta").mode("overwrite")
        writer.option("overwriteSchema", "true").save(path)

    def merge(self, table: Table, deleted: DataFrame, inserted: DataFrame) -> None:
        """Delete and insert rows, as one version; no row is on both sides."""
        source = deleted.withColumn("op__", F.lit("-")).unionByName(
            inserted.withColumn("op__", F.lit("+"))
        )
        keys = table.columns or (HOLDS_COLUMN,)
        is_same = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in keys)
        values: dict[str, str | Column] = {f"`{name}`": f"s.`{name}`" for name in table.names}
        merging = (
            DeltaTable.forPath(self.spark, table.path)
            .alias("t")
            .merge(source.alias("s"), is_same)
            .whenMatchedDelete("s.op__ = '-'")
        )
        if table.is_ranked:  # deleted and inserted again, with another rank
            merging = merging.whenMatchedUpdate("s.op__ = '+'", {RANK_COLUMN: f"s.{RANK_COLUMN}"})
        merging.whenNotMatchedInsert("s.op__ = '+'", values).execute()

    def restore(self, path: str, version: int) -> None:
        DeltaTable.forPath(self.spark, path).restoreToVersion(version)


def _few(data: DataFrame, rows: int) -> DataFrame:
    return data.coalesce(1) if rows <= SMALL_ROWS_MAX else data


def together(works: Iterable[Callable[[], None]]) -> None:
    """Do things at the same time; the first problem is raised when all have ended."""
    listed: Sequence[Callable[[], None]] = list(works)
    if len(listed) <= 1:
        for work in listed:
            work()
        return
    with ThreadPoolExecutor(min(THREADS_MAX, len(listed))) as pool:
        for done in [pool.submit(work) for work in listed]:
            done.result()
