from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import GRAPH, Call, write

MORE = (
    GRAPH + "apart(X, Y) :- edge(X, _), edge(Y, _), not path(X, Y).\nn(X, count()) :- path(X, _).\n"
)


def test_text_has_every_section(invoke: Call) -> None:
    result = invoke("explain", write("more.dl", MORE))
    assert result.exit_code == 0
    assert "strata\n  0  edge\n  1  path\n  2  apart, n\n" in result.stdout
    assert "  apart <- edge, not path\n  n <- aggregate of path\n" in result.stdout
    assert "rules, part 1\n  path(X, Y) :- edge(X, Y). " in result.stdout
    assert "% more.dl:2:1" in result.stdout
    assert "plan, part 1\n  path:\n" in result.stdout


def test_show_chooses_sections(invoke: Call) -> None:
    result = invoke("explain", "graph.dl", "--show", "strata")
    assert result.stdout == "strata\n  0  edge\n  1  path\n"
    both = invoke("explain", "graph.dl", "--show", "strata", "--show", "dependencies")
    assert both.stdout.endswith("\n\ndependencies\n  path <- edge, path\n")


def test_a_query_is_rewritten_unless_asked_not_to(invoke: Call) -> None:
    arguments = ("explain", "graph.dl", "--query", "path(1, Y)", "--show", "rules")
    assert "path__bf__magic(1)." in invoke(*arguments).stdout
    assert "magic_sets ← " in invoke(*arguments).stdout
    for option in (("--after", "desugar"), ("--without", "magic_sets")):
        plain = invoke(*arguments, *option).stdout
        assert "answer__(Y) :- path(1, Y)." in plain
        assert "magic" not in plain


def test_json(invoke: Call) -> None:
    document = json.loads(invoke("explain", write("more.dl", MORE), "--format", "json").stdout)
    assert document["strata"] == [["edge"], ["path"], ["apart", "n"]]
    assert {"head": "apart", "body": "path", "kind": "negative"} in document["dependencies"]
    first = document["parts"][0]
    assert first["rules"][0]["text"] == "path(X, Y) :- edge(X, Y)."
    assert first["rules"][0]["origin"] == "more.dl:2:1"
    assert "path:" in first["plan"]
    part = json.loads(invoke("explain", "more.dl", "--format", "json", "--show", "strata").stdout)
    assert list(part) == ["strata"]


@pytest.mark.parametrize(
    ("query", "arc"), [([], "path -> apart"), (["--query", "apart(1, X)"], "edge -> apart__bf")]
)
@pytest.mark.parametrize("form", ["mermaid", "dot", "html"])
def test_a_graph(invoke: Call, query: list[str], arc: str, form: str) -> None:
    write("more.dl", MORE)
    result = invoke("explain", "more.dl", "--format", form, "-o", "more.out", *query)
    assert (result.exit_code, result.stdout) == (0, "")
    text = Path("more.out").read_text()
    source, target = arc.split(" -> ")
    assert source in text
    assert target in text


def test_dependencies_as_mermaid(invoke: Call) -> None:
    text = invoke("explain", write("more.dl", MORE), "--format", "mermaid").stdout
    nodes = dict(re.findall(r'^ {4}(n\d+)\W+"(\w+)<br/>', text, re.MULTILINE))
    arcs = re.findall(r"^ {4}(n\d+) (\S+?>)\S* (n\d+)$", text, re.MULTILINE)
    assert sorted((nodes[one], link, nodes[two]) for one, link, two in arcs) == [
        ("edge", "-->", "apart"),
        ("edge", "-->", "path"),
        ("path", "-->", "path"),
        ("path", "-.->", "apart"),
        ("path", "==>", "n"),
    ]
    assert 'title: "more.dl"' in text


def test_an_empty_program_can_be_explained(invoke: Call) -> None:
    write("empty.dl", "")
    for form in ("text", "json", "mermaid", "dot", "html"):
        assert invoke("explain", "empty.dl", "--format", form).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--after", "magicsets"], 2, "did you mean `magic_sets`?"),
        (["--without", "desugar"], 2, "unknown optional pass `desugar`"),
        (["--show", "everything"], 2, "--show"),
        (["--format", "png"], 2, "--format"),
        (["--format", "svg"], 2, "--format"),
        (["--query", "pth(1)"], 1, "did you mean `path`?"),
        (["--query", "path("], 1, "expected"),
        (["-o", "none/x.txt"], 4, "cannot write `none/x.txt`: no such file or directory"),
        (["-o", "."], 4, "cannot write `.`: is a directory"),
    ],
)
def test_wrong_calls(invoke: Call, arguments: list[str], code: int, words: str) -> None:
    result = invoke("explain", "graph.dl", *arguments)
    assert result.exit_code == code
    assert words in result.stderr


def test_explaining_does_not_run_a_virtual_program(invoke: Call) -> None:
    write("grow.dl", "n(0).\nn(X + 1) :- n(X).\n")
    assert invoke("explain", "grow.dl", "--rounds-max", "5").exit_code == 0


def test_a_database_file_is_explained_without_its_facts(invoke: Call) -> None:
    invoke("create", "g.db", "graph.dl", "--facts", "edge=edges.csv")
    shown = invoke("explain", "g.db", "--query", "path($x, Y)", "--param", "x=1", "--show", "rules")
    assert "answer__(Y) :- path(1, Y)." in shown.stdout  # it is stored there
    assert "path <- edge, path" in invoke("explain", "g.db").stdout
    assert "node 1: path" in invoke("explain", "g.db", "--propagation").stdout
    result = invoke("explain", "g.db", "--propagation", "--changes", "edges.csv")
    assert result.exit_code == 2
