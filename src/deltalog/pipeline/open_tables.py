"""Open a database whose relations and views are Delta tables in a folder, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deltalog.checks.program import check_program
from deltalog.language.ast import Program
from deltalog.language.parser import parse_program
from deltalog.pipeline.freshness import MINUTE, Freshness, check_freshness
from deltalog.runtime.engine_choice import spark_engine
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options, check_exact, make_model
from deltalog.runtime.protocols import Participant
from deltalog.runtime.read_program import read_program
from deltalog.runtime.update_choices import warn_of_choices

if TYPE_CHECKING:
    from deltalog.engines.spark.engine import SparkEngine
    from deltalog.pipeline.table_database import TableDatabase


def open_tables(
    program: str | Path | Program,
    spark: Any,
    state: str,
    options: Options,
    limits: Limits,
    watch: Watch | None = None,
    participants: tuple[Participant, ...] = (),
    freshness: Freshness = MINUTE,
) -> TableDatabase:
    """Open the tables in the folder `state`; `deltalog.connect` describes the arguments."""
    engine = cast("SparkEngine", spark_engine(spark))  # it reports that Spark is not installed
    from deltalog.pipeline.table_database import TableDatabase

    check_freshness(freshness)
    check_exact(options, "a table of changes")
    parsed = program if isinstance(program, Program) else parse_program(read_program(program))
    model = make_model(check_program(parsed), options)
    database = TableDatabase(model, engine, state, limits, watch, participants, freshness)
    if model.checked.program.update_choices and database.version == 0:
        warn_of_choices(model)
    return database
