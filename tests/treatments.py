"""One expectation, many treatments: every way to compute the same thing, by name.

An *evaluation* computes a whole program from its facts and answers every relation. *Upkeep* is a
live database that must stay right while facts change: a strategy, whether views are stored, and an
engine. The names show in test ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType

import deltalog
from deltalog.analysis.stratification import component_partition
from deltalog.checks.program import check_program
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.language.ast import Constant, Program, Row, Rule
from deltalog.rewrites.constraint_rules import constraint_rules
from deltalog.rewrites.desugar import desugar
from deltalog.rewrites.existence_tests import existence_tests
from deltalog.rewrites.names import is_generated
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.engine_choice import ENGINES
from deltalog.runtime.fixpoint import Mode, install_stages, run_fixpoint
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, Options, make_model
from deltalog.store.cells import from_cells
from deltalog.store.schema import read_tables

Facts = dict[str, set[Row]]
Rules = tuple[Rule, ...]
Treatment = Callable[[Program, Facts], Facts]

LIMITS = Limits(rounds_max=5_000, facts_max=500_000, seconds_max=inf, firings_max=15)
"""By counts alone: a busy machine takes its time."""


def evaluated(
    program: Program, facts: Facts, mode: Mode, rewrite: Callable[[Rules], Rules] = lambda x: x
) -> Facts:
    """Every relation, by the fixpoint driver on the reference engine, one rewrite in between."""
    checked = check_program(program)
    core = desugar(constraint_rules(program, checked.relations), checked.relations)
    core = replace(core, rules=rewrite(core.rules))
    engine = ReferenceEngine()
    predicates = set(checked.relations) | {rule.head.predicate for rule in core.rules}
    for name in predicates:
        engine.create(name, ())
    for fact in core.facts:
        values = tuple(term.value for term in fact.arguments if isinstance(term, Constant))
        engine.insert(fact.predicate, [values])
    for name, rows in facts.items():
        engine.insert(name, rows)
    run_fixpoint(engine, install_stages(engine, component_partition(core.rules)), LIMITS, mode)
    return {name: set(engine.rows(name)) for name in predicates if not is_generated(name)}


def naive(program: Program, facts: Facts) -> Facts:
    return evaluated(program, facts, "naive")


def semi_naive(program: Program, facts: Facts) -> Facts:
    return evaluated(program, facts, "semi_naive")


def tested_for_existence(program: Program, facts: Facts) -> Facts:
    """Parts of bodies that only have to exist, under names of their own."""
    return evaluated(program, facts, "semi_naive", existence_tests)


def materialized(program: Program, facts: Facts) -> Facts:
    """Through the database, every view materialised, facts added by a transaction."""
    return _through_database(program, facts, materialize=True)


def magic(program: Program, facts: Facts) -> Facts:
    """Through the database, every view virtual and asked for by Magic Sets."""
    return _through_database(program, facts, materialize=False)


def _through_database(program: Program, facts: Facts, materialize: bool) -> Facts:
    database = deltalog.connect(program=program, materialize=materialize, limits=LIMITS)
    database.apply(insert={name: sorted(rows) for name, rows in facts.items()})
    return {name: database.facts(name) for name in database.relations}


EVALUATIONS: dict[str, Treatment] = {
    "naive": naive,
    "semi_naive": semi_naive,
    "existence_tests": tested_for_existence,
    "materialized": materialized,
    "magic": magic,
}


@dataclass(frozen=True)
class Upkeep:
    """How a database keeps its views."""

    strategy: str
    materialize: bool
    network: str = "bushy"
    engine: str = "reference"

    def connect(
        self, program: Program, facts: Mapping[str, set[Row]] = MappingProxyType({})
    ) -> deltalog.MemoryDatabase:
        return deltalog.connect(
            program=program,
            strategy=self.strategy,
            materialize=self.materialize,
            network=self.network,
            engine=self.engine,
            facts={name: sorted(rows) for name, rows in facts.items()},
            limits=LIMITS,
        )

    def model(self, program: Program) -> Model:
        """What such a database knows about a program, without an engine."""
        options = Options.of(self.strategy, self.materialize, self.network, nervous=False)
        return make_model(check_program(program), options)


def _all_upkeep(engine: str) -> dict[str, Upkeep]:
    networks = [(strategy, "bushy") for strategy in STRATEGIES] + [("differencing", "flat")]
    ending = "" if engine == "reference" else f"-{engine}"
    return {
        f"{strategy}{'-flat' if network == 'flat' else ''}-{storage}{ending}": Upkeep(
            strategy, storage == "stored", network, engine
        )
        for strategy, network in networks
        for storage in ("stored", "virtual")
    }


UPKEEP: dict[str, Upkeep] = {
    name: upkeep for engine in ENGINES for name, upkeep in _all_upkeep(engine).items()
}
# `delta`, `rederive` and `recompute` need stored views; without any they fall back to `magic`
PROPER_UPKEEP: dict[str, Upkeep] = {
    name: upkeep
    for name, upkeep in UPKEEP.items()
    if upkeep.materialize or upkeep.strategy not in ("delta", "rederive", "recompute")
}


def contents(database: deltalog.MemoryDatabase) -> Facts:
    """Every relation of a live database."""
    return {name: database.facts(name) for name in database.relations}


def helpers(database: deltalog.MemoryDatabase) -> Facts:
    """What is stored beside the views; wrong there shows in a view only later, if at all."""
    stored = filter(is_generated, database.model.stored)
    return {name: set(database.engine.rows(name)) for name in stored}


def difference(before: Facts, after: Facts) -> ChangeSet:
    """The change between two states: what an exact delta must be."""
    names = before.keys() | after.keys()
    return ChangeSet(
        {name: after.get(name, set()) - before.get(name, set()) for name in names},
        {name: before.get(name, set()) - after.get(name, set()) for name in names},
    )


def check_ranks(database: deltalog.FileDatabase) -> None:
    """Tables hold what memory holds, with the same ranks."""
    connection = database._storage.connection
    tables = read_tables(connection)
    assert tables.keys() == database.model.stored
    for name, table in tables.items():
        found = from_cells(connection.execute(table.select).fetchall(), ("int", *table.types))
        held = [(rank, *row) for rank, row in database.engine.ranked(name)]
        assert found == held, name
