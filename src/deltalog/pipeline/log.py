"""The log: one table, in which every commit is one transaction.

A commit is the exact change of every relation it touches, and a record of what it is:

    sequence  version  relation  change  rank  int_0  int_1  text
    3         2        edge      insert        1      2
    3         2        path      insert  1041  1      2
    3         2                  batch                       ["prices", "0002.csv"]
    3         2                  commit                      {"clock": 1041, …}

It has happened if the transaction has, and not otherwise: nothing else decides, so after a crash
there is nothing to put back. Tables follow later (`folds.py`).

The transaction is a conditional one: it makes the next version of the Delta table, or fails if
somebody else has made it. So two writers never mix. A version that only rearranges the files of
the log is no reason to fail: the writer looks, and tries again. In a folder of one machine there is
also a lock on the file `lock`, which the operating system gives back when the process ends.

What is too large for the driver is written to files before the commit, which names them; files that
no commit names are garbage.

Readers say how far they are in rows that belong to no commit, whoever writes: a writer that meets
one tries again, as with files that were rearranged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.location import Location
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
from deltalog.pipeline.table_files import (
    GROUP_ROWS,
    Actions,
    TableFiles,
    dataset_of,
    relative,
    removed,
)

Batch = tuple[str, str]
"""The name of a source, and of what it gave."""
Refused = Sequence[tuple[str, str, str]]
"""Rows that are not taken: relation, reason, and the row as text."""
ATTEMPTS_MAX = 20
COMPACTED_FILES = 64
"""Files of the log that are made one."""


class RefusedRow(NamedTuple):
    """A row that was not taken: when, from where, for which relation, why, and the row as text."""

    at: datetime
    source: str
    batch: str
    relation: str
    reason: str
    row: str


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
    `first` if the log leads back only to that version.
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

    def text(self) -> str:
        held = {k: v for k, v in asdict(self).items() if k not in ("sequence", "version", "at")}
        return json.dumps({name: value for name, value in held.items() if value not in ({}, None)})

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Record:
        held = json.loads(row["text"])
        counts = {name: (each[0], each[1]) for name, each in held.pop("counts", {}).items()}
        files = {name: Files(**each) for name, each in held.pop("files", {}).items()}
        made = {"sequence": row["sequence"], "version": row["version"], "at": row["at"]}
        return cls(**made, counts=counts, files=files, **held)


class Log:
    """The log of one state, read and written by the driver."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self.path = location.path("log")
        self._table: DeltaTable | None = None
        self._sequence = -1
        self._files = 0

    def open(self) -> list[Record]:
        """Read what has been committed: the records of all commits, oldest first."""
        try:
            self._table = DeltaTable(self.path)
        except TableNotFoundError:
            return []
        self._files = len(self._table.file_uris())
        return self._records()

    def refresh(self) -> list[Record]:
        """The records of commits that others have made since."""
        if self._table is None:
            return self.open()
        self._table.update_incremental()
        return self._records()

    @property
    def _log_files(self) -> TableFiles:
        return TableFiles(*self._location.files("log"))

    @property
    def table_version(self) -> int | None:
        return None if self._table is None else self._table.version()

    def _records(self) -> list[Record]:
        """The records that have not been read yet."""
        wanted = (pc.field("change") == COMMIT) & (pc.field("sequence") > self._sequence)
        found = self._read(wanted, ["sequence", "version", "at", "text"]).sort_by("sequence")
        records = [Record.read(row) for row in found.to_pylist()]
        self._sequence = max([self._sequence, *(record.sequence for record in records)])
        return records

    def batches(self) -> set[Batch]:
        """Everything that has been taken from sources."""
        found = self._read(pc.field("change") == BATCH, ["text"]).column("text").to_pylist()
        return {(source, batch) for source, batch in map(json.loads, found)}

    def refused(self) -> list[RefusedRow]:
        """The rows that were not taken, oldest first."""
        found = self._read(pc.field("change") == REFUSED, ["sequence", "at", "text"])
        listed = found.sort_by("sequence").to_pylist()
        return [RefusedRow(row["at"], *json.loads(row["text"])) for row in listed]

    def changes(self, relation: str, after: int, until: int) -> pyarrow.Table:
        """The rows of the log for a relation in versions after one, up to another, in order."""
        version = pc.field("version")
        wanted = (pc.field("relation") == relation) & (version > after) & (version <= until)
        return self._read(wanted, None).sort_by("sequence")

    def files_for(self, after: int, until: int) -> list[str]:
        """The files, named as below the state, that can hold versions after one, up to another."""
        version = pc.field("version")
        wanted = (version > after) & (version <= until)
        root = self._log_files.root
        found = [] if self._table is None else self._dataset().get_fragments(filter=wanted)
        return [f"log/{relative(fragment.path, root)}" for fragment in found]

    def _read(self, wanted: pc.Expression, columns: list[str] | None) -> pyarrow.Table:
        if self._table is None:
            schema = log_schema([])
            names = schema.names if columns is None else columns
            return schema.empty_table().select(names)
        return self._dataset().to_table(columns=columns, filter=wanted)

    def _dataset(self) -> pyarrow.dataset.Dataset:
        assert self._table is not None
        schema = pyarrow.schema(self._table.schema().to_arrow())
        return dataset_of(self._table, self._log_files, schema, ("sequence", "version"))

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
        if self._table is not None:
            held = pyarrow.schema(self._table.schema().to_arrow())
            schema = pyarrow.unify_schemas([held, schema])
        rows = pyarrow.concat_tables(
            [
                encoded_changes(stamp, changes, schema),
                encoded_texts(stamp, BATCH, [json.dumps(each) for each in batches], schema),
                encoded_texts(stamp, REFUSED, _refused_texts(batches, refused), schema),
                encoded_texts(stamp, COMMIT, [record.text()], schema),
            ]
        )
        for _ in range(ATTEMPTS_MAX):
            try:
                self._write(rows)
            except CommitFailedError:
                self._meet_others()
            else:
                self._sequence = record.sequence
                self._files += 1
                return
        raise in_use(self._location.name, "another run")

    def _meet_others(self) -> None:
        """Look at what others have written: files and readers may be, a commit must not."""
        if self.refresh():
            raise in_use(self._location.name, "another run") from None

    def _write(self, rows: pyarrow.Table) -> None:
        once = CommitProperties(max_commit_retries=0)
        if self._table is None:
            write_deltalake(self.path, rows, mode="error", commit_properties=once)
            self._table = DeltaTable(self.path)
            return
        is_known = len(self._table.schema().fields) == len(rows.schema)
        write_deltalake(
            self._table,
            rows,
            mode="append",
            schema_mode=None if is_known else "merge",
            commit_properties=once,
        )

    def drop(self, version: int) -> None:
        """Delete the changes up to a version; records of commits and batches stay."""
        dropped = pc.field("relation").is_valid() & (pc.field("version") <= version)
        self._rewrite(list(self._sizes()), ~dropped)

    def tidy(self) -> None:
        """Make many small files one."""
        if self._table is not None and self._files > COMPACTED_FILES:
            small = [path for path, size in self._sizes().items() if size < GROUP_ROWS]
            self._rewrite(small, None)

    def _sizes(self) -> dict[str, int]:
        assert self._table is not None
        actions = pyarrow.table(self._table.get_add_actions(flatten=True))
        names, sizes = (actions.column(name).to_pylist() for name in ("path", "num_records"))
        return dict(zip(names, sizes, strict=True))

    def _rewrite(self, paths: Sequence[str], kept: pc.Expression | None) -> None:
        """Write the rows of some files to one; a version that no writer need mind."""
        assert self._table is not None
        files = self._log_files
        schema = pyarrow.schema(self._table.schema().to_arrow())
        rows = pyarrow.concat_tables([files.read(path, schema) for path in paths])
        rows = rows if kept is None else rows.filter(kept)
        actions: Actions = [removed(path, is_change=False) for path in paths]
        self._table.create_write_transaction(
            [files.write(rows, "sequence", is_change=False), *actions],
            "append",
            self._table.schema(),
        )
        self._meet_others()
        self._files = len(self._table.file_uris())

    # --- readers

    def readers(self) -> dict[str, int]:
        """The registered readers, each with the version it has acknowledged, as of now."""
        current = self._apart()
        rows = current._read(pc.field("change") == READER, ["at", "text"]).sort_by("at")
        found: dict[str, int] = {}
        for name, version in map(json.loads, rows.column("text").to_pylist()):
            if version is None:
                found.pop(name, None)
            else:
                found[name] = max(version, found.get(name, 0))
        return dict(sorted(found.items()))

    def note_reader(self, name: str, version: int | None) -> None:
        """Write that a reader has read up to a version; None unregisters it."""
        current = self._apart()
        assert current._table is not None, "a log that is read has commits"
        schema = pyarrow.schema(current._table.schema().to_arrow())
        stamp = Stamp(0, version or 0, now())
        rows = encoded_texts(stamp, READER, [json.dumps((name, version))], schema)
        write_deltalake(current._table, rows, mode="append")

    def _apart(self) -> Log:
        """The log as it is now; this one stays where it is, so that no commit is passed over."""
        log = Log(self._location)
        with suppress(TableNotFoundError):
            log._table = DeltaTable(self.path)
        return log


def _refused_texts(batches: Sequence[Batch], refused: Refused) -> list[str]:
    """Rows that were not taken, each with the batch it was in."""
    source, batch = batches[0] if batches else ("", "")
    return [json.dumps((source, batch, *each)) for each in refused]


def now() -> datetime:
    return datetime.now(UTC)


def in_use(state: str, owner: str) -> DataError:
    hint = "wait until it ends, or use a separate state"
    return DataError([catalogue.STATE_IN_USE.at(None, name=state, owner=owner, hint=hint)])
