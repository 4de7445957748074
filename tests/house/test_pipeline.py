"""The lists of passes are true: they name what made the rules that run, in that order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from documents import DOCS

import deltalog
from deltalog.language.ast import Rule
from deltalog.rewrites.pipeline import AGGREGATES, EVERY_PASS, MAINTAIN, Pass
from deltalog.runtime.propagation import Node
from deltalog.runtime.strategies import STRATEGIES
from deltalog.source import Origin

PROGRAM = """
base edge(src: int, dst: int).
base mark(x: int).
link(X, Y) :- edge(X, Y).
link(X, Y) :- edge(X, Z), edge(Z, Y).
far(X) :- link(X, Y), not mark(Y), edge(Z, Z).
met(X, Y) :- link(X, A), edge(A, B), link(Y, B).
last(X) :- far(X), not link(X, _).
linked :- link(_, _).
marked :- mark(X), (X > 3 ; X < 0).
quiet :- not linked, not marked.
tour(X, Y) :- link(X, Y).
tour(X, Y) :- edge(X, A), tour(A, B), tour(B, Y).
degree(X, count(), sum(Y), min(Y)) :- link(X, Y), far(Y).
highest(X, max(Y)) :- link(X, Y).
"""
FORMS = [
    {"program": "".join(f"virtual view {view}.\n" for view in virtual) + PROGRAM, **options}
    for virtual in ((), ("link",), ("linked", "marked"))
    for options in ({}, {"materialize": False}, {"network": "flat"})
]
IS_AGGREGATE = ("degree", "degree__groups", "degree__ends", "highest")


def made_by(origin: Origin) -> Iterator[tuple[str, ...]]:
    """Every way from where a rule was written to the rule: the passes, first to last."""
    own = (origin.rewrite,) if origin.rewrite is not None else ()
    for parent in origin.parents:
        yield from ((*way, *own) for way in made_by(parent))
    if not origin.parents:
        yield own


def nodes(strategy: str) -> Iterator[Node]:
    for form in FORMS:
        yield from deltalog.connect(strategy=strategy, **form).propagation.nodes


def rules(node: Node) -> Iterator[Rule]:
    for stage in node.stages:
        if isinstance(stage, tuple):
            yield from stage


def check(found: set[tuple[str, ...]], passes: tuple[Pass, ...], silent: set[str]) -> None:
    order = [each.name for each in passes]
    for way in found:
        assert set(way) <= set(order), way
        assert [order.index(name) for name in way] == sorted(map(order.index, way)), way
    assert {name for way in found for name in way} | silent == set(order)


@pytest.mark.parametrize("strategy", MAINTAIN)
def test_passes_of_a_strategy(strategy: str) -> None:
    found = {
        way
        for node in nodes(strategy)
        if node.choice.strategy == strategy and node.choice.predicates[0] not in IS_AGGREGATE
        for rule in rules(node)
        for way in made_by(rule.origin)
    }
    silent = {"desugar"} | ({"rederive_on_demand"} if strategy == "demand" else set())
    check(found, MAINTAIN[strategy], silent)


def test_passes_of_aggregates() -> None:
    found = {
        way
        for strategy in MAINTAIN
        if strategy not in ("recompute", "differencing")  # a flat network unfolds what is asked
        for node in nodes(strategy)
        if node.choice.predicates[0] in IS_AGGREGATE
        for rule in rules(node)
        for way in made_by(rule.origin)
    }
    check(found, AGGREGATES, {"desugar"})


def test_every_strategy_has_its_passes() -> None:
    assert set(MAINTAIN) == set(STRATEGIES) - {"auto"}


def test_the_table_of_passes_is_complete_and_right() -> None:
    page = (DOCS / "rewrites.md").read_text(encoding="utf-8").split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| [")]
    told = {name[1:].partition("]")[0]: purpose for name, purpose, _ in cells}
    assert told == {name: each.purpose for name, each in EVERY_PASS.items()}
