"""`deltalog realize`: requests in, changes of base facts out, and one of them committed."""

from __future__ import annotations

import json

from command_line import Call, write

GRAPH = """
base edge(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Y) :- edge(X, Z), path(Z, Y).
edge(1, 2). edge(2, 3).
"""


def test_answers_and_whether_they_are_all(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    result = invoke("realize", "graph.dl", "not path(1, 3)")
    assert result.exit_code == 0
    assert result.stdout == (
        "1  -edge(1, 2)\n   then -path(1, 2), -path(1, 3)\n"
        "2  -edge(2, 3)\n   then -path(1, 3), -path(2, 3)\n"
    )
    assert result.stderr == "note: these are all: 2\n"


def test_as_json(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    result = invoke("realize", "graph.dl", "not path(1, 3)", "--json", "--fixed", "edge")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "note: no change of base facts can do that\n"
    result = invoke("realize", "graph.dl", "path(3, 4)", "--json", "--changes", "1")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["inserted"] for each in found] == [{"edge": [[3, 4]]}]
    assert "there may be more" in result.stderr


def test_one_is_committed(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    assert invoke("create", "g.db", "graph.dl").exit_code == 0
    result = invoke("realize", "g.db", "not path(1, 3)", "--apply", "2")
    assert result.exit_code == 0
    assert result.stderr == "note: committed answer 2: 3 facts changed\n"
    assert invoke("query", "g.db", "path(1, 3)").stdout == "? path(1, 3).\nfalse\n"
    assert invoke("realize", "g.db", "path(1, 2)", "--apply", "7").exit_code == 1


def test_what_is_refused(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    assert "did you mean `path`?" in invoke("realize", "graph.dl", "pth(1, 2)").stderr
    assert invoke("realize", "graph.dl", "path(1, 2)", "--cost", "edge").exit_code == 2
    assert "base relation" in invoke("realize", "graph.dl", "path(1, 2)", "--fixed", "x").stderr


def test_the_rounds_of_the_first_level(invoke: Call) -> None:
    write(
        "h.dl",
        "base p(x: str). base q(x: str).\n"
        'h(X) :- p(X), q(X), i().\ni() :- p(X), not q(X).\np("1").\n',
    )
    result = invoke("realize", "h.dl", '+h("1")', "--mode", "first-level", "--trace")
    assert result.exit_code == 0
    assert result.stdout == (
        '1  +p("new1"), +q("1")\n   then +h("1")\n'
        'round 1\n  ∇q⁺("1")\n  alternative 1: ∇q⁺("1") ⇒ Δq⁺("1"), Δi⁻ ⇒ ∇i⁺\n'
        'round 2\n  ∇p⁺("new1") ∨ ∇q⁻("1")\n  alternative 1.1: ∇q⁻("1"): false\n'
        '  alternative 1.2: ∇p⁺("new1") ⇒ Δp⁺("new1"), Δi⁺, Δh⁺("1"): a realization\n'
    )
    assert "there may be more: the first level" in result.stderr
    assert invoke("realize", "h.dl", '+h("1")', "--trace").exit_code == 2


def test_which_searches_end(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    result = invoke("realize", "graph.dl", "--check")
    assert result.stdout == "+path: guaranteed to end\n-path: guaranteed to end\n"
    assert invoke("realize", "graph.dl").exit_code == 2
    assert invoke("realize", "graph.dl", "path(1, 9)", "--check").exit_code == 2


def test_repairs_of_a_refused_change(invoke: Call) -> None:
    write("graph.dl", f"{GRAPH}deny cycle(X) :- path(X, X).\n")
    write("changes.jsonl", '{"insert": {"edge": [[3, 1]]}}\n')
    result = invoke("apply", "graph.dl", "changes.jsonl", "--repairs", "3")
    assert result.exit_code != 0
    assert "note: repair 1: -edge(1, 2)\nnote: repair 2: -edge(2, 3)\n" in result.stderr
    assert "repair" not in invoke("apply", "graph.dl", "changes.jsonl").stderr


def test_a_request_may_begin_with_its_sign(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    expected = invoke("realize", "graph.dl", "not path(1, 3)").stdout
    assert invoke("realize", "graph.dl", "-path(1, 3)").stdout == expected != ""
    assert "No such option" in invoke("realize", "graph.dl", "-path").stderr


def test_what_holds_already_changes_nothing(invoke: Call) -> None:
    write("graph.dl", GRAPH)
    result = invoke("realize", "graph.dl", "+path(1, 3)")
    assert result.stdout == "1  nothing to change\n"
    assert "`+path(1, 3)` holds already" in result.stderr
    assert "a request is a text" in invoke("realize", "graph.dl", " ").stderr
