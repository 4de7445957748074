"""History and upkeep of a database in tables: what its log leads back to, and keeping it small."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.change_log import TableLog
from deltalog.pipeline.log import Record
from deltalog.pipeline.quarantine import QUARANTINE, Quarantined, quarantined_rows
from deltalog.pipeline.reading import read_frame
from deltalog.pipeline.state import PROBLEMS
from deltalog.pipeline.state_settings import renew_history
from deltalog.pipeline.state_tables import table_at
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import Difference
from deltalog.store.history import LoggedHistory
from deltalog.store.log import Commit
from deltalog.store.readers import (
    Dropped,
    Retention,
    check_known,
    check_reader_name,
    check_retention,
)

if TYPE_CHECKING:
    from deltalog.pipeline.commit_writer import CommitWriter
    from deltalog.pipeline.state import State


@dataclass(frozen=True)
class TableVerification:
    """The problems found: none, normally."""

    differences: tuple[Difference, ...]
    tables: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not (self.differences or self.tables)


class TableHistory:
    """The verbs of `History` and `Upkeep`, over a state and its database."""

    state: str
    _is_open: bool
    _state: State
    _writer: CommitWriter
    _database: MemoryDatabase

    def _write_initial_state(self) -> None:
        """Write the initial state, if there is none yet."""
        raise NotImplementedError

    @property
    def _logged_history(self) -> LoggedHistory:
        self._check_open()
        return LoggedHistory(TableLog(self._state), self._database, self.state)

    @property
    def first_version(self) -> int:
        """The oldest version whose state the log still leads back to."""
        return self._state.first

    def relations_at(self, version: int) -> Mapping[str, Relation]:
        """The base relations and views that the program of a version had."""
        return self._logged_history.relations_at(version)

    def delta(
        self, first: int, last: int | None = None, views: Iterable[str] | None = None
    ) -> ChangeSet:
        """The net change from one version to another, which may also be an earlier one.

        `views` are those to be derived if the log omits them; that of a state omits none.
        """
        return self._logged_history.delta(first, last, self._database.current_facts, views)

    def commits(
        self,
        after: int | None = None,
        until: int | None = None,
        views: Iterable[str] | None = None,
    ) -> list[Commit]:
        """The commits after a version, up to another one, as they are in the log."""
        return list(self._logged_history.commits(after, until, self._database.current_facts, views))

    def programs(self) -> list[tuple[int, str, str]]:
        """Every program there was: the version from which on it counted, the time, the text."""
        return self._logged_history.programs()

    def quarantine(self) -> DataFrame:
        """The rows that were not taken from sources and wait to be mended."""
        self._check_open()
        return self._state.spark.createDataFrame(self.quarantined(), QUARANTINE)

    def quarantined(self) -> list[Quarantined]:
        """The same as rows, on the driver."""
        return quarantined_rows(self._state)

    # --- readers

    @property
    def readers(self) -> Mapping[str, int]:
        """The registered readers, each with the version it has acknowledged."""
        self._check_open()
        return self._state.readers

    def register(self, reader: str) -> int:
        """Hold the log for a reader from now on; returns the version it has read up to."""
        check_reader_name(reader)
        if reader not in self.readers:
            self._note_reader(reader, self._state.last.version)
        return self.readers[reader]

    def acknowledge(self, reader: str, version: int) -> None:
        """The reader needs nothing any more of what lies up to a version."""
        self._logged_history.check_version(version)
        check_known(self.readers, reader)
        if version > self.readers[reader]:
            self._note_reader(reader, version)

    def unregister(self, reader: str) -> None:
        """Let go of what the log holds for a reader."""
        check_known(self.readers, reader)
        self._note_reader(reader, None)

    def _note_reader(self, reader: str, version: int | None) -> None:
        self._check_open()
        self._write_initial_state()
        self._state.log.note_reader(reader, version)

    def _check_open(self) -> None:
        if not self._is_open:
            hint = "open it again with `deltalog.connect`"
            raise DataError([catalogue.STATE_CLOSED.at(None, name=self.state, hint=hint)])

    @property
    def delivered(self) -> dict[str, int]:
        """The version up to which each sink has been given changes."""
        return self._state.delivered

    def note_delivered(self, sinks: Mapping[str, int]) -> None:
        """Commit how far sinks have been given changes."""
        self._check_open()
        self._state.commit(Record(version=self._state.last.version, kind="delivery", sinks=sinks))

    @property
    def problems(self) -> Mapping[str, str]:
        """The parts of a pipeline that failed when it last ran, each with the reason."""
        return self._state.problems

    def note_problems(self, problems: Mapping[str, str | None]) -> None:
        """Commit which parts fail, and which are mended (None), if there are any."""
        self._check_open()
        if problems:
            version = self._state.last.version
            self._state.commit(Record(version=version, kind=PROBLEMS, problems=problems))

    @contextmanager
    def measured(self, measure: Callable[[Record], Mapping[str, float]]) -> Iterator[None]:
        """Write with each commit of the block what it cost."""
        self._state.measure = measure
        try:
            yield
        finally:
            self._state.measure = None

    # --- upkeep

    def compact(self, retention: Retention | None = None) -> Dropped:
        """Drop from the log what neither `retention` nor a reader, a sink or a table keeps.

        Files that nobody needs any more are removed, too.
        """
        self._check_open()
        wanted = Retention() if retention is None else retention
        check_retention(wanted)
        state = self._state
        kept = [*self.readers.values(), *state.delivered.values(), state.last.version]
        kept += [lag.first.version - 1 for lag in self._writer.folds.behind().values()]
        bound = min([*self._last_unwanted(wanted), *kept])
        before = state.first
        if not state.is_new:
            state.drop(bound)
        return Dropped(state.first - before, ())

    def _last_unwanted(self, retention: Retention) -> Iterator[int]:
        """The last versions that the retention lets go."""
        if retention.versions is not None:
            yield self._state.last.version - retention.versions
        if retention.seconds is not None:
            until = datetime.now(UTC).timestamp() - retention.seconds
            old = [r.version for r in self._state.records if r.at and r.at.timestamp() < until]
            yield max(old, default=0)
        if retention.versions is None and retention.seconds is None:
            yield 0

    def backup(self, target: str | Path) -> None:
        """Copy the folder of the state, as of the last commit, to a new folder."""
        self._check_open()
        folder = self._state.location.folder
        if folder is None:
            reason = "it is not in a folder of this machine"
            raise DataError([catalogue.CANNOT_WRITE.at(None, name=target, reason=reason)])
        if Path(target).exists():
            raise DataError([catalogue.CANNOT_WRITE.at(None, name=target, reason="it exists")])
        shutil.copytree(folder, target, ignore=shutil.ignore_patterns("lock"))
        renew_history(Path(target))

    def verify(self, *, engine: str | None = None) -> TableVerification:
        """Recompute every view, and compare every table with the version it stands for."""
        self._check_open()
        differences = self._database.audit(engine=engine)
        return TableVerification(differences, tuple(self._misfits_of_tables()))

    def _misfits_of_tables(self) -> Iterator[str]:
        """Where a table does not hold what the log says of the version it stands for."""
        current = self._database
        for name, table in self._writer.stored.items():
            if not table.exists or name not in current.relations:
                continue
            version = max(table.version, self.first_version)
            then = table_at(self._state, name, version)
            if then is None:
                continue
            data = then.outwards(read_frame(self._state, then, name, version))
            held = set(then.rows(data.toArrow()))
            if held != self._logged_history.facts_at(name, version, current.current_facts):
                yield f"the table of `{name}` is not what version {version} was"
