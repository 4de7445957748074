"""Connections to a database file: checksums on every page, and errors a person understands.

Every page ends in a checksum (SQLite's own `cksumvfs`, which comes with `apsw`), written with the
page and verified whenever it is read: a flipped byte is an error and never a wrong fact. Other
SQLite tools read such a file like any other. Triggers keep them from writing (`schema.py`), which
connections made here do not run; what a tool writes nevertheless has no checksum, and is noticed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw
import apsw.sqlite_extra

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic

CHECKSUMS = "cksmvfs"
CHECKSUM_BYTES = 8
BUSY_MILLISECONDS = 10_000
"""How long a statement waits for another process that is just writing."""
CACHE_KIBIBYTES = 32_768

_registering = threading.Lock()


def open_connection(path: Path, *, is_writable: bool, is_created: bool = False) -> apsw.Connection:
    """A connection to a database file whose pages have checksums."""
    _register_checksums(path)
    with sqlite_errors_reported(path):
        connection = _connect_to_file(path, is_created)
        try:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.pragma("cache_size", -CACHE_KIBIBYTES)
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)  # they are for others
            if not is_writable:
                connection.pragma("query_only", True)
            elif is_created and not connection.pragma("page_count"):
                connection.reserve_bytes(reserve=CHECKSUM_BYTES)
        except BaseException:
            connection.close()
            raise
    return connection


def _connect_to_file(path: Path, is_created: bool) -> apsw.Connection:
    """Also a reader may write, if it can: to the shared memory, and to tidy up after a crash."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if is_created else 0)
    connection = apsw.Connection(str(path), flags, vfs=CHECKSUMS)
    try:
        connection.pragma("application_id")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
        beside = path.with_name(f"{path.name}-wal")
        if is_created or (beside.exists() and beside.stat().st_size):
            raise
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        name = f"file:{quote(str(path.absolute()))}?immutable=1"  # nobody can write there
        return apsw.Connection(name, flags, vfs=CHECKSUMS)
    except BaseException:
        connection.close()
        raise
    return connection


def _register_checksums(path: Path) -> None:
    with _registering:
        if CHECKSUMS in apsw.vfs_names():
            return
        before = apsw.vfs_names()[0]
        connection = apsw.Connection(":memory:")
        try:
            apsw.sqlite_extra.load(connection, "cksumvfs")
        except Exception as error:
            reason = f"this build of apsw cannot load cksumvfs ({error})"
            hint = "install one that can with `pip install --only-binary apsw apsw`"
            raise DataError(
                [catalogue.CANNOT_OPEN.at(None, name=path, reason=reason, hint=hint)]
            ) from None
        finally:
            connection.close()
        apsw.set_default_vfs(before)  # other users of apsw in this process keep theirs


def has_checksums(connection: apsw.Connection) -> bool:
    """Whether pages are verified; one flipped byte in the header would turn that off."""
    return str(connection.pragma("checksum_verification")) == "1"


# --- errors -------------------------------------------------------------------------------------


@contextmanager
def sqlite_errors_reported(path: Path, is_commit: bool = False) -> Iterator[None]:
    """Errors of SQLite in the words of the catalogue."""
    try:
        yield
    except apsw.Error as error:
        raise sqlite_problem(path, error, is_commit) from error
    except UnicodeDecodeError as error:
        reason = "a text in it is not UTF-8"
        raise DataError([catalogue.FILE_DAMAGED.at(None, name=path, reason=reason)]) from error


def sqlite_problem(path: Path, error: apsw.Error, is_commit: bool) -> DataError:
    return DataError([_diagnostic_of_error(path, error, is_commit)])


def _diagnostic_of_error(path: Path, error: apsw.Error, is_commit: bool) -> Diagnostic:
    reason = reason_of(error)
    if is_damage(error):
        return catalogue.FILE_DAMAGED.at(None, name=path, reason=reason, hint=RESTORE_HINT)
    if isinstance(error, apsw.NotADBError):
        return catalogue.NOT_A_DATABASE.at(None, name=path)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return catalogue.FILE_IN_USE.at(None, owner="another process", name=path, hint=WAIT_HINT)
    entry = catalogue.COMMIT_FAILED if is_commit else catalogue.CANNOT_OPEN
    return entry.at(None, name=path, reason=reason)


RESTORE_HINT = "`deltalog restore BACKUP FILE --replace` brings a backup back"
WAIT_HINT = "`wait=SECONDS` waits for it; `read_only=True` reads beside it"


def is_damage(error: apsw.Error) -> bool:
    """Whether it says that what is in a file is wrong."""
    found = getattr(error, "extendedresult", 0)
    damages = (apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_SHORT_READ)
    return isinstance(error, apsw.CorruptError | apsw.MismatchError) or found in damages


def reason_of(error: apsw.Error) -> str:
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
        return "the checksum of a page does not match what the page holds"
    if isinstance(error, apsw.FullError):
        return "the disk is full"
    if isinstance(error, apsw.ReadOnlyError):
        return "it is read-only"
    return str(error).partition("\n")[0].lower()
