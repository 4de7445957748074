r"""A graph in the DOT language of Graphviz.

    digraph {
        rankdir=BT
        n0 [label="edge\nsrc, dst", shape=cylinder]
        n1 [label="path\nrederive"]
        n0 -> n1 [label="Δ+/Δ+"]
    }

Rules become tooltips, which Graphviz keeps in SVG. In a quoted string a backslash begins an escape
sequence and an ampersand an entity, so both are escaped beside the quotation mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deltalog.graphs.graph import Arc, Graph, Listing, Node, arc_text, replace_unprintable

_ARCS = {
    "positive": {},
    "negative": {"style": "dashed", "color": "#c5282f", "fontcolor": "#c5282f"},
    "aggregate": {"style": "bold", "color": "#1d4ed8"},
}


def dot_text(graph: Graph) -> str:
    return "\n".join(("digraph {", *(f"    {line}" for line in _dot_lines(graph)), "}")) + "\n"


def _dot_lines(graph: Graph) -> Iterator[str]:
    title = {"label": graph.title, "labelloc": "t"} if graph.title else {}
    yield f"graph [{_attribute_list({'rankdir': 'BT', 'fontname': 'monospace', **title})}]"
    yield f"node [{_attribute_list({'shape': 'box', 'fontname': 'monospace', 'style': 'filled'})}]"
    yield f"edge [{_attribute_list({'fontname': 'monospace', 'fontsize': '10'})}]"
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        yield f"{ids[node.name]} [{_attribute_list(_node_attributes(node))}]"
    for arc in graph.arcs:
        yield f"{ids[arc.source]} -> {ids[arc.target]} [{_attribute_list(_arc_attributes(arc))}]"


def _node_attributes(node: Node) -> dict[str, str]:
    label = "\n".join(filter(None, (node.name, node.note)))
    return {"label": label, **_shape_attributes(node), **_tooltip_attribute(node.listings)}


def _shape_attributes(node: Node) -> dict[str, str]:
    match node.kind:
        case "base":
            return {"shape": "cylinder", "fillcolor": "#fdf4dc", "color": "#a97b12"}
        case "generated":
            return {"fillcolor": "#f1f2f4", "color": "#7a828c"}
        case "view" if node.is_stored:
            return {"fillcolor": "#e4effc", "color": "#2b6cb0"}
        case "view":
            return {"style": "rounded,dashed", "color": "#2b6cb0"}


def _arc_attributes(arc: Arc) -> dict[str, str]:
    label = {"label": text} if (text := arc_text(arc)) else {}
    return {**label, **_ARCS[arc.kind], **_tooltip_attribute(arc.listings)}


def _tooltip_attribute(listings: Iterable[Listing]) -> dict[str, str]:
    rules = dict.fromkeys(rule.text for each in listings for rule in each.rules)
    return {"tooltip": "\n".join(rules)} if rules else {}


def _attribute_list(attributes: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={_quote_text(text)}" for name, text in attributes.items())


def _quote_text(text: str) -> str:
    escaped = (
        replace_unprintable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    )
    return '"' + escaped.replace("\n", "\\n") + '"'
