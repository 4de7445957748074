"""Files that no commit names and no table holds: what killed runs and rewritten tables leave.

They may go when nobody can name them any more. Whoever writes to the state reads its log first, and
commits only if it is still the last one to have done so; so after a commit of ours nobody can name
files that were written before it. Files younger than an hour stay, for readers that still have an
earlier version of a table, and because clocks differ.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow.fs
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from deltalog.pipeline.location import Location
from deltalog.pipeline.log import Record
from deltalog.pipeline.log_table import RETENTION_HOURS


def remove_garbage(location: Location, records: Iterable[Record], first: int) -> int:
    """Remove such files; returns how many. The last commit must have been ours.

    `first` is the oldest version that the log leads back to.
    """
    named = {
        folder
        for record in records
        if record.version > first
        for files in record.files.values()
        for folder in (files.whole, files.inserted, files.deleted)
        if folder is not None
    }
    count = 0
    for path in _unused_files(location):
        if path.rpartition("/")[0] not in named:
            system, target = location.files(path)
            with suppress(FileNotFoundError):  # Delta remembers files that are gone
                system.delete_file(target)
                count += 1
    return count


def _unused_files(location: Location) -> Iterator[str]:
    """Files below the state that no table holds and that are old, named as below the state."""
    for room in ("tables", "helpers"):
        for table in _list_folders(location, room):
            yield from _unused_of_table(location, table)
    yield from _unused_of_table(location, "log")
    for relation in _list_folders(location, "changes"):
        for folder in _list_folders(location, relation):
            yield from _old_files(location, folder)


def _unused_of_table(location: Location, relative: str) -> Iterator[str]:
    try:
        table = DeltaTable(location.path(relative))
    except TableNotFoundError:
        return
    found = table.vacuum(RETENTION_HOURS, enforce_retention_duration=False, full=True)
    yield from (f"{relative}/{path}" for path in found)


def _list_folders(location: Location, relative: str) -> list[str]:
    system, path = location.files(relative)
    found = system.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True))
    return [
        f"{relative}/{info.base_name}"
        for info in found
        if info.type == pyarrow.fs.FileType.Directory
    ]


def _old_files(location: Location, relative: str) -> Iterator[str]:
    system, path = location.files(relative)
    until = time.time() - RETENTION_HOURS * 3_600
    for info in system.get_file_info(pyarrow.fs.FileSelector(path)):
        if info.is_file and info.mtime_ns / 1e9 <= until:
            yield f"{relative}/{info.base_name}"
