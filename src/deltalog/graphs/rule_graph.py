"""Traced firings as a graph: the arcs over which facts flowed, from base relations to rules."""

from __future__ import annotations

from collections.abc import Sequence

from deltalog.graphs.graph import Arc, Graph, Node
from deltalog.runtime.rule_trace import TracedFiring


def rule_graph(firings: Sequence[TracedFiring], title: str) -> Graph:
    """The arcs of all firings together; a rule that watches a relation has an arc from it."""
    arcs: dict[tuple[str, str], Arc] = {}
    rules: dict[str, None] = {}
    for firing in firings:
        rule = f"rule {firing.rule}"
        rules[rule] = None
        for arc in firing.arcs:
            target = rule if _is_condition(firing, arc.target) else arc.target
            label = f"+{arc.inserted} −{arc.deleted}"
            arcs.setdefault((arc.source, target), Arc(arc.source, target, label=label))
        if "__" not in firing.watched:  # an event
            arcs.setdefault((firing.watched, rule), Arc(firing.watched, rule, label="event"))
    derived = {target for _, target in arcs}
    names = dict.fromkeys(name for arc in arcs for name in arc if name not in rules)
    nodes = [Node(name, "view" if name in derived else "base") for name in names]
    return Graph(
        title, (*nodes, *(Node(rule, "generated") for rule in rules)), tuple(arcs.values())
    )


def _is_condition(firing: TracedFiring, target: str) -> bool:
    return target == firing.watched and "__" in target
