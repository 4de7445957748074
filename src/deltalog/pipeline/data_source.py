"""`spark.read.format("deltalog")` and `spark.readStream.format("deltalog")`: a Python data source.

    deltalog.register_format(spark)                # once per session, for filters
    spark.read.format("deltalog").option("relation", "path").load("state").where("src = 1")
    spark.readStream.format("deltalog").option("relation", "path").option("reader", "billing")

A batch reads a relation at a version, or with `readChangeFeed` its feed of changes; a stream reads
the feed, and its offsets are versions. With the name of a reader, what a stream has processed is
acknowledged, and the log is kept until then.

Spark plans a read in a Python process beside the driver, which opens the state, and reads each part
in a task (`relation_parts.py`): both need this package and the storage. Filters that ask for values
of columns are bindings: of a stored relation they skip files and groups of rows, of a virtual view
they become Magic Sets, whose answers are computed where the read is planned. A stream has none of
Spark's filters, and takes `bindings` as an option.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Value
from deltalog.language.values import canonical_value, parse_value
from deltalog.pipeline.feed_columns import stretches_between
from deltalog.pipeline.log_rows import INSERT
from deltalog.pipeline.read import opened_state
from deltalog.pipeline.relation_parts import (
    Bindings,
    Columns,
    Part,
    Plain,
    StampedPart,
    align_batch,
    contents_at,
    feed_parts,
    output_schema,
    own_columns,
)
from deltalog.pipeline.state import State
from deltalog.pipeline.state_tables import check_version, is_stored, known_table
from deltalog.pipeline.virtual_rows import virtual_rows

FORMAT = "deltalog"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
REGISTERED = "spark.deltalog.format"
OPTIONS = (
    "bindings",
    "endingVersion",
    "path",
    "readChangeFeed",
    "reader",
    "relation",
    "startingVersion",
    "version",
)


def register_format(spark: SparkSession) -> None:
    """Let a session read `format("deltalog")`, and hand its filters to it."""
    if spark.conf.get(REGISTERED, None) is None:
        spark.conf.set(PUSHDOWN, "true")
        spark.dataSource.register(DeltalogSource)
        spark.conf.set(REGISTERED, "true")


@dataclass(frozen=True)
class Read:
    """The options of a read; versions are None if they are left out."""

    state: str
    relation: str
    is_feed: bool
    version: int | None = None
    first: int | None = None
    last: int | None = None
    reader: str | None = None
    bindings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, str], is_stream: bool = False) -> Read:
        """The options of a read, checked."""
        known = {name.lower(): name for name in OPTIONS}
        for name in options:
            if name.lower() not in known:
                hint = did_you_mean(name, OPTIONS) or f"the options are {', '.join(OPTIONS)}"
                raise _option_error("option", name, hint)
        for name, what in (("path", "the state: `.load(state)`"), ("relation", "a relation")):
            if not options.get(name):
                raise _option_error(name, options.get(name), f"it names {what}")
        return cls(
            options["path"],
            options["relation"],
            is_stream or options.get("readChangeFeed", "false").lower() == "true",
            _whole_number_option(options, "version"),
            _whole_number_option(options, "startingVersion"),
            _whole_number_option(options, "endingVersion"),
            options.get("reader"),
            json.loads(options.get("bindings", "{}")),
        )

    def bound(self, state: State) -> dict[str, tuple[Value, ...]]:
        """The bindings of the options, as values of their columns."""
        types = {column.name: column.type for column in self.columns(state)}
        for name in self.bindings.keys() - types.keys():
            raise _option_error("binding", name, did_you_mean(name, types) or "it names a column")
        return {n: (_value_of_binding(n, types[n], value),) for n, value in self.bindings.items()}

    def opened(self) -> State:
        return opened_state(self.state)

    def after(self, state: State) -> int:
        """The version before the first of a feed."""
        return state.first if self.first is None else max(self.first - 1, 0)

    def until(self, state: State) -> int:
        return state.last.version if self.last is None else self.last

    def at(self, state: State) -> int:
        return state.last.version if self.version is None else self.version

    def columns(self, state: State) -> Columns:
        """The columns of the result, without those that every feed has."""
        if not self.is_feed:
            return own_columns(known_table(state, self.relation, self.at(state)))
        until = self.until(state)
        known_table(state, self.relation, until)
        return stretches_between(state, self.relation, self.after(state), until)[-1].columns

    def parts(self, state: State, bindings: Bindings) -> Sequence[Part]:
        """Everything to be read."""
        if not self.is_feed:
            return self._contents_of_relation(state, self.at(state), bindings)
        return self.feed_parts(state, None, self.until(state), bindings)

    def _contents_of_relation(
        self, state: State, version: int, bindings: Bindings
    ) -> Sequence[Plain]:
        check_version(state, version)
        table = known_table(state, self.relation, version)
        if is_stored(table):
            return contents_at(state, table, self.relation, version, bindings)
        return virtual_rows(state, table, self.relation, version, bindings)

    def feed_parts(
        self,
        state: State,
        after: int | None,
        until: int,
        bindings: Bindings,
    ) -> list[Part]:
        """The feed after a version, or from its beginning: then it has what the log has dropped."""
        begin = self.after(state) if after is None else after
        check_version(state, begin)
        check_version(state, until)
        found = feed_parts(state, self.relation, begin, until, bindings)
        if after is None and self.first is None and begin > 0:
            found = [*self._first_parts(state, begin, bindings), *found]
        return found

    def _first_parts(self, state: State, version: int, bindings: Bindings) -> list[Part]:
        """The relation at the first version of the log, as inserted by it."""
        at = next(record.at for record in reversed(state.records) if record.version <= version)
        assert at is not None
        columns = stretches_between(state, self.relation, version, self.until(state))[0].columns
        stamp = INSERT, version, at
        found = self._contents_of_relation(state, version, bindings)
        return [StampedPart(part, columns, stamp) for part in found]


class _Partition(InputPartition):
    """A part that a task reads."""

    def __init__(self, part: Part) -> None:
        super().__init__(None)
        self.part = part


def _read_partition(partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
    # Where there is nothing to read, Spark makes a partition of its own.
    return partition.part.read() if isinstance(partition, _Partition) else iter(())


class PlainSource(DataSource):
    """Relations of a state, and their changes; Spark does all filtering."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        read = Read.of(self.options)
        found = output_schema(read.columns(read.opened()), read.is_feed)
        return from_arrow_schema(found, prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        return PlainReader(Read.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        read = Read.of(self.options)
        if not read.is_feed:  # which Spark does not say when it wants the schema
            raise _option_error("readChangeFeed", "false", "a stream is a feed: it is true")
        return FeedReader(read, to_arrow_schema(schema, timezone="UTC"))


class DeltalogSource(PlainSource):
    """The same for sessions that hand filters to Python data sources."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return BoundReader(Read.of(self.options))


class PlainReader(DataSourceReader):
    """A relation at a version, or its feed."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._bindings: dict[str, tuple[Value, ...]] = {}

    def partitions(self) -> Sequence[InputPartition]:
        state = self._read.opened()
        parts = self._read.parts(state, {**self._bindings, **self._read.bound(state)})
        return [_Partition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _read_partition(partition)


class BoundReader(PlainReader):
    """The same, with filters for values as bindings; sessions must allow them (`PUSHDOWN`)."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        state = self._read.opened()
        own = {column.name for column in self._read.columns(state)}
        taken = {*self._bindings, *self._read.bindings}
        for each in filters:
            if not isinstance(each, EqualTo | In) or each.attribute[0] not in own - taken:
                yield each
            else:
                values = (each.value,) if isinstance(each, EqualTo) else tuple(each.value)
                self._bindings[each.attribute[0]] = values
                taken.add(each.attribute[0])


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The feed of a relation as a stream: offsets are versions up to which it has been read.

    The offset -1 is that of a stream which begins with everything there is.
    """

    def __init__(self, read: Read, schema: pyarrow.Schema) -> None:
        self._read = read
        self._schema = schema
        self._last: int | None = read.last
        self._state: State | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_state": None}  # tasks read parts, and need no state

    def _current_state(self) -> State:
        if self._state is None:
            self._state = self._read.opened()
        else:
            self._state.refresh()
        return self._state

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        state, read = self._current_state(), self._read
        if read.reader is not None and read.reader not in state.readers:
            state.log.note_reader(read.reader, read.after(state))
        return {"version": -1 if read.first is None else read.after(state)}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        return {"version": max(start["version"], self._latest_version())}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._latest_version()

    def _latest_version(self) -> int:
        last = self._current_state().last.version
        return last if self._last is None else min(last, self._last)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start == end:
            return []
        state, read = self._current_state(), self._read
        after = None if start["version"] < 0 else start["version"]
        self._check_columns(state, read.after(state) if after is None else after, end["version"])
        parts = read.feed_parts(state, after, end["version"], read.bound(state))
        return [_Partition(part) for part in parts]

    def _check_columns(self, state: State, after: int, until: int) -> None:
        """A stream keeps the columns that it began with."""
        for stretch in stretches_between(state, self._read.relation, after, until)[-1:]:
            for column in stretch.columns:
                if column.name not in self._schema.names:
                    words = {"name": self._read.relation, "column": column.name}
                    hint = "start it again: it goes on where it was, with the new columns"
                    raise DataError([catalogue.FEED_COLUMNS.at(None, **words, hint=hint)])

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        for batch in _read_partition(partition):
            yield align_batch(batch, self._schema)

    def commit(self, end: dict[str, int]) -> None:
        if self._read.reader is not None:
            self._current_state().log.note_reader(self._read.reader, end["version"])


def _whole_number_option(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise _option_error(name, text, "it is a whole number, 0 or more")
    return int(text)


def _value_of_binding(name: str, type_: str, value: object) -> Value:
    """A value of JSON as one of a column."""
    try:
        read = parse_value(value, type_) if isinstance(value, str) else value
        return None if read is None else canonical_value(read, type_)
    except ValueError:
        raise _option_error(
            "binding", f"{name} = {value}", f"the column is of type {type_}"
        ) from None


def _option_error(what: str, value: object, hint: str) -> DataError:
    return DataError([catalogue.UNKNOWN_OPTION.at(None, what=what, name=value, hint=hint)])
