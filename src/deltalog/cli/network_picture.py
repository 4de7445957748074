"""A propagation network as a picture: base relations below, what they affect above them.

A view shows its strategy. An arc shows its differentials, as in `Δ+/Δ+` where what the view gains
comes from what the influent gains; after a transaction also the facts that flowed over it.
"""

from __future__ import annotations

from deltalog.analysis.columns import Relations
from deltalog.cli.picture import Arc, Node, NodeKind, graph_svg
from deltalog.rewrites.names import is_generated
from deltalog.runtime.network import Network, NetworkArc
from deltalog.runtime.network_text import flow_text


def network_picture(network: Network, relations: Relations, title: str) -> str:
    """An SVG document."""
    views = {name: node for node in network.nodes for name in node.predicates}
    influents = dict.fromkeys(arc.influent for arc in network.arcs if arc.influent not in views)
    nodes = [Node(name, name, "base", note=_columns(name, relations)) for name in influents]
    for name, node in views.items():
        kind: NodeKind = "generated" if is_generated(name) else "view"
        nodes.append(Node(name, name, kind, note=node.strategy))
    arcs = [Arc(arc.influent, arc.affected, _label(arc), arc.kind) for arc in network.arcs]
    return graph_svg(nodes, arcs, title)


def _columns(name: str, relations: Relations) -> str:
    return ", ".join(column.name for column in relations[name].columns)


def _label(arc: NetworkArc) -> str:
    signs = dict.fromkeys(f"Δ{each.effect}/Δ{each.influence}" for each in arc.differentials)
    differentials = " ".join(sorted(signs)).replace("-", "−")
    flow = flow_text(*arc.flow) if arc.flow else ""
    return ": ".join(text for text in (differentials, flow) if text)
