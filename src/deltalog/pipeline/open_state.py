"""Open a state to serve it: without Spark, or with a writer on Spark in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.spark_needed import spark_needed
from deltalog.runtime.limits import Limits

if TYPE_CHECKING:
    from deltalog.pipeline.state_database import StateDatabase


def is_state(path: Path) -> bool:
    """Whether a folder is a state in tables."""
    return (path / "log" / "_delta_log").is_dir()


def open_state(
    state: str, limits: Limits | None = None, *, spark: Any = None, is_writable: bool = False
) -> StateDatabase:
    """Open a state; `is_writable` takes it over as its only writer, on a session of Spark."""
    with spark_needed():
        from deltalog.pipeline.location import Location
        from deltalog.pipeline.read import opened_state
        from deltalog.pipeline.state_database import StateDatabase
    if not Location.of(state).is_reached:
        reason = "only Spark reaches it"
        raise DataError([catalogue.CANNOT_READ.at(None, name=state, reason=reason)])
    if not is_writable:
        return StateDatabase(state, limits)
    from deltalog.pipeline.open_tables import open_tables
    from deltalog.runtime.model import Options

    program = opened_state(state).program
    writer = open_tables(stored_text(program), spark, state, Options(), limits or Limits())
    try:
        return StateDatabase(state, limits, writer)
    except BaseException:
        writer.close()
        raise


def stored_text(text: str) -> Any:
    """The program of a state, without what is noted behind it."""
    from deltalog.store.programs import stored_program

    return stored_program(text).program
