"""Why facts of a database in tables hold, do not hold, and have changed.

A search asks the engine a query for each rule and level (`runtime/why/state.py`); the probes of
Spark fetch what joins with the few facts of that level, so that no table is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalog.pipeline.table_history import TableHistory
from deltalog.runtime.why.state import AskedState
from deltalog.runtime.why.verbs import WhyVerbs
from deltalog.runtime.why.why_changed import Transition


class TableReasons(TableHistory, WhyVerbs):
    """The verbs of `WhyVerbs`, over a state and its database."""

    @contextmanager
    def _asked_state(self, version: int | None) -> Iterator[AskedState]:
        self._check_open()
        database = self._database
        if version is None or version == database.version:
            with database._asked_state(None) as state:
                yield state
            return
        with database.turn():
            yield self._logged_history.state_at(version, database.current_facts)

    @contextmanager
    def _transition_at(self, version: int | None) -> Iterator[Transition]:
        self._check_open()
        database = self._database
        with database.turn():
            wanted = database.version if version is None else version
            yield self._logged_history.transition_to(wanted, database.current_facts)
