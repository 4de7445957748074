"""Go over commits again, to learn what they did to views whose change the log omits.

    the base facts of version 4 ─▶ a database in memory, of what these views need
    commits 5, 6, 7 ─▶ their base changes, propagated again ─▶ the exact change of each view

The log has every change of a base relation. So the state of a version can be computed again, and
propagation from it has the same exact result as it would have had then. A replay costs what these
base facts and changes cost; whoever commits pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from deltalog.analysis.relevance import needed_rules
from deltalog.checks.program import CheckedProgram
from deltalog.language.ast import Row
from deltalog.rewrites.forms import read_by
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.model import Options, make_model, query_model
from deltalog.runtime.queries import answer_query, whole_relation
from deltalog.store.log import PROGRAM, Commit

BaseFacts = Callable[[str], Iterable[Row]]
"""The facts that a base relation had in a version."""


def derived_facts(
    database: MemoryDatabase, checked: CheckedProgram, view: str, facts: BaseFacts
) -> set[Row]:
    """The facts of a view that a program derives from base facts."""
    known, engine = checked.relations, database.engine.fresh()
    base = _influents_of(checked, frozenset((view,)))
    for name in base:
        create_relations(engine, {name: known[name]})
        engine.insert(name, facts(name))
    model = query_model(checked, base)
    query = whole_relation(known[view])
    return set(answer_query(engine, model, query, database.limits, database.watch, False).held)


def with_omitted_changes(
    commits: Iterable[Commit],
    views: frozenset[str],
    replay_from: Callable[[int, frozenset[str]], Replay],
) -> Iterator[Commit]:
    """The commits, one after the other, with the changes of those views that they omit."""
    replay: Replay | None = None
    for each in commits:
        missing = each.omitted & views
        if each.kind == PROGRAM:
            replay = None
        elif missing or replay is not None:
            replay = replay or replay_from(each.version - 1, views)
            change = replay.step(each).only(*missing)
            each = replace(each, change=each.change + change, omitted=each.omitted - missing)
        yield each


class Replay:
    """The part of a database that some views need, at an earlier version."""

    def __init__(
        self,
        database: MemoryDatabase,
        checked: CheckedProgram,
        views: frozenset[str],
        facts: BaseFacts,
    ) -> None:
        options = Options(materialize=database.model.options.materialize)
        model = make_model(_narrow_program(checked, views), options)
        self._base = _influents_of(checked, views)
        self._views = views.intersection(model.views)
        held: Mapping[str, Iterable[Row]] = {name: list(facts(name)) for name in self._base}
        self._database = database.evaluated_apart(model, held)

    def step(self, commit: Commit) -> ChangeSet:
        """Make the next commit; returns its exact change of the views."""
        base = commit.change.only(*self._base.intersection(commit.change.relations))
        return self._database.propagate_net(base, True, self._views).only(*self._views)


def _influents_of(checked: CheckedProgram, views: frozenset[str]) -> frozenset[str]:
    """The base relations that some views are derived from."""
    read = read_by(needed_rules(checked.program.definitions, views))
    known = checked.relations
    return frozenset(name for name in read if name in known and known[name].kind == "base")


def _narrow_program(checked: CheckedProgram, views: frozenset[str]) -> CheckedProgram:
    """The rules of some views, without the facts that the program began with.

    Constraints and active rules have had their say: what they did is in the base changes.
    """
    program = checked.program
    rules = needed_rules(program.definitions, views)
    left = replace(program, rules=rules, facts=(), queries=(), constraints=(), active_rules=())
    return replace(checked, program=left)
