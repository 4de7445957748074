"""Look at a state before Spark is started for nothing: is it in use, has it the same program?

Both are known from its folder and its log, which the driver reads in some milliseconds. Where it
does not reach them, opening the state finds the same later.
"""

from __future__ import annotations

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.check_project import CheckedProject
from deltalog.pipeline.commit_writer import CommitWriter
from deltalog.pipeline.location import STORAGE, Location
from deltalog.pipeline.lock import lock_folder
from deltalog.pipeline.project import Project
from deltalog.pipeline.state import State


def check_state(checked: CheckedProject) -> None:
    """Raise if somebody works on the state of a project, or if it has another program."""
    project = checked.project
    if check_unused(project):
        state = State(None, str(project.state))
        state.open(is_writer=False)
        check_program_of(state, CommitWriter(state, checked.model).program)


def check_unused(project: Project) -> bool:
    """Raise if somebody works on the state of a project; returns whether that could be seen."""
    location = Location.of(str(project.state))
    if project.spark.get(STORAGE) == "spark" or location.folder is None:
        return False
    lock_folder(location.folder, location.name).close()
    return True


def check_program_of(state: State, program: str) -> None:
    """Raise if a state has another program than this one, as the log writes it."""
    if not state.is_new and state.program != program:
        name = state.location.name
        hint = "use `deltalog pipeline migrate`, or `db.change_program`, or a separate state"
        raise DataError([catalogue.STATE_OF_OTHER_PROGRAM.at(None, name=name, hint=hint)])
