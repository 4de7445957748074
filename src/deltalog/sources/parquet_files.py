"""Parquet files as a source of facts, with a file of changes beside them.

connect(program=…, sources={"edge": ParquetFiles("edges/", "edges.changes.jsonl")})

    {"op": "+", "row": {"src": 1, "dst": 2}}        a line of the file of changes

Whoever writes the files appends a line for each row that a rewrite inserts or deletes. Files and
lines cannot be read at one moment, so this source is `eventual`: a probe may see rows that are not
announced yet. Row groups that cannot hold a key are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalog.analysis.columns import Relation
from deltalog.diagnostics.report import DataError
from deltalog.engines.external.source import Columns, Event, Precision
from deltalog.language.arrow import arrow_schema
from deltalog.language.ast import Row
from deltalog.runtime.checked_rows import checked_rows
from deltalog.sources.sql_source import unreadable_source


@dataclass(frozen=True)
class ParquetFiles:
    """A file, or a folder of files, and the file of changes beside it."""

    path: str | Path
    changes: str | Path

    def bind(self, relation: Relation) -> ParquetSource:
        return ParquetSource(self, relation)


class ParquetSource:
    precision: Precision = "eventual"

    def __init__(self, described: ParquetFiles, relation: Relation) -> None:
        self.relation = relation
        self.name = f"Parquet files {Path(described.path).name}"
        self._path = Path(described.path)
        self._changes = Path(described.changes)
        self._columns = [column.name for column in relation.columns]
        self.open()
        self.acknowledge()

    def open(self) -> None:
        """Look at the files and the lines that there are now."""
        import pyarrow
        import pyarrow.dataset

        try:
            self._lines = self._changes.read_text(encoding="utf-8").splitlines()
            self._dataset = pyarrow.dataset.dataset(self._path, format="parquet")
        except (OSError, pyarrow.ArrowException) as error:
            raise self._unreadable_error(type(error).__name__) from None

    def close(self) -> None:
        """Nothing is held."""

    def acknowledge(self) -> None:
        self._position = len(self._lines)

    def disconnect(self) -> None:
        """Nothing is held."""

    def find(self, columns: Columns, key: Row) -> list[Row]:
        import pyarrow
        import pyarrow.dataset

        schema = arrow_schema(self.relation.columns)
        test = pyarrow.dataset.scalar(True)
        for column, value in zip(columns, key, strict=True):
            field = pyarrow.dataset.field(self._columns[column])
            typed = pyarrow.scalar(value, schema.field(column).type)
            test &= field.is_null() if value is None else field == typed
        rows = self._read_rows(test)
        return [row for row in rows if tuple(row[c] for c in columns) == key]

    def scan(self) -> list[Row]:
        return self._read_rows(None)

    def _read_rows(self, test: Any) -> list[Row]:
        import pyarrow

        try:
            table = self._dataset.to_table(columns=self._columns, filter=test)
        except (OSError, pyarrow.ArrowException) as error:
            raise self._unreadable_error(type(error).__name__) from None
        found = [column.to_pylist() for column in table.columns]
        return checked_rows(self.relation, list(zip(*found, strict=True)))

    def count(self) -> int:
        return int(self._dataset.count_rows())

    def events(self) -> list[Event]:
        return list(self._new_events())

    def _new_events(self) -> Iterable[Event]:
        for number, line in enumerate(self._lines[self._position :], self._position + 1):
            if not line.strip():
                continue
            try:
                said = json.loads(line)
                op, row = said["op"], said["row"]
            except (ValueError, KeyError, TypeError):
                op = row = None
            if op not in ("+", "-"):
                reason = f"line {number} of {self._changes.name} is not a change"
                raise self._unreadable_error(reason)
            (fact,) = checked_rows(self.relation, [row])
            yield op == "+", fact

    def _unreadable_error(self, reason: str) -> DataError:
        return unreadable_source(self.relation.name, self.name, reason)
