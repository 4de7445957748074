"""Copies of database files: backups, what they bring back, and upgrades, which begin with one.

A copy is written beside its place and renamed when it is whole and on the disk, so that whatever
happens there is a whole copy or none. A backup is one state, taken while others go on writing. A
copy has an identity of its own (`settings.py`): it may go on differently from its original.
"""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.store.schema import CHANGES, FORMAT
from deltalog.store.settings import renew_history
from deltalog.store.sqlite import is_damage, open_connection, reason_of, sqlite_errors_reported

try:
    import fcntl
except ImportError:  # where there is none, what a killed process left stays
    fcntl = None  # type: ignore[assignment]


def _let_commits_omit_views(connection: apsw.Connection) -> None:
    """Let commits say which views they omit: those so far omit none."""
    connection.execute(f"DROP VIEW deltalog__changes; {CHANGES}")


UPGRADES: dict[int, Callable[[apsw.Connection], None]] = {1: _let_commits_omit_views}
"""From a format to the next one; runs inside a transaction."""
BESIDE = ("-wal", "-shm")


def back_up_to(connection: apsw.Connection, path: Path, target: Path) -> None:
    """Copy the state that a connection sees, in the smallest form, to a new file."""
    if target.exists():
        raise DataError([catalogue.FILE_EXISTS.at(None, name=target)])
    with _renamed_when_written(target) as beside:
        _vacuum_into(connection, path, beside, target)


def restore_backup(connection: apsw.Connection, source: Path, target: Path) -> Path | None:
    """Put a copy of a backup in the place of a database; returns where that was moved to.

    Nobody may have the target open. It is moved aside with its write-ahead log, never overwritten.
    """
    with _renamed_when_written(target) as beside:
        _vacuum_into(connection, source, beside, target)
        return _move_aside(target) if target.exists() else None


def _vacuum_into(connection: apsw.Connection, path: Path, beside: Path, target: Path) -> None:
    with sqlite_errors_reported(path):
        is_query_only = connection.pragma("query_only")
        connection.pragma("query_only", False)  # which would also protect the copy
        try:
            connection.execute("VACUUM INTO ?", (str(beside),))
        except apsw.Error as error:
            if is_damage(error) or isinstance(error, apsw.BusyError | apsw.LockedError):
                raise
            reason = reason_of(error).replace(str(beside).lower(), str(target))
            raise DataError(
                [catalogue.CANNOT_WRITE.at(None, name=target, reason=reason)]
            ) from error
        finally:
            connection.pragma("query_only", is_query_only)
        copied = open_connection(beside, is_writable=True)
        try:
            renew_history(copied)
        finally:
            copied.close()


def _move_aside(target: Path) -> Path:
    for number in range(1, 1_000):
        aside = target.with_name(f"{target.name}.replaced{number}")
        if not aside.exists():
            break
    for suffix in (*BESIDE, ""):  # the file last: a log without its file harms nobody
        with suppress(FileNotFoundError):
            target.with_name(target.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


def upgrade_format(path: Path, connection: apsw.Connection, found: int) -> None:
    """Bring a file to the format of today, after a backup beside it."""
    kept = path.with_name(f"{path.name}.format{found}")
    if not kept.exists():
        back_up_to(connection, path, kept)
    with sqlite_errors_reported(path, is_commit=True), connection:
        for number in range(found, FORMAT):
            UPGRADES[number](connection)
        connection.pragma("user_version", FORMAT)


@contextmanager
def _renamed_when_written(target: Path) -> Iterator[Path]:
    """An empty file to write to, which becomes the target when all went well.

    It is locked as long as its process lives; what nobody has locked was left by one that was
    killed, and goes.
    """
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    handle = -1
    try:
        _remove_stale(target)
        handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.rename(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _write_error(target, error) from None
    finally:
        _remove_partial(beside)
        if handle >= 0:
            os.close(handle)


def _remove_stale(target: Path) -> None:
    """Remove copies for the same target whose process is gone."""
    if fcntl is None:
        return
    for path in target.parent.glob(f".{glob.escape(target.name)}.????????.part"):
        with suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_partial(path)
            finally:
                os.close(handle)


def _remove_partial(beside: Path) -> None:
    for suffix in ("", "-journal", *BESIDE):
        with suppress(OSError):
            beside.with_name(beside.name + suffix).unlink()


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not everywhere a folder can be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_error(target: Path, error: OSError) -> DataError:
    reason = (error.strerror or str(error)).lower()
    return DataError([catalogue.CANNOT_WRITE.at(None, name=target, reason=reason)])
