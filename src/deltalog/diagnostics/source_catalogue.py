"""The errors of base relations at sources; `catalogue.py` has all others, and `ENTRIES` both."""

from __future__ import annotations

from deltalog.diagnostics.entry import Entry

SOURCE_UNREADABLE = Entry("E1801", "the source of `{name}` ({place}) cannot be read: {reason}")
FACTS_ELSEWHERE = Entry("E1802", "the facts of `{name}` are at a source")
NOT_A_SOURCE = Entry(
    "E1803",
    "`{name}` cannot have this source: {reason}",
    "a source is a `SqliteTable`, `PostgresTable`, `DeltaLakeTable` or `ParquetFiles` of"
    " `deltalog.sources`",
)
BAD_SOURCES = Entry("E1804", "{place}: {reason}")
