"""Relations of a database in tables as DataFrames: now, at a version, and their feeds."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Row
from deltalog.pipeline.append_sink import append_feed, feed_table
from deltalog.pipeline.reading import empty_feed, feed_frame, read_frame
from deltalog.pipeline.state_tables import is_stored, known_table
from deltalog.pipeline.stored_table import StoredTable
from deltalog.pipeline.table_history import TableHistory

if TYPE_CHECKING:
    from deltalog.engines.spark.engine import SparkEngine


class TableFrames(TableHistory):
    """The verbs that give DataFrames."""

    spark: SparkSession

    if TYPE_CHECKING:  # of the database that this is a part of

        @property
        def engine(self) -> SparkEngine: ...

    def facts(self, relation: str, version: int | None = None) -> set[Row]:
        """All facts of a relation or view, on the driver."""
        raise NotImplementedError

    def frame(self, relation: str, version: int | None = None) -> DataFrame:
        """All facts of a relation or view, as of the last commit or of an earlier version."""
        self._check_open()
        if self._state.is_new:
            self._known_relation(relation)
            return self._rows_frame(self._writer.unstored(relation), relation, version)
        last = self._state.last.version if version is None else version
        self._logged_history.check_version(last)
        table = known_table(self._state, relation, last)
        if not is_stored(table):
            return self._rows_frame(table, relation, version)
        found = table.outwards(read_frame(self._state, table, relation, last))
        return found.select(*(table.columns or found.columns))

    def _rows_frame(self, table: StoredTable, relation: str, version: int | None) -> DataFrame:
        rows = table.encoded_plain(list(self.facts(relation, version)))
        return self.spark.createDataFrame(rows)

    def changes(self, relation: str, after: int | None = None) -> DataFrame:
        """The changes of a relation in versions after this one, or as far back as the log leads.

        Its columns, `_change_type` (insert or delete), `_commit_version`, `_commit_timestamp`. It
        has all columns that the relation had in these versions.
        """
        self._check_open()
        self._known_relation(relation)
        if after is not None and not self._state.is_new:
            self._logged_history.check_version(after)
        return self._changes_after(relation, self.first_version if after is None else after)

    def _changes_after(self, relation: str, after: int) -> DataFrame:
        if self._state.is_new:
            return empty_feed(self._state, self._writer.unstored(relation))
        return feed_frame(self._state, relation, after)

    def append_changes(self, relation: str, after: int, path: str) -> bool:
        """Append the changes after a version to a Delta table, if the driver can do it.

        It can if they are few, and it reaches the state. Versions that the table has are left out.
        """
        self._check_open()
        state, most = self._state, self.engine.settings.driver_rows_max
        later = takewhile(lambda record: record.version > after, reversed(state.records))
        number = sum(sum(record.counts.get(relation, (0, 0))) for record in later)
        if state.is_new or not state.location.is_reached or number > most:
            return False
        append_feed(path, feed_table(state, relation, after))
        return True

    def _known_relation(self, relation: str) -> Relation:
        relations = self._database.relations
        if relation not in relations:
            hint = did_you_mean(relation, relations)
            raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
        return relations[relation]
