"""A database in a file is the same database, whenever it is closed and opened again.

Random programs and transactions go through a file that is opened anew between them. After each
transaction the state, the delta and the helpers are those of recomputation; tables and memory hold
the same facts with the same ranks; a reader beside the writer catches up to the same state; and
every earlier version can still be read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from effort import effort
from hypothesis import given
from programs import Features, Scenario, applied, scenarios
from test_rule_changes import LATER, PAIRS, RuleChange, rule_changes

import deltalog
from deltalog.language.ast import Program
from deltalog.language.parser import parse_text
from deltalog.runtime.engine_choice import ENGINES
from treatments import LIMITS, check_ranks, contents, difference, helpers, naive

TREATMENTS = [
    ("auto", True),
    ("auto", False),
    ("rederive", True),
    ("recompute", True),
    ("delta", True),
    ("differencing", True),
    ("magic", False),
]


class Files:
    """One database file, opened again and again in the same way."""

    def __init__(self, folder: str, strategy: str, materialize: bool, engine: str) -> None:
        self.path = Path(folder) / "random.db"
        self.strategy, self.materialize, self.engine = strategy, materialize, engine

    def open(
        self, program: Program | None = None, read_only: bool = False
    ) -> deltalog.FileDatabase:
        return deltalog.connect(
            self.path,
            program=program,
            strategy=self.strategy,
            materialize=self.materialize,
            engine=self.engine,
            limits=LIMITS,
            durability="normal",
            read_only=read_only,
        )


@contextmanager
def files(strategy: str, materialize: bool, engine: str) -> Iterator[Files]:
    with tempfile.TemporaryDirectory() as folder:
        yield Files(folder, strategy, materialize, engine)


def check(scenario: Scenario, kept: Files) -> None:
    database = kept.open(scenario.program)
    database.apply(insert={name: sorted(rows) for name, rows in scenario.facts.items()})
    facts = {name: set(rows) for name, rows in scenario.facts.items()}
    reader = kept.open(read_only=True)
    states = {0: naive(scenario.program, {}), database.version: naive(scenario.program, facts)}
    for number, (inserts, deletes) in enumerate(scenario.transactions, start=1):
        before = states[database.version]
        if number % 2:
            database.close()
            database = kept.open()
        facts = applied(facts, (inserts, deletes))
        after = naive(scenario.program, facts)
        plus = {name: sorted(rows) for name, rows in inserts.items()}
        minus = {name: sorted(rows) for name, rows in deletes.items()}
        assert database.apply(insert=plus, delete=minus) == difference(before, after)
        states[database.version] = after
        assert contents(database) == after, f"state after step {number}"
        check_ranks(database)
        assert reader.refresh() == difference(before, after)
        assert contents(reader) == after, "what a reader sees"
        assert helpers(reader) == helpers(database)
    reader.close()
    database.close()
    reopened = kept.open()
    assert contents(reopened) == states[reopened.version]
    for version, state in states.items():
        assert {name: reopened.facts(name, version) for name in state} == state
        assert reopened.delta(version) == difference(state, states[reopened.version])
        assert reopened.delta(reopened.version, version) == -reopened.delta(version)
    check_ranks(reopened)
    fresh = deltalog.connect(
        program=scenario.program,
        strategy=kept.strategy,
        materialize=kept.materialize,
        engine="reference",
        limits=LIMITS,
    )
    fresh.apply(insert={name: sorted(rows) for name, rows in facts.items()})
    assert helpers(reopened) == helpers(fresh), "what is stored beside the views"
    reopened.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("strategy", "materialize"), TREATMENTS)
def test_through_a_file(strategy: str, materialize: bool, engine: str) -> None:
    @effort(quick=3, fuzz=200)
    @given(scenarios(Features(view_declarations=not materialize)))
    def run(scenario: Scenario) -> None:
        with files(strategy, materialize, engine) as kept:
            check(scenario, kept)

    run()


@pytest.mark.parametrize("engine", ENGINES)
def test_longer_joins_through_a_file(engine: str) -> None:
    @effort(quick=4, fuzz=200)
    @given(scenarios(Features(longer_joins=True, aggregates=False)))
    def run(scenario: Scenario) -> None:
        with files("auto", True, engine) as kept:
            check(scenario, kept)

    run()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("strategy", "materialize"), [("auto", True), ("magic", False)])
def test_rule_changes_in_a_file(strategy: str, materialize: bool, engine: str) -> None:
    @effort(quick=4, fuzz=200)
    @given(rule_changes(Features()))
    def run(change: RuleChange) -> None:
        with files(strategy, materialize, engine) as kept:
            check_rule_change(change, kept)

    run()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_of_programs_in_a_file(pair: str) -> None:
    old, new = (parse_text(text) for text in PAIRS[pair])
    facts = {"edge": {(1, 2), (2, 3), (3, 2), (3, 4)}}
    with files("auto", True, "reference") as kept:
        check_rule_change(RuleChange(old, new, facts, [], LATER), kept)


def check_rule_change(change: RuleChange, kept: Files) -> None:
    database, memory = kept.open(change.old), _in_memory(change.old, kept)
    reader = kept.open(read_only=True)
    first = contents(database)
    both = (database, memory)
    base = {name for name, each in database.relations.items() if each.kind == "base"}
    facts = {name: sorted(rows) for name, rows in change.facts.items() if name in base}
    for each in both:
        each.apply(insert=facts)
        for step in change.before:
            _applied(each, step)
    expected = memory.change_program(change.new)
    assert database.change_program(change.new, is_committed=False) == expected
    assert database.change_program(change.new) == expected
    check_ranks(database)
    assert contents(database) == contents(memory)
    reader.refresh()
    assert contents(reader) == contents(database)
    database.close()
    database = kept.open()
    for step in change.after:
        assert _applied(database, step) == _applied(memory, step)
    check_ranks(database)
    assert contents(database) == contents(memory)
    assert {name: database.facts(name, 0) for name in first} == first
    assert database.delta(0) == difference(first, contents(database))
    assert not database.audit()
    reader.close()
    database.close()


def _in_memory(program: Program, kept: Files) -> deltalog.MemoryDatabase:
    return deltalog.connect(
        program=program,
        strategy=kept.strategy,
        materialize=kept.materialize,
        engine="reference",
        limits=LIMITS,
    )


def _applied(database: deltalog.MemoryDatabase, step: object) -> deltalog.ChangeSet:
    inserts, deletes = step  # type: ignore[misc]
    base = {name for name, each in database.relations.items() if each.kind == "base"}
    return database.apply(
        insert={name: sorted(rows) for name, rows in inserts.items() if name in base},
        delete={name: sorted(rows) for name, rows in deletes.items() if name in base},
    )
