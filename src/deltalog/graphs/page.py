"""A graph as one HTML file: interactive, complete in itself, and without any request.

    page(graph)    <!doctype html> … <script type="application/json" id="data">{"title": …

The files in `web` (markup, style, script and the vendored libraries with their licences) are put
into one document, and the graph is added as JSON. A content security policy allows exactly these
scripts and this style, by their hashes, and nothing else: no text of a program can become code, and
nothing is loaded. In the JSON every `<` is escaped, so no text can end the element it stands in.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from string import Template

from deltalog.graphs.graph import Graph, replace_unprintable

LICENCES = ("cytoscape", "cytoscape-dagre", "dagre", "graphlib")
SCRIPTS = ("vendor/cytoscape.min.js", "vendor/cytoscape-dagre.min.js", "graph.js")
STYLE = "graph.css"
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)


def page_html(graph: Graph) -> str:
    scripts = [_SOURCE_MAP.sub("", read_web_file(name)) for name in SCRIPTS]
    style = read_web_file(STYLE)
    return Template(read_web_file("graph.html")).substitute(
        policy=_content_policy(scripts, style),
        title=html.escape(replace_unprintable(graph.title)),
        style=style,
        licences="\n".join(_licence_comment(name) for name in LICENCES),
        data=_graph_json(graph),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


@cache
def read_web_file(name: str) -> str:
    return resources.files("deltalog").joinpath("web", *name.split("/")).read_text("utf-8")


def _content_policy(scripts: Sequence[str], style: str) -> str:
    allowed = " ".join(map(_hash_source, scripts))
    rest = "base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; style-src {_hash_source(style)}; {rest}"


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _licence_comment(name: str) -> str:
    text = read_web_file(f"vendor/{name}.LICENSE").strip()
    return f"<!-- {name}\n\n{text}\n-->"


def _graph_json(graph: Graph) -> str:
    return replace_unprintable(json.dumps(asdict(graph), ensure_ascii=False)).replace(
        "<", "\\u003c"
    )
