"""Open the database in a file: a new one, one that exists, or one to read beside its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from deltalog.checks.program import check_program
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Program
from deltalog.runtime.engine_choice import ENGINES
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, Options, check_exact, make_model
from deltalog.runtime.protocols import Facts, Participant
from deltalog.store.file_database import FileDatabase
from deltalog.store.log import Log
from deltalog.store.programs import program_and_text, stored_program
from deltalog.store.readers import Retention, check_number, check_retention
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.storage import Storage, open_to_read, open_to_write

DURABILITIES = ("full", "normal")


@dataclass(frozen=True)
class FileOptions:
    """The arguments of `connect` that only a file has; None stands for the default."""

    engine: str
    durability: str | None = None
    read_only: bool = False
    wait_seconds: float | None = None
    retention: Retention | None = None


def open_file(
    path: str | Path,
    program: str | Path | Program | None,
    chosen: FileOptions,
    options: Options,
    limits: Limits,
    watch: Watch | None = None,
    facts: Facts | None = None,
    participants: tuple[Participant, ...] = (),
) -> FileDatabase:
    """Open the database in a file; `deltalog.connect` describes the arguments."""
    durability = chosen.durability or DURABILITIES[0]
    wait_seconds = 0.0 if chosen.wait_seconds is None else chosen.wait_seconds
    retention = Retention() if chosen.retention is None else chosen.retention
    if durability not in DURABILITIES:
        hint = f"the durability of a file is {' or '.join(DURABILITIES)}"
        raise DataError(
            [catalogue.UNKNOWN_OPTION.at(None, what="durability", name=durability, hint=hint)]
        )
    if not chosen.read_only:
        check_exact(options, "the log of a file")
    path = _checked_path(path)
    check_number("wait", wait_seconds, int, float)
    check_retention(retention)
    start = cast("Callable[[], RankedEngine]", ENGINES[chosen.engine])
    opening = _Opening(options, start, limits, watch, participants)
    if chosen.read_only:
        return opening.existing(open_to_read(path), program, facts)
    if program is None and not path.exists():
        hint = "a new database needs a program: `connect(path, program=…)`"
        raise DataError(
            [catalogue.CANNOT_OPEN.at(None, name=path, reason="there is no such file", hint=hint)]
        )
    prepared = None if program is None else opening.prepared(program)
    was_there = path.exists()
    storage = open_to_write(path, durability, wait_seconds, retention)
    if storage.is_new and prepared is not None:
        return opening.new(storage, *prepared, facts, was_there)
    return opening.existing(storage, program, facts)


@dataclass(frozen=True)
class _Opening:
    """How a file is opened, whatever it holds."""

    options: Options
    start: Callable[[], RankedEngine]
    limits: Limits
    watch: Watch | None
    participants: tuple[Participant, ...]

    def prepared(self, program: str | Path | Program) -> tuple[Model, str]:
        """The model and the text of a program: what is wrong with it is said before all else."""
        parsed, text = program_and_text(program)
        return make_model(check_program(parsed), self.options), text

    def new(
        self, storage: Storage, model: Model, text: str, facts: Facts | None, was_there: bool
    ) -> FileDatabase:
        with _closed_on_failure(storage, is_removed=not was_there):
            return FileDatabase(
                storage,
                model,
                self.start(),
                self.limits,
                self.watch,
                {} if facts is None else facts,
                text,
                self.participants,
            )

    def existing(
        self, storage: Storage, program: str | Path | Program | None, facts: Facts | None
    ) -> FileDatabase:
        path, connection = storage.path, storage.connection
        with _closed_on_failure(storage), sqlite_errors_reported(path):
            if storage.is_new:
                raise DataError([catalogue.NOT_A_DATABASE.at(None, name=path)])
            if facts:
                reason = "it exists, and `facts` are only for a new file"
                hint = "insert them in a transaction"
                raise DataError(
                    [catalogue.CANNOT_OPEN.at(None, name=path, reason=reason, hint=hint)]
                )
            connection.execute("BEGIN")  # program and facts of one state
            kept = stored_program(Log(connection).program)
            if program is not None and not _is_same(program_and_text(program)[0], kept.program):
                hint = f"`deltalog migrate {path} PROGRAM` shows the change and applies it"
                raise DataError([catalogue.PROGRAM_DIFFERS.at(None, name=path, hint=hint)])
            model = make_model(kept, self.options)
            return FileDatabase(
                storage,
                model,
                self.start(),
                self.limits,
                self.watch,
                participants=self.participants,
            )


def _is_same(given: Program, kept: Program) -> bool:
    """Whether they say the same; queries are not kept."""
    return replace(given, queries=()) == replace(kept, queries=())


@contextmanager
def _closed_on_failure(storage: Storage, is_removed: bool = False) -> Iterator[None]:
    try:
        yield
    except BaseException:
        storage.close(is_removed=is_removed)
        raise


def _checked_path(path: str | Path) -> Path:
    reason = None
    if not isinstance(path, str | Path):
        reason = "its path is neither text nor a `Path`"
    elif str(path) in ("", ".") or "\0" in str(path):
        reason = "this is not the name of a file"
    elif str(path) == ":memory:":
        reason = "without a path a database is in memory"
    if reason is not None:
        raise DataError([catalogue.CANNOT_OPEN.at(None, name=path, reason=reason)])
    return Path(path)
