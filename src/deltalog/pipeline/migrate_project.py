"""Go over to the program of a project: its state is opened with the program that it has.

    state: program of yesterday   +   project: program of today   →   one commit, the exact change

Everything that was taken from sources stays, so nothing has to be loaded anew. How views are
refreshed is not changed by it.
"""

from __future__ import annotations

from dataclasses import replace

from deltalog.checks.program import CheckedProgram
from deltalog.engines.spark.session import active_or_new_session
from deltalog.language.ast import Program
from deltalog.pipeline.check_project import CheckedProject, check_project
from deltalog.pipeline.check_state import check_program_of, check_unused
from deltalog.pipeline.commit_writer import CommitWriter
from deltalog.pipeline.open_tables import open_tables
from deltalog.pipeline.project import Project
from deltalog.pipeline.state import State
from deltalog.pipeline.table_database import TableDatabase
from deltalog.runtime.delivery_verbs import check_delivered
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options, make_model
from deltalog.store.programs import stored_program


class Migration:
    """A state that is open with its own program, and the program that it is to have."""

    def __init__(self, project: Project, watch: Watch | None = None) -> None:
        checked = check_project(project)
        self._checked = checked.model.checked
        self.program: Program = self._checked.program
        is_seen = check_unused(project)  # else Spark has to look
        state = State(
            None if is_seen else active_or_new_session(settings=project.spark), str(project.state)
        )
        state.open(is_writer=False)
        self.is_needed = (
            not state.is_new and state.program != CommitWriter(state, checked.model).program
        )
        self.database: TableDatabase | None = None
        if self.is_needed:
            self.database = self._open_database(project, checked, state, watch)

    def check_delivered(self) -> None:
        """Raise if the program would drop messages that are not delivered."""
        assert self.database is not None
        check_delivered(self.database._database, self._checked)

    @staticmethod
    def _open_database(
        project: Project, checked: CheckedProject, state: State, watch: Watch | None
    ) -> TableDatabase:
        own = stored_program(state.program)
        options = _options_of_known_views(checked.model.options, own)
        check_program_of(state, CommitWriter(state, make_model(own, options)).program)
        spark = active_or_new_session(settings=project.spark)
        return open_tables(
            own.program,
            spark,
            str(project.state),
            options,
            Limits(),
            watch,
            freshness=project.freshness,
        )


def _options_of_known_views(options: Options, own: CheckedProgram) -> Options:
    """The options of a project, for the views that another program has, too."""
    known = {name: each for name, each in options.per_view.items() if name in own.relations}
    return replace(options, per_view=known)
