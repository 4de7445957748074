"""The log: one table, in which every commit is one transaction.

A commit is the exact change of every relation it touches, and a record of what it is:

    sequence  version  relation  change  rank  int_0  int_1  text
    3         2        edge      insert        1      2
    3         2        path      insert  1041  1      2
    3         2                  batch                       ["prices", "0002.csv"]
    3         2                  commit                      {"clock": 1041, …}

It has happened if the transaction has, and not otherwise: nothing else decides, so after a crash
there is nothing to put back. Tables follow later (`folds.py`).

The transaction is a conditional one: it happens only if nobody else has committed since
(`log_table.py`, `spark_storage.py`). So two writers never mix. A version that only rearranges the
files of the log is no reason to fail: the writer looks, and tries again. In a folder of one machine
there is also a lock on the file `lock`, which the operating system gives back when the process
ends.

What is too large for the driver is written to files before the commit, which names them; files that
no commit names are garbage.

Readers say how far they are in rows that belong to no commit, whoever writes: a writer that meets
one tries again, as with files that were rearranged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.log_rows import (
    BATCH,
    COMMIT,
    READER,
    REFUSED,
    Changes,
    Stamp,
    encoded_changes,
    encoded_texts,
    log_schema,
)
from deltalog.pipeline.log_table import LogTable, Wanted
from deltalog.pipeline.rejected import Refused, Rejected

Batch = tuple[str, str]
"""The name of a source, and of what it gave."""
ATTEMPTS_MAX = 20
_COLUMNS = ("sequence", "version", "at")
"""Parts of a record that have columns of their own."""


@dataclass(frozen=True)
class Files:
    """Folders of Parquet files, below the state, that hold what is too much for the log.

    `inserted` and `deleted` are the exact change of a relation; `whole`, if it is there, is all
    that the relation holds after it.
    """

    whole: str | None = None
    inserted: str | None = None
    deleted: str | None = None


@dataclass(frozen=True)
class Record:
    """Everything about a commit besides the rows it changes.

    `counts` are rows that were inserted and deleted, `sizes` how many stored relations hold after
    it, `files` those that are elsewhere. `spread` tells of large relations how many rows the values
    of each column have, `sinks` how far they have got. `program` is there if it is another one,
    `first` if the log leads back only to that version. `problems` are parts of a pipeline that
    fail, with the reason (None: mended), `metrics` what it cost.
    """

    sequence: int = 0
    version: int = 0
    clock: int = 0
    kind: str = "transaction"
    at: datetime | None = None
    program: str | None = None
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, Files] = field(default_factory=dict)
    spread: Mapping[str, Sequence[float]] = field(default_factory=dict)
    sinks: Mapping[str, int] = field(default_factory=dict)
    first: int | None = None
    problems: Mapping[str, str | None] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    def text(self) -> str:
        held = {name: value for name, value in vars(self).items() if name not in _COLUMNS}
        held["files"] = {name: vars(files) for name, files in self.files.items()}
        return json.dumps({name: value for name, value in held.items() if value not in ({}, None)})

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Record:
        held = json.loads(row["text"])
        held.pop("mark", None)
        counts = {name: (each[0], each[1]) for name, each in held.pop("counts", {}).items()}
        files = {name: Files(**each) for name, each in held.pop("files", {}).items()}
        made = {"sequence": row["sequence"], "version": row["version"], "at": row["at"]}
        return cls(**made, counts=counts, files=files, **held)


class Log:
    """The log of one state; `table` is read and written by the driver, or by Spark."""

    def __init__(self, table: LogTable, name: str) -> None:
        self.table = table
        self._name = name
        self._sequence = -1
        self._is_there = False

    def open(self) -> list[Record]:
        """Read what has been committed since: the records of commits, oldest first."""
        self._is_there = self.table.open()
        wanted = Wanted(change=COMMIT, later=self._sequence)
        found = self._read_table(wanted, ["sequence", "version", "at", "text"]).sort_by("sequence")
        records = [Record.read(row) for row in found.to_pylist()]
        self._sequence = max([self._sequence, *(record.sequence for record in records)])
        return records

    def batches(self) -> set[Batch]:
        """Everything that has been taken from sources."""
        found = self._read_table(Wanted(change=BATCH), ["text"]).column("text").to_pylist()
        return {(source, batch) for source, batch in map(json.loads, found)}

    def refused(self) -> list[tuple[datetime, Rejected]]:
        """The rows that were not taken, oldest first, each with the time."""
        found = self._read_table(Wanted(change=REFUSED), ["sequence", "at", "text"])
        listed = found.sort_by("sequence").to_pylist()
        return [(row["at"], Rejected(*json.loads(row["text"]))) for row in listed]

    def changes(self, relation: str, after: int, until: int) -> pyarrow.Table:
        """The rows of the log for a relation in versions after one, up to another, in order."""
        wanted = Wanted(relation=relation, after=after, until=until)
        return self._read_table(wanted, None).sort_by("sequence")

    def _read_table(self, wanted: Wanted, columns: list[str] | None) -> pyarrow.Table:
        if self._is_there:
            return self.table.read(wanted, columns)
        schema = log_schema([])
        return schema.empty_table().select(schema.names if columns is None else columns)

    # --- writing

    def append(
        self,
        record: Record,
        changes: Iterable[Changes],
        all_types: Iterable[Sequence[str]],
        batches: Sequence[Batch] = (),
        refused: Refused = (),
    ) -> None:
        """Commit, unless somebody else has committed since: then nothing has happened."""
        assert record.at is not None
        stamp = Stamp(record.sequence, record.version, record.at)
        schema = log_schema(all_types)
        if self.table.schema is not None:
            schema = pyarrow.unify_schemas([self.table.schema, schema])
        rows = pyarrow.concat_tables(
            [
                encoded_changes(stamp, changes, schema),
                encoded_texts(stamp, BATCH, [json.dumps(each) for each in batches], schema),
                encoded_texts(stamp, REFUSED, [json.dumps(each) for each in refused], schema),
                encoded_texts(stamp, COMMIT, [record.text()], schema),
            ]
        )
        for _ in range(ATTEMPTS_MAX):
            if self.table.append(rows, record.sequence):
                self._sequence, self._is_there = record.sequence, True
                return
            self._meet_others()
        raise in_use(self._name, "another run")

    def _meet_others(self) -> None:
        """Look at what others have written: files and readers may be, a commit must not."""
        if self.open():
            raise in_use(self._name, "another run") from None

    def drop(self, version: int) -> None:
        """Delete the changes up to a version; records of commits and batches stay."""
        self.table.drop(version)
        self._meet_others()

    def tidy(self) -> None:
        """Make many small files one."""
        if self.table.tidy():
            self._meet_others()

    # --- readers

    def readers(self, now_in: LogTable) -> dict[str, int]:
        """The registered readers, each with the version it has acknowledged.

        They are read from the table as it is now; this log stays where it is, so that no commit is
        passed over.
        """
        if not now_in.open():
            return {}
        rows = now_in.read(Wanted(change=READER), ["at", "text"]).sort_by("at")
        found: dict[str, int] = {}
        for name, version in map(json.loads, rows.column("text").to_pylist()):
            if version is None:
                found.pop(name, None)
            else:
                found[name] = max(version, found.get(name, 0))
        return dict(sorted(found.items()))

    def note_reader(self, name: str, version: int | None) -> None:
        """Write that a reader has read up to a version; None unregisters it."""
        assert self.table.schema is not None, "a log that is read has commits"
        stamp = Stamp(0, version or 0, current_time())
        text = json.dumps((name, version))
        self.table.note(encoded_texts(stamp, READER, [text], self.table.schema))


def current_time() -> datetime:
    return datetime.now(UTC)


def in_use(state: str, owner: str) -> DataError:
    hint = "wait until it ends, or use a separate state"
    return DataError([catalogue.STATE_IN_USE.at(None, name=state, owner=owner, hint=hint)])
