"""Graphs as Mermaid, DOT and a page: everything is in them, and no text breaks out of its place."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import asdict, replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deltalog
from deltalog.graphs.dot import dot_text
from deltalog.graphs.graph import Arc, Graph, Listing, Node, RuleText, replace_unprintable
from deltalog.graphs.mermaid import mermaid_text
from deltalog.graphs.network_graph import network_graph
from deltalog.graphs.page import SCRIPTS, page_html, read_web_file
from deltalog.runtime.network import network_of

NASTY = [
    'a "quoted" name',
    "</script><script>alert(1)</script>",
    "<!-- <script> ]]> --> {{x}} $title ${title}",
    "end",
    "style: a:#fff;",
    "%%{init: {}}%%",
    "a] | b -->|c| d; e",
    "`**markdown**` #quot; #35; &amp; &lt;",
    "back\\slash \\n \\N \\",
    "two\nlines",
    "nul\x00 bell\x07 lone\ud800 no\uffff separator\u2028",
    "naïve Δ− 名前 🎉",
    "'; DROP TABLE x",
]


def nasty_graph(texts: list[str] = NASTY) -> Graph:
    texts = list(dict.fromkeys(texts))
    nodes = [
        Node(text, "view", True, text, ((text, text),), (Listing(text, (RuleText(text, text),)),))
        for text in texts
    ]
    arcs = [
        Arc(text, texts[0], "negative", text, ((text, text),), nodes[0].listings) for text in texts
    ]
    return Graph(texts[0], tuple(nodes), tuple(arcs))


def small_graph() -> Graph:
    rules = (
        Listing("as written", (RuleText('path(X) :- edge(X), X != "</script>".', "g.dl:1:1"),)),
    )
    nodes = (
        Node("edge", "base", note="src, dst"),
        Node("path", "view", True, "rederive", (("strategy", "rederive: it is stored"),), rules),
        Node("odd", "view", False, "magic"),
        Node("n__groups", "generated"),
    )
    arcs = (
        Arc("edge", "path", label="Δ+/Δ+: +1 −0"),
        Arc("path", "path"),
        Arc("path", "odd", "negative", "Δ+/Δ−"),
        Arc("path", "n__groups", "aggregate"),
    )
    return Graph("small.dl", nodes, arcs)


MORE = """
base edge(src: int, dst: int). base label(n: int, text: str).
path(X, Y) :- edge(X, Y).
path(X, Y) :- edge(X, Z), path(Z, Y).
virtual view one_way(x: int, y: int).
one_way(X, Y) :- path(X, Y), not path(Y, X).
reach(X, count()) :- path(X, _).
tagged(X) :- label(X, "</script>\\"").
"""


def test_a_network_as_a_graph() -> None:
    database = deltalog.connect(program=MORE)
    database.apply(insert={"edge": [(1, 2), (2, 3)]})
    graph = network_graph(network_of(database), database.model.checked, "more")
    nodes = {node.name: node for node in graph.nodes}
    assert {name: (node.kind, node.is_stored) for name, node in nodes.items()} == {
        "edge": ("base", True),
        "label": ("base", True),
        "path": ("view", True),
        "one_way": ("view", False),
        "reach": ("view", True),
        "reach__groups": ("generated", True),
        "tagged": ("view", True),
    }
    assert nodes["edge"].note == "src, dst"
    assert dict(nodes["path"].facts) == {"strategy": "rederive: it is stored", "recursive": "yes"}
    written, *parts = nodes["path"].listings
    assert [rule.text for rule in written.rules] == [
        "path(X, Y) :- edge(X, Y).",
        "path(X, Y) :- edge(X, Z), path(Z, Y).",
    ]
    assert any("deletion from path by rank" in part.title for part in parts)
    arcs = {(arc.source, arc.target): arc for arc in graph.arcs}
    assert arcs["edge", "path"].label.endswith(": +2 −0")
    assert arcs["path", "one_way"].kind == "negative"
    assert "Δ+one_way/Δ-path" in [each.title for each in arcs["path", "one_way"].listings]
    assert arcs["path", "reach__groups"].kind == "aggregate"


def test_a_graph_is_closed() -> None:
    with pytest.raises(AssertionError):
        Graph("", (Node("a", "base"), Node("a", "view")), ())
    with pytest.raises(AssertionError):
        Graph("", (Node("a", "base"),), (Arc("a", "b"),))


# --- Mermaid


def test_mermaid() -> None:
    assert mermaid_text(small_graph()) == (
        '---\ntitle: "small.dl"\n---\n'
        "flowchart BT\n"
        '    n0[("edge<br/>src, dst")]\n'
        '    n1["path<br/>rederive"]\n'
        '    n2(["odd<br/>magic"])\n'
        '    n3["n__groups"]\n'
        '    n0 -->|"Δ+/Δ+#58; +1 −0"| n1\n'
        "    n1 --> n1\n"
        '    n1 -.->|"not#58; Δ+/Δ−"| n2\n'
        '    n1 ==>|"aggregate"| n3\n'
        "    classDef base fill:#fdf4dc,stroke:#a97b12,color:#1a202c\n"
        "    class n0 base\n"
        "    classDef view fill:#e4effc,stroke:#2b6cb0,color:#1a202c\n"
        "    class n1 view\n"
        "    classDef virtual fill:#ffffff,stroke:#2b6cb0,color:#1a202c,stroke-dasharray:5 3\n"
        "    class n2 virtual\n"
        "    classDef generated fill:#f1f2f4,stroke:#7a828c,color:#1a202c\n"
        "    class n3 generated\n"
        "    linkStyle 2 stroke:#c5282f\n"
    )


_LABEL = r'"((?:[\w ,./()+−Δ±-]|#\d+;|<br/>)*)"'
_MERMAID = re.compile(rf"    (?:n\d+\[{_LABEL}\]|n\d+ -\.->\|{_LABEL}\| n0)")


def _plain(label: str) -> str:
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4).map(lambda more: NASTY + more))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_mermaid_labels_stay_inside(texts: list[str]) -> None:
    graph = nasty_graph(texts)
    lines = mermaid_text(replace(graph, title="")).splitlines()
    nodes, arcs = lines[1 : 1 + len(graph.nodes)], lines[1 + len(graph.nodes) :][: len(graph.arcs)]
    for node, line in zip(graph.nodes, nodes, strict=True):
        found = _MERMAID.fullmatch(line)
        assert found is not None, line
        assert [_plain(each) for each in found[1].split("<br/>")] == [
            replace_unprintable(node.name)
        ] * 2
    for arc, line in zip(graph.arcs, arcs, strict=True):
        found = _MERMAID.fullmatch(line)
        assert found is not None, line
        assert _plain(found[2]) == f"not: {replace_unprintable(arc.label)}"
    assert [line.split()[0] for line in lines[1 + len(graph.nodes) + len(graph.arcs) :]] == [
        "classDef",
        "class",
        "linkStyle",
    ]


def test_a_mermaid_title_is_one_line() -> None:
    lines = mermaid_text(Graph('a"\n---\nb', (), ())).split("\n")
    assert lines == ["---", r'title: "a\"\n---\nb"', "---", "flowchart BT", ""]


# --- DOT

_QUOTED = r'"((?:[^"\\\n]|\\["\\n])*)"'
_ATTRIBUTE = rf"\w+={_QUOTED}"
_DOT = re.compile(rf"    (?:graph|node|edge|n\d+(?: -> n\d+)?) \[(?:{_ATTRIBUTE}(?:, |(?=\])))*\]")


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4).map(lambda more: NASTY + more))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_dot_is_well_formed(texts: list[str]) -> None:
    lines = dot_text(nasty_graph(texts)).split("\n")
    assert (lines[0], lines[-2], lines[-1]) == ("digraph {", "}", "")
    for line in lines[1:-2]:
        assert _DOT.fullmatch(line), line


def test_dot_shows_kinds() -> None:
    lines = dot_text(small_graph()).splitlines()
    assert 'shape="cylinder"' in next(line for line in lines if '"edge\\nsrc, dst"' in line)
    assert 'style="rounded,dashed"' in next(line for line in lines if '"odd\\nmagic"' in line)
    negative = next(line for line in lines if "n1 -> n2" in line)
    assert 'label="not: Δ+/Δ−", style="dashed"' in negative


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz' dot is not installed")
@pytest.mark.parametrize("graph", [nasty_graph(), small_graph(), Graph("", (), ())])
def test_graphviz_reads_it(graph: Graph) -> None:
    done = subprocess.run(
        ["dot", "-Tdot_json"], input=dot_text(graph).encode(), capture_output=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout)
    assert len(document.get("objects", [])) == len(graph.nodes)
    assert len(document.get("edges", [])) == len(graph.arcs)


# --- the page


class Parts(HTMLParser):
    """The elements of a document, with their attributes and the text up to the next tag."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.is_open = False
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.is_open = True

    def handle_endtag(self, tag: str) -> None:
        self.is_open = False

    def handle_data(self, data: str) -> None:
        if self.is_open:
            tag, attributes, before = self.found[-1]
            self.found[-1] = tag, attributes, before + data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for found, attributes, text in self.found if found == tag]


@pytest.mark.parametrize("graph", [nasty_graph(), small_graph(), Graph("", (), ())])
def test_data_is_embedded_and_cannot_break_out(graph: Graph) -> None:
    document = Parts(page_html(graph))
    data, *scripts = document.all("script")
    assert data[0] == {"type": "application/json", "id": "data"}
    embedded = replace_unprintable(json.dumps(asdict(graph), ensure_ascii=False))
    assert json.loads(data[1]) == json.loads(embedded)
    assert len(scripts) == len(SCRIPTS)
    assert [tag for tag, *_ in document.found] == [
        tag for tag, *_ in Parts(page_html(small_graph())).found
    ]
    assert document.all("title")[0][1] == replace_unprintable(graph.title)


def test_the_policy_allows_these_scripts_and_nothing_else() -> None:
    document = Parts(page_html(small_graph()))
    policy = next(
        str(attributes["content"])
        for attributes, _ in document.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.keys() == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    assert {rules[name] for name in ("default-src", "base-uri", "form-action")} == {"'none'"}

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    scripts = [text for attributes, text in document.all("script") if not attributes]
    assert rules["script-src"].split() == [hashed(text) for text in scripts]
    assert rules["style-src"] == hashed(document.all("style")[0][1])


def test_nothing_outside_is_referred_to() -> None:
    document = Parts(page_html(small_graph()))
    for tag, attributes, _ in document.found:
        assert not {"src", "href", "srcset", "action", "poster"} & attributes.keys(), tag
    for _, script in [*document.all("script"), *document.all("style")]:
        without_comments = re.sub(r"/\*.*?\*/", "", script, flags=re.DOTALL)
        assert not re.findall(r"https?://|sourceMappingURL|@import|url\(", without_comments)
    for name in ("Cytoscape Consortium", "Chris Pettitt"):
        assert any(name in comment for comment in document.comments)


@pytest.mark.parametrize("name", [*SCRIPTS, "graph.css"])
def test_a_file_can_stand_in_the_page(name: str) -> None:
    text = read_web_file(name)
    assert not re.search(r"</(script|style)|<!--|\r|\x00", text, re.IGNORECASE)
