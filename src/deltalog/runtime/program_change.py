"""Go over to another program, with the exact change of every relation and view.

The change of rules is propagated through both programs at once (`runtime/rule_changes.py`), or,
where a strategy cannot do that, the new program is evaluated from scratch and compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from deltalog.checks.program import CheckedProgram
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import check_taken_keys
from deltalog.runtime.constraints import check_new_program
from deltalog.runtime.delivery_verbs import check_delivered
from deltalog.runtime.evaluation import create_relations, rebuild_views
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import UNLIMITED
from deltalog.runtime.model import Model, Options, make_model
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.rule_changes import (
    NEW,
    OLD,
    base_change,
    base_names,
    check_plain_rules,
    guarded_program,
    to_rebuild,
)
from deltalog.runtime.why.state import ReplacedProgram

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


def apply_program(
    database: MemoryDatabase,
    checked: CheckedProgram,
    is_committed: bool,
    inactive: Set[str] = frozenset(),
) -> ChangeSet:
    """Return the change that the program makes; take it over if `is_committed`."""
    new = make_model(checked, database.model.options.of_views(checked.relations))
    check_plain_rules(checked, inactive)
    if is_committed:
        check_delivered(database, checked)
    before = database.model.checked
    with _about_stored_facts():
        base = base_change(database.model, new, database.base_facts(), inactive)
        common = [name for name in base.inserted if name in base_names(database.model)]
        check_taken_keys(base.only(*common), new.checked.relations, database.engine.lookup)
    guarded = guarded_program(database.model, new)
    hidden = database.model.hidden | new.hidden
    if guarded is None or any(choice.strategy == "delta" for choice in new.choices):
        change = _replace_program(database, new, base, is_committed)
    else:
        change = _migrate_rules(database, new, guarded, base, is_committed)
    if is_committed and database._persistence is None:
        database.last_program = ReplacedProgram(database.version, before, base)
    if checked.program.update_choices:
        from deltalog.runtime.update_choices import warn_of_choices  # which opens databases

        warn_of_choices(new)
    return change if hidden.isdisjoint(change.relations) else change.without(*hidden)


@contextmanager
def _about_stored_facts() -> Iterator[None]:
    """Raise what does not fit the new program as a problem of stored facts."""
    try:
        yield
    except DataError as error:
        raise DataError(map(_about_stored, error.diagnostics)) from None


def _about_stored(problem: Diagnostic) -> Diagnostic:
    if problem.code not in _MISFITS:
        return problem
    note = "facts of base relations stay when the program changes"
    hint = "change or delete the facts that do not fit first, or declare another relation"
    return replace(problem, note=note, hint=hint)


_MISFITS = tuple(
    entry.code for entry in (catalogue.ROW_ARITY, catalogue.VALUE_MISFIT, catalogue.KEY_TAKEN)
)


def _migrate_rules(
    database: MemoryDatabase,
    new: Model,
    guarded: CheckedProgram,
    base: ChangeSet,
    is_committed: bool,
) -> ChangeSet:
    """Propagate the change of rules through both programs at once."""
    both = make_model(guarded, Options(is_migration=True))
    known = database.model.stored | both.stored
    extra = {n: both.relations[n] for n in both.stored if n not in database.model.stored}
    database.propagation.drop()
    create_relations(database.engine, extra)
    database.engine.insert(OLD, [()])
    migration = Propagation(database.engine, both)
    guards = ChangeSet({NEW: {()}}, {OLD: {()}})
    try:
        with Propagated(migration, base + guards, database.limits, database.watch) as outcome:
            change = outcome.changes().without(OLD, NEW)
            database.statistics = outcome.statistics
            if is_committed:
                check_new_program(database, new.checked, change)
                outcome.apply()
                touched = _adopt_model(database, new, migration)
                database.record_program(touched.union(base.relations), change)
    finally:
        migration.drop()
        for name in known - database.model.stored:
            database.engine.drop(name)
        database.propagation = Propagation(database.engine, database.model)
    return change


def _adopt_model(database: MemoryDatabase, new: Model, migration: Propagation) -> frozenset[str]:
    """Take over the new model, and compute anew what the migration did not keep.

    Return the stored relations whose rows, or the order of whose rows, may be others now.
    """
    reached = {name for node in migration.ran for name in node.choice.predicates}
    stale = to_rebuild(database.model, new, reached)
    for name in stale:  # its columns may be others now
        database.engine.drop(name)
    create_relations(database.engine, {name: new.relations[name] for name in new.stored})
    made = new.stored - database.model.stored
    database.model = new
    rebuild_views(database.engine, new, stale, UNLIMITED, _only_reporting(database.watch))
    return (stale | made | reached) & new.stored


def _only_reporting(watch: Watch | None) -> Watch | None:
    """A watch that cannot stop what it watches: what it raises is dropped.

    The change has been applied by now. To stop would leave a view half computed, and to raise
    afterwards would look as if nothing had changed.
    """
    if watch is None:
        return None

    def report(rounds: int, facts: int) -> None:
        with suppress(BaseException):
            watch(rounds, facts)

    return report


def _replace_program(
    database: MemoryDatabase, new: Model, base: ChangeSet, is_committed: bool
) -> ChangeSet:
    """Evaluate the new program from scratch, and compare."""
    before = {name: database.current_facts(name) for name in database.model.views}
    kept = {
        name: (rows - base.deleted[name]) | base.inserted[name]
        for name, rows in database.base_facts().items()
        if name in base_names(new)
    }
    for name, rows in base.inserted.items():
        kept.setdefault(name, set(rows))
    filled = replace(new, core=replace(new.core, facts=()))  # with what is kept, and no more
    with _about_stored_facts():
        made = database.evaluated_apart(filled, kept)
    after = {name: made.facts(name) for name in new.views}
    views = {*before, *after}
    change = base + ChangeSet(
        {name: after.get(name, set()) - before.get(name, set()) for name in views},
        {name: before.get(name, set()) - after.get(name, set()) for name in views},
    )
    if is_committed:
        database.model, database.engine, database.propagation = new, made.engine, made.propagation
        database.statistics = made.statistics
        database.record_program(new.stored, change)
    return change
