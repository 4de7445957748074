"""Stratification: strata, cycles, and the soft partition of what Magic Sets make."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import deltalog
from deltalog.analysis.dependencies import strong_components
from deltalog.analysis.stratification import (
    Partition,
    component_partition,
    soft_partition,
    stratification_of,
)
from deltalog.checks.program import check_program
from deltalog.language.ast import Rule
from deltalog.language.parser import parse_query, parse_text
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar, desugar_query
from deltalog.rewrites.magic_sets import magic_sets

REACH = """
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    far(X, Y) :- path(X, Y), not edge(X, Y).
    lonely(X) :- node(X), not far(X, _).
    total(count()) :- lonely(X).
    big(X) :- total(N), node(X), X > N.
"""
# what is asked of `d` (for `e`) depends on what `c`, which is made of `d`, does not answer
ENTANGLED = """
    base s(x: int, y: int). base f(x: int).
    s(1, 2). s(1, 3). s(1, 4). s(5, 6). f(3). f(4). f(6).
    d(X) :- f(X), X != 4.
    c(X) :- d(X), X > 2.
    a(X, Y) :- s(X, Y), not c(Y), e(Y).
    e(X) :- s(_, X), not d(X).
"""


def rules(text: str) -> tuple[Rule, ...]:
    return parse_text(text).rules


def heads(partition: tuple[tuple[Rule, ...], ...]) -> list[set[str]]:
    return [{rule.head.predicate for rule in part} for part in partition]


def test_negation_and_aggregation_go_one_stratum_up() -> None:
    strata = stratification_of(rules(REACH)).stratum_of
    assert dict(strata) == {
        "edge": 0, "node": 0, "path": 1, "far": 1, "lonely": 2, "total": 3, "big": 3,
    }  # fmt: skip


def test_every_dependency_respects_the_strata() -> None:
    found = stratification_of(rules(REACH))
    assert found.is_stratified
    for arc in found.dependencies.arcs:
        assert found.stratum_of[arc.head] >= found.stratum_of[arc.body] + arc.is_strict


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("p(X) :- e(X), not p(X).", ["negative"]),
        ("p(X) :- q(X). q(X) :- r(X). r(X) :- e(X), not p(X).", ["negative"] + ["positive"] * 2),
        ("p(count()) :- p(X).", ["aggregate"]),
        ("p(count()) :- e(X), not p(X).", ["negative"]),
        ("p(X) :- q(X, _). q(X, count()) :- p(X).", ["aggregate", "positive"]),
    ],
)
def test_a_strict_cycle_is_found_with_all_its_arcs(text: str, kinds: list[str]) -> None:
    (cycle,) = stratification_of(rules(text)).cycles
    assert [arc.kind for arc in cycle] == kinds
    assert [arc.body for arc in cycle] == [*(arc.head for arc in cycle[1:]), cycle[0].head]


def test_every_component_with_a_strict_cycle_is_reported_once() -> None:
    text = "p(X) :- e(X), not q(X). q(X) :- e(X), not p(X). r(X) :- e(X), not r(X)."
    assert [cycle[0].head for cycle in stratification_of(rules(text)).cycles] == ["p", "r"]


def test_there_is_a_part_per_component_lowest_first() -> None:
    text = "c(X) :- b(X). a(X) :- e(X). b(X) :- a(X), d(X). d(X) :- b(X)."
    assert heads(component_partition(rules(text))) == [{"a"}, {"b", "d"}, {"c"}]


def test_no_rules_have_no_parts() -> None:
    assert component_partition(()) == ()
    assert stratification_of(()).is_stratified


def test_components_of_a_long_chain_need_no_recursion() -> None:
    graph = {f"p{n}": [f"p{n + 1}"] for n in range(5_000)}
    assert len(list(strong_components(graph))) == 5_001
    closed = {**graph, "p5000": ["p0"]}
    assert [len(component) for component in strong_components(closed)] == [5_001]


@pytest.mark.parametrize("seed", range(20))
def test_components_come_after_all_they_point_to(seed: int) -> None:
    draw = random.Random(seed)
    nodes = [str(n) for n in range(12)]
    graph = {node: draw.sample(nodes, draw.randint(0, 3)) for node in nodes}
    found = list(strong_components(graph))
    number = {node: i for i, component in enumerate(found) for node in component}
    assert sorted(number) == sorted(nodes)
    assert sum(map(len, found)) == len(nodes)
    for node, successors in graph.items():
        for successor in successors:
            assert number[successor] <= number[node]
            together = node in reachable(graph, successor)
            assert (number[successor] == number[node]) == together


def reachable(graph: dict[str, list[str]], start: str) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        new = set(graph[waiting.pop()]) - seen
        seen |= new
        waiting += new
    return seen


def test_a_rule_goes_to_the_stratum_of_what_its_head_was_made_for() -> None:
    source = stratification_of(rules("q(X) :- e(X). p(X) :- e(X), not q(X)."))
    made = rules("ask(X) :- p(X). q(X) :- ask(X), e(X). p(X) :- e(X), not q(X).")
    partition = soft_partition(made, {"ask": "q", "q": "q", "p": "p"}.__getitem__, source)
    assert heads(partition) == [{"ask", "q"}, {"p"}]


def asked(program: str, query: str) -> tuple[tuple[Rule, ...], Partition]:
    """The rules that Magic Sets make for the query, and their soft partition."""
    parsed = parse_text(program)
    relations = check_program(parsed).relations
    stored = {name for name, relation in relations.items() if relation.kind == "base"}
    before = (
        *desugar(parsed, relations).rules,
        *desugar_query(parse_query(query), relations),
    )
    made = magic_sets(before, names.ANSWER, stored)
    return made, soft_partition(made, names.source_predicate, stratification_of(before))


def test_magic_sets_can_make_a_program_that_is_not_stratified() -> None:
    assert stratification_of(parse_text(ENTANGLED).rules).is_stratified
    made, _ = asked(ENTANGLED, "a(1, Y)")
    assert not stratification_of(made).is_stratified


def test_rules_that_ask_belong_to_the_stratum_of_what_they_ask_for() -> None:
    _, partition = asked(ENTANGLED, "a(1, Y)")
    sources = [{names.source_predicate(rule.head.predicate) for rule in part} for part in partition]
    assert sources == [{"c", "d"}, {"a", "e", "answer__"}]


def test_a_soft_partition_keeps_every_rule() -> None:
    made, partition = asked(ENTANGLED, "a(1, Y)")
    assert Counter(rule for part in partition for rule in part) == Counter(made)


@pytest.mark.parametrize("query", ["a(X, Y)", "a(1, Y)", "a(X, 2)", "a(5, 6)", "c(X), not e(X)"])
def test_soft_evaluation_gives_what_full_evaluation_gives(query: str) -> None:
    virtual = deltalog.connect(program=ENTANGLED, materialize=False).query(query)
    assert virtual == deltalog.connect(program=ENTANGLED).query(query)


def test_entangled_questions_have_the_right_answers() -> None:
    db = deltalog.connect(program=ENTANGLED, materialize=False)
    assert db.query("a(1, Y)") == [(2,), (4,)]
    assert db.query("a(5, Y)") == []
