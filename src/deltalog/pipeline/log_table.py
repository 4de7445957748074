"""The Delta table of a log, as the driver reads and writes it.

A commit is an append that makes the next version of the table, or fails if somebody else has made
it. It also says its number as the transaction of the application `deltalog`, so that a writer whose
appends are made by Spark (`spark_storage.py`) meets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Protocol

import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from pyspark.sql import DataFrame, SparkSession

from deltalog.pipeline.location import Location
from deltalog.pipeline.table_files import (
    SMALL_FILE_ROWS,
    Actions,
    TableFiles,
    dataset_of,
    relative_path,
    remove_action,
)

APPLICATION = "deltalog"
COMPACTED_FILES = 64
"""Files of the log that are made one."""
KEPT_VERSIONS = 2 * COMPACTED_FILES
"""Versions of the Delta table whose own records stay, for those who are reading them."""
RETENTION_HOURS = 1
SETTINGS = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": f"interval {RETENTION_HOURS} hours",
}
"""Of every table of a state: what is removed from it, Delta remembers for an hour."""


@dataclass(frozen=True)
class Wanted:
    """Which rows of the log: those for which all that is said here holds."""

    change: str | None = None
    relation: str | None = None
    later: int | None = None
    """A sequence that theirs is above."""
    after: int | None = None
    until: int | None = None


class LogTable(Protocol):
    """The table, wherever it is written from."""

    def open(self) -> bool:
        """Look at the table as it is now; returns whether there is one."""
        ...

    @property
    def schema(self) -> pyarrow.Schema | None: ...
    def read(self, wanted: Wanted, columns: list[str] | None) -> pyarrow.Table: ...
    def append(self, rows: pyarrow.Table, sequence: int) -> bool:
        """Commit; returns False if that is not certain, because somebody else has written."""
        ...

    def note(self, rows: pyarrow.Table) -> None:
        """Append rows that belong to no commit, whatever others write."""
        ...

    def drop(self, version: int) -> None:
        """Delete the changes up to a version."""
        ...

    def tidy(self) -> bool:
        """Make many small files one; returns whether there were many."""
        ...

    def frame(self, spark: SparkSession) -> DataFrame | None: ...
    def files_for(self, after: int, until: int) -> list[str]:
        """The files, named as below the state, that can hold versions after one, up to another."""
        ...

    @property
    def identity(self) -> str:
        """The random identity that the table got when it was made."""
        ...

    def bytes_behind(self, version: int) -> int:
        """Bytes of the files that can hold versions after one."""
        ...


class DriverLogTable:
    """The table, read and written by delta-rs and Arrow."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._path = location.path("log")
        self._table: DeltaTable | None = None
        self._count = 0

    @property
    def _table_files(self) -> TableFiles:
        return TableFiles(*self._location.files("log"))

    def open(self) -> bool:
        if self._table is not None:
            self._table.update_incremental()
            return True
        try:
            self._table = DeltaTable(self._path)
        except TableNotFoundError:
            return False
        self._count = len(self._table.file_uris())
        return True

    @property
    def schema(self) -> pyarrow.Schema | None:
        return None if self._table is None else pyarrow.schema(self._table.schema().to_arrow())

    def read(self, wanted: Wanted, columns: list[str] | None) -> pyarrow.Table:
        return self._log_dataset().to_table(columns=columns, filter=_condition_of_wanted(wanted))

    def _log_dataset(self) -> pyarrow.dataset.Dataset:
        assert self._table is not None
        return dataset_of(self._table, self._table_files, self.schema, ("sequence", "version"))

    def files_for(self, after: int, until: int) -> list[str]:
        wanted = _condition_of_wanted(Wanted(after=after, until=until))
        root = self._table_files.root
        found = [] if self._table is None else self._log_dataset().get_fragments(filter=wanted)
        return [f"log/{relative_path(fragment.path, root)}" for fragment in found]

    @property
    def identity(self) -> str:
        assert self._table is not None
        return str(self._table.metadata().id)

    def bytes_behind(self, version: int) -> int:
        if self._table is None:
            return 0
        actions = pyarrow.table(self._table.get_add_actions(flatten=True)).to_pylist()
        later = (a for a in actions if a.get("max.version") is None or a["max.version"] > version)
        return sum(int(action["size_bytes"]) for action in later)

    def frame(self, spark: SparkSession) -> DataFrame | None:
        if self._table is None:
            return None
        reader = spark.read.format("delta").option("versionAsOf", self._table.version())
        return reader.load(self._path)

    def append(self, rows: pyarrow.Table, sequence: int) -> bool:
        once = CommitProperties(
            max_commit_retries=0, app_transactions=[Transaction(APPLICATION, sequence)]
        )
        try:
            self._append_rows(rows, once)
        except CommitFailedError:
            return False
        self._count += 1
        return True

    def _append_rows(self, rows: pyarrow.Table, once: CommitProperties) -> None:
        if self._table is None:
            write_deltalake(
                self._path, rows, mode="error", commit_properties=once, configuration=SETTINGS
            )
            self._table = DeltaTable(self._path)
            return
        is_known = len(self._table.schema().fields) == len(rows.schema)
        write_deltalake(
            self._table,
            rows,
            mode="append",
            schema_mode=None if is_known else "merge",
            commit_properties=once,
        )

    def note(self, rows: pyarrow.Table) -> None:
        write_deltalake(DeltaTable(self._path), rows, mode="append")

    def drop(self, version: int) -> None:
        dropped = pc.field("relation").is_valid() & (pc.field("version") <= version)
        self._rewrite_files(list(self._rows_per_file()), ~dropped)

    def tidy(self) -> bool:
        if self._table is None or self._count <= COMPACTED_FILES:
            return False
        self._rewrite_files(
            [path for path, size in self._rows_per_file().items() if size < SMALL_FILE_ROWS], None
        )
        self._shorten_delta_log()
        return True

    def _shorten_delta_log(self) -> None:
        """Make a checkpoint of the Delta table, and remove its records from long before that.

        Delta lists that folder with every commit, so a commit would cost more the more there were.
        """
        assert self._table is not None
        self._table.create_checkpoint()
        first = self._table.version() - KEPT_VERSIONS
        system, root = self._location.files("log", "_delta_log")
        for info in system.get_file_info(pyarrow.fs.FileSelector(root)):
            number = info.base_name.partition(".")[0]
            if number.isdigit() and int(number) < first:
                system.delete_file(info.path)

    def _rows_per_file(self) -> dict[str, int]:
        assert self._table is not None
        actions = pyarrow.table(self._table.get_add_actions(flatten=True))
        names, sizes = (actions.column(name).to_pylist() for name in ("path", "num_records"))
        return dict(zip(names, sizes, strict=True))

    def _rewrite_files(self, paths: Sequence[str], kept: pc.Expression | None) -> None:
        """Write the rows of some files to one; a version that no writer need mind."""
        assert self._table is not None
        files, schema = self._table_files, self.schema
        rows = pyarrow.concat_tables([files.read(path, schema) for path in paths])
        rows = rows if kept is None else rows.filter(kept)
        actions: Actions = [remove_action(path, is_change=False) for path in paths]
        self._table.create_write_transaction(
            [files.write(rows, "sequence", is_change=False), *actions],
            "append",
            self._table.schema(),
        )
        self._table.update_incremental()
        self._count = len(self._table.file_uris())


def _condition_of_wanted(wanted: Wanted) -> pc.Expression:
    version = pc.field("version")
    found = [
        pc.field("change") == wanted.change if wanted.change is not None else None,
        pc.field("relation") == wanted.relation if wanted.relation is not None else None,
        pc.field("sequence") > wanted.later if wanted.later is not None else None,
        version > wanted.after if wanted.after is not None else None,
        version <= wanted.until if wanted.until is not None else None,
    ]
    return reduce(and_, [each for each in found if each is not None])
