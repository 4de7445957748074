"""The lists of passes are true: they name what made the rules that run, in that order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import DOCS

import deltalog
from deltalog.language.ast import Rule
from deltalog.rewrites import pipeline
from deltalog.rewrites.pipeline import (
    AGGREGATES,
    EVALUATE,
    EVERY_PASS,
    MAINTAIN,
    PREPARE,
    Pass,
)
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.nodes import Node
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
BEFORE = [each.name for each in (*EVALUATE, *PREPARE)]


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


def ways(strategy: str, is_aggregate: bool) -> set[tuple[str, ...]]:
    """How the rules that run came about, under one strategy."""
    return {
        way
        for node in nodes(strategy)
        if node.choice.strategy == strategy and node.choice.is_aggregate == is_aggregate
        for rule in rules(node)
        for way in made_by(rule.origin)
    }


def check(found: set[tuple[str, ...]], passes: tuple[Pass[Any], ...]) -> None:
    """Every way follows the order; every pass of a component made something."""
    own = [each.name for each in passes]
    order = [*BEFORE, *own]
    for way in found:
        assert set(way) <= set(order), way
        assert [order.index(name) for name in way] == sorted(map(order.index, way)), way
    assert set(own) <= {name for way in found for name in way}


@pytest.mark.parametrize("strategy", MAINTAIN)
def test_passes_of_a_strategy(strategy: str) -> None:
    check(ways(strategy, is_aggregate=False), MAINTAIN[strategy])


def test_passes_of_aggregates() -> None:
    found = {
        way
        for strategy in MAINTAIN
        if strategy not in ("recompute", "differencing")  # a flat network unfolds what is asked
        for way in ways(strategy, is_aggregate=True)
    }
    check(found, AGGREGATES)


def test_every_pass_of_programs_makes_rules() -> None:
    found = {
        name
        for strategy in MAINTAIN
        for is_aggregate in (False, True)
        for way in ways(strategy, is_aggregate)
        for name in way
    }
    assert set(BEFORE) - found == {"constraint_rules", "condition_rules", "desugar"}


def test_every_strategy_has_its_passes() -> None:
    assert set(MAINTAIN) == set(STRATEGIES) - {"auto"}


REWRITES = Path(pipeline.__file__).parent


def imported(path: Path) -> set[str]:
    """The modules of the package that a module imports, each with the names it takes from it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deltalog.rewrites")
        for name in node.names
    }


def test_only_the_pipeline_knows_the_order() -> None:
    """No other module can run two rewrites one after the other.

    Outside their room, rewrites are not known by name, only the tuples of passes. Inside it, a pass
    is made of one rewrite, and only the pipeline knows passes.
    """
    rewrites = {f"deltalog.rewrites.{name}.{name}" for name in EVERY_PASS}
    for path in (REWRITES.parent).rglob("*.py"):
        known = imported(path)
        if path.parent != REWRITES:
            assert not known & rewrites, path
        elif path.name != "pipeline.py":
            kinds = {f"deltalog.rewrites.{kind}_passes" for kind in ("program", "component")}
            assert not any(name.startswith(tuple(kinds)) for name in known), path


def test_the_table_of_passes_is_complete_and_right() -> None:
    page = (DOCS / "rewrites.md").read_text(encoding="utf-8").split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| [")]
    told = {name[1:].partition("]")[0]: (purpose, where) for name, purpose, where in cells}
    assert told == {name: (each.purpose, each.runs_for) for name, each in EVERY_PASS.items()}
