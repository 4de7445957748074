"""Who reads the change log, how far, and what may be dropped of it.

A registered reader holds the log: nothing that it has not acknowledged is dropped. What all
readers have acknowledged is kept as long as the `Retention` says. Only `bytes_max` overrides
a reader, and then a `RetentionWarning` names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.store.log import Log, current_timestamp
from deltalog.store.schema import PARTS

ROWS_AT_ONCE = 1_000
"""Rows of the log that are dropped in one transaction, so that nobody waits long."""
PAGES_AT_ONCE = 1_000


class RetentionWarning(UserWarning):
    """Something was dropped from the log before a reader had read it."""


@dataclass(frozen=True)
class Retention:
    """How much of the change log is kept: all of it, unless one of these is given.

    What is older than the last `versions` commits, and older than `seconds`, may go (both, if both
    are given), once all readers have acknowledged it. The last commit always stays: it says which
    version the file has, so `versions=0` keeps what `versions=1` keeps. Of a log larger than
    `bytes_max` the oldest part goes, whoever waits for it.
    """

    versions: int | None = None
    seconds: float | None = None
    bytes_max: int | None = None

    @property
    def is_limited(self) -> bool:
        return self != Retention()


def check_retention(retention: object) -> None:
    """Raise unless it is a `Retention` of numbers that make sense."""
    if not isinstance(retention, Retention):
        raise unknown_option("retention", retention, "it is a `deltalog.Retention`")
    for field in fields(retention):
        if (value := getattr(retention, field.name)) is not None:
            types = (int, float) if field.name == "seconds" else (int,)
            check_number(f"retention {field.name}", value, *types)


def check_number(what: str, value: object, *types: type) -> None:
    """Raise unless an option is a number of these types, 0 or more."""
    is_number = isinstance(value, types) and not isinstance(value, bool)
    if not is_number or not value >= 0:  # type: ignore[operator]
        kind = "a number" if float in types else "a whole number"
        raise unknown_option(what, value, f"it is {kind}, 0 or more")


def unknown_option(what: str, value: object, hint: str) -> DataError:
    return DataError([catalogue.UNKNOWN_OPTION.at(None, what=what, name=value, hint=hint)])


def register_reader(connection: apsw.Connection, name: str, version: int) -> int:
    """Register a reader that has read up to a version; one that is known keeps its place."""
    check_reader_name(name)
    connection.execute(
        "INSERT INTO deltalog__readers VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING",
        (name, version, current_timestamp()),
    )
    return read_up_to(connection)[name]


def acknowledge_version(connection: apsw.Connection, name: str, version: int) -> None:
    """The reader has read everything up to a version; it never goes back."""
    check_known(read_up_to(connection), name)
    connection.execute(
        "UPDATE deltalog__readers SET version = max(version, ?), time = ? WHERE name = ?",
        (version, current_timestamp(), name),
    )


def unregister_reader(connection: apsw.Connection, name: str) -> None:
    check_known(read_up_to(connection), name)
    connection.execute("DELETE FROM deltalog__readers WHERE name = ?", (name,))


def read_up_to(connection: apsw.Connection) -> dict[str, int]:
    """The readers, each with the version that it has acknowledged."""
    found = connection.execute("SELECT name, version FROM deltalog__readers ORDER BY name")
    return {str(name): int(version) for name, version in found}


def check_reader_name(name: object) -> None:
    try:
        is_text = isinstance(name, str) and bool(name.encode())
    except UnicodeError:
        is_text = False
    if not is_text:
        raise unknown_option("reader", name, "its name is a non-empty text")


def check_known(known: Mapping[str, int], name: str) -> None:
    """Raise unless a reader is among those that are registered."""
    check_reader_name(name)
    if name not in known:
        hint = did_you_mean(name, known) or "register it with `register`"
        raise DataError([catalogue.NO_SUCH_READER.at(None, name=name, hint=hint)])


# --- dropping -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dropped:
    """Rows of the log that a compaction dropped, and the readers that had not read them all."""

    versions: int
    overrun: tuple[str, ...]


def compact_log(connection: apsw.Connection, path: Path, retention: Retention) -> Dropped:
    """Drop what may go, in small transactions; what was dropped before an end stays dropped."""
    log = Log(connection)
    before = log.first
    readers = read_up_to(connection)
    last = log.last
    allowed = min(_last_unwanted(connection, retention, last), *readers.values(), last - 1)
    forced = min(_too_large(connection, retention), last - 1)
    overrun = tuple(name for name, version in readers.items() if version < forced)
    if overrun:
        _warn_readers(path, forced, {name: readers[name] for name in overrun}, retention)
    for _ in _drop_log_until(connection, max(allowed, forced)):
        pass
    return Dropped(log.first - before, overrun)


def log_behind(connection: apsw.Connection, retention: Retention, version: int) -> tuple[int, bool]:
    """Bytes of the log behind a version, and whether the retention alone would keep all of it."""
    held = connection.execute(
        "SELECT total(octet_length(changes)) FROM deltalog__log WHERE number >= ?",
        ((version + 1) << PARTS,),
    ).get
    return int(held), version >= _last_unwanted(connection, retention, Log(connection).last)


def _last_unwanted(connection: apsw.Connection, retention: Retention, last: int) -> int:
    """The last version that nothing but readers could still want; -1 if there is none."""
    bounds = []
    if retention.versions is not None:
        bounds.append(last - retention.versions)
    if retention.seconds is not None:
        found = connection.execute(
            "SELECT max(number) FROM deltalog__log WHERE time < ?",
            (_timestamp_ago(retention.seconds),),
        ).get
        bounds.append(-1 if found is None else int(found) >> PARTS)
    return min(bounds, default=-1)


def _timestamp_ago(seconds: float) -> str:
    try:
        return (datetime.now(UTC) - timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(" ")
    except OverflowError:  # before the year 1
        return ""


def _too_large(connection: apsw.Connection, retention: Retention) -> int:
    """The last version that must go for the log to have its size; -1 if there is none."""
    if retention.bytes_max is None:
        return -1
    held = 0
    sizes = connection.execute(
        "SELECT number, octet_length(changes) FROM deltalog__log ORDER BY number DESC"
    )
    for number, size in sizes:
        held += int(size)
        if held > retention.bytes_max:
            return int(number) >> PARTS
    return -1


def _drop_log_until(connection: apsw.Connection, version: int) -> Iterator[int]:
    """Delete the log up to a version, a piece at a time, oldest first; then give pages back."""
    until = (version + 1) << PARTS
    while True:
        with connection:
            connection.execute(
                "DELETE FROM deltalog__log WHERE number IN (SELECT number FROM deltalog__log "
                "WHERE number < ? ORDER BY number LIMIT ?)",
                (until, ROWS_AT_ONCE),
            )
            count = connection.changes()
        if not count:
            break
        yield count
    while int(connection.pragma("freelist_count")) > PAGES_AT_ONCE:
        connection.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
        yield 0


def _warn_readers(path: Path, forced: int, readers: dict[str, int], retention: Retention) -> None:
    for name, version in readers.items():
        warnings.warn(
            f"the log of {path} is larger than {retention.bytes_max:,} bytes: versions up to "
            f"{forced} are dropped, but the reader `{name}` has only read up to {version}",
            RetentionWarning,
            stacklevel=4,
        )
