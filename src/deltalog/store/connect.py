"""`deltalog.connect`: a database in memory, or in a file.

connect(program="shop.dl")                 in memory
connect("shop.db", program="shop.dl")      in a file, made if it is not there
connect("shop.db")                         in a file that has its program
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, overload

from deltalog.checks.program import check_program
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Program
from deltalog.runtime.database import (
    DEFAULT_ENGINE,
    ENGINES,
    Database,
    Facts,
    known_engine,
    open_in_memory,
)
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, Options, make_model
from deltalog.store.file_database import FileDatabase
from deltalog.store.log import Log
from deltalog.store.programs import program_and_text, stored_program
from deltalog.store.readers import Retention, check_number, check_retention
from deltalog.store.sqlite import reported
from deltalog.store.storage import Storage, open_to_read, open_to_write

DURABILITIES = ("full", "normal")


@overload
def connect(
    path: None = None,
    *,
    program: str | Path | Program,
    engine: str = ...,
    strategy: str | Mapping[str, str] = ...,
    materialize: bool = ...,
    network: str = ...,
    nervous: bool = ...,
    facts: Facts | None = ...,
    limits: Limits | None = ...,
    watch: Watch | None = ...,
    spark: Any = ...,
) -> Database: ...


@overload
def connect(
    path: str | Path,
    *,
    program: str | Path | Program | None = ...,
    engine: str = ...,
    strategy: str | Mapping[str, str] = ...,
    materialize: bool = ...,
    network: str = ...,
    nervous: bool = ...,
    facts: Facts | None = ...,
    limits: Limits | None = ...,
    watch: Watch | None = ...,
    durability: str = ...,
    read_only: bool = ...,
    wait: float = ...,
    retention: Retention | None = ...,
) -> FileDatabase: ...


def connect(
    path: str | Path | None = None,
    *,
    program: str | Path | Program | None = None,
    engine: str = DEFAULT_ENGINE,
    strategy: str | Mapping[str, str] = "auto",
    materialize: bool = True,
    network: str = "bushy",
    nervous: bool = False,
    facts: Facts | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
    spark: Any = None,
    durability: str = "full",
    read_only: bool = False,
    wait: float = 0.0,
    retention: Retention | None = None,
) -> Database:
    """Open a database: in memory, or in the file at `path`, which is made if it is not there.

    `program` is a text, or the path of a `.dl` file. A file knows its program; one that is given
    must be the same. `engine` holds the facts and runs the rules: `embedded`, compiled and fast, or
    `reference`, plain Python that defines the meaning of the language and starts at once.
    `strategy` says how changes of views are computed: one of `rewrites.strategies.STRATEGIES`, or a
    mapping from views to them (`"*"` stands for all others); `network` and `nervous` belong to
    `differencing`. `materialize=False` keeps views virtual unless they are declared `materialized`.
    `facts` are loaded before views are computed for the first time. `watch` is called with the
    rounds and facts so far while something is being computed or loaded. `spark` is a Spark session
    to run on; `facts` may then be DataFrames.

    Of a file: with `durability="full"` a commit survives a power failure, with `"normal"` the last
    ones may be missing then, but not after a crash of the process. `read_only` reads beside a
    writer, and `refresh` catches up. `wait` is how many seconds to wait for another writer to end.
    `retention` says how much of the change log is kept.
    """
    options = Options.of(strategy, materialize, network, nervous)
    start = known_engine(engine, spark)
    limits = limits or Limits()
    if path is None:
        if program is None:
            raise TypeError("connect() needs a program, or the path of a database")
        return open_in_memory(program, start, options, limits, watch, facts or {})
    if durability not in DURABILITIES:
        hint = f"the durability of a file is {' or '.join(DURABILITIES)}"
        raise DataError(
            [catalogue.UNKNOWN_OPTION.at(None, what="durability", name=durability, hint=hint)]
        )
    if spark is not None or engine not in ENGINES:
        hint = f"the engines for a database file are {' and '.join(sorted(ENGINES))}"
        raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="engine", name="spark", hint=hint)])
    if not read_only:
        check_exact(options, "the log of a file")
    path = _checked_path(path)
    check_number("wait", wait, int, float)
    check_retention(Retention() if retention is None else retention)
    opening = _Opening(options, cast("Callable[[], RankedEngine]", start), limits, watch)
    if read_only:
        return opening.existing(open_to_read(Path(path)), program, facts)
    if program is None and not Path(path).exists():
        hint = "a new database needs a program: `connect(path, program=…)`"
        raise DataError(
            [catalogue.CANNOT_OPEN.at(None, name=path, reason="there is no such file", hint=hint)]
        )
    prepared = None if program is None else opening.prepared(program)
    was_there = path.exists()
    storage = open_to_write(Path(path), durability, wait, retention or Retention())
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

    def prepared(self, program: str | Path | Program) -> tuple[Model, str]:
        """The model and the text of a program: what is wrong with it is said before all else."""
        parsed, text = program_and_text(program)
        return make_model(check_program(parsed), self.options), text

    def new(
        self, storage: Storage, model: Model, text: str, facts: Facts | None, was_there: bool
    ) -> FileDatabase:
        with _closed_on_failure(storage, is_removed=not was_there):
            return FileDatabase(
                storage, model, self.start(), self.limits, self.watch, facts or {}, text
            )

    def existing(
        self, storage: Storage, program: str | Path | Program | None, facts: Facts | None
    ) -> FileDatabase:
        path, connection = storage.path, storage.connection
        with _closed_on_failure(storage), reported(path):
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
            return FileDatabase(storage, model, self.start(), self.limits, self.watch)


def check_exact(options: Options, what: str) -> None:
    """Raise if changes would be recorded that are none."""
    if options.is_nervous:
        reason = f"{what} needs exact changes, and nervous ones are not exact"
        raise DataError(
            [catalogue.STRATEGY_MISFIT.at(None, strategy=options.strategy, name="*", reason=reason)]
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
