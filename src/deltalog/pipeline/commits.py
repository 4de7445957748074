"""The commit table: it decides what has happened.

A commit writes many tables, and each write is a transaction of its own. Last comes one row in the
commit table, with the versions that all tables have then:

    sequence  version  kind    batches                   clock  program  tables
    3         2        commit  [{prices, 0002.csv}]      1041   base …   {tables/path: 4, …}

So the state is, at any time, *the tables at the versions of the last row*. A run that was killed
before that row has done nothing that counts: the next one finds tables that are ahead, and puts
them back. What it had been given is not among the batches, so it is taken from the source again.

One run at a time writes to a state: it holds a lock on the file `lock`, which the operating system
gives back when the process ends, however it ends. Where there is no such file (a bucket), and in
any case, a run that finds a commit that is not its own stops before it writes its row.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pyspark.sql import functions as F

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.tables import Tables

SCHEMA = (
    "sequence LONG, version LONG, kind STRING, batches ARRAY<STRUCT<source: STRING, batch: STRING>>"
    ", clock LONG, program STRING, tables MAP<STRING, LONG>, at TIMESTAMP"
)
Batch = tuple[str, str]
"""The name of a source, and of what it gave."""


@dataclass(frozen=True)
class Commit:
    """The last row of the commit table; before the first one, its defaults."""

    sequence: int = 0
    version: int = 0
    clock: int = 0
    program: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    at: datetime | None = None


class Commits:
    """The commit table of one state, and the lock on it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._path = tables.path("commits")
        self._table_version: int | None = None
        self._lock: IO[str] | None = None
        self.last = Commit()
        self.batches: set[Batch] = set()

    def open(self, is_writer: bool = True) -> None:
        """Take the lock, and read what has been committed."""
        if is_writer and self._tables.folder is not None:
            self._lock = _locked(self._tables.folder, self._tables.name)
        self._table_version = self._tables.version(self._path)
        if self._table_version is None:
            return
        rows = self._tables.read(self._path, self._table_version)
        last = rows.orderBy(F.col("sequence").desc()).limit(1).collect()[0].asDict()
        self.last = Commit(
            last["sequence"],
            last["version"],
            last["clock"],
            last["program"],
            last["tables"],
            last["at"],
        )
        given = rows.select(F.explode("batches").alias("batch")).select("batch.*").collect()
        self.batches = {(row["source"], row["batch"]) for row in given}

    def write(
        self, changed: Commit, tables: Mapping[str, int], batches: tuple[Batch, ...], kind: str
    ) -> None:
        """The row that makes it true; `tables` are the versions of those that were written."""
        if self._tables.version(self._path) != self._table_version:
            raise in_use(self._tables.name, "another run")
        made = replace(
            changed,
            sequence=self.last.sequence + 1,
            tables={**self.last.tables, **tables},
            at=datetime.now(UTC),
        )
        row = (
            made.sequence,
            made.version,
            kind,
            list(batches),
            made.clock,
            made.program,
            dict(made.tables),
            made.at,
        )
        self._tables.append(self._path, self._tables.spark.createDataFrame([row], SCHEMA), 1)
        self._table_version = self._tables.version(self._path)
        self.last = made
        self.batches.update(batches)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _locked(folder: Path, name: str) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_WRITE.at(None, name=folder, reason=reason)]) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        owner = file.read().strip()
        file.close()
        raise in_use(name, f"process {owner}" if owner else "another run") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def in_use(state: str, owner: str) -> DataError:
    hint = "wait until it ends, or use a separate state"
    return DataError([catalogue.STATE_IN_USE.at(None, name=state, owner=owner, hint=hint)])
