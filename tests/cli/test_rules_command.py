"""`deltalog rules`, `--actions`, and what other commands say about constraints and rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Call

import deltalog

PROGRAM = """
base quantity(item: str key, amount: int).
base reserve(item: str key, amount: int).
base scarce(item: str).
threshold(I, R * 2) :- reserve(I, R).
deny negative(I) :- quantity(I, Q), Q < 0 say "{I} is negative".
rule reorder for I priority 5 when quantity(I, Q), threshold(I, T), Q < T do call order(I, T - Q).
rule note on insert scarce(I) do emit scarce(I).
rule low for I when quantity(I, Q), Q < 3 do insert scarce(I).
reserve("nut", 10). quantity("nut", 100).
"""
ACTIONS = """
import sys

def order(rows):
    print("order", rows, file=sys.stderr)

def _private(rows):
    raise AssertionError
"""


@pytest.fixture(autouse=True)
def _shop() -> None:
    Path("shop.dl").write_text(PROGRAM, encoding="utf-8")
    Path("actions.py").write_text(ACTIONS, encoding="utf-8")
    change = {"set": {"quantity": [["nut", 2]]}}
    Path("changes.jsonl").write_text(json.dumps(change) + "\n", encoding="utf-8")


FAST = ("--engine", "reference")


def test_rules_are_listed_with_what_they_have_done(invoke: Call) -> None:
    assert invoke("create", "shop.db", "shop.dl", *FAST).exit_code == 0
    applied = invoke("apply", "shop.db", "changes.jsonl", "--actions", "actions.py", *FAST)
    assert applied.exit_code == 0
    assert "order [('nut', 18)]" in applied.stderr
    assert 'fired reorder("nut")' in applied.stdout
    listed = invoke("rules", "shop.db", "--format", "json", *FAST)
    records = {each["name"]: each for each in json.loads(listed.stdout)}
    assert {name: each["firings"] for name, each in records.items()} == {
        "reorder": 1,
        "note": 1,
        "low": 1,
    }
    text = invoke("rules", "shop.db", *FAST).stdout
    assert "reorder         5  active        1" in text
    assert text.index("reorder") < text.index("low")


def test_an_unregistered_function_is_refused_before_anything_changes(invoke: Call) -> None:
    invoke("create", "shop.db", "shop.dl", *FAST)
    refused = invoke("apply", "shop.db", "changes.jsonl", *FAST)
    assert refused.exit_code == 1
    assert "E1205" in refused.stderr
    with deltalog.connect("shop.db", read_only=True, engine="reference") as db:
        assert db.version == 0


def test_a_trace_shows_arcs_as_text_and_picture(invoke: Call) -> None:
    text = invoke("rules", "shop.dl", "--trace", "changes.jsonl", *FAST).stdout
    assert text.splitlines() == ['reorder("nut")', "  quantity → reorder: +1 −1"]
    drawn = invoke("rules", "shop.dl", "--trace", "changes.jsonl", "--format", "mermaid", *FAST)
    assert "flowchart" in drawn.stdout
    assert "rule reorder" in drawn.stdout
    assert invoke("rules", "shop.dl", "--format", "dot", *FAST).exit_code == 2


def test_a_violation_is_reported_with_its_place(invoke: Call) -> None:
    change = {"set": {"quantity": [["nut", -1]]}}
    Path("bad.jsonl").write_text(json.dumps(change) + "\n", encoding="utf-8")
    done = invoke("apply", "shop.dl", "bad.jsonl", "--actions", "actions.py", *FAST)
    assert done.exit_code == 1
    assert "nut is negative" in done.stderr
    assert "deny negative(I)" in done.stderr
    tried = invoke("apply", "shop.dl", "bad.jsonl", "--what-if", "--format", "json", *FAST)
    assert json.loads(tried.stdout)["inserted"]["negative"] == [["nut"]]
    assert json.loads(tried.stdout)["firings"] == [["reorder", ["nut"]]]


def test_a_file_of_actions_that_fails_is_reported(invoke: Call) -> None:
    Path("actions.py").write_text("1 / 0", encoding="utf-8")
    done = invoke("apply", "shop.dl", "changes.jsonl", "--actions", "actions.py", *FAST)
    assert "ZeroDivisionError" in done.stderr


def test_a_check_counts_what_is_written(invoke: Call) -> None:
    done = invoke("check", "shop.dl")
    assert "5 relations (3 base, 2 views), 1 rule, 1 constraint, 3 active rules" in done.stdout


def test_a_check_warns_of_rules_that_may_not_end(invoke: Call) -> None:
    Path("loop.dl").write_text("base p(x: int). rule a when p(X) do insert p(X + 1).")
    done = invoke("check", "loop.dl")
    assert done.exit_code == 0
    assert "warning[W1201]" in done.stderr
    assert "1 active rule" in done.stdout
    summary = invoke("check", "shop.dl").stdout
    assert "1 constraint, 3 active rules" in summary


CHANGING = ("apply", "audit", "create", "explain", "realize", "repl", "rules", "run")
"""Commands that apply changes, or may."""


@pytest.mark.parametrize("name", CHANGING)
def test_every_command_that_changes_something_takes_functions(invoke: Call, name: str) -> None:
    assert "--actions" in invoke(name, "--help").stdout
    offered = {"apply", "create", "repl", "rules", "run"}
    assert ("--changes" in invoke(name, "--help").stdout) == (name not in offered)


def test_other_commands_call_functions_too(invoke: Call) -> None:
    changes = ("--changes", "changes.jsonl")
    for words in (("audit", "shop.dl"), ("explain", "shop.dl", "--propagation")):
        engine = FAST if words[0] == "audit" else ()
        assert "E1205" in invoke(*words, *changes, *engine).stderr
        done = invoke(*words, *changes, "--actions", "actions.py", *engine)
        assert done.exit_code == 0, done.stderr
        assert "order [('nut', 18)]" in done.stderr


def test_a_trace_goes_over_cascades(invoke: Call) -> None:
    """Every firing with the arcs of its own propagation, as text, as DOT and as Mermaid."""
    Path("loop.dl").write_text(
        "base a(x: int). base b(x: int). base c(x: int). v(X) :- a(X), X > 1. w(X) :- b(X).\n"
        "rule one for X when v(X) do insert b(X). rule two on insert w(X) do insert c(X).\n"
    )
    Path("loop.jsonl").write_text('{"insert": {"a": [[1], [2]]}}\n')
    text = invoke("rules", "loop.dl", "--trace", "loop.jsonl", *FAST).stdout
    assert text.splitlines() == [
        "one(2)",
        "  v → one: +1 −0",
        "  a → v: +2 −0",
        "two(2)",
        "  w → two: event",
        "  b → w: +1 −0",
    ]
    drawn = invoke("rules", "loop.dl", "--trace", "loop.jsonl", "--format", "dot", *FAST).stdout
    assert drawn.startswith("digraph")
    assert "rule one" in drawn
    assert "rule two" in drawn


def test_rules_describe_themselves(invoke: Call) -> None:
    asked = invoke("query", "shop.dl", "sys_rule(N, 5, A)", "--format", "json", *FAST)
    assert json.loads(asked.stdout)["row"] == {"N": "reorder", "A": True}


def test_every_transaction_that_violates_warns(command: Call) -> None:
    Path("odd.dl").write_text(
        'base n(x: int). deny warn odd(X) :- n(X), X mod 2 = 1 say "odd".', encoding="utf-8"
    )
    lines = ('{"insert": {"n": [[1]]}}', '{"delete": {"n": [[1]]}}', '{"insert": {"n": [[3]]}}')
    done = command("apply", "odd.dl", "-", given="\n".join(lines))
    assert done.returncode == 0
    assert done.stderr.count("note: odd") == 2


def test_a_query_of_a_program_reads_relations_that_describe_it(invoke: Call) -> None:
    query = '? sys_rule(R, P, true), sys_relation(N, "view", _).\n'
    Path("shop.dl").write_text(PROGRAM + query, encoding="utf-8")
    shown = invoke("run", "shop.dl", "--format", "csv").stdout
    assert "reorder,5,threshold" in shown
    refused = invoke("query", "shop.dl", "sys_rul(N, _, _)")
    assert "did you mean `sys_rule`?" in refused.stderr
