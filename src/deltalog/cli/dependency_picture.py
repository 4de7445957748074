"""The dependency graph of an explanation as a picture: base relations below, views above them.

A program is drawn stratum by stratum. What a query was rewritten to is drawn without layers, since
what Magic Sets makes need not be stratified.
"""

from __future__ import annotations

from deltalog.analysis.columns import Relations
from deltalog.analysis.dependencies import dependencies
from deltalog.cli.picture import Arc, ArcKind, Node, graph_svg
from deltalog.rewrites.names import is_generated
from deltalog.runtime.explain import Explanation


def dependency_picture(
    explanation: Explanation, relations: Relations, is_query: bool, title: str
) -> str:
    """An SVG document of the program as written or, for a query, of what it was rewritten to."""
    return (_query if is_query else _program)(explanation, relations, title)


def _program(explanation: Explanation, relations: Relations, title: str) -> str:
    stratum = {name: i for i, names in enumerate(explanation.strata) for name in names}
    nodes = [_node(name, relations, stratum[name]) for name in relations]
    return graph_svg(nodes, [_arc(arc.body, arc.head, arc.kind) for arc in explanation.arcs], title)


def _query(explanation: Explanation, relations: Relations, title: str) -> str:
    found = dependencies([rule for part in explanation.partition for rule in part])
    arcs = dict.fromkeys(_arc(arc.body, arc.head, arc.kind) for arc in found.arcs)
    names = [name for component in found.components for name in sorted(component)]
    return graph_svg([_node(name, relations, None) for name in names], list(arcs), title)


def _node(name: str, relations: Relations, layer: int | None) -> Node:
    if is_generated(name) or name not in relations:
        return Node(name, name, "generated", layer)
    columns = ", ".join(column.name for column in relations[name].columns)
    return Node(name, name, relations[name].kind, layer, columns)


def _arc(source: str, target: str, kind: str) -> Arc:
    kinds: dict[str, ArcKind] = {"negative": "negative", "aggregate": "aggregate"}
    return Arc(source, target, "", kinds.get(kind, "positive"))
