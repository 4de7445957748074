"""The verbs of walks over a database in tables: how each is drawn, and how it is taken.

Those that only look are the ones of all walks (`tests/walks/verbs.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import verbs as shared
from deltalake import DeltaTable
from expected import VIOLATED, Operation, Question, answers, is_fit, known
from reason_verbs import is_view_fact, why_action, why_changed_action, why_not_action
from table_walker import EMPTY, TableWalker
from verbs import (
    Drawing,
    Verb,
    activated,
    drawn_activation,
    drawn_program,
    drawn_request,
    knows,
)
from walker import Manner, WrongError, check_fired, drawn_manner

import deltalog
from deltalog.language.ast import Row
from reference_rules import RefusedError
from treatments import LIMITS

VETOED = "E1007"
UNDELIVERED = "E1607"
LOOKING = {
    "messages": 1,
    "dispatch": 2,
    "rows": 1,
    "query_with_parameters": 2,
    "explain": 1,
    "realize": 1,
    "check_requests": 1,
    "check_choices": 1,
    "violations": 1,
}
"""Verbs of all walks that change no fact."""


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


def change_program(
    walker: TableWalker, text: str, is_committed: bool, inactive: tuple[str, ...]
) -> None:
    """Another program, with the exact change of everything; rules may be deactivated with it."""
    before = walker.now
    inactive = tuple(name for name in inactive if name not in before.marks.inactive)
    error = walker.manner.under(text).refusal(text)
    try:
        after = before.under(text).deactivated(inactive)
    except RefusedError as refusal:
        after, error = before, error or str(refusal)
    if error is None and is_committed and after.is_violated:
        error = VIOLATED
    if is_committed and walker.undelivered() and "emit" not in text:
        error = UNDELIVERED
    options = {"is_committed": is_committed, "inactive": inactive}
    walker.line(f"db.change_program({text!r}, **{options})")
    if error is not None:
        with pytest.raises(deltalog.DeltalogError, match=error):
            walker.db.change_program(text, **options)
        walker.begun()
        walker.check_state()
        return
    delta = walker.db.change_program(text, **options)
    walker.begun()
    if delta != before.to(after):
        raise WrongError(f"delta {delta}, expected {before.to(after)}")
    if is_committed:
        walker.manner = walker.manner.under(text)
        if known(text).program != before.known.program or after != before:
            walker.model.commit(after, walker.model.version + 1)
    walker.check_state()
    walker.check_tables()


def travel(walker: TableWalker, first: int, last: int, question: Question) -> None:
    """The facts of a version, the net change between two, and a query of the past."""
    model, versions = walker.model, walker.versions
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
    if sorted(walker.db.relations_at(first)) != sorted(before.state):
        raise WrongError(f"relations at {first}: {sorted(walker.db.relations_at(first))}")
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


def transaction(walker: TableWalker, operations: tuple[Operation, ...] | None) -> None:
    """A block in which rows may come, go and come again."""
    if not operations or not knows(walker, operations):  # type: ignore[arg-type]
        return
    before = walker.now
    walker.line(f"with db.transaction() as tx: {operations}")
    walker.calls.clear()
    try:
        made = before.made(operations)
    except RefusedError:
        with pytest.raises(deltalog.DeltalogError):
            _transact(walker, operations)
        walker.begun()
    else:
        delta = _transact(walker, operations)
        walker.begun()
        check_fired(delta, made, walker.calls)
        walker.check_delta(delta, before, made.after)
        if made.after != before:
            walker.model.commit(made.after, walker.model.version + 1)
    walker.check_state()


def _transact(walker: TableWalker, operations: tuple[Operation, ...]) -> Any:
    with walker.db.transaction() as tx:
        for kind, name, rows in operations:
            getattr(tx, kind)(name, rows[0] if kind == "set" else list(rows))
    return tx.delta


def append_changes(walker: TableWalker, number: int, after: int) -> None:
    """A feed that is appended to a table, from a version that the table may have already."""
    names = sorted(walker.now.state)
    if not names or walker.is_new:
        return
    name, since = names[number % len(names)], walker.since
    start = max(walker.first, since)
    begun, last = walker.appended.get((name, since), (start, start))
    if start > last:
        return  # what is between has been dropped
    after = max(start, begun + after % (last - begun + 1))
    path = walker.folder / f"feed-{name}-{since}"
    walker.line(f"db.append_changes({name!r}, {after}, {path.name!r})")
    if walker.db.append_changes(name, after, str(path)):
        walker.appended[name, since] = begun, walker.model.version
        walker.check_feed(name, begun, _feed(path))
    elif walker.rows_max is None:
        raise WrongError("the driver did not append a few rows")


def _feed(path: Path) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in DeltaTable(path).to_pyarrow_table().to_pylist()]


def commits(walker: TableWalker, number: int) -> None:
    """The commits of the log, and the programs."""
    if walker.is_new:
        return
    after = walker.first + number % (walker.model.version - walker.first + 1)
    walker.line(f"db.commits({after}); db.programs()")
    found = walker.db.commits(after)
    if [commit.version for commit in found] != list(range(after + 1, walker.model.version + 1)):
        raise WrongError(f"commits {found}")
    for commit in found:
        before, later = (walker.model.moments[v] for v in (commit.version - 1, commit.version))
        if before is not EMPTY and commit.change != before.to(later):
            raise WrongError(f"commit {commit}, expected {before.to(later)}")
    if known(walker.db.programs()[-1][2]).program != walker.now.known.program:
        raise WrongError(f"programs {walker.db.programs()}")


def backup(walker: TableWalker) -> None:
    """A copy of the state has everything."""
    if walker.is_new:
        return
    copy = walker.folder / f"copy{walker.steps}"
    walker.line(f"db.backup({copy.name!r})")
    walker.db.backup(copy)
    walker.db.close()
    walker.state, here = copy, walker.state
    walker.open()
    walker.check_state()
    walker.db.close()
    walker.state = here
    walker.open()


def notes(walker: TableWalker, number: int) -> None:
    """What a pipeline notes in its state: sinks, problems, and rows that it did not take."""
    if walker.is_new:
        return
    walker.line("db.note_delivered(…); db.note_problems(…)")
    walker.db.note_delivered({"sink": walker.model.version})
    walker.db.note_problems({"part": "it failed" if number % 2 else None})
    if walker.db.delivered != {"sink": walker.model.version}:
        raise WrongError(f"delivered {walker.db.delivered}")
    if dict(walker.db.problems) != ({"part": "it failed"} if number % 2 else {}):
        raise WrongError(f"problems {walker.db.problems}")
    if walker.db.quarantined() or walker.db.dead_letters():
        raise WrongError("nothing was refused, and everything is delivered")
    if not walker.now.state.keys() <= walker.db.relations.keys():
        raise WrongError(f"relations {walker.db.relations}")
    walker.delivered = [walker.model.version]
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
    kept = [*walker.readers.values(), *walker.delivered]
    bound = max(0, min([walker.model.version - versions, *kept]))
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
        walker.line("db.verify(engine='reference')")
        if not (found := walker.db.verify(engine="reference")).is_clean:
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


def audit(walker: TableWalker, engine: str | None = "reference") -> None:
    """Recomputed by the reference, or by another engine of the same kind, on the cluster."""
    walker.line(f"db.audit(engine={engine!r})")
    if found := walker.db.audit(engine=engine):
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
    "audit": Verb(lambda d: (d.rng.choice((None, "reference")),), audit, 1),
    "change_program": Verb(drawn_program, change_program, 2),
    "travel": Verb(lambda d: (d.rng.randint(0, 99), d.rng.randint(0, 99), d.question()), travel, 3),
    "why": Verb(_drawn_reason, why, 2),
    "why_changed": Verb(lambda d: (d.rng.randint(0, 99), d.rng.randint(0, 99)), why_changed, 3),
    "activation": Verb(drawn_activation, activation, 3),
    "fold": Verb(lambda d: (), fold, 2),
    "readers": Verb(lambda d: (d.rng.choice(("ann", "bob")), d.rng.randint(0, 9)), readers, 2),
    "compact": Verb(lambda d: (d.rng.choice((0, 1, 3)),), compact, 1),
    "verify": Verb(lambda d: (), verify, 1),
    "transaction": Verb(lambda d: (d.change(is_plain=False),), transaction, 3),
    "append_changes": Verb(
        lambda d: (d.rng.randint(0, 99), d.rng.randint(0, 99)), append_changes, 3
    ),
    "commits": Verb(lambda d: (d.rng.randint(0, 99),), commits, 2),
    "backup": Verb(lambda d: (), backup, 1),
    "notes": Verb(lambda d: (d.rng.randint(0, 9),), notes, 1),
    **{name: replace(shared.VERBS[name], weight=weight) for name, weight in LOOKING.items()},
}
