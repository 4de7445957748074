from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import GRAPH, Call, write

import deltalog
from deltalog.rewrites.pipeline import EVERY_PASS, MAINTAIN
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.explain import explain
from deltalog.runtime.network import Network, network_of
from deltalog.runtime.nodes import MUCH_MIN

JOIN = """\
base q(x: int, y: int).
base r(y: int, z: int).
p(X, Z) :- q(X, Y), r(Y, Z).
odd(X) :- q(X, _), not p(X, X).
"""
CHANGES = """\
{"insert": {"q": [[1, 2], [2, 2]], "r": [[2, 3]]}}
{"insert": {"r": [[2, 1]]}, "delete": {"q": [[2, 2]]}}
{}
"""
MORE = (
    GRAPH + "one_way(X, Y) :- path(X, Y), not path(Y, X).\nreach(X, count()) :- path(X, _).\n"
    "twice(Y) :- reach(_, N), Y = N * 2.\n"
)


def explained(invoke: Call, *arguments: str) -> Any:
    result = invoke("explain", *arguments, "--propagation", "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_the_network_as_text(invoke: Call) -> None:
    result = invoke("explain", "graph.dl", "--propagation", "--strategy", "magic")
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "node 1: path, recursive\n  strategy   magic: requested\n  influents  edge\n  part 1\n"
    )
    arcs = result.stdout[result.stdout.index("\narcs\n") :]
    assert arcs.splitlines() == [
        "",
        "arcs",
        "  edge -> path",
        "    Δ+path/Δ+edge  path__plus(X, Y) :- edge__plus(X, Y), not path(X, Y).",
        "    Δ-path/Δ-edge  path__minus(X, Y) :- edge__minus(X, Y), not path__derivable(X, Y).",
        "    Δ+path/Δ+edge  path__plus(X, Y) :- edge__plus(X, Z), path__derivable(Z, Y), "
        "not path(X, Y).",
        "    Δ-path/Δ-edge  path__minus(X, Y) :- edge__minus(X, Z), path(Z, Y), "
        "not path__derivable(X, Y).",
        "  path -> path",
        "    Δ+path/Δ+path  path__plus(X, Y) :- path__plus(Z, Y), edge__new(X, Z), not path(X, Y).",
        "    Δ-path/Δ-path  path__minus(X, Y) :- path__minus(Z, Y), edge(X, Z), "
        "not path__derivable(X, Y).",
    ]


def test_partial_differentials_by_name_and_sign(invoke: Call) -> None:
    document = explained(invoke, write("join.dl", JOIN), "--strategy", "differencing")
    arcs = {(arc["influent"], arc["affected"]): arc for arc in document["arcs"]}
    assert list(arcs) == [("q", "p"), ("r", "p"), ("p", "odd"), ("q", "odd")]
    assert [
        (each["name"], each["influence"], each["effect"])
        for each in arcs["p", "odd"]["differentials"]
    ] == [("odd__by1_2__plus", "-", "+"), ("odd__by1_2__minus", "+", "-")]
    assert arcs["p", "odd"]["kind"] == "negative"
    assert arcs["q", "p"]["differentials"][0] == {
        "name": "p__by1_1__plus",
        "influence": "+",
        "effect": "+",
        "rule": "p__by1_1__plus(X, Z) :- q__plus(X, Y), r__new(Y, Z).",
    }
    assert "inserted" not in arcs["q", "p"]


def test_a_flat_network_has_no_views_between(invoke: Call) -> None:
    write("chain.dl", "base a(x: int).\nb(X) :- a(X), X > 1.\nc(X) :- b(X), X < 9.\n")
    arguments = ("chain.dl", "--strategy", "differencing", "--network")
    bushy, flat = (explained(invoke, *arguments, form)["arcs"] for form in ("bushy", "flat"))
    assert [(arc["influent"], arc["affected"]) for arc in bushy] == [("a", "b"), ("b", "c")]
    assert [(arc["influent"], arc["affected"]) for arc in flat] == [("a", "b"), ("a", "c")]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_facts_that_flowed(invoke: Call, strategy: str) -> None:
    write("join.dl", JOIN)
    changes = ("--changes", write("c.jsonl", CHANGES))
    document = explained(invoke, "join.dl", *changes, "--strategy", strategy)
    flows = {
        (arc["influent"], arc["affected"]): (arc["inserted"], arc["deleted"])
        for arc in document["arcs"]
        if "__" not in arc["influent"] + arc["affected"]
    }
    if strategy != "delta":  # where helpers stand between
        assert flows["q", "p"] == flows["q", "odd"] == (2, 1)
        assert flows["r", "p"] == (2, 0)
        assert flows["p", "odd"] == (3, 1)
    strategies = {node["strategy"] for node in document["nodes"]}
    assert strategies == {"rederive" if strategy == "auto" else strategy}


def test_flows_as_text(invoke: Call) -> None:
    write("join.dl", JOIN)
    result = invoke("explain", "join.dl", "--propagation", "--changes", write("c.jsonl", CHANGES))
    assert "\n  q -> p  +2 −1\n" in result.stdout
    assert "\n  r -> p  +2 −0\n" in result.stdout


def test_facts_and_virtual_views(invoke: Call) -> None:
    write("edge.csv", "op,src,dst\n+,3,4\n")
    options = ("--facts", "edge=edges.csv", "--changes", "edge.csv", "--virtual")
    document = explained(invoke, "graph.dl", *options)
    assert document["nodes"][0]["strategy"] == "magic"
    assert document["nodes"][0]["reason"] == "it is virtual"
    assert not document["nodes"][0]["stored"]
    assert (document["arcs"][0]["inserted"], document["arcs"][0]["deleted"]) == (1, 0)


def test_a_graph(invoke: Call) -> None:
    write("join.dl", JOIN)
    changes = ("--changes", write("c.jsonl", CHANGES))
    arguments = ("explain", "join.dl", "--propagation", "--format", "dot", "-o", "n.dot")
    assert invoke(*arguments, *changes).exit_code == 0
    graph = Path("n.dot").read_text()
    assert 'label="Δ+/Δ+ Δ−/Δ−: +2 −1"' in graph
    assert 'label="not: Δ+/Δ− Δ−/Δ+: +3 −1", style="dashed"' in graph
    assert 'label="p\\nrederive"' in graph
    assert invoke(*arguments).exit_code == 0
    assert 'label="Δ+/Δ+ Δ−/Δ−"' in Path("n.dot").read_text()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("form", ["text", "json", "mermaid", "dot", "html"])
def test_every_strategy_in_every_form(invoke: Call, strategy: str, form: str) -> None:
    write("more.dl", MORE)
    arguments = ("explain", "more.dl", "--propagation", "--strategy", strategy, "--format", form)
    result = invoke(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    for name in ("edge", "path", "one_way", "reach", "twice"):
        assert name in result.stdout


def test_a_program_without_views(invoke: Call) -> None:
    write("base.dl", "base a(x: int).\n")
    for form in ("text", "json", "mermaid", "dot", "html"):
        assert invoke("explain", "base.dl", "--propagation", "--format", form).exit_code == 0


def test_what_auto_took_instead(invoke: Call) -> None:
    edges = [[number, number + 1] for number in range(MUCH_MIN)]
    write("c.jsonl", json.dumps({"insert": {"edge": edges}}) + "\n")
    write("back.dl", "base edge(src: int, dst: int).\nback(Y, X) :- edge(X, Y).\n")
    node = explained(invoke, "back.dl", "--changes", "c.jsonl")["nodes"][0]
    assert node["strategy"] == "rederive"
    assert node["ran"] == {"strategy": "recompute", "reason": "a large part has changed"}
    text = invoke("explain", "back.dl", "--propagation", "--changes", "c.jsonl").stdout
    assert "  last run   recompute: a large part has changed\n" in text


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--propagation", "--query", "path(1, Y)"], 2, "--query cannot be used with"),
        (["--propagation", "--after", "desugar"], 2, "--after cannot be used with"),
        (["--changes", "c.jsonl"], 2, "--changes cannot be used without --propagation"),
        (["--strategy", "magic"], 2, "--strategy cannot be used without --propagation"),
        (["--after", "desugar", "--strategy", "magic"], 2, "--strategy cannot be used without"),
        (["--after", "normalize"], 1, "hint: it runs for `--strategy delta`"),
        (["--after", "normalize"], 1, "`path` runs `rederive`, it is stored"),
        (
            ["--after", "normalize", "--strategy", "delta"],
            1,
            "its delta rules are not stratifiable",
        ),
        (
            ["--after", "magic_sets"],
            1,
            "the pass `magic_sets` does not run here: there is no query",
        ),
        (["--after", "unfold"], 1, "it runs for `--strategy differencing --network flat`"),
        (["--after", "rederive_on_demand"], 1, "it runs for `--strategy demand --virtual`"),
        (["--after", "magic_updates", "--query", "path(1, Y)"], 2, "applies to changes"),
        (["--after", "maintenance_rule"], 2, "did you mean `maintenance_rules`?"),
        (["--propagation", "--changes", "none.jsonl"], 4, "cannot read `none.jsonl`"),
        (["--propagation", "--changes", "bad.jsonl"], 1, "bad.jsonl, line 1: this is not JSON"),
    ],
)
def test_wrong_calls(invoke: Call, arguments: list[str], code: int, words: str) -> None:
    write("bad.jsonl", "nonsense\n")
    result = invoke("explain", "graph.dl", *arguments)
    assert result.exit_code == code
    assert words in result.stderr
    assert result.stdout == ""


# --- one pass


OPTIONS = {
    "normalize": ("delta",),
    "unfold": ("differencing", "--network", "flat"),
    "recomputation": ("recompute",),
    "delta_rules": ("delta",),
    "partial_differentials": ("differencing",),
    "propagation_rules": ("magic",),
    "rederive_on_demand": ("demand", "--virtual"),
    "transition_rules": ("magic", "--virtual"),
    "magic_updates": ("magic", "--virtual"),
}


def after(invoke: Call, name: str, program: str = MORE, *more: str) -> list[str]:
    """The rules after a pass, under options that lead there."""
    options = ("--strategy", *OPTIONS[name]) if name in OPTIONS else ()
    file = write("shown.dl", program)
    result = invoke("explain", file, "--after", name, "--show", "rules", *options, *more)
    assert (result.exit_code, result.stderr) == (0, ""), name
    return [line.split("%")[0].strip() for line in result.stdout.splitlines()]


LONGER = "far(X, Y) :- path(X, Y).\nfar(X, Y) :- edge(X, A), far(A, B), far(B, Y).\n"


@pytest.mark.parametrize("name", [name for name in EVERY_PASS if name != "magic_sets"])
def test_every_pass_can_be_shown(invoke: Call, name: str) -> None:
    assert "rules, part 1" in after(invoke, name, MORE + LONGER)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("normalize", "one_way(X, Y) :- path(X, Y), not path(Y, X)."),
        (
            "delta_rules",
            "one_way__plus(X, Y) :- path__minus(Y, X), path(X, Y), not path__minus(X, Y).",
        ),
        ("transition_rules", "path__new(X, Y) :- edge__new(X, Z), path__new(Z, Y)."),
        ("propagation_rules", "path__plus(X, Y) :- edge__plus(X, Y), not path(X, Y)."),
        ("magic_updates", "path__new__bf__magic(Z) :- edge__plus(X, Z)."),
        ("maintenance_rules", "path__suspect(X, Y) :- edge__minus(X, Z), path(Z, Y)."),
        (
            "rederive_on_demand",
            "path__kept(X1, X2) :- path(X1, X2), not path__overdeleted(X1, X2).",
        ),
        ("partial_differentials", "one_way__by1_2__minus(X, Y) :- path__plus(Y, X), path(X, Y)."),
        ("group_state", "reach(X, A1) :- reach__groups(X, A1)."),
        ("recomputation", "path__derivable(X, Y) :- edge__new(X, Y)."),
    ],
)
def test_rules_after_a_pass(invoke: Call, name: str, rule: str) -> None:
    assert rule in after(invoke, name)


def test_the_last_pass_shows_what_runs() -> None:
    """For every strategy, and stage by stage the same rules."""
    for strategy in MAINTAIN:
        for materialize in (True, False):
            program = MORE + LONGER
            database = deltalog.connect(program=program, strategy=strategy, materialize=materialize)
            shown = explain(database, after="magic_updates").partition
            for rules, node in zip(shown, database.propagation.nodes, strict=True):
                run = [rule for stage in node.stages if isinstance(stage, tuple) for rule in stage]
                assert set(rules) == set(run)
                assert len(rules) == len(run)


def test_split_joins_are_shown(invoke: Call) -> None:
    longer = "path(X, Y) :- edge(X, A), path(A, B), path(B, Y).\n"
    program = write("longer.dl", GRAPH + longer)
    rules = invoke("explain", program, "--after", "split_joins", "--show", "rules").stdout
    assert "path__join1(X, B) :- edge(X, A), path(A, B)." in rules
    assert "path__join1__add(X, B) :-" in invoke("explain", program, "--propagation").stdout
    assert invoke("explain", program, "--propagation", "--format", "dot").exit_code == 0
    virtual = invoke("explain", program, "--propagation", "--virtual").stdout
    assert "path__join" not in virtual


# --- the data


def test_the_network_is_that_of_the_last_transaction() -> None:
    database = deltalog.connect(program=GRAPH + "far(X) :- path(X, _).", strategy="rederive")
    assert [arc.flow for arc in network_of(database).arcs] == [None] * 3
    database.apply(insert={"edge": [(1, 2), (2, 3)]})
    found = network_of(database)
    assert isinstance(found, Network)
    assert [node.predicates for node in found.nodes] == [("path",), ("far",)]
    assert found.nodes[0].stages[1].ranked == ("path",)
    assert {(arc.influent, arc.affected): arc.flow for arc in found.arcs} == {
        ("edge", "path"): (2, 0), ("path", "path"): None, ("path", "far"): (3, 0)
    }  # fmt: skip
    assert network_of(database, {}).arcs[0].flow == (0, 0)


def test_passes_leave_the_database_alone() -> None:
    database = deltalog.connect(program=MORE, facts={"edge": [(1, 2)]})
    for name in ("group_state", "maintenance_rules", "magic_updates"):
        assert explain(database, after=name).partition
    assert database.apply(insert={"edge": [(2, 3)]}).inserted["path"] == {(1, 3), (2, 3)}
