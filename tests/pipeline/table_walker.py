"""A database in tables beside the model of all walks: taking steps, and comparing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from expected import Made, Model, Moment, Operation
from pyspark.sql import SparkSession
from walker import Action, Setting, WrongError, check_fired, check_marks, messages_left

import deltalog
from deltalog.language.ast import Row
from deltalog.rewrites.names import is_generated
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.messages import Message
from reference_rules import RefusedError, register
from treatments import LIMITS

SPARK_TYPES = {
    "int": "long",
    "str": "string",
    "float": "double",
    "bool": "boolean",
    "date": "date",
    "decimal": "decimal(38, 18)",
}
EMPTY = Moment("", ())


class TableWalker:
    """A database in tables beside its model."""

    def __init__(self, spark: SparkSession, setting: Setting, folder: Path) -> None:
        self.spark, self.setting, self.folder = spark, setting, folder
        self.manner = setting.manner
        self.state = folder / "state"
        start = replace(setting, facts=()).moment
        self.model = Model({0: start})
        self.is_new = True  # nothing is committed, not even the facts of the program
        self.is_vetoed = False
        self.rows_max: int | None = 2 if setting.manner.network == "flat" else None
        self.freshness: Any = "commit" if setting.manner.is_checked else "demand"
        self.readers: dict[str, int] = {}
        self.first = 0
        self.batches: list[str] = []
        self.group = None  # of batches, which only files have
        self.delivered: list[int] = []
        self.appended: dict[tuple[str, int], tuple[int, int]] = {}  # feeds: after, and up to
        self.calls: list[tuple[str, list[Row]]] = []
        self.lines: list[str] = []
        self.steps = 0
        self.looked = 0  # at frames
        self.open()

    @property
    def now(self) -> Moment:
        return self.model.now

    def line(self, text: str) -> None:
        self.lines.append(text)

    def open(self) -> None:
        text = self.now.text
        self.line(f"db = connect(spark=spark, state='state', program={text!r}, {self.manner})")
        self.db: Any = deltalog.connect(
            spark=self.spark,
            state=self.state,
            program=text,
            strategy=self.manner.strategy,
            materialize=self.manner.materialize,
            freshness=self.freshness,
            limits=LIMITS,
            check=lambda change: "no" if self.is_vetoed else None,
        )
        register(self.db, self.calls)
        if self.rows_max is not None:
            self.line(f"db.engine.settings = replace(…, driver_rows_max={self.rows_max})")
            settings = replace(self.db.engine.settings, driver_rows_max=self.rows_max)
            self.db.engine.settings = settings

    def close(self) -> None:
        self.db.close()

    # --- taking a step

    def run(self, action: Action, *stops: type[BaseException]) -> None:
        """Take a step of all walks, which changes nothing."""
        assert not stops
        self.line(action.line)
        if action.error is not None:
            with pytest.raises(deltalog.DeltalogError, match=action.error):
                action.call()
        else:
            action.check(action.call())
        self.check_state()

    @property
    def versions(self) -> list[int]:
        """The versions that can be had, but the one before anything was committed."""
        found = range(self.first, self.model.version + 1)
        return [v for v in found if self.model.moments[v] is not EMPTY]

    def unreceived(self, recipient: str) -> list[Message]:
        """The messages that have not come to a recipient, who gets all."""
        return messages_left(self.db.messages(), self.db._database.delivery_book(), recipient)

    def undelivered(self) -> list[Message]:
        """The messages that nobody has received."""
        settled = self.db.settled_messages()
        return [m for m in self.db.messages() if m.sequence > settled.get(m.rule, -1)]

    def change(self, operations: tuple[Operation, ...], is_frame: bool, batch: str = "") -> None:
        """Deletions, insertions and puts in one commit, as `apply` takes them."""
        self.tried(operations, is_frame, batch)
        self.check_state()

    def tried(self, operations: tuple[Operation, ...], is_frame: bool, batch: str = "") -> None:
        before, made = self.now, self.made(operations)
        arguments = self.sides(operations, is_frame)
        self.calls.clear()
        self.line(f"db.apply({operations}, as frames: {is_frame}, batch={batch!r})")
        named = {"batch": ("walk", batch)} if batch else {}
        if made is None:
            with pytest.raises(deltalog.DeltalogError):
                self.db.apply(**arguments, **named)
            self.begun()
            return
        after = made.after
        delta = self.db.apply(**arguments, **named)
        self.begun()
        check_fired(delta.changes, made, self.calls)
        self.check_delta(delta, before, after)
        if batch:
            self.batches.append(batch)
        if after != before:
            self.model.commit(after, self.model.version + 1)

    def made(self, operations: tuple[Operation, ...], is_tried: bool = False) -> Made | None:
        """What a change makes, in the order of `apply`; None if it must be refused."""
        order = {"delete": 0, "insert": 1, "set": 2}
        most = self.rows_max
        is_one = most is not None and any(len(rows) > most for *_, rows in operations)
        try:
            ordered = sorted(operations, key=lambda each: order[each[0]])
            return self.now.made(ordered, is_tried, is_one)
        except RefusedError:
            return None

    def sides(self, operations: tuple[Operation, ...], is_frame: bool) -> dict[str, Any]:
        """The arguments of `apply` and `what_if`."""
        found: dict[str, dict[str, Any]] = {"delete": {}, "insert": {}, "set": {}}
        for kind, name, rows in operations:
            found[kind][name] = self.given(name, rows, is_frame)
        return found

    def begun(self) -> None:
        """The first change also commits the facts of the program, as a version if there are any."""
        if self.is_new and not self.db.is_new:
            self.is_new = False
            if any(self.now.state.values()):
                self.model.moments[1] = self.model.moments.pop(0)
                self.model.version = 1
                self.model.moments[0] = EMPTY

    def given(self, name: str, rows: tuple[Row, ...], is_frame: bool) -> Any:
        columns = self.now.known.relations[name].columns
        if not is_frame:
            return list(rows)
        schema = ", ".join(f"`{c.name}` {SPARK_TYPES[str(c.type)]}" for c in columns)
        return self.spark.createDataFrame(list(rows), schema)

    # --- comparing

    def check_delta(self, delta: Any, before: Moment | None, after: Moment) -> None:
        expected = ChangeSet(after.state) if before is None else before.to(after)
        if isinstance(delta, ChangeSet):
            if delta != expected:
                raise WrongError(f"delta {delta}, expected {expected}")
            return
        counts = {
            n: (len(expected.inserted[n]), len(expected.deleted[n])) for n in expected.relations
        }
        if dict(delta.counts) != counts:
            raise WrongError(f"counts {delta.counts}, expected {expected}")
        if before is not None and delta.changes != expected:
            raise WrongError(f"delta {delta.changes}, expected {expected}")

    def check_state(self) -> None:
        check_marks(self.db, self.now)
        if self.db.version != self.model.version:
            raise WrongError(f"version {self.db.version}, expected {self.model.version}")
        for name, rows in self.now.state.items():
            if (found := self.db.facts(name)) != rows:
                raise WrongError(f"facts of {name} {found}, expected {set(rows)}")

    def check_tables(self) -> None:
        """All tables, as delta-rs reads them; frame and feed of one relation after the other.

        Spark takes a second and more for each of those, so a step looks at one.
        """
        if self.is_new:
            return
        for name, version in self.db.table_versions.items():
            path = self.state / "tables" / name
            if path.exists() and version and not is_generated(name):  # a helper is elsewhere
                table = DeltaTable(path).to_pyarrow_table()
                named = [column for column in table.column_names if column != "rank__"]
                listed = [tuple(row.values()) for row in table.select(named).to_pylist()]
                if len(listed) != len(set(listed)) or set(listed) != self._rows(name, version):
                    raise WrongError(f"the table of {name} at version {version} has {listed}")
        names = sorted(self.now.state)
        if names:
            self.looked += 1
            self.check_frames(names[self.looked % len(names)])

    def check_frames(self, name: str) -> None:
        """The facts and the changes of a relation, as DataFrames."""
        found = {tuple(row) for row in self.db.frame(name).collect()}
        if found != _outside(self.now.state[name]):
            raise WrongError(f"the frame of {name} has {found}, expected {self.now.state[name]}")
        start = max(self.first, self.since)
        listed = [tuple(row) for row in self.db.changes(name, after=start).collect()]
        self.check_feed(name, start, listed)

    def check_feed(self, name: str, start: int, listed: list[tuple[Any, ...]]) -> None:
        """The rows of a feed are the changes after a version, each once."""
        changes = {(version, kind, *row) for *row, kind, version, _ in listed}
        expected = set()
        for version in range(start + 1, self.model.version + 1):
            before, after = self._rows(name, version - 1), self._rows(name, version)
            expected |= {(version, "insert", *row) for row in after - before}
            expected |= {(version, "delete", *row) for row in before - after}
        if len(listed) != len(changes):
            raise WrongError(f"changes of {name} are recorded twice: {listed}")
        if changes != expected:
            raise WrongError(f"changes of {name}: {changes}, expected {expected}")

    @property
    def since(self) -> int:
        """The version from which on the program has been the same."""
        texts = [self.model.moments[v].text for v in range(self.model.version + 1)]
        while len(texts) > 1 and texts[-2] in (self.now.text, ""):
            texts.pop()
        return len(texts) - 1

    def _rows(self, name: str, version: int) -> set[tuple[object, ...]]:
        moment = self.model.moments[version]
        return set() if moment is EMPTY else _outside(moment.state[name])


def _outside(rows: Any) -> set[tuple[object, ...]]:
    """Rows as tables have them: a table without columns has one that says `True`."""
    return {row or (True,) for row in rows}
