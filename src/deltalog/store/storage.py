"""An open database file: locked if it is written, known to be ours, of the right format."""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.store.copies import BESIDE, upgrade_format
from deltalog.store.damage import frames_known, is_cut_off, is_log_damaged
from deltalog.store.readers import Retention
from deltalog.store.schema import (
    APPLICATION,
    FORMAT,
    OWN_NAMES,
    OWN_TABLES,
    SPOILED,
    guard_triggers,
)
from deltalog.store.sqlite import (
    RESTORE_HINT,
    WAIT_HINT,
    has_checksums,
    open_connection,
    sqlite_errors_reported,
)
from deltalog.store.writer_lock import WriterLock

_open_here: Counter[Path] = Counter()
"""How often this process has each file open."""
SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
SECONDS_UNLOOKED = {"full": 0.0, "normal": 1.0}
"""How long commits go on without a look whether the file is still there, which takes some time."""


@dataclass
class Storage:
    """`lock` is there if the file is open for writing; `is_new` if it holds nothing yet."""

    path: Path
    connection: apsw.Connection
    lock: WriterLock | None
    retention: Retention = field(default_factory=Retention)
    is_new: bool = False
    is_closed: bool = False
    is_inherited: bool = False
    seconds_unlooked: float = 0.0
    _has_moved: ctypes.c_int = field(default_factory=ctypes.c_int)

    @property
    def is_writable(self) -> bool:
        return self.lock is not None

    def __post_init__(self) -> None:
        _open_here[self.path.resolve()] += 1

    @property
    def is_moved(self) -> bool:
        """Whether the path leads to another file than the open one, or to none."""
        place = ctypes.addressof(self._has_moved)
        self.connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, place)
        return bool(self._has_moved.value)

    def check_open(self) -> None:
        if self.is_inherited:
            reason = "it belongs to the process from which this one was forked"
            hint = "open it again in this process"
            raise DataError(
                [catalogue.CANNOT_OPEN.at(None, name=self.path, reason=reason, hint=hint)]
            )
        if self.is_closed:
            raise DataError(
                [catalogue.DATABASE_CLOSED.at(None, name=f"the database `{self.path}`")]
            )

    def check_writable(self) -> None:
        self.check_open()
        if self.lock is None:
            raise DataError([catalogue.OPENED_READ_ONLY.at(None, name=self.path)])

    def check_unmoved(self) -> None:
        if self.is_moved:
            raise DataError([catalogue.FILE_MOVED.at(None, name=self.path)])

    def inherit(self) -> None:
        """In a process that was forked: leave the file to the one that opened it."""
        self.is_closed = self.is_inherited = True
        _keep_forever(self.connection)
        if self.lock is not None:
            self.lock.leave()

    def close(self, is_removed: bool = False) -> None:
        """Give the file back, or remove it while it is still locked.

        A second time nothing happens.
        """
        if not self.is_closed:
            self.is_closed = True
            if self.is_writable and self.is_moved:  # SQLite would leave commits in the log
                with suppress(apsw.Error):
                    self.connection.execute("PRAGMA wal_checkpoint = TRUNCATE").fetchall()
            self.connection.close()
            _open_here[self.path.resolve()] -= 1
            for suffix in ("", *BESIDE) if is_removed else ():
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            if self.lock is not None:
                self.lock.release()


def _keep_forever(connection: apsw.Connection) -> None:
    """Not even the end of the process may close it: that would remove the log of the other one."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def open_to_read(path: Path) -> Storage:
    """A file beside whoever writes to it."""
    path = real_path(path)
    _refuse_directory(path)
    if not path.exists():
        raise DataError([catalogue.CANNOT_OPEN.at(None, name=path, reason="there is no such file")])
    is_alone = WriterLock(path).is_free()
    known = _frames_known(path) if is_alone else None
    connection = open_connection(path, is_writable=False)
    try:
        if is_alone:
            _check_log(path, connection, known)
        found = _format_of_file(path, connection)
        if found is None:
            raise DataError([catalogue.NOT_A_DATABASE.at(None, name=path)])
        if found < FORMAT:
            reason = f"it has the old format {found}; open it for writing once to upgrade it"
            raise DataError([catalogue.CANNOT_OPEN.at(None, name=path, reason=reason)])
    except BaseException:
        connection.close()
        raise
    return Storage(path, connection, None)


def open_to_write(
    path: Path,
    durability: str,
    wait: float,
    retention: Retention,
    *,
    is_loss_accepted: bool = False,
) -> Storage:
    """A file that nobody else writes to, made if it is not there.

    With `is_loss_accepted` it is opened also when commits are known to be missing in it.
    """
    path = real_path(path)
    _refuse_directory(path)
    lock = WriterLock(path)
    try:
        if not lock.acquire(wait):
            raise file_in_use(path, lock)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_OPEN.at(None, name=path, reason=reason)]) from None
    try:
        _check_place(path)
    except BaseException:
        lock.release()
        raise
    was_there = path.exists()
    try:
        known = _frames_known(path)
        connection = open_connection(path, is_writable=True, is_created=True)
        try:
            if not is_loss_accepted:
                _check_log(path, connection, known)
            return _prepare_storage(path, connection, lock, durability, retention)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        for suffix in () if was_there else ("", *BESIDE):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        lock.release()
        raise


def file_in_use(path: Path, lock: WriterLock) -> DataError:
    """Another writer has the file: in another process, or in this one."""
    owner, hint = "another process", WAIT_HINT
    if lock.is_held_here:
        owner = "this process"
        hint = "use or close the open database, or open it again with `read_only=True`"
    return DataError([catalogue.FILE_IN_USE.at(None, owner=owner, name=path, hint=hint)])


def _refuse_directory(path: Path) -> None:
    if path.is_dir():
        raise DataError([catalogue.CANNOT_OPEN.at(None, name=path, reason="it is a directory")])


def is_blank(path: Path) -> bool:
    """Whether a file holds nothing yet, as a create that was killed leaves it."""
    if not path.is_file():
        return False
    if not path.stat().st_size:
        return True
    try:
        connection = open_connection(path, is_writable=False)
        try:
            return _format_of_file(path, connection) is None
        finally:
            connection.close()
    except DataError:
        return False


def real_path(path: Path) -> Path:
    """The file itself where the path is a link: two names of a file have one lock."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _check_place(path: Path) -> None:
    """Refuse what SQLite would harm: another name of the file, or a log that lost its file."""
    log = path.with_name(f"{path.name}-wal")
    found = path.stat() if path.exists() else None
    reason = hint = None
    if found is not None and found.st_nlink > 1:
        reason = "it has several hard links, so others could write to it under another name"
        hint = "make a copy with `deltalog backup`, or remove the other link"
    elif (found is None or not found.st_size) and log.exists() and log.stat().st_size:
        reason = f"there is no such file, but `{log.name}` contains commits of it"
        hint = f"restore the file, or remove `{log.name}` to discard these commits"
    if reason is not None:
        raise DataError([catalogue.CANNOT_OPEN.at(None, name=path, reason=reason, hint=hint)])


def _prepare_storage(
    path: Path,
    connection: apsw.Connection,
    lock: WriterLock,
    durability: str,
    retention: Retention,
) -> Storage:
    found = _format_of_file(path, connection)
    with sqlite_errors_reported(path):
        if found is None:
            connection.pragma("auto_vacuum", "incremental")
        if connection.pragma("journal_mode", "wal") != "wal":
            raise apsw.ReadOnlyError("it cannot have a write-ahead log")
        connection.pragma("synchronous", SYNCHRONOUS[durability])
    if found is not None and found < FORMAT:
        upgrade_format(path, connection, found)
    return Storage(
        path,
        connection,
        lock,
        retention,
        is_new=found is None,
        seconds_unlooked=SECONDS_UNLOOKED[durability],
    )


def _frames_known(path: Path) -> tuple[bytes, int] | None:
    """Not asked while this process has the file open."""
    return None if _open_here[path.resolve()] else frames_known(path)


def _check_log(path: Path, connection: apsw.Connection, known: tuple[bytes, int] | None) -> None:
    with sqlite_errors_reported(path):
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # reads the log
        is_damaged = is_log_damaged(path, connection, known)
        is_cut = is_cut_off(path, connection)
    if is_cut:
        reason = "its end is missing"
        raise DataError(
            [catalogue.FILE_DAMAGED.at(None, name=path, reason=reason, hint=RESTORE_HINT)]
        )
    if is_damaged:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # closing keeps the log
        reason = f"commits in `{path.name}-wal` cannot be read"
        hint = f"{RESTORE_HINT}; `deltalog recover FILE` discards those commits"
        raise DataError([catalogue.FILE_DAMAGED.at(None, name=path, reason=reason, hint=hint)])


def mark_spoiled(path: Path, connection: apsw.Connection) -> DataError:
    """Mark a file that another program has written to: nobody may take it for true any more."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    connection.pragma("user_version", SPOILED)
    return _written_by_others(path)


def check_unspoiled(path: Path, connection: apsw.Connection) -> None:
    if connection.pragma("user_version") == SPOILED:
        raise _written_by_others(path)


def _written_by_others(path: Path) -> DataError:
    reason = "a program other than Deltalog has written to it"
    return DataError([catalogue.FILE_DAMAGED.at(None, name=path, reason=reason, hint=RESTORE_HINT)])


def _format_of_file(path: Path, connection: apsw.Connection) -> int | None:
    """The format of the file, or None if it is empty; raises if it is none of ours."""
    with sqlite_errors_reported(path):
        application = connection.pragma("application_id")
        found = int(connection.pragma("user_version"))
        is_empty = not connection.execute("SELECT count(*) FROM sqlite_schema").get
    if is_empty and application == 0:
        return None
    if application != APPLICATION:
        raise DataError([catalogue.NOT_A_DATABASE.at(None, name=path)])
    if found == SPOILED:
        raise _written_by_others(path)
    if not has_checksums(connection):
        reason = "its pages have no checksums"
        raise DataError([catalogue.FILE_DAMAGED.at(None, name=path, reason=reason)])
    if found > FORMAT:
        raise DataError([catalogue.FORMAT_TOO_NEW.at(None, name=path, found=found, known=FORMAT)])
    return found


def lay_out(connection: apsw.Connection) -> None:
    """Make the tables that every database has, in the transaction that is open."""
    connection.execute(OWN_TABLES + "".join(map(guard_triggers, OWN_NAMES)))
    connection.pragma("application_id", APPLICATION)
    connection.pragma("user_version", FORMAT)
