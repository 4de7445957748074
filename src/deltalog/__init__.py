"""Deltalog: derived data that stays true while base data changes.

import deltalog
db = deltalog.connect(program="graph.dl")
with db.transaction() as tx:
    tx.insert("edge", [(1, 2), (2, 3)])
db.query("path(1, Y)")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalog.connect import connect
from deltalog.diagnostics.report import DataError, DeltalogError, LimitError, ProgramError
from deltalog.pictures import picture
from deltalog.pipeline.spark_needed import spark_needed
from deltalog.runtime.amosql.session import AmosqlSession
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.limits import Limits
from deltalog.runtime.models import Models, models
from deltalog.runtime.protocols import Database, History, Upkeep
from deltalog.runtime.realization import Budget, Realization, Realizations
from deltalog.runtime.request_termination import RequestCheck
from deltalog.runtime.rows import Rows
from deltalog.runtime.transaction import Transaction
from deltalog.runtime.update_choices import ChoiceCheck, ChoiceWarning
from deltalog.runtime.violations import ConstraintError, ConstraintWarning, Violation
from deltalog.runtime.why.change_reason import WhyChanged
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.sets import SetProof
from deltalog.runtime.why.why_not import WhyNot
from deltalog.store.file_database import FileDatabase
from deltalog.store.readers import Retention, RetentionWarning

if TYPE_CHECKING:
    from deltalog.pipeline.run_project import RunResult

__version__ = "0.1.0"


def read(spark: Any, state: str | Path, relation: str, *, version: int | None = None) -> Any:
    """All facts of a relation of a state in tables, as a DataFrame, beside its writer.

    They are those of the last commit, or of an earlier `version`.
    """
    from deltalog.pipeline.read import read_relation  # Spark is an extra

    return read_relation(spark, str(state), relation, version=version)


def register_format(spark: Any) -> None:
    """Let a Spark session read states: `spark.read.format("deltalog")`, and streams of changes."""
    from deltalog.pipeline.data_source import register_format as register

    register(spark)


def register_tables(spark: Any, state: str | Path, schema: str) -> list[str]:
    """Register the tables of a state in a catalogue, as `schema.relation`; returns their names."""
    from deltalog.pipeline.register_tables import register_tables as register

    return register(spark, str(state), schema)


def run_project(path: str | Path, spark: Any = None, *, raise_problems: bool = True) -> RunResult:
    """Run a pipeline once: take everything that is new at the sources of a project file.

    It runs on this Spark session, on the active one, or on a new one, which stays. Sources and
    sinks that fail do not keep the others from being done; then a `DataError` is raised, or the
    result has them among its `problems` if `raise_problems` is False.
    """
    with spark_needed():
        from deltalog.pipeline.run_project import run_project as run

    return run(path, spark, raise_problems=raise_problems)


__all__ = [
    "AmosqlSession",
    "Budget",
    "ChangeSet",
    "ChoiceCheck",
    "ChoiceWarning",
    "ConstraintError",
    "ConstraintWarning",
    "DataError",
    "Database",
    "DeltalogError",
    "Derivations",
    "FileDatabase",
    "History",
    "LimitError",
    "Limits",
    "MemoryDatabase",
    "Models",
    "ProgramError",
    "Proof",
    "Realization",
    "Realizations",
    "RequestCheck",
    "Retention",
    "RetentionWarning",
    "Rows",
    "SetProof",
    "Transaction",
    "Upkeep",
    "Violation",
    "WhyChanged",
    "WhyNot",
    "connect",
    "models",
    "picture",
    "read",
    "register_format",
    "register_tables",
    "run_project",
]
