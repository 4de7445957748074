"""Queries: rewritten to rules by Magic Sets, run on the engine, and gone without a trace."""

from __future__ import annotations

from dataclasses import dataclass

from deltalog.analysis.columns import generated_relations, variable_types
from deltalog.analysis.relevance import needed_rules
from deltalog.analysis.stratification import (
    Partition,
    component_partition,
    soft_partition,
    stratification,
)
from deltalog.checks.program import check_query
from deltalog.engines.base import Engine
from deltalog.language.ast import Column, Query, Rule, Variable
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar_query
from deltalog.rewrites.existence_tests import existence_tests
from deltalog.rewrites.magic_sets import magic_sets
from deltalog.rewrites.states import renamed
from deltalog.runtime.evaluation import create
from deltalog.runtime.fixpoint import Statistics, Watch, install, run
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model
from deltalog.runtime.rows import Rows


@dataclass(frozen=True)
class PreparedQuery:
    """A query rewritten to rules, in parts, with the columns it answers."""

    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]
    partition: Partition


def prepare_query(model: Model, query: Query, magic: bool = True) -> PreparedQuery:
    """The query as rules; with `magic` they derive only what it needs."""
    known = model.checked.relations
    check_query(query, known)
    asked = desugar_query(query, known)
    rules = (*model.rules, *existence_tests(asked))
    if magic:
        rewritten = magic_sets(rules, names.ANSWER, model.stored)
        partition = soft_partition(rewritten, names.source, stratification(rules))
    else:
        rewritten = needed_rules(rules, {names.ANSWER}, model.stored)
        partition = component_partition(rewritten)
    types = variable_types(query.body, known)
    columns = tuple(
        Column(term.name, types.get(term.name), True)
        for term in asked[0].head.arguments
        if isinstance(term, Variable)
    )
    return PreparedQuery(columns, rewritten, partition)


def answer(
    engine: Engine,
    model: Model,
    query: Query,
    limits: Limits,
    watch: Watch | None = None,
    magic: bool = True,
) -> Rows:
    """The answers, and how many facts were generated on the way."""
    prepared = prepare_query(model, query, magic)
    stored = {name: model.relations[name] for name in model.stored}
    scratch = generated_relations(prepared.rules, stored)
    apart = {name: names.apart(name) for name in scratch}
    stages = [tuple(renamed(rule, apart) for rule in part) for part in prepared.partition]
    try:
        create(engine, {apart[name]: relation for name, relation in scratch.items()})
        statistics = run(engine, install(engine, stages), limits, watch=watch)
        rows = engine.copied(apart[names.ANSWER])
    finally:
        for name in apart.values():
            engine.drop(name)
    originals = {made: name for name, made in apart.items()}
    generated = {originals[name]: count for name, count in statistics.generated.items()}
    return Rows(prepared.columns, rows, Statistics(statistics.rounds, [lambda: generated]))
