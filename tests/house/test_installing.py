"""A program of many rules: installing it costs in proportion to them, and only what is needed.

What is counted are function calls, not time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from documents import ROOT

import deltalog


@pytest.fixture(autouse=True)
def bench_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def calls(work: Callable[[], object]) -> int:
    """How many Python functions are called meanwhile."""
    count = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def program(rules: int) -> str:
    from bench.many_rules import many_rules

    return many_rules(rules)


def test_connecting_is_linear_in_the_number_of_rules() -> None:
    few, many = program(100), program(400)
    deltalog.connect(program=few)
    assert calls(lambda: deltalog.connect(program=many)) < 4.4 * calls(
        lambda: deltalog.connect(program=few)
    )


def test_changing_a_rule_is_linear_in_the_number_of_rules() -> None:
    def changed(rules: int) -> int:
        database = deltalog.connect(program=program(rules))
        more = program(rules) + "extra(X) :- table_3(X, _, _)."
        return calls(lambda: database.change_program(more))

    assert changed(400) < 4.4 * changed(100)


def test_a_node_costs_the_same_in_a_large_program() -> None:
    def per_node(rules: int) -> float:
        nodes = deltalog.connect(program=program(rules)).propagation.nodes
        return calls(lambda: [node.installed for node in nodes]) / len(nodes)

    assert per_node(400) < 1.2 * per_node(100)


def test_a_transaction_installs_what_it_reaches() -> None:
    database = deltalog.connect(
        program="""
        base edge(src: int, dst: int). base node(n: int).
        path(X, Y) :- edge(X, Y).
        path(X, Z) :- path(X, Y), edge(Y, Z).
        lonely(N) :- node(N), not edge(N, _), not edge(_, N).
        alone(count()) :- lonely(N).
    """
    )
    nodes = {name: node for node in database.propagation.nodes for name in node.choice.predicates}
    assert not any("program" in vars(node) for node in nodes.values())
    database.apply(insert={"node": [(1,)]})
    assert {name for name, node in nodes.items() if "installed" in vars(node)} == {
        "lonely", "alone", "alone__groups",
    }  # fmt: skip
    parts = {name: node.installed for name, node in nodes.items()}
    database.apply(insert={"edge": [(1, 2)]}, delete={"node": [(1,)]})
    assert all(node.installed is parts[name] for name, node in nodes.items())
    assert not database.audit()
