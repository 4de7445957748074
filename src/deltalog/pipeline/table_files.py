"""The Parquet files of a table, and the actions of Delta that add and remove them.

A change of a large table rewrites only the files that hold changed rows (copy on write): their rows
are found by statistics, the files are written without them, and one transaction adds the new files
and removes the old ones.
"""

from __future__ import annotations

import json
import math
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

GROUP_ROWS = 16_384
"""Rows of a group in a file: the least that a lookup reads."""
SMALL_FILE_ROWS = 50_000
"""Files with fewer rows are made one when there are many of them."""
TEXT_MAX = 64
"""Characters of a text that is a bound."""
Actions = list[AddAction | RemoveAction]


@dataclass(frozen=True)
class TableFiles:
    """The folder of a table."""

    system: pyarrow.fs.FileSystem
    root: str

    def read(self, path: str, schema: pyarrow.Schema) -> pyarrow.Table:
        """The rows of a file; columns that it does not have are null."""
        system, root = self.system, self.root
        found = pyarrow.parquet.read_table(f"{root}/{path}", filesystem=system)
        columns = [
            found.column(field.name).cast(field.type)
            if field.name in found.column_names
            else pyarrow.nulls(found.num_rows, field.type)
            for field in schema
        ]
        return pyarrow.Table.from_arrays(columns, schema=schema)

    def write(
        self, rows: pyarrow.Table, sorted_by: str | None, is_change: bool = True
    ) -> AddAction:
        """Write a new file; without `is_change` it has rows that were in other files."""
        system, root = self.system, self.root
        system.create_dir(root)
        name = f"part-{uuid.uuid4()}.parquet"
        if sorted_by is not None:
            rows = rows.sort_by(sorted_by)
        target = f"{root}/{name}"
        pyarrow.parquet.write_table(rows, target, row_group_size=GROUP_ROWS, filesystem=system)
        return self._add_action(system, root, name, system.get_file_info(target), is_change)

    def added(self, folder: str) -> Actions:
        """All files of a folder below, which were written before."""
        system, root = self.system, self.root
        found = system.get_file_info(pyarrow.fs.FileSelector(f"{root}/{folder}"))
        return [
            self._add_action(system, root, f"{folder}/{info.base_name}", info)
            for info in found
            if info.base_name.endswith(".parquet")
        ]

    @staticmethod
    def _add_action(
        system: pyarrow.fs.FileSystem,
        root: str,
        name: str,
        info: pyarrow.fs.FileInfo,
        is_change: bool = True,
    ) -> AddAction:
        file = pyarrow.parquet.read_metadata(f"{root}/{name}", filesystem=system)
        written = int(info.mtime_ns // 1_000_000)
        return AddAction(
            name, info.size, {}, written, is_change, json.dumps(_file_statistics(file))
        )


def files_below(system: pyarrow.fs.FileSystem, path: str, folder: str) -> list[str]:
    """The Parquet files of a folder at a path, named as files of `folder`."""
    found = system.get_file_info(pyarrow.fs.FileSelector(path))
    return [f"{folder}/{info.base_name}" for info in found if info.extension == "parquet"]


def new_folder(relative: str) -> str:
    """A name for files that nobody has written yet."""
    return f"{relative}/{uuid.uuid4().hex}"


def remove_action(path: str, is_change: bool = True) -> RemoveAction:
    return RemoveAction(path, is_change, int(time.time() * 1000), partition_values={})


def _file_statistics(file: pyarrow.parquet.FileMetaData) -> Mapping[str, Any]:
    """The number of rows, and of the columns the bounds and the number of nulls."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for column in range(file.num_columns):
        name = file.schema.column(column).name
        found = [file.row_group(i).column(column).statistics for i in range(file.num_row_groups)]
        if not found or not all(each is not None and each.has_null_count for each in found):
            continue
        nulls[name] = sum(each.null_count for each in found)
        bounded = [each for each in found if each.has_min_max]
        if bounded:
            first = _bound_for_delta(min(each.min for each in bounded), is_upper=False)
            last = _bound_for_delta(max(each.max for each in bounded), is_upper=True)
            if first is not None and last is not None:
                least[name], most[name] = first, last
    bounds = {"minValues": least, "maxValues": most, "nullCount": nulls}
    return {"numRecords": file.num_rows, **bounds}


def _bound_for_delta(value: Any, is_upper: bool) -> Any:
    """A bound of Parquet as one of Delta, never inside; None if there is no such thing."""
    match value:
        case bool() | int():
            return value
        case Decimal():
            return math.nextafter(float(value), math.inf if is_upper else -math.inf)
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            outer = value + timedelta(milliseconds=1) if is_upper else value
            return outer.replace(tzinfo=None).isoformat(" ", "milliseconds")
        case date():
            return value.isoformat()
        case str() if len(value) > TEXT_MAX:
            return value[:TEXT_MAX] + (chr(sys.maxunicode) if is_upper else "")
        case str():
            return value
    return None


def dataset_of(
    table: DeltaTable, files: TableFiles, schema: pyarrow.Schema, bounded: Collection[str]
) -> pyarrow.dataset.Dataset:
    """The files of a table; those are skipped whose bounds of int columns lie outside a filter.

    Groups of rows inside a file are skipped by the statistics of Parquet.
    """
    system, root = files.system, files.root
    actions = pyarrow.table(table.get_add_actions(flatten=True))
    parquet = pyarrow.dataset.ParquetFileFormat()
    fragments = [
        parquet.make_fragment(
            f"{root}/{action['path']}", system, _condition_fulfilled(action, bounded)
        )
        for action in actions.to_pylist()
    ]
    return pyarrow.dataset.FileSystemDataset(fragments, schema, parquet, system)


def _condition_fulfilled(
    action: Mapping[str, Any], bounded: Collection[str]
) -> pc.Expression | None:
    """A condition that all rows of a file fulfil, by the statistics that Delta has of it."""
    found = [
        (pc.field(name) >= action[f"min.{name}"]) & (pc.field(name) <= action[f"max.{name}"])
        for name in bounded
        if action.get(f"null_count.{name}") == 0
        and action.get(f"min.{name}") is not None
        and action.get(f"max.{name}") is not None
    ]
    return reduce(and_, found) if found else None


def without_rows(
    held: pyarrow.Table,
    columns: Sequence[str],
    wanted: pc.Expression,
    rows: Collection[tuple[Any, ...]],
    decode: Callable[[pyarrow.Table], list[tuple[Any, ...]]],
) -> pyarrow.Table:
    """A table without these rows; `wanted` is a condition that they all fulfil."""
    places = [i for i, row in _candidate_rows(held, columns, wanted, decode) if row in rows]
    stays = np.ones(held.num_rows, dtype=bool)
    stays[places] = False
    return held.filter(pyarrow.array(stays)) if places else held


def _candidate_rows(
    held: pyarrow.Table,
    columns: Sequence[str],
    wanted: pc.Expression,
    decode: Callable[[pyarrow.Table], list[tuple[Any, ...]]],
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows of a file that can be meant, with their places."""
    numbers = pyarrow.array(np.arange(held.num_rows))
    near = held.select(list(columns)).append_column("place__", numbers).filter(wanted)
    return zip(near.column("place__").to_pylist(), decode(near), strict=True)


def relative_path(path: str, root: str) -> str:
    """The path of a file below a folder."""
    return path.removeprefix(root).lstrip("/")
