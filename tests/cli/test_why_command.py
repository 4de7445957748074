"""`deltalog why`: facts in, proofs out, in every form."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Call, write

import deltalog

GRAPH = """
base edge(src: int, dst: int).
path(X, Y) :- edge(X, Y) say "{X} leads to {Y}".
path(X, Y) :- edge(X, Z), path(Z, Y).
edge(1, 2). edge(2, 3).
"""


def test_a_proof_as_a_tree(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    result = invoke("why", "graph.dl", "path(1, 3)")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "path(1, 3)   by graph.dl:4   path(X, Y) :- edge(X, Z), path(Z, Y).",
        "├─ edge(1, 2)",
        "└─ path(2, 3)   by graph.dl:3   path(X, Y) :- edge(X, Y).",
        "   └─ edge(2, 3)",
    ]


def test_other_forms(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    found = json.loads(invoke("why", "graph.dl", "path(1, 3)", "--format", "json").stdout)
    assert found["premises"][1]["place"] == "graph.dl:3"
    assert invoke("why", "graph.dl", "path(1, 3)", "--sentences").stdout == (
        "path(1, 3)\n2 leads to 3\n"
    )
    assert "by graph.dl:3   edge(2, 3)" in invoke("why", "graph.dl", "path(1, 3)", "--all").stdout
    assert "2 facts" in invoke("why", "graph.dl", "path(1, X)").stdout
    for form, words in (("mermaid", "flowchart"), ("dot", "digraph"), ("html", "<!doctype")):
        assert words in invoke("why", "graph.dl", "path(1, 3)", "--format", form).stdout


def test_a_fact_that_does_not_hold(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    result = invoke("why", "graph.dl", "path(3, 1)")
    assert result.exit_code != 0
    assert "E1502" in result.stderr
    assert "why-not" in result.stderr


def test_an_earlier_version_of_a_file(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    assert invoke("create", "graph.db", "graph.dl").exit_code == 0
    changes = write("c.jsonl", '{"delete": {"edge": [[1, 2]]}}\n')
    assert invoke("apply", "graph.db", changes).exit_code == 0
    assert "edge(1, 2)" in invoke("why", "graph.db", "path(1, 3)", "--as-of", "0").stdout
    assert "E1502" in invoke("why", "graph.db", "path(1, 3)").stderr


def test_what_blocks_a_fact(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    result = invoke("why-not", "graph.dl", "path(3, 1)")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "blocked by edge(3, 1): no such fact" in result.stdout
    assert "+edge(3, 1) would make it true" in result.stdout
    found = json.loads(invoke("why-not", "graph.dl", "path(3, 1)", "--format", "json").stdout)
    assert found["realization"] == ["+edge(3, 1)"]
    assert "E1503" in invoke("why-not", "graph.dl", "path(1, 3)").stderr


def test_what_changed_a_fact(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    changes = write("c.jsonl", '{"delete": {"edge": [[2, 3]]}}\n')
    result = invoke("why-changed", "graph.dl", "path(1, 3)", "--changes", changes)
    assert "because of -edge(2, 3)" in result.stdout
    assert "1 derivation was lost, and none remains" in result.stdout
    assert invoke("why-changed", "graph.dl", "path(1, 3)").exit_code == 2
    assert invoke("create", "graph.db", "graph.dl").exit_code == 0
    assert invoke("apply", "graph.db", changes).exit_code == 0
    found = invoke("why-changed", "graph.db", "path(1, 3)", "--version", "1", "--format", "json")
    assert json.loads(found.stdout)["causes"] == [["-", "edge", [2, 3]]]


def test_all_three_have_the_same_forms(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    changes = write("c.jsonl", '{"delete": {"edge": [[2, 3]]}}\n')
    for asked in (
        ("why", "graph.dl", "path(1, 3)"),
        ("why-not", "graph.dl", "path(3, 1)"),
        ("why-changed", "graph.dl", "path(1, 3)", "--changes", changes),
    ):
        for form, words in (("mermaid", "flowchart"), ("dot", "digraph"), ("html", "<!doctype")):
            assert words in invoke(*asked, "--format", form).stdout
        assert "conclusion" in json.loads(invoke(*asked, "--format", "json").stdout)
        assert "path" in invoke(*asked, "--sentences").stdout
        assert invoke(*asked, "--format", "dot", "--output", "out.dot").stdout == ""
        assert Path("out.dot").read_text().startswith("digraph")


def test_a_version_that_changed_the_program(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    assert invoke("create", "graph.db", "graph.dl").exit_code == 0
    with deltalog.connect("graph.db", program=GRAPH) as db:
        db.change_program(GRAPH.replace("path(X, Y) :- edge(X, Z), path(Z, Y).", ""))
    result = invoke("why-changed", "graph.db", "path(1, 3)")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "because the rule is gone: line 4" in result.stdout


def test_an_empty_fact_is_no_fact(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    for command in ("why", "why-not"):
        result = invoke(command, "graph.dl", " ")
        assert result.exit_code == 1
        assert "E0726" in result.stderr
        assert 'a fact is a text, `"path(1, 3)"`' in result.stderr
