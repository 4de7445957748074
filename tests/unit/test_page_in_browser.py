"""The page in a real Chromium, without a window; skipped where there is none.

What the page drew is in its document: `data-nodes`, `data-arcs`, the list and the details. Chromium
writes the document to its output, and everything that a script complains about to its log.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from test_graphs import nasty_graph, small_graph

from deltalog.graphs.graph import Arc, Graph, Node
from deltalog.graphs.page import page_html

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason=f"no browser to draw in: none of {', '.join(NAMES)} is installed"
)
Browse = Callable[..., tuple[str, str]]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    """Open a page; return its document and what was written to the console."""

    def opened(text: str, fragment: str = "") -> tuple[str, str]:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        options = [
            "--headless",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            f"--user-data-dir={tmp_path / 'profile'}",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
        ]
        done = subprocess.run(
            [str(CHROMIUM), *options, "--dump-dom", f"{path.as_uri()}{fragment}"],
            capture_output=True,
            timeout=300,
        )
        log = done.stderr.decode(errors="replace").splitlines()
        return done.stdout.decode(), "\n".join(line for line in log if "CONSOLE" in line)

    return opened


def details(document: str) -> str:
    found = re.search(r'<section id="details".*?</section>', document, re.DOTALL)
    assert found is not None
    return found[0]


def current(document: str) -> list[str]:
    return re.findall(r'<button type="button" aria-current="true">([^<]*)</button>', document)


@pytest.mark.parametrize("graph", [small_graph(), nasty_graph(), Graph("empty", (), ())])
def test_everything_is_drawn(browse: Browse, graph: Graph) -> None:
    document, console = browse(page_html(graph))
    assert console == ""
    assert f'data-nodes="{len(graph.nodes)}" data-arcs="{len(graph.arcs)}"' in document
    assert "<canvas" in document


def test_a_chosen_node_shows_its_rules(browse: Browse) -> None:
    document, console = browse(page_html(small_graph()), "#path")
    assert console == ""
    assert current(document) == ["path"]
    assert "<h2>path</h2>" in details(document)
    assert "rederive: it is stored" in details(document)
    assert 'X != "&lt;/script&gt;".' in details(document)


def test_what_the_policy_does_not_allow_is_not_run(browse: Browse) -> None:
    """Also shows that the console is really seen."""
    text = page_html(small_graph()).replace("'sha256-", "'sha256-A", 1)
    document, console = browse(text)
    assert "data-nodes" not in document
    assert "Content Security Policy" in console


def drive(browse: Browse, graph: Graph, script: str) -> str:
    """The document after a script ran in a copy of the page without its policy."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page_html(graph))
    document, console = browse(text.replace("</body>", f"<script>{script}</script></body>"))
    assert console == ""
    return document


def test_search_and_choice(browse: Browse) -> None:
    script = """
        const search = document.getElementById("search");
        search.value = "PA";
        search.dispatchEvent(new Event("input"));
        const items = [...document.querySelectorAll("#names li")];
        const visible = items.filter((each) => !each.hidden);
        document.body.dataset.visible = visible.map((each) => each.textContent);
        search.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
        setTimeout(() => {
          document.body.dataset.entered = document.querySelector("#details h2").textContent;
          document.body.dataset.address = location.hash;
          document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
          document.body.dataset.cleared = document.querySelector("#details").textContent;
          items[0].querySelector("button").click();
        }, 200);
    """
    document = drive(browse, small_graph(), script)
    assert 'data-visible="path"' in document
    assert 'data-entered="path" data-address="#path"' in document
    assert 'data-cleared="Select a node' in document
    assert current(document) == ["edge"]


def test_a_huge_graph_and_what_is_related(browse: Browse) -> None:
    """Too many arcs for a layout of all; the chain to one node is short."""
    names = [f"n{number}" for number in range(700)]
    arcs = [Arc("n0", name) for name in names[1:]]
    graph = Graph("huge", tuple(Node(name, "view") for name in names), tuple(arcs))
    script = """
        document.body.dataset.hint = document.querySelector("#details p").textContent;
        document.getElementById("related").click();
        location.hash = "n7";
    """
    document = drive(browse, graph, script)
    assert re.search(r'data-hint="[^"]*too large for a layout', document)
    assert current(document) == ["n7"]
    assert 'data-nodes="2" data-arcs="1"' in document
