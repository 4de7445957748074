"""`deltalog.connect`: a database in memory, in a file, or in tables on Spark.

connect(program="shop.dl")                             in memory
connect("shop.db", program="shop.dl")                  in a file, made if it is not there
connect("shop.db")                                     in a file that has its program
connect(spark=spark, program="shop.dl", state="shop")  in Delta tables, on Spark

All three are a `deltalog.Database`. An argument that does not fit the kind of database is refused:
whoever writes `durability="full"` relies on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument, check_flag
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Program
from deltalog.pipeline.freshness import MINUTE, Freshness
from deltalog.runtime.change_check import Check, participants_for
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.engine_choice import DEFAULT_ENGINE, ENGINES, known_engine
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options
from deltalog.runtime.open_memory import open_in_memory
from deltalog.runtime.protocols import Facts
from deltalog.sources.open_sources import open_with_sources
from deltalog.store.file_database import FileDatabase
from deltalog.store.open_file import FileOptions, open_file
from deltalog.store.readers import Retention

if TYPE_CHECKING:
    from deltalog.pipeline.table_database import TableDatabase

_MEMORY, _FILE, _TABLES = "in memory", "in a file", "in tables"
_ONLY_A_FILE = "`connect(path, …)` opens a file"
_MISFITS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    _MEMORY: {
        "durability": ("nothing of it is on a disk", _ONLY_A_FILE),
        "read_only": ("nobody else can write to it", _ONLY_A_FILE),
        "wait": ("nobody else can write to it", _ONLY_A_FILE),
        "retention": ("it has no change log", _ONLY_A_FILE),
        "freshness": ("it has no tables", "leave it out"),
    },
    _FILE: {
        "spark": (
            "its facts are in the memory of this process",
            "leave out the path, or name a folder for tables by `state`",
        ),
        "freshness": ("it has no tables", "leave it out"),
        "sources": ("it has the facts of its base relations itself", "leave out the path"),
    },
    _TABLES: {
        "path": ("its tables are in the folder `state`", "leave out one of the two"),
        "engine": ("Spark is its only engine", "leave it out"),
        "facts": ("it keeps the facts that it has", "`db.load(relation, data)` loads many"),
        "durability": ("a commit is as durable as the file system of its tables", "leave it out"),
        "read_only": ("a state has one writer", "`deltalog.read` reads it beside the writer"),
        "wait": ("a state that is in use is an error at once", "try again later"),
        "retention": ("all changes are kept", "`db.compact(retention)` drops some"),
        "sources": ("it has the facts of its base relations itself", "leave out the state"),
    },
}
"""For each kind of database the arguments that do not fit it: why, and what to do instead."""


@overload
def connect(
    path: None = None,
    *,
    program: str | Path | Program,
    engine: str | None = ...,
    strategy: str | Mapping[str, str] = ...,
    materialize: bool = ...,
    network: str = ...,
    nervous: bool = ...,
    facts: Facts | None = ...,
    limits: Limits | None = ...,
    watch: Watch | None = ...,
    spark: Any = ...,
    check: Check | None = ...,
    sources: Mapping[str, Any] | None = ...,
) -> MemoryDatabase: ...
@overload
def connect(
    path: str | Path,
    *,
    program: str | Path | Program | None = ...,
    engine: str | None = ...,
    strategy: str | Mapping[str, str] = ...,
    materialize: bool = ...,
    network: str = ...,
    nervous: bool = ...,
    facts: Facts | None = ...,
    limits: Limits | None = ...,
    watch: Watch | None = ...,
    durability: str | None = ...,
    read_only: bool = ...,
    wait: float | None = ...,
    retention: Retention | None = ...,
    check: Check | None = ...,
) -> FileDatabase: ...
@overload
def connect(
    path: None = None,
    *,
    program: str | Path | Program,
    strategy: str | Mapping[str, str] = ...,
    materialize: bool = ...,
    network: str = ...,
    limits: Limits | None = ...,
    watch: Watch | None = ...,
    spark: Any = ...,
    state: str | Path,
    freshness: Freshness = ...,
    check: Check | None = ...,
) -> TableDatabase: ...
def connect(
    path: str | Path | None = None,
    *,
    program: str | Path | Program | None = None,
    engine: str | None = None,
    strategy: str | Mapping[str, str] = "auto",
    materialize: bool = True,
    network: str = "bushy",
    nervous: bool = False,
    facts: Facts | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
    spark: Any = None,
    durability: str | None = None,
    read_only: bool = False,
    wait: float | None = None,
    retention: Retention | None = None,
    state: str | Path | None = None,
    freshness: Freshness | None = None,
    check: Check | None = None,
    sources: Mapping[str, Any] | None = None,
) -> MemoryDatabase | TableDatabase:
    """Open a database: in memory, in the file at `path`, or with `state` in tables on Spark.

    `program` is a text, or the path of a `.dl` file. A file knows its program; one that is named
    must be the same. `engine` holds the facts and runs the rules: `embedded`, compiled and fast, or
    `reference`, plain Python that defines the meaning of the language and starts at once.
    `strategy` says how changes of views are computed: one of `rewrites.strategies.STRATEGIES`, or a
    mapping from views to them (`"*"` stands for all others); `network` and `nervous` belong to
    `differencing`. `materialize=False` keeps views virtual unless they are declared `materialized`.
    `facts` are loaded before views are computed for the first time. `watch` is called with the
    rounds and facts so far while something is being computed or loaded. `check` is called with
    every change before it is made, and returns why it must not be, or None. `spark` is a Spark
    session to run on; `facts` may then be DataFrames.

    Of a file, which is made if it is not there: with `durability="full"`, the default, a commit
    survives a power failure, with `"normal"` the last ones may be missing then, but not after a
    crash of the process. `read_only` reads beside a writer, and `refresh` catches up. `wait` is how
    many seconds to wait for another writer to end. `retention` says how much of the change log is
    kept.

    With `state`, a folder, every commit is in a log there, and every relation and stored view is a
    Delta table that follows the log. `freshness` says how far behind a table may be: a number of
    seconds (60, if it is left out), `"commit"` for not at all, or `"demand"` for until `db.fold()`.

    `sources` names, for base relations, tables elsewhere (`deltalog.sources`): they are probed and
    not copied, and `db.pull()` takes over what they announce.
    """
    check_flag("read_only", read_only)
    kind = _TABLES if state is not None else _MEMORY if path is None else _FILE
    passed = {
        "path": path,
        "engine": None if engine == "spark" else engine,
        "facts": facts,
        "spark": spark,
        "durability": durability,
        "read_only": read_only or None,
        "wait": wait,
        "retention": retention,
        "freshness": freshness,
        "sources": sources,
    }
    _check_arguments(kind, [name for name, value in passed.items() if value is not None])
    options = Options.of(strategy, materialize, network, nervous)
    hint = "give a `deltalog.Limits`"
    check_argument(limits is None or isinstance(limits, Limits), "limits", limits, hint)
    hint = "give a function, which is called with the rounds and facts so far"
    check_argument(watch is None or callable(watch), "watch", watch, hint)
    limits = limits or Limits()
    participants = participants_for(check)
    if kind != _FILE and program is None:
        raise TypeError("connect() needs a program, or the path of a database")
    if state is not None and program is not None:
        from deltalog.pipeline.open_tables import open_tables

        fresh = MINUTE if freshness is None else freshness
        return open_tables(program, spark, str(state), options, limits, watch, participants, fresh)
    if path is not None:
        chosen = FileOptions(_engine_of_file(engine), durability, read_only, wait, retention)
        return _warn_if_new(
            open_file(path, program, chosen, options, limits, watch, facts, participants)
        )
    assert program is not None
    if spark is not None and engine not in (None, "spark"):
        reason, hint = "`spark` is its engine", "leave out one of the two"
        raise _argument_misfit("engine", "on Spark", reason, hint)
    if sources is not None:
        for name, given in (("engine", engine), ("spark", spark)):
            if given is not None:
                reason, hint = "its engine probes the sources", "leave it out"
                raise _argument_misfit(name, "with sources", reason, hint)
        return _warn_if_new(
            open_with_sources(program, sources, options, limits, watch, facts or {}, participants)
        )
    start = known_engine(engine or DEFAULT_ENGINE, spark)
    return _warn_if_new(
        open_in_memory(
            program, start, options, limits, watch, {} if facts is None else facts, participants
        )
    )


def _warn_if_new(database: MemoryDatabase) -> MemoryDatabase:
    """The database, after a warning of what its choices do not realize, if its program is new."""
    if database.model.checked.program.update_choices and database.version == 0:
        from deltalog.runtime.update_choices import warn_of_choices  # rarely needed

        warn_of_choices(database.model)
    return database


def _check_arguments(kind: str, passed: list[str]) -> None:
    for name in passed:
        if name in _MISFITS[kind]:
            raise _argument_misfit(name, kind, *_MISFITS[kind][name])


def _argument_misfit(name: str, kind: str, reason: str, hint: str) -> DataError:
    return DataError(
        [catalogue.ARGUMENT_MISFIT.at(None, name=name, kind=kind, reason=reason, hint=hint)]
    )


def _engine_of_file(name: str | None) -> str:
    name = name or DEFAULT_ENGINE
    known_engine(name)  # which reports one that there is not
    if name not in ENGINES:
        hint = f"the engines for a database file are {' and '.join(sorted(ENGINES))}"
        raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="engine", name=name, hint=hint)])
    return name
