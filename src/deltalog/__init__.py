"""Deltalog: derived data that stays true while base data changes.

import deltalog
db = deltalog.connect(program="graph.dl")
with db.transaction() as tx:
    tx.insert("edge", [(1, 2), (2, 3)])
db.query("path(1, Y)")
"""

from deltalog.diagnostics.report import DataError, DeltalogError, LimitError, ProgramError
from deltalog.pipeline.connect import connect
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import Database
from deltalog.runtime.limits import Limits
from deltalog.runtime.rows import Rows
from deltalog.runtime.transaction import Transaction
from deltalog.store.file_database import FileDatabase
from deltalog.store.readers import Retention, RetentionWarning

__version__ = "0.1.0"

__all__ = [
    "ChangeSet",
    "DataError",
    "Database",
    "DeltalogError",
    "FileDatabase",
    "LimitError",
    "Limits",
    "ProgramError",
    "Retention",
    "RetentionWarning",
    "Rows",
    "Transaction",
    "connect",
]
