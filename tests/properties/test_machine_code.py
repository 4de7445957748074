"""Machine code does what the interpreter does: the same rows in the same order, step for step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.measure import Transaction
from bench.workloads import workload
from effort import effort
from hypothesis import given
from programs import Features, Scenario, scenarios

import deltalog
from deltalog.engines.embedded import jit
from deltalog.engines.embedded.engine import EmbeddedEngine
from deltalog.engines.embedded.kernels import layout
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from treatments import LIMITS

Ranked = dict[str, list[tuple[int, tuple[object, ...]]]]


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of shapes come up here that nobody will want again."""
    monkeypatch.setattr(jit, "_kept_machine_code", jit._make_machine_code)


class Twins:
    """One database with machine code from the beginning, one without any."""

    def __init__(self, patch: pytest.MonkeyPatch, **options: object) -> None:
        self.patch = patch
        self.options = options
        self.databases = [self._run(when, self._connected) for when in ("eager", "never")]

    def _run(self, when: str, action):  # type: ignore[no-untyped-def]
        self.patch.setattr(jit, "WHEN", when)
        return action()

    def _connected(self) -> MemoryDatabase:
        return deltalog.connect(engine="embedded", limits=LIMITS, **self.options)  # type: ignore[arg-type]

    def apply(self, insert: object = None, delete: object = None) -> None:
        """Change both, and compare all that can be seen of them."""
        changes: list[ChangeSet] = []
        for when, database in zip(("eager", "never"), self.databases, strict=True):
            changes.append(
                self._run(when, lambda db=database: db.apply(insert=insert, delete=delete))
            )
        assert changes[0] == changes[1]
        compiled, interpreted = (_seen(database) for database in self.databases)
        assert compiled == interpreted


def _seen(database: MemoryDatabase) -> tuple[Ranked, int]:
    engine = database.engine
    assert isinstance(engine, EmbeddedEngine)
    rows = {name: list(engine.ranked(name)) for name in engine.relations}
    return rows, engine.machine[layout.STEPS]


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.mark.parametrize("strategy", ["auto", "rederive", "magic"])
def test_random_programs(strategy: str, patch: pytest.MonkeyPatch) -> None:
    @effort(quick=1, fuzz=100)
    @given(scenarios(Features(view_declarations=strategy == "magic")))
    def run(scenario: Scenario) -> None:
        twins = Twins(patch, program=scenario.program, strategy=strategy)
        twins.apply(insert={name: sorted(rows) for name, rows in scenario.facts.items()})
        for inserts, deletes in scenario.transactions:
            twins.apply(
                {name: sorted(rows) for name, rows in inserts.items()},
                {name: sorted(rows) for name, rows in deletes.items()},
            )

    run()


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("w1_scc", 0.2),
        ("w1_dag", 0.2),
        ("w2", 0.2),
        ("w3", 0.3),
        ("w4", 0.3),
        ("w5_1k", 1.0),
        ("w7", 0.2),
    ],
)
def test_large_relations(name: str, scale: float, patch: pytest.MonkeyPatch) -> None:
    """Where memory is far, rows are taken, held and looked up in batches."""
    given = workload(name, scale, changes=15)
    twins = Twins(patch, program=given.program)
    twins.apply(insert=given.base)
    for phase, batches in given.phases.items():
        for batch in batches:
            made = Transaction.of(phase, batch)
            twins.apply(made.insert, made.delete)
