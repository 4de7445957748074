"""Copy on write: files of a table that hold rows which are to go are written anew without them.

    rows to go: 5, 61,007       file 1: 0..249,999          a new file without them
                                file 2: 250,000..499,999    stays as it is, and is not opened

Which rows may be in a file its bounds say; whether they are is looked up; only then it is read as a
whole. Several files are written at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow

from deltalog.language.ast import Row
from deltalog.pipeline.row_groups import COMPARABLE
from deltalog.pipeline.table_files import Actions, relative_path, remove_action, without_rows

if TYPE_CHECKING:
    from deltalog.pipeline.stored_table import StoredTable

WRITERS = min(4, os.cpu_count() or 1)
"""Files that are written anew at the same time."""


def files_without(
    table: StoredTable, lost: Collection[Row], updated: Mapping[Row, int]
) -> Iterator[tuple[str, Actions]]:
    """Write files anew without rows; those that are `updated` stay with another rank.

    Yields the path of each such file, and what replaces it.
    """
    wanted = table.wanted(tuple(range(len(table.columns))), list(lost))
    is_ordered = table.types[0] in COMPARABLE and all(row[0] is not None for row in lost)
    rows = sorted(lost, key=itemgetter(0)) if is_ordered else list(lost)

    def rewrite(fragment: Any) -> tuple[str, Actions] | None:
        near: Sequence[Row] = rows
        if is_ordered:
            near = table.groups.rows_near(fragment, table.columns[0], rows)
        return _file_without(table, fragment, near, updated) if near else None

    with ThreadPoolExecutor(WRITERS) as pool:
        fragments = table.dataset().get_fragments(filter=wanted)
        yield from filter(None, pool.map(rewrite, fragments))


def _file_without(
    table: StoredTable, fragment: Any, rows: Sequence[Row], updated: Mapping[Row, int]
) -> tuple[str, Actions] | None:
    """The same for one file; None if it has none of the rows."""
    columns = table.columns
    wanted = table.wanted(tuple(range(len(columns))), rows)
    near = fragment.to_table(columns=list(columns), filter=wanted)
    found = set(rows).intersection(table.rows(near))
    if not found:
        return None
    kept = without_rows(fragment.to_table(), columns, wanted, found, table.rows)
    again = table.encoded([(row, updated[row]) for row in found if row in updated])
    whole = pyarrow.concat_tables([kept.cast(table.schema), again])
    path = relative_path(fragment.path, table.files.root)
    return path, [
        remove_action(path),
        *([table.write_rows(whole)] if whole.num_rows else []),
    ]
