"""`--actions FILE.py`: the functions that active rules call, from a file of Python.

Every function that the file defines, and whose name does not begin with an underscore, is the
action of that name.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from types import FunctionType
from typing import Annotated, TypeAlias

import typer

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.database import MemoryDatabase

Actions: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--actions",
        metavar="FILE.py",
        help="Python functions for the actions `call NAME(…)` of active rules, by their names.",
    ),
]
_MODULE = "deltalog_actions"


def register_actions(database: MemoryDatabase, file: Path | None) -> None:
    """Register the functions of a file."""
    for name, function in read_actions(file).items():
        database.action(name)(function)


def read_actions(file: Path | None) -> dict[str, FunctionType]:
    """The functions of a file, by their names."""
    if file is None:
        return {}
    try:
        found = runpy.run_path(str(file), run_name=_MODULE)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError([catalogue.CANNOT_READ.at(None, name=file, reason=reason)]) from error
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, FunctionType)
        and value.__module__ == _MODULE
        and not name.startswith("_")
    }
