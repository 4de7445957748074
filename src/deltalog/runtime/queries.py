"""Queries: rewritten to rules by Magic Sets, run on the engine, and gone without a trace.

A query can be asked of a state that is not there yet: stored relations that a change touches are
read through the direct transition rules (`rewrites/transition_rules.py`), which Magic Sets treats
like a virtual view:

    ? path(1, Y).   →   path__new(X, Y) :- path(X, Y), not path__minus(X, Y).
                        path__new(X, Y) :- path__plus(X, Y).
                        answer__(Y) :- path__new(1, Y).

Nothing but scratch relations is written, whatever the change says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from deltalog.analysis.columns import Relation, generated_relations
from deltalog.analysis.relevance import needed_rules
from deltalog.analysis.rule_types import variable_types
from deltalog.analysis.stratification import (
    Partition,
    component_partition,
    soft_partition,
    stratification,
)
from deltalog.checks.program import check_query
from deltalog.engines.base import Engine
from deltalog.language.ast import Atom, Column, Query, Rule, Variable
from deltalog.language.walk import atoms
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar_query
from deltalog.rewrites.forms import QueryForm
from deltalog.rewrites.pipeline import EVALUATE, QUERY, apply_passes
from deltalog.rewrites.states import renamed
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.evaluation import create
from deltalog.runtime.fixpoint import Statistics, Watch, install, run
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, query_model, written_form
from deltalog.runtime.rows import Rows


@dataclass(frozen=True)
class PreparedQuery:
    """A query rewritten to rules, in parts, with the columns of its result."""

    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]
    partition: Partition


def prepare_query(
    model: Model,
    query: Query,
    magic: bool = True,
    changed: Collection[str] = (),
    last: str | None = None,
) -> PreparedQuery:
    """The query as rules, after its passes or after the one named `last`.

    With `magic` they derive only what it needs: without, optional passes are left out. Of the
    stored relations in `changed` they read the new state.
    """
    known = model.checked.relations
    check_query(query, known)
    views = model.rules
    if any(each.name == last for each in EVALUATE):
        views = apply_passes(EVALUATE, written_form(model.checked, model.options), last).rules
    form = QueryForm(query, known, model.stored, views, frozenset(changed))
    form = apply_passes((each for each in QUERY if magic or not each.is_optional), form, last)
    if form.rewritten is not None:
        rules = form.rewritten
        partition = soft_partition(rules, names.source, stratification(form.rules))
    else:
        rules = needed_rules(form.rules, {names.ANSWER}, form.stored)
        partition = component_partition(rules)
    types = variable_types(query.body, known)
    head = next(rule.head for rule in form.asked if rule.head.predicate == names.ANSWER)
    columns = tuple(
        Column(term.name, types.get(term.name), True)
        for term in head.arguments
        if isinstance(term, Variable)
    )
    return PreparedQuery(columns, rules, partition)


def whole_relation(relation: Relation) -> Query:
    """The query for all facts of a relation."""
    arguments = tuple(Variable(f"V{i}") for i in range(relation.arity))
    return Query((Atom(relation.name, arguments),))


def stored_reads(model: Model, query: Query) -> frozenset[str]:
    """The stored relations that a query reads, directly or through virtual views."""
    asked = desugar_query(query, model.checked.relations)
    needed = needed_rules((*model.rules, *asked), {names.ANSWER}, model.stored)
    return model.stored & {atom.predicate for rule in needed for atom, _ in atoms(rule.body)}


def answer(
    engine: Engine,
    model: Model,
    query: Query,
    limits: Limits,
    watch: Watch | None = None,
    magic: bool = True,
    change: ChangeSet = NO_CHANGE,
) -> Rows:
    """The answers, and how many facts were generated on the way.

    `change` is the net change of stored relations after which they are to hold.
    """
    prepared = prepare_query(model, query, magic, change.relations)
    stored = {name: model.relations[name] for name in model.stored}
    sides = {
        side(name): (model.relations[name], rows[name])
        for side, rows in ((names.plus, change.inserted), (names.minus, change.deleted))
        for name in change.relations
    }
    stored |= {name: relation for name, (relation, _) in sides.items()}
    scratch = generated_relations(prepared.rules, stored)
    apart = {name: names.apart(name) for name in (*scratch, *sides)}
    stages = [tuple(renamed(rule, apart) for rule in part) for part in prepared.partition]
    try:
        create(engine, {apart[name]: relation for name, relation in scratch.items()})
        for name, (relation, rows) in sides.items():
            create(engine, {apart[name]: relation})
            engine.insert(apart[name], rows)
        statistics = run(engine, install(engine, stages), limits, watch=watch)
        found = engine.copied(apart[names.ANSWER])
    finally:
        for name in apart.values():
            engine.drop(name)
    originals = {made: name for name, made in apart.items()}
    generated = {originals[name]: count for name, count in statistics.generated.items()}
    return Rows(prepared.columns, found, Statistics(statistics.rounds, [lambda: generated]))


def user_model(model: Model) -> Model:
    """The same database as it was written: no helper relations, whose changes nobody reports."""
    visible = model.stored.intersection(model.checked.relations)
    return query_model(model.checked, visible)
