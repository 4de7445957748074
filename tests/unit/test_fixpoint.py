"""The fixpoint driver: naive and semi-naive find the same facts, at different cost."""

from __future__ import annotations

from collections import Counter

import pytest

import deltalog
from deltalog.analysis.stratification import Partition, component_partition
from deltalog.checks.program import check_program
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.engines.relation import Relation
from deltalog.language.ast import Row
from deltalog.language.parser import parse_text
from deltalog.rewrites.desugar import desugar
from deltalog.runtime.fixpoint import Mode, Statistics, install_stages, run_fixpoint
from deltalog.runtime.limits import Limits

LINEAR = "path(X, Y) :- edge(X, Y). path(X, Y) :- path(X, Z), edge(Z, Y)."
NON_LINEAR = "path(X, Y) :- edge(X, Y). path(X, Y) :- path(X, Z), path(Z, Y)."
MUTUAL = """
    even(0) :- edge(0, _).
    even(Y) :- odd(X), edge(X, Y).
    odd(Y) :- even(X), edge(X, Y).
"""
LAYERED = """
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    unreachable(X, Y) :- edge(X, _), edge(_, Y), not path(X, Y).
    missing(X, count()) :- unreachable(X, Y).
    worst(max(N)) :- missing(_, N).
"""
PROGRAMS = {
    "linear": LINEAR, "non-linear": NON_LINEAR, "mutual": MUTUAL, "layered": LAYERED,
}  # fmt: skip
CHAIN = [(n, n + 1) for n in range(8)]
RING = [(n, (n + 1) % 8) for n in range(8)]


class Run:
    """An evaluation on the reference engine, and how many rows the rules derived in it."""

    def __init__(self, program: str, edges: list[Row], mode: Mode) -> None:
        parsed = parse_text(f"base edge(src: int, dst: int).{program}")
        core = desugar(parsed, check_program(parsed).relations)
        self.engine = ReferenceEngine()
        for name in {"edge", *(rule.head.predicate for rule in core.rules)}:
            self.engine.create(name, ())
        self.engine.insert("edge", edges)
        partition: Partition = component_partition(core.rules)
        self.installed = install_stages(self.engine, partition)
        self.statistics: Statistics = run_fixpoint(self.engine, self.installed, Limits(), mode)

    def facts(self) -> dict[str, set[Row]]:
        return {name: set(self.engine.rows(name)) for name in self.engine.relations}


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the rows offered to relations, new or not, and those that were new."""
    counts: Counter[str] = Counter()
    add = Relation.add

    def counting(relation: Relation, row: Row) -> bool:
        is_new = add(relation, row)
        counts["offered"] += 1
        counts["new"] += is_new
        return is_new

    monkeypatch.setattr(Relation, "add", counting)
    return counts


@pytest.mark.parametrize("edges", [CHAIN, RING, []], ids=["chain", "ring", "empty"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_both_modes_find_the_same_facts_and_count_them_alike(
    program: str, edges: list[Row]
) -> None:
    semi_naive = Run(PROGRAMS[program], edges, "semi_naive")
    naive = Run(PROGRAMS[program], edges, "naive")
    assert semi_naive.facts() == naive.facts()
    assert semi_naive.statistics.generated == naive.statistics.generated
    assert semi_naive.statistics.rounds == naive.statistics.rounds


@pytest.mark.parametrize("program", PROGRAMS)
def test_generated_counts_the_new_facts_of_every_predicate(program: str) -> None:
    found = Run(PROGRAMS[program], CHAIN, "semi_naive")
    sizes = {name: len(rows) for name, rows in found.facts().items() if rows and name != "edge"}
    assert found.statistics.generated == sizes
    assert found.statistics.total == sum(sizes.values())


def test_semi_naive_derives_each_path_of_a_chain_once(derived: Counter[str]) -> None:
    Run(LINEAR, CHAIN, "semi_naive")
    assert derived == {"offered": 8 + 36, "new": 8 + 36}


def test_naive_derives_everything_again_in_every_round(derived: Counter[str]) -> None:
    Run(LINEAR, CHAIN, "naive")
    paths_of_length_up_to = [sum(8 - step for step in range(n)) for n in range(1, 9)]
    assert derived["new"] == 8 + 36
    assert derived["offered"] == 8 + sum(paths_of_length_up_to) + 36


# how many paths each round of the non-linear rule offers, from those of length 1 on: of length 2;
# 3 and 4; 4 to 8 (one part has length 3 or 4); 6 to 8 (one part has length 5 or more)
NON_LINEAR_OFFERS = [7, 6 + 5, 5 + 4 + 3 + 2 + 1, 3 + 2 + 1]


def test_semi_naive_joins_only_with_what_is_new(derived: Counter[str]) -> None:
    Run(NON_LINEAR, CHAIN, "semi_naive")
    assert derived == {"offered": 8 + 8 + sum(NON_LINEAR_OFFERS), "new": 8 + 36}


def test_semi_naive_joins_every_pair_of_paths_once() -> None:
    """Rows looked at: the edges, every path as new first and new second half, every pair."""
    found = Run(NON_LINEAR, CHAIN, "semi_naive")
    pairs = 9 * 8 * 7 // 6  # nodes X < Z < Y
    assert found.engine.interpreter.ticks == 8 + 2 * 36 + pairs


def test_a_long_chain_takes_a_round_per_step() -> None:
    found = Run(LINEAR.replace("edge(X, Y).", "edge(X, Y), X = 0."), chain(3_000), "semi_naive")
    assert found.statistics.generated == {"path": 3_000}
    assert found.statistics.rounds == 3_001


def chain(length: int) -> list[Row]:
    return [(n, n + 1) for n in range(length)]


def test_a_run_can_be_repeated_after_rewinding() -> None:
    found = Run(LAYERED, CHAIN, "semi_naive")
    before = found.facts()
    again = run_fixpoint(found.engine, found.installed, Limits())
    assert again.total == 0
    found.installed.rewind()
    for name in before.keys() - {"edge"}:
        found.engine.clear(name)
    assert run_fixpoint(found.engine, found.installed, Limits()) == found.statistics
    assert found.facts() == before


def test_only_new_rows_are_read_after_an_insertion(derived: Counter[str]) -> None:
    found = Run(NON_LINEAR, [], "semi_naive")
    found.engine.insert("path", CHAIN)
    derived.clear()
    assert run_fixpoint(found.engine, found.installed, Limits()).generated == {"path": 28}
    assert derived["offered"] == sum(NON_LINEAR_OFFERS)


def test_watch_hears_of_every_productive_round() -> None:
    heard: list[tuple[int, int]] = []
    program = f"{LINEAR} edge(0, 1). edge(1, 2). edge(2, 3)."
    deltalog.connect(
        program=program,
        engine="reference",  # others come back less often
        watch=lambda rounds, facts: heard.append((rounds, facts)),
    )
    assert [facts for _, facts in heard] == [3, 5, 6]
    assert [rounds for rounds, _ in heard] == sorted({rounds for rounds, _ in heard})


def test_a_stratification_runs_part_after_part_and_never_back() -> None:
    program = f"base edge(src: int, dst: int).{LAYERED}"
    core = desugar(parse_text(program), check_program(parse_text(program)).relations)
    assert not install_stages(ReferenceEngine(), component_partition(core.rules)).is_soft


def test_a_higher_part_sends_the_driver_back_down() -> None:
    low = parse_text("ask(X) :- p(X). q(X) :- ask(X), f(X).").rules
    high = parse_text("p(X) :- e(X). p(Y) :- q(X), next(X, Y).").rules
    engine = ReferenceEngine()
    for name in ("ask", "q", "p", "e", "f", "next"):
        engine.create(name, ())
    engine.insert("e", [(1,)])
    engine.insert("f", [(1,), (2,)])
    engine.insert("next", chain(9))
    installed = install_stages(engine, (low, high))
    assert installed.is_soft
    assert run_fixpoint(engine, installed, Limits()).generated == {"ask": 3, "q": 2, "p": 3}
    assert set(engine.rows("p")) == {(1,), (2,), (3,)}
