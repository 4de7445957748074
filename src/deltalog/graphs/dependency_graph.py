"""The dependencies of a program, or of the rules that a query was rewritten to, as a graph."""

from __future__ import annotations

from deltalog.analysis.dependencies import dependencies_of
from deltalog.checks.program import CheckedProgram
from deltalog.graphs.graph import Arc, Graph, Node, rule_listing
from deltalog.graphs.network_graph import base_node, column_names, rules_by_head
from deltalog.language.ast import Rule
from deltalog.rewrites.names import is_generated
from deltalog.runtime.explain import Explanation


def program_graph(explanation: Explanation, checked: CheckedProgram, title: str) -> Graph:
    """The program as it is written."""
    rules = rules_by_head(checked.program.definitions)
    stratum = {name: str(i) for i, names in enumerate(explanation.strata) for name in names}
    nodes = [
        _node_of_predicate(name, checked, rules[name], stratum[name]) for name in checked.relations
    ]
    arcs = [Arc(arc.body, arc.head, arc.kind) for arc in explanation.arcs]
    return Graph(title, tuple(nodes), tuple(arcs))


def query_graph(explanation: Explanation, checked: CheckedProgram, title: str) -> Graph:
    """The rules that run for a query; Magic Sets need not leave them stratified."""
    rules = tuple(rule for part in explanation.partition for rule in part if isinstance(rule, Rule))
    found = dependencies_of(rules)
    by_head = rules_by_head(rules)
    names = [name for component in found.components for name in sorted(component)]
    arcs = dict.fromkeys(Arc(arc.body, arc.head, arc.kind) for arc in found.arcs)
    return Graph(
        title,
        tuple(_node_of_predicate(name, checked, by_head[name]) for name in names),
        tuple(arcs),
    )


def _node_of_predicate(
    name: str, checked: CheckedProgram, rules: list[Rule], stratum: str = ""
) -> Node:
    listings = (rule_listing("rules", rules),) if rules else ()
    if is_generated(name) or name not in checked.relations:
        return Node(name, "generated", False, listings=listings)
    if checked.relations[name].kind == "base":
        return base_node(name, checked)
    columns = column_names(name, checked)
    facts = (("columns", columns), *((("stratum", stratum),) if stratum else ()))
    is_stored = checked.relations[name].storage == "materialized"
    return Node(name, "view", is_stored, columns, facts, listings)
