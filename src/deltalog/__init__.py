"""Deltalog: derived data that stays true while base data changes.

import deltalog
db = deltalog.connect(program="graph.dl")
with db.transaction() as tx:
    tx.insert("edge", [(1, 2), (2, 3)])
db.query("path(1, Y)")
"""

from pathlib import Path
from typing import Any

from deltalog.connect import connect
from deltalog.diagnostics.report import DataError, DeltalogError, LimitError, ProgramError
from deltalog.runtime.amosql.session import AmosqlSession
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.limits import Limits
from deltalog.runtime.protocols import Database, History, Upkeep
from deltalog.runtime.rows import Rows
from deltalog.runtime.transaction import Transaction
from deltalog.runtime.violations import ConstraintError, ConstraintWarning, Violation
from deltalog.store.file_database import FileDatabase
from deltalog.store.readers import Retention, RetentionWarning

__version__ = "0.1.0"


def read(spark: Any, state: str | Path, relation: str, *, version: int | None = None) -> Any:
    """All facts of a relation of a state in tables, as a DataFrame, beside its writer.

    They are those of the last commit, or of an earlier `version`.
    """
    from deltalog.pipeline.read import read as read_state  # Spark is an extra

    return read_state(spark, str(state), relation, version=version)


__all__ = [
    "AmosqlSession",
    "ChangeSet",
    "ConstraintError",
    "ConstraintWarning",
    "DataError",
    "Database",
    "DeltalogError",
    "FileDatabase",
    "History",
    "LimitError",
    "Limits",
    "MemoryDatabase",
    "ProgramError",
    "Retention",
    "RetentionWarning",
    "Rows",
    "Transaction",
    "Upkeep",
    "Violation",
    "connect",
    "read",
]
