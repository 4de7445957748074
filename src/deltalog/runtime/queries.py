"""Queries: rewritten to rules by Magic Sets, run on the engine, and gone without a trace.

A query can be asked of a state that is not there yet: stored relations that a change touches are
read through the direct transition rules (`rewrites/transition_rules.py`), which Magic Sets treats
like a virtual view:

    ? path(1, Y).   →   path__new(X, Y) :- path(X, Y), not path__minus(X, Y).
                        path__new(X, Y) :- path__plus(X, Y).
                        answer__(Y) :- path__new(1, Y).

A body can be asked for many bindings at once, the facts of an input relation, which leads:

    ? given__(X), path(X, Y).

Nothing but scratch relations is written, whatever the change says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from deltalog.analysis.columns import Relation, Relations, generated_relations
from deltalog.analysis.relevance import needed_rules
from deltalog.analysis.rule_types import variable_types
from deltalog.analysis.stratification import (
    Partition,
    component_partition,
    soft_partition,
    stratification_of,
)
from deltalog.checks.program import check_query
from deltalog.engines.base import Engine
from deltalog.language.ast import Atom, Column, Query, Row, Rule, Variable
from deltalog.language.walk import atoms_of
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar_query
from deltalog.rewrites.forms import QueryForm
from deltalog.rewrites.lookup_rules import Lookup, lookup_rules
from deltalog.rewrites.pipeline import EVALUATE, QUERY, apply_passes
from deltalog.rewrites.states import rename_predicates
from deltalog.runtime.changes import NO_CHANGE, NO_RELATIONS, ChangeSet
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.fixpoint import Lowered, Watch, install_lowered, lower_stages, run_fixpoint
from deltalog.runtime.limits import Limits
from deltalog.runtime.loaded_change import LoadedChange
from deltalog.runtime.model import Model, written_form
from deltalog.runtime.rows import Rows

Inputs: TypeAlias = Sequence[tuple[Relation, Collection[Row]]]
NO_INPUTS: Inputs = ()
Fetch: TypeAlias = Callable[[Mapping[str, Lookup]], bool]
"""Gets the rows that rules have looked up, by where the keys are; returns whether any were new."""
FETCHES_MAX = 100_000
"""Runs of one query, each on more rows, before something must be wrong."""


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
    inputs: Relations = NO_RELATIONS,
) -> PreparedQuery:
    """The query as rules, after its passes or after the one named `last`.

    With `magic` they derive only what it needs: without, optional passes are left out. Of the
    stored relations in `changed` they read the new state. `inputs` hold rows of the caller.
    """
    known = {**model.checked.relations, **inputs}
    check_query(query, known)
    views = model.rules
    if any(each.name == last for each in EVALUATE):
        views = apply_passes(EVALUATE, written_form(model.checked, model.options), last).rules
    form = QueryForm(query, known, model.stored.union(inputs), views, frozenset(changed))
    form = apply_passes((each for each in QUERY if magic or not each.is_optional), form, last)
    if form.rewritten is not None:
        rules = form.rewritten
        partition = soft_partition(rules, names.source_predicate, stratification_of(form.rules))
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


def stored_reads(model: Model, query: Query, inputs: Relations = NO_RELATIONS) -> frozenset[str]:
    """The stored relations that a query reads, directly or through virtual views."""
    asked = desugar_query(query, {**model.checked.relations, **inputs})
    needed = needed_rules((*model.rules, *asked), {names.ANSWER}, model.stored)
    return model.stored & {atom.predicate for rule in needed for atom, _ in atoms_of(rule.body)}


def answer_query(
    engine: Engine,
    model: Model,
    query: Query,
    limits: Limits,
    watch: Watch | None = None,
    magic: bool = True,
    change: ChangeSet | LoadedChange = NO_CHANGE,
    inputs: Inputs = NO_INPUTS,
    fetch: Fetch | None = None,
) -> Rows:
    """The answers, and how many facts were generated on the way.

    `change` is the net change of stored relations after which they are to hold; one that is loaded
    stays so, as far as the query reads it. `inputs` are relations that exist for this query only,
    with their rows. Where the engine has only some rows of stored relations, `fetch` gets more.
    """
    if isinstance(change, ChangeSet):
        with closing(LoadedChange(engine, model, change)) as loaded:
            return answer_query(engine, model, query, limits, watch, magic, loaded, inputs, fetch)
    given = {relation.name: relation for relation, _ in inputs}
    plan = _known_plan(model, query, magic, change, given, fetch is not None)
    change.load()
    for _ in range(FETCHES_MAX):
        with _relations_of(engine, plan, inputs):
            installed = install_lowered(engine, plan.lowered)
            statistics = run_fixpoint(engine, installed, limits, watch=watch)
            is_complete = fetch is None or not fetch(plan.lookups)
            found = engine.copied(names.asked_name(names.ANSWER))
        if is_complete:
            break
    else:
        raise AssertionError("a query does not come to an end")
    generated = {plan.originals[name]: count for name, count in statistics.generated.items()}
    statistics.lazy = [lambda: generated]
    return Rows(plan.columns, found, statistics)


@contextmanager
def _relations_of(engine: Engine, plan: _Plan, inputs: Inputs) -> Iterator[None]:
    """The relations that a query makes for itself, with its inputs, as long as it runs."""
    try:
        create_relations(engine, plan.relations)
        for relation, input_rows in inputs:
            engine.insert(names.asked_name(relation.name), input_rows)
        yield
    finally:
        for name in plan.relations:
            engine.drop(name)


@dataclass(frozen=True)
class _Plan:
    """A query ready to run: the relations it makes for itself, and rules that read and write them.

    `originals` has the names that these relations have in the rewritten rules, `lookups` those of
    them that are keys of lookups.
    """

    columns: tuple[Column, ...]
    relations: Relations
    originals: Mapping[str, str]
    lookups: Mapping[str, Lookup]
    stages: tuple[tuple[Rule, ...], ...]

    @cached_property
    def lowered(self) -> Lowered:
        return lower_stages(self.stages)


PLANS_MAX = 256
"""How many plans of queries are kept for a program."""


def _known_plan(
    model: Model,
    query: Query,
    magic: bool,
    change: LoadedChange,
    inputs: Relations,
    has_lookups: bool,
) -> _Plan:
    """The plan of a query, kept for the next time.

    It depends on nothing but the program: facts decide only later in which order rules are joined.
    """
    read = change.relations, change.name
    key = query, magic, read, tuple(inputs.values()), has_lookups
    plans = model.query_plans
    found: _Plan | None = plans.get(key)
    if found is None:
        found = _plan_query(model, query, magic, change, inputs, has_lookups)
        if len(plans) >= PLANS_MAX:
            del plans[next(iter(plans))]
        plans[key] = found
    return found


def _plan_query(
    model: Model,
    query: Query,
    magic: bool,
    change: LoadedChange,
    inputs: Relations,
    has_lookups: bool,
) -> _Plan:
    prepared = prepare_query(model, query, magic, change.relations, inputs=inputs)
    lookups, asking = lookup_rules(prepared.rules, model.stored) if has_lookups else ({}, [])
    stored = {**{name: model.relations[name] for name in model.stored}, **inputs}
    sides = {
        side(name): model.relations[name]
        for side in (names.plus_name, names.minus_name)
        for name in change.relations
    }
    rules = (*prepared.rules, *asking)
    made = {**generated_relations(rules, {**stored, **sides}), **inputs}
    apart = {name: names.asked_name(name) for name in made}
    renamed = {**apart, **{side: change.place(side) for side in sides}}
    return _Plan(
        prepared.columns,
        {apart[name]: relation for name, relation in made.items()},
        {place: name for name, place in renamed.items()},
        {apart[name]: lookup for name, lookup in lookups.items()},
        tuple(
            tuple(rename_predicates(rule, renamed) for rule in part)
            for part in (*prepared.partition, *([tuple(asking)] if asking else ()))
        ),
    )
