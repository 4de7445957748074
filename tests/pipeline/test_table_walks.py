"""Walks over a database in tables: every verb it has, in any order, beside the model of all walks.

A step takes a second or so. `make test` takes a few dozen, `make fuzz` hundreds from fresh seeds.
Rows are given as tuples or as DataFrames; in every second walk more than two rows are too many for
the driver, so changes are computed on the cluster. Every step compares delta and state; at the end
and after opening again the tables are read as anybody reads them, and the feeds of changes must
lead from each version to the next.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from expected import (
    VIOLATED,
    Made,
    Model,
    Moment,
    Operation,
    Question,
    answers,
    is_fit,
    known,
)
from families import OWN
from pyspark.sql import SparkSession
from reason_verbs import is_view_fact, why_action, why_changed_action, why_not_action
from verbs import Drawing, Verb, activated, drawn_activation, drawn_request, knows
from walker import Action, Manner, Setting, WrongError, check_fired, check_marks, drawn_manner

import deltalog
from deltalog.language.ast import Row
from deltalog.rewrites.names import is_generated
from deltalog.runtime.changes import ChangeSet
from reference_rules import RefusedError, register
from treatments import LIMITS
from walks import Road, drawn_setting, shrunk, walk_from

IS_FUZZ = bool(os.environ.get("DELTALOG_FUZZ"))
WALKS, STEPS = (40, 20) if IS_FUZZ else (2, 12)
FIRST = time.time_ns() % 10**9 if IS_FUZZ else 3
SPARK_TYPES = {
    "int": "long",
    "str": "string",
    "float": "double",
    "bool": "boolean",
    "date": "date",
    "decimal": "decimal(38, 18)",
}
EMPTY = Moment("", ())
VETOED = "E1007"
UNDELIVERED = "E1607"


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
        self.calls: list[tuple[str, list[Row]]] = []
        self.lines: list[str] = []
        self.steps = 0
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

    def run(self, action: Action) -> None:
        """Ask for a reason, which changes nothing."""
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
        """Tables and change tables, as anybody reads them."""
        if self.is_new:
            return
        for name, rows in self.now.state.items():
            found = {tuple(row) for row in self.db.frame(name).collect()}
            if found != _outside(rows):
                raise WrongError(f"the frame of {name} has {found}, expected {set(rows)}")
        for name, version in self.db.table_versions.items():
            path = self.state / "tables" / name
            is_seen = not is_generated(name)
            if path.exists() and version and is_seen:  # a helper is elsewhere
                table = self.spark.read.format("delta").load(str(path)).drop("rank__")
                listed = [tuple(row) for row in table.collect()]
                if len(listed) != len(set(listed)) or set(listed) != self._rows(name, version):
                    raise WrongError(f"the table of {name} at version {version} has {listed}")
        for name in self.now.state:
            start = max(self.first, self.since)
            listed = [tuple(row) for row in self.db.changes(name, after=start).collect()]
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


# --- verbs ----------------------------------------------------------------------------------------


def _drawn_change(drawing: Drawing) -> tuple[Any, ...] | None:
    operations = drawing.change(is_plain=not drawing.chance(0.4))
    if not operations or len({(k, n) for k, n, _ in operations}) < len(operations):
        return None
    return operations, drawing.chance(0.4)


def apply(walker: TableWalker, operations: tuple[Operation, ...], is_frame: bool) -> None:
    if knows(walker, operations):  # type: ignore[arg-type]
        walker.change(operations, is_frame)


def _drawn_what_if(drawing: Drawing) -> tuple[Any, ...] | None:
    drawn = _drawn_change(drawing)
    views = tuple(name for name in drawing.moment.known.views if drawing.chance(0.4))
    return None if drawn is None else (*drawn, views if drawing.chance(0.7) else None)


def what_if(
    walker: TableWalker,
    operations: tuple[Operation, ...],
    is_frame: bool,
    views: tuple[str, ...] | None,
) -> None:
    """The change that would be made, of all views or of those that are wanted."""
    is_known = set(views or ()) <= set(walker.now.known.views)
    if not is_known or not knows(walker, operations):  # type: ignore[arg-type]
        return
    walker.line(f"db.what_if({operations}, as frames: {is_frame}, views={views})")
    made, arguments = walker.made(operations, is_tried=True), walker.sides(operations, is_frame)
    if made is None:
        with pytest.raises(deltalog.DeltalogError):
            walker.db.what_if(**arguments, views=views)
        return
    walker.calls.clear()
    found, expected = walker.db.what_if(**arguments, views=views), walker.now.to(made.after)
    check_fired(found, made, walker.calls)
    if views is not None:
        expected = expected.without(*(set(walker.now.known.views) - set(views)))
    if found != expected:
        raise WrongError(f"what-if {found}, expected {expected}")
    walker.check_state()


def batch_twice(walker: TableWalker, operations: tuple[Operation, ...], is_frame: bool) -> None:
    """A batch counts once, however often it is offered."""
    if not knows(walker, operations):  # type: ignore[arg-type]
        return
    name = f"b{walker.steps}"
    walker.change(operations, is_frame, name)
    if name in walker.batches:
        walker.line("# the same batch again")
        if walker.db.apply(insert={}, batch=("walk", name)):
            raise WrongError("a batch was taken twice")
        walker.check_state()
        if ("walk", name) not in {(b[0], b[1]) for b in walker.db.batches}:
            raise WrongError(f"batches {walker.db.batches}")


def load(walker: TableWalker, operations: tuple[Operation, ...], is_frame: bool) -> None:
    """Many facts at once, of several relations."""
    inserts = tuple(operation for operation in operations if operation[0] == "insert")
    if not inserts or not knows(walker, inserts):  # type: ignore[arg-type]
        return
    before = None if walker.is_new else walker.now
    try:
        after = walker.now.changed(inserts)
    except RefusedError:
        return
    walker.line(f"db.load({inserts}, as frames: {is_frame})")
    was_bulk = walker.is_new or (
        walker.rows_max is not None and sum(len(rows) for _, _, rows in inserts) > walker.rows_max
    )
    given = {name: walker.given(name, rows, is_frame) for _, name, rows in inserts}
    if after.is_violated:
        with pytest.raises(deltalog.ConstraintError):
            walker.db.load(given)
        walker.begun()
        walker.check_state()
        return
    delta = walker.db.load(given)
    if before is None:
        walker.is_new = False
        walker.check_delta(delta, None, after)
        if any(after.state.values()):
            walker.model.moments[0] = EMPTY
            walker.model.commit(after, 1)
    else:
        if not was_bulk:
            walker.check_delta(delta, before, after)
        if after != before:
            walker.model.commit(after, walker.model.version + 1)
    walker.check_state()


def vetoed(walker: TableWalker, operations: tuple[Operation, ...], is_frame: bool) -> None:
    """A change that `check` refuses has not happened."""
    if not knows(walker, operations):  # type: ignore[arg-type]
        return
    walker.is_vetoed = True
    try:
        walker.tried(operations, is_frame)
    except deltalog.DataError as error:
        if VETOED not in error.codes:
            raise
        walker.line("# refused by `check`")
        walker.begun()
    finally:
        walker.is_vetoed = False
    walker.check_state()


def limited(walker: TableWalker, operations: tuple[Operation, ...], is_frame: bool) -> None:
    """A change that reaches a limit has not happened."""
    if not knows(walker, operations):  # type: ignore[arg-type]
        return
    walker.db._database.limits = replace(LIMITS, facts_max=walker.steps % 3)
    try:
        walker.tried(operations, is_frame)
    except deltalog.LimitError:
        walker.line("# LimitError")
        walker.begun()
    finally:
        walker.db._database.limits = LIMITS
    walker.check_state()


def interrupted(walker: TableWalker, operations: tuple[Operation, ...], is_frame: bool) -> None:
    """An interrupt closes it; opened again it is what it was."""
    if not knows(walker, operations):  # type: ignore[arg-type]
        return

    def watch(rounds: int, facts: int) -> None:
        raise KeyboardInterrupt

    walker.db._database.watch = watch
    try:
        walker.tried(operations, is_frame)
        walker.db._database.watch = None
    except KeyboardInterrupt:
        walker.line("# KeyboardInterrupt")
        walker.begun()
        walker.open()
    walker.check_state()


def query(walker: TableWalker, question: Question) -> None:
    if not is_fit(question, walker.now.known.relations):
        return
    text = ", ".join(map(str, question))
    walker.line(f"db.query({text!r})")
    found, expected = set(walker.db.query(text)), answers(question, walker.now.state)
    if found != expected:
        raise WrongError(f"answers {found}, expected {expected}")


def reopen(walker: TableWalker, manner: Manner) -> None:
    """Close and open, perhaps with another strategy: what is kept must stay the same."""
    walker.db.close()
    before, text = walker.manner, walker.now.text
    if not walker.is_new and manner.materialize == before.materialize:
        walker.manner = replace(before, strategy=manner.strategy).under(text)
    try:
        walker.open()
    except deltalog.DataError as error:  # it would keep other helpers
        if "E1002" not in error.codes:
            raise
        walker.line("# E1002")
        walker.manner = before
        walker.open()
    walker.check_state()
    walker.check_tables()


def change_program(walker: TableWalker, text: str) -> None:
    """Another program, with the exact change of everything."""
    before = walker.now
    error = walker.manner.under(text).refusal(text)
    try:
        after = before.under(text)
    except RefusedError as refusal:
        after, error = before, error or str(refusal)
    if error is None and after.is_violated:
        error = VIOLATED
    settled = walker.db._database.settled_messages()
    is_waiting = any(m.sequence > settled.get(m.rule, -1) for m in walker.db.messages())
    if is_waiting and "emit" not in text:
        error = UNDELIVERED
    walker.line(f"db.change_program({text!r})")
    if error is not None:
        with pytest.raises(deltalog.DeltalogError, match=error):
            walker.db.change_program(text)
        walker.begun()
        walker.check_state()
        return
    delta = walker.db.change_program(text)
    walker.begun()
    if delta != before.to(after):
        raise WrongError(f"delta {delta}, expected {before.to(after)}")
    walker.manner = walker.manner.under(text)
    if known(text).program != before.known.program:
        walker.model.commit(after, walker.model.version + 1)
    walker.check_state()
    walker.check_tables()


def travel(walker: TableWalker, first: int, last: int, question: Question) -> None:
    """The facts of a version, the net change between two, and a query of the past."""
    model = walker.model
    versions = walker.versions
    if walker.is_new or not versions:
        return
    first, last = (versions[each % len(versions)] for each in (first, last))
    before, after = model.moments[first], model.moments[last]
    walker.line(f"db.delta({first}, {last}); [db.facts(name, {first}) for name in …]")
    if (delta := walker.db.delta(first, last)) != before.to(after):
        raise WrongError(f"delta {delta}, expected {before.to(after)}")
    for name, rows in before.state.items():
        if (found := walker.db.facts(name, first)) != rows:
            raise WrongError(f"facts of {name} at {first}: {found}, expected {set(rows)}")
    if is_fit(question, before.known.relations):
        text = ", ".join(map(str, question))
        walker.line(f"db.query({text!r}, version={first})")
        asked = set(walker.db.query(text, version=first))
        if asked != answers(question, before.state):
            raise WrongError(f"answers {asked}")


def _drawn_reason(drawing: Drawing) -> tuple[Any, ...] | None:
    drawn = drawn_request(drawing)
    if drawn is None:
        return None
    form = drawing.rng.choice(("proof", "every", "set"))
    return drawn[0], drawn[1], form, drawing.rng.randint(0, 99)


def why(walker: TableWalker, name: str, row: Row, form: str, number: int) -> None:
    """A proof, or what blocks a fact, now and in an earlier version."""
    asked: list[int | None] = [None]
    if not walker.is_new and walker.versions:
        asked.append(walker.versions[number % len(walker.versions)])
    for version in asked:
        moment = walker.now if version is None else walker.model.moments[version]
        if not is_view_fact(moment, name, row):
            continue
        walker.run(why_action(walker.db, moment, (name, row), form, version))
        if row not in moment.state[name]:
            walker.run(why_not_action(walker.db, moment, (name, row), version))


def why_changed(walker: TableWalker, number: int, which: int) -> None:
    """The causes of a change, of a transaction or of another program."""
    known = [v for v in walker.versions if v - 1 in walker.versions]
    if walker.is_new or not known:
        return
    version = known[which % len(known)]
    before, after = (walker.model.moments[v] for v in (version - 1, version))
    action = why_changed_action(walker.db, before, after, number, version)
    if action is not None:
        walker.run(action)


def activation(walker: TableWalker, is_activated: bool, name: str, values: Row) -> None:
    """A rule is activated or deactivated, by which nothing fires."""
    after = activated(walker.now, is_activated, name, values)
    if after is None:
        return
    rules = {rule.name: rule for rule in walker.now.known.program.active_rules}
    given = {v.name: value for v, value in zip(rules[name].parameters, values, strict=True)}
    verb = "activate" if is_activated else "deactivate"
    walker.line(f"db.{verb}({name!r}, **{given})")
    getattr(walker.db, verb)(name, **given)
    walker.begun()
    if after != walker.now:
        walker.model.commit(after, walker.model.version + 1)
    walker.check_state()


def fold(walker: TableWalker) -> None:
    walker.line("db.fold()")
    walker.db.fold()
    walker.check_state()
    walker.check_tables()


def readers(walker: TableWalker, name: str, number: int) -> None:
    """Register, acknowledge, unregister; a reader holds the log."""
    if walker.is_new:
        return
    version = walker.model.version
    if name not in walker.readers:
        walker.line(f"db.register({name!r})")
        walker.readers[name] = walker.db.register(name)
    elif number % 3:
        walker.line(f"db.acknowledge({name!r}, {version})")
        walker.db.acknowledge(name, version)
        walker.readers[name] = version
    else:
        walker.line(f"db.unregister({name!r})")
        walker.db.unregister(name)
        del walker.readers[name]
    if dict(walker.db.readers) != walker.readers:
        raise WrongError(f"readers {walker.db.readers}, expected {walker.readers}")


def compact(walker: TableWalker, versions: int) -> None:
    """Versions that nobody needs go, and all others stay what they were."""
    if walker.is_new:
        return
    walker.line(f"db.compact(Retention(versions={versions}))")
    bound = max(0, min([walker.model.version - versions, *walker.readers.values()]))
    walker.db.compact(deltalog.Retention(versions=versions))
    found = walker.db.first_version
    if not walker.first <= found <= max(bound, walker.first):  # tables may need it longer
        raise WrongError(f"the log begins at {found}, expected {bound} at most")
    if walker.freshness == "commit" and found != max(bound, walker.first):
        raise WrongError(f"the log begins at {found}, expected {bound}")
    walker.first = found
    walker.check_state()


def verify(walker: TableWalker) -> None:
    if not walker.is_new:
        walker.line("db.verify()")
        if not (found := walker.db.verify()).is_clean:
            raise WrongError(f"verify: {found}")


def refused(walker: TableWalker, number: int) -> None:
    relation = walker.now.known.base[0]
    ways: list[Callable[[], Any]] = [
        lambda: walker.db.apply(insert={"nobody": [(1,)]}),
        lambda: walker.db.apply(insert={relation.name: [(b"x",) * relation.arity]}),
        lambda: walker.db.load(relation.name, [(1,) * (relation.arity + 1)]),
        lambda: walker.db.frame("nobody"),
        lambda: walker.db.query("nobody(X)"),
        lambda: deltalog.connect(spark=walker.spark, state=walker.state, program=walker.now.text),
    ]
    walker.line(f"# refused: {number}")
    with pytest.raises(deltalog.DeltalogError):
        ways[number % len(ways)]()
    walker.begun()
    walker.check_state()


def audit(walker: TableWalker) -> None:
    walker.line("db.audit()")
    if found := walker.db.audit():
        raise WrongError(f"audit: {found}")


def finish(walker: TableWalker) -> None:
    audit(walker)
    walker.check_tables()
    reopen(walker, walker.setting.manner)


def _drawn_manner(drawing: Drawing) -> tuple[Any, ...]:
    return (drawn_manner(drawing.rng, drawing.moment.text, "spark"),)


VERBS = {
    "apply": Verb(_drawn_change, apply, 10),
    "what_if": Verb(_drawn_what_if, what_if, 4),
    "batch_twice": Verb(_drawn_change, batch_twice, 2),
    "load": Verb(_drawn_change, load, 3),
    "vetoed": Verb(_drawn_change, vetoed, 1),
    "limited": Verb(_drawn_change, limited, 2),
    "interrupted": Verb(_drawn_change, interrupted, 1),
    "query": Verb(lambda d: (d.question(),), query, 4),
    "reopen": Verb(_drawn_manner, reopen, 2),
    "refused": Verb(lambda d: (d.rng.randint(0, 99),), refused, 1),
    "audit": Verb(lambda d: (), audit, 1),
    "change_program": Verb(lambda d: (d.rng.choice(d.walker.setting.family),), change_program, 2),
    "travel": Verb(lambda d: (d.rng.randint(0, 99), d.rng.randint(0, 99), d.question()), travel, 3),
    "why": Verb(_drawn_reason, why, 2),
    "why_changed": Verb(lambda d: (d.rng.randint(0, 99), d.rng.randint(0, 99)), why_changed, 3),
    "activation": Verb(drawn_activation, activation, 3),
    "fold": Verb(lambda d: (), fold, 2),
    "readers": Verb(lambda d: (d.rng.choice(("ann", "bob")), d.rng.randint(0, 9)), readers, 2),
    "compact": Verb(lambda d: (d.rng.choice((0, 1, 3)),), compact, 1),
    "verify": Verb(lambda d: (), verify, 1),
}
NAMES = tuple(OWN)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + WALKS))
def test_nothing_goes_wrong_on_a_walk(spark: SparkSession, seed: int) -> None:
    rng = random.Random(f"{seed} tables")
    setting = drawn_setting(rng, "tables", "spark", False, OWN[rng.choice(NAMES)])
    road = Road(
        lambda setting, folder: TableWalker(spark, setting, folder), VERBS, finish, STEPS, STEPS
    )
    _, failure = walk_from(rng, seed, setting, road)
    assert failure is None, f"\n{shrunk(failure, replays_max=25)}"
