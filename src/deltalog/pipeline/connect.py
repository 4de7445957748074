"""`deltalog.connect`: a database in memory, or one whose relations and views are tables."""

from __future__ import annotations

from collections.abc import Mapping
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

if TYPE_CHECKING:
    from deltalog.pipeline.keeper import Check
    from deltalog.pipeline.table_database import TableDatabase

_connect = database.connect


@overload
def connect(
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
    *,
    program: str | Path | Program,
    engine: str = DEFAULT_ENGINE,
    strategy: str | Mapping[str, str] = "auto",
    materialize: bool = True,
    network: str = "bushy",
    nervous: bool = False,
    facts: Facts | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
    spark: Any = None,
    state: str | Path | None = None,
    check: Check | None = None,
) -> Database | TableDatabase:
    """Open a database for a program: a path to a `.dl` file, or its text.

    `engine` holds the facts and runs the rules: `embedded`, compiled and fast, or `reference`,
    plain Python that defines the meaning of the language and starts at once.
    `strategy` says how changes of views are computed: one of `runtime.strategies.STRATEGIES`, or a
    mapping from views to them (`"*"` stands for all others); `network` and `nervous` belong to
    `differencing`. `materialize=False` keeps views virtual unless they are declared `materialized`.
    `facts` are loaded before views are computed for the first time. `watch` is called with the
    rounds and facts so far while something is being computed. `spark` is a Spark session to run
    on; `facts` may then be DataFrames.

    With `state`, a folder, every relation and view is a Delta table in it, on Spark, and a
    `TableDatabase` is what you get. `check` looks at every change before it is made, and answers
    why it must not be, or None.
    """
    if state is None:
        return _connect(
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
        )
    made = database.spark_engine(spark)
    from deltalog.engines.spark.engine import SparkEngine
    from deltalog.pipeline.table_database import TableDatabase

    assert isinstance(made, SparkEngine)
    options = Options.of(strategy, materialize, network, nervous)
    parsed = program if isinstance(program, Program) else parse(read_program(program))
    model = make_model(check_program(parsed), options)
    return TableDatabase(model, made, str(state), limits or Limits(), watch, check)
