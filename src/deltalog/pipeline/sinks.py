"""Sinks: what changed, or what a view is now, given to others after each commit.

| kind       | gives                                              | given twice               |
|------------|----------------------------------------------------|---------------------------|
| `append`   | the feed of changes, appended to a Delta table     | leaves out what is there  |
| `merge`    | the view as a Delta table with a key               | gives the same            |
| `snapshot` | the view as Parquet files                          | gives the same            |
| `function` | a call with the changes as a DataFrame             | is called again           |

How far a sink has got is noted in the log after it was given something. If a run is killed between
the two, it is given the same again; what that does is said above. A feed of changes has the columns
of the view and `_change_type` (insert or delete), `_commit_version` and `_commit_timestamp`.
"""

from __future__ import annotations

import importlib
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.language.arrow import arrow_table
from deltalog.language.values import sort_key
from deltalog.pipeline.log_rows import DELETE, INSERT
from deltalog.pipeline.problems import Problems
from deltalog.pipeline.project import Sink
from deltalog.pipeline.reading import CHANGE_TYPE, COMMIT_VERSION, FEED
from deltalog.pipeline.table_database import TableDatabase


class Sinks:
    """The sinks of a project, and how far each has got."""

    def __init__(self, database: TableDatabase, sinks: Sequence[Sink], folder: Path) -> None:
        self._database = database
        self._sinks = sinks
        self._folder = folder
        self._reached = database.delivered

    def deliver(self, problems: Problems) -> list[str]:
        """Give every sink what is new; returns the names of those that got something.

        One that fails is a problem of its own. It waits for the next run, and gets all it missed.
        """
        version = self._database.version
        given: list[str] = []
        for sink in self._sinks:
            after, part = self._reached.get(sink.name, 0), f"sink {sink.name}"
            if after < version and part not in problems:
                try:
                    self._give_changes(sink, after)
                except Exception as error:
                    problems.add(part, [_sink_failure(sink, version, error)])
                else:
                    self._reached[sink.name] = version
                    given.append(sink.name)
        if given:
            self._database.note_delivered(dict.fromkeys(given, version))
        return given

    def _give_changes(self, sink: Sink, after: int) -> None:
        match sink.kind:
            case "append":
                self._append_changes(sink, after)
            case "merge":
                self._merge_changes(sink, after)
            case "snapshot":
                self._write_snapshot(sink)
            case _:
                self._call_function(sink, after)

    def _append_changes(self, sink: Sink, after: int) -> None:
        is_folder = not sink.table and "://" not in sink.path
        if is_folder and self._database.append_changes(sink.relation, after, sink.path):
            return
        target = self._target_table(sink)
        if target is not None:
            (row,) = target.toDF().agg(F.max(COMMIT_VERSION)).collect()
            after = max(after, row[0] or 0)
        self._save_frame(sink, self._database.changes(sink.relation, after), "append")

    def _merge_changes(self, sink: Sink, after: int) -> None:
        target = self._target_table(sink)
        if target is None:
            self._save_frame(sink, self._database.frame(sink.relation), "overwrite")
            return
        changes = self._database.changes(sink.relation, after)
        columns = [name for name in changes.columns if name not in FEED]
        key = list(sink.key) or columns
        kind = F.max_by(CHANGE_TYPE, COMMIT_VERSION).alias(CHANGE_TYPE)
        last = changes.groupBy(*columns).agg(kind)
        inserted, deleted = (last.where(F.col(CHANGE_TYPE) == each) for each in (INSERT, DELETE))
        is_same = [F.col(f"g.{name}").eqNullSafe(F.col(f"c.{name}")) for name in key]
        left = deleted.alias("g").join(inserted.alias("c"), is_same, "left_anti")
        source = inserted.unionByName(left).alias("s")
        values: dict[str, str | Column] = {f"`{name}`": f"s.`{name}`" for name in columns}
        matched = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in key)
        is_inserted, is_deleted = (f"s.{CHANGE_TYPE} = '{each}'" for each in (INSERT, DELETE))
        merging = target.alias("t").merge(source, matched).whenMatchedDelete(is_deleted)
        merging = merging.whenMatchedUpdate(is_inserted, values)
        merging.whenNotMatchedInsert(is_inserted, values).execute()

    def _write_snapshot(self, sink: Sink) -> None:
        if self._is_on_driver(sink):
            relation = self._database.relations[sink.relation]
            rows = sorted(self._database.facts(sink.relation), key=sort_key)
            write_snapshot(Path(sink.path), arrow_table(relation.columns, rows))
            return
        writer = self._database.frame(sink.relation).write.mode("overwrite").format("parquet")
        if sink.table:
            writer.saveAsTable(sink.table)
        else:
            writer.save(sink.path)

    def _is_on_driver(self, sink: Sink) -> bool:
        """Whether a view is small, and goes to a folder that the driver can write to."""
        engine, relation = self._database.engine, self._database.relations[sink.relation]
        is_folder = not sink.table and "://" not in sink.path
        is_virtual = sink.relation not in self._database.table_versions
        is_small = is_virtual or engine.size(sink.relation) <= engine.settings.driver_rows_max
        return is_folder and is_small and relation.arity > 0

    def _call_function(self, sink: Sink, after: int) -> None:
        module, _, name = sink.function.partition(":")
        folder = str(self._folder.resolve())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        function = getattr(importlib.import_module(module), name)
        function(self._database.changes(sink.relation, after))

    def _target_table(self, sink: Sink) -> DeltaTable | None:
        spark = self._database.spark
        if sink.table:
            exists = spark.catalog.tableExists(sink.table)
            return DeltaTable.forName(spark, sink.table) if exists else None
        exists = DeltaTable.isDeltaTable(spark, sink.path)
        return DeltaTable.forPath(spark, sink.path) if exists else None

    def _save_frame(self, sink: Sink, data: DataFrame, mode: str) -> None:
        writer = data.write.format("delta").mode(mode)
        if sink.table:
            writer.saveAsTable(sink.table)
        else:
            writer.save(sink.path)


def _sink_failure(sink: Sink, version: int, error: Exception) -> Diagnostic:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    hint = "the next run gives it all that it has missed"
    return catalogue.SINK_FAILED.at(None, name=sink.name, version=version, reason=reason, hint=hint)


def write_snapshot(folder: Path, table: pyarrow.Table) -> None:
    """Replace what a folder holds by one Parquet file, without a job of Spark."""
    folder.mkdir(parents=True, exist_ok=True)
    before = [path for path in folder.iterdir() if path.is_file()]
    partial = folder / f".{secrets.token_hex(8)}.partial"
    pyarrow.parquet.write_table(table, partial)
    for path in before:
        path.unlink()
    partial.rename(folder / f"part-{partial.stem[1:]}.parquet")
