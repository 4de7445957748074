"""The state of a database on disk, as one writer or reader has it open: the log and what it says.

state/log              every commit, one transaction each (`log.py`); it alone decides
state/tables/path      every base relation and materialised view; follows the log (`folds.py`)
state/helpers/…        what views are computed from: group state and the like
state/changes/…        files that commits name, of changes that are too large for the log
state/lock             held by the one writer
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from deltalog.pipeline.garbage import remove_garbage
from deltalog.pipeline.location import Location
from deltalog.pipeline.lock import lock_folder
from deltalog.pipeline.log import Batch, Files, Log, Record, current_time
from deltalog.pipeline.log_rows import Changes
from deltalog.pipeline.log_table import DriverLogTable, LogTable
from deltalog.pipeline.rejected import Refused
from deltalog.pipeline.spark_storage import SparkLogTable, SparkTable
from deltalog.pipeline.stored_table import StoredTable

PROBLEMS = "problems"
"""The kind of a commit that notes which parts of a pipeline fail."""


@dataclass
class Latest:
    """The last word of the commits so far about each relation, sink and part.

    It is kept up, so that no commit costs more because many came before it.
    """

    program: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    spread: dict[str, Sequence[float]] = field(default_factory=dict)
    sinks: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str | None] = field(default_factory=dict)
    first: int = 0

    def take(self, record: Record) -> None:
        if record.program is not None:
            self.program = record.program
        self.sizes.update(record.sizes)
        self.spread.update(record.spread)
        self.sinks.update(record.sinks)
        self.problems.update(record.problems)
        self.first = max(self.first, record.first or 0)


class State:
    """The commits there are, and the way to make more."""

    def __init__(self, spark: SparkSession | None, state: str) -> None:
        self._spark = spark
        self.location = Location.of(state, spark)
        self.log = Log(self._log_table(), state)
        self.records: list[Record] = []
        self._latest = Latest()
        self.batches: set[Batch] = set()
        self._lock: IO[str] | None = None
        self.measure: Callable[[Record], Mapping[str, float]] | None = None

    def _log_table(self) -> LogTable:
        if self.location.is_reached:
            return DriverLogTable(self.location)
        return SparkLogTable(self.spark, self.location)

    def table(
        self, relative: str, columns: tuple[str, ...], types: tuple[str, ...], is_ranked: bool
    ) -> StoredTable:
        """The table of a relation."""
        if self.location.is_reached:
            return StoredTable(self.location, relative, columns, types, is_ranked)
        return SparkTable(self.location, relative, columns, types, is_ranked, spark=self.spark)

    @property
    def spark(self) -> SparkSession:
        assert self._spark is not None, (
            "what has been committed is known without Spark; rows are not"
        )
        return self._spark

    def open(self, is_writer: bool = True) -> None:
        """Take the lock, and read the records of all commits."""
        folder = self.location.folder
        if is_writer and folder is not None:
            self._lock = lock_folder(folder, self.location.name)
        self.records, self._latest = [], Latest()
        self._take_records(self.log.open())
        self.batches = self.log.batches()

    def refresh(self) -> None:
        """Read what others have committed since."""
        self._take_records(self.log.open())

    def _take_records(self, records: Iterable[Record]) -> None:
        for record in records:
            self.records.append(record)
            self._latest.take(record)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def is_new(self) -> bool:
        """Whether nothing has been committed yet, but perhaps that sources fail."""
        return all(record.kind == PROBLEMS for record in self.records)

    @property
    def last(self) -> Record:
        """The record of the last commit; before the first one, nothing."""
        return self.records[-1] if self.records else Record()

    @property
    def program(self) -> str:
        """The program of the last commit."""
        return self._latest.program

    def program_at(self, version: int) -> str:
        """The program of a version."""
        found = [r.program for r in self.records if r.program and r.version <= version]
        return found[-1] if found else self.program

    def size(self, relation: str) -> int:
        """How many rows a stored relation holds."""
        return self._latest.sizes.get(relation, 0)

    def spread(self, relation: str) -> tuple[float, ...]:
        """How many rows the values of each column have, if it has been counted."""
        return tuple(self._latest.spread.get(relation, ()))

    @property
    def delivered(self) -> dict[str, int]:
        """The version up to which each sink has been given changes."""
        return dict(self._latest.sinks)

    @property
    def readers(self) -> dict[str, int]:
        """The registered readers, each with the version it has acknowledged."""
        return self.log.readers(self._log_table())

    @property
    def problems(self) -> dict[str, str]:
        """The parts of a pipeline that failed when it last ran, each with the reason."""
        return {name: why for name, why in self._latest.problems.items() if why is not None}

    @property
    def first(self) -> int:
        """The oldest version that the log leads back to."""
        return self._latest.first

    def drop(self, version: int) -> None:
        """Let the log begin at a version; what came before it cannot be asked for any more.

        Then files go that nobody needs or can name.
        """
        first = version if version > self.first else None
        self.commit(Record(version=self.last.version, kind="compaction", first=first))
        if first is not None:
            self.log.drop(version)
        if self.location.is_reached:
            remove_garbage(self.location, self.records, self.first)

    def files_of(self, relation: str, after: int, until: int) -> Iterator[tuple[int, Files]]:
        """Files that commits between two versions have for a relation, oldest first."""
        for record in self.records:
            if after < record.version <= until and relation in record.files:
                yield record.version, record.files[relation]

    def files_since_whole(self, relation: str, after: int, until: int) -> list[tuple[int, Files]]:
        """The same from the last that hold the whole relation: nothing before them counts."""
        found = list(self.files_of(relation, after, until))
        wholes = [number for number, (_, files) in enumerate(found) if files.whole is not None]
        return found[wholes[-1] :] if wholes else found

    def commit(
        self,
        record: Record,
        changes: Sequence[Changes] = (),
        all_types: Iterable[Sequence[str]] = (),
        batches: tuple[Batch, ...] = (),
        refused: Refused = (),
    ) -> Record:
        """Append to the log; either it has happened then, or an error is raised and it has not."""
        last = self.last
        if record.program == self.program:
            record = replace(record, program=None)
        clock = max(record.clock, last.clock)
        made = replace(record, sequence=last.sequence + 1, clock=clock, at=current_time())
        if self.measure is not None:
            made = replace(made, metrics=self.measure(made))
        self.log.append(made, changes, all_types, batches, refused)
        self._take_records([made])
        self.batches.update(batches)
        return made

    def read_files(self, folder: str) -> DataFrame:
        """The rows in a folder of Parquet files."""
        return self.spark.read.parquet(self.location.path(folder))

    def read_rows(self, folder: str) -> pyarrow.Table:
        """The same on the driver."""
        if not self.location.is_reached:
            return self.read_files(folder).toArrow()
        system, path = self.location.files(folder)
        return pyarrow.parquet.read_table(path, filesystem=system)
