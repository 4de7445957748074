"""`deltalog.connect`: a database in memory, in a file, or one whose relations and views are tables.

connect(program="shop.dl")                             in memory
connect("shop.db", program="shop.dl")                  in a file (`store/connect.py`)
connect(spark=spark, program="shop.dl", state="shop")  in Delta tables, on Spark
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from deltalog.checks.program import check_program
from deltalog.language.ast import Program
from deltalog.language.parser import parse
from deltalog.runtime import database
from deltalog.runtime.database import DEFAULT_ENGINE, Database, Facts, read_program
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options, make_model
from deltalog.store import connect as store_connect
from deltalog.store.file_database import FileDatabase
from deltalog.store.readers import Retention

if TYPE_CHECKING:
    from deltalog.pipeline.keeper import Check
    from deltalog.pipeline.table_database import TableDatabase

_in_this_process: Callable[..., Database] = store_connect.connect


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
@overload
def connect(
    path: None = None,
    *,
    program: str | Path | Program,
    strategy: str | Mapping[str, str] = ...,
    materialize: bool = ...,
    limits: Limits | None = ...,
    watch: Watch | None = ...,
    spark: Any = ...,
    state: str | Path,
    check: Check | None = ...,
) -> TableDatabase: ...
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
    state: str | Path | None = None,
    check: Check | None = None,
) -> Database | TableDatabase:
    """Open a database: in memory, in the file at `path`, or with `state` in tables on Spark.

    `store.connect.connect` tells of all other arguments. With `state`, a folder, every relation and
    view is a Delta table in it. `check` then looks at every change before it is made, and answers
    why it must not be, or None.
    """
    if state is None:
        return _in_this_process(
            path,
            program=program,
            engine=engine,
            strategy=strategy,
            materialize=materialize,
            network=network,
            nervous=nervous,
            facts=facts,
            limits=limits,
            watch=watch,
            spark=spark,
            durability=durability,
            read_only=read_only,
            wait=wait,
            retention=retention,
        )
    if program is None or path is not None:
        raise TypeError("connect() with a state needs a program, and no path of a file")
    made = database.spark_engine(spark)
    from deltalog.engines.spark.engine import SparkEngine
    from deltalog.pipeline.table_database import TableDatabase

    assert isinstance(made, SparkEngine)
    options = Options.of(strategy, materialize, network, nervous)
    store_connect.check_exact(options, "a table of changes")
    parsed = program if isinstance(program, Program) else parse(read_program(program))
    model = make_model(check_program(parsed), options)
    return TableDatabase(model, made, str(state), limits or Limits(), watch, check)
