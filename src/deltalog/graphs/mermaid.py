"""A graph as Mermaid text, which code hosts and documentation tools render.

    flowchart BT
        n0[("edge<br/>src, dst")]
        n1["path<br/>rederive"]
        n0 -->|"Δ+/Δ+"| n1

Nodes have numbers for ids, since words such as `end` and `style` mean something to Mermaid. In
labels every character that could mean something is written as its number, `#34;` for a quotation
mark. That includes the colon: Mermaid drops the last semicolon of a line that looks like a `style`
statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from deltalog.graphs.graph import Arc, Graph, Node, arc_text, replace_unprintable

_COLOURS = {
    "base": "fill:#fdf4dc,stroke:#a97b12,color:#1a202c",
    "view": "fill:#e4effc,stroke:#2b6cb0,color:#1a202c",
    "virtual": "fill:#ffffff,stroke:#2b6cb0,color:#1a202c,stroke-dasharray:5 3",
    "generated": "fill:#f1f2f4,stroke:#7a828c,color:#1a202c",
}
_SHAPES = {"base": '[("{}")]', "view": '["{}"]', "virtual": '(["{}"])', "generated": '["{}"]'}
_LINKS = {"positive": "-->", "negative": "-.->", "aggregate": "==>"}
_NEGATIVE = "stroke:#c5282f"
_SPECIAL = re.compile(r"[^\w ,./()+−Δ±-]")


def mermaid_text(graph: Graph) -> str:
    return "\n".join(_mermaid_lines(graph)) + "\n"


def _mermaid_lines(graph: Graph) -> Iterator[str]:
    if graph.title:
        yield f"---\ntitle: {json.dumps(replace_unprintable(graph.title), ensure_ascii=False)}\n---"
    yield "flowchart BT"
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        text = "<br/>".join(map(_escape_text, filter(None, (node.name, node.note))))
        yield f"    {ids[node.name]}{_SHAPES[_shape_name(node)].format(text)}"
    for arc in graph.arcs:
        yield f"    {ids[arc.source]} {_link_text(arc)} {ids[arc.target]}"
    for style, colours in _COLOURS.items():
        members = [ids[node.name] for node in graph.nodes if _shape_name(node) == style]
        if members:
            yield f"    classDef {style} {colours}"
            yield f"    class {','.join(members)} {style}"
    negative = [str(i) for i, arc in enumerate(graph.arcs) if arc.kind == "negative"]
    if negative:
        yield f"    linkStyle {','.join(negative)} {_NEGATIVE}"


def _shape_name(node: Node) -> str:
    return "virtual" if node.kind == "view" and not node.is_stored else node.kind


def _link_text(arc: Arc) -> str:
    text = _escape_text(arc_text(arc))
    return f'{_LINKS[arc.kind]}|"{text}"|' if text else _LINKS[arc.kind]


def _escape_text(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", replace_unprintable(text))
