from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import GRAPH, Call, write

from deltalog.cli import audit
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.database import MemoryDatabase

FACTS = ("--facts", "edge=edges.csv")
MORE = GRAPH + "one_way(X, Y) :- path(X, Y), not path(Y, X).\nreach(X, count()) :- path(X, _).\n"
CHANGES = '{"insert": {"edge": [[3, 1]]}}\n{"delete": {"edge": [[1, 2]]}}\n'


@pytest.fixture
def _spoiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases whose stored views are not what they should be."""
    opened = audit.open_given

    def spoiled(*arguments: Any) -> MemoryDatabase:
        database = opened(*arguments)
        database.engine.delete("path", [(1, 2)])
        database.engine.insert("path", [(number, 0) for number in range(30)])
        return database

    monkeypatch.setattr(audit, "open_given", spoiled)


def test_all_is_well(invoke: Call) -> None:
    result = invoke("audit", write("more.dl", MORE), *FACTS)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "all 3 views agree with recomputation\n"
    assert invoke("audit", "graph.dl").stdout == "1 view agrees with recomputation\n"
    write("empty.dl", "base a(x: int).\n")
    assert invoke("audit", "empty.dl").stdout == "there are no views to recompute\n"


@pytest.mark.parametrize("form", [[], ["--virtual"]])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_after_changes(invoke: Call, strategy: str, form: list[str]) -> None:
    write("more.dl", MORE)
    changes = ("--changes", write("c.jsonl", CHANGES))
    result = invoke("audit", "more.dl", *FACTS, *changes, "--strategy", strategy, *form)
    assert result.exit_code == 0
    assert result.stdout == "all 3 views agree with recomputation\n"
    assert result.stderr == "note: 2 transactions applied\n"


def test_json(invoke: Call) -> None:
    arguments = ("audit", "graph.dl", "--changes", write("c.jsonl", CHANGES), "--json")
    assert json.loads(invoke(*arguments).stdout) == {"views": 1, "version": 1, "differences": []}


@pytest.mark.usefixtures("_spoiled")
def test_every_difference_is_named(invoke: Call) -> None:
    result = invoke("audit", write("more.dl", MORE), *FACTS, "--limit", "2")
    assert result.exit_code == 1
    assert result.stdout == (
        "1 of 3 views differs from recomputation\n"
        "path: 1 missing, 30 in excess\n"
        "  missing  path(1, 2).\n"
        "  excess   path(0, 0).\n"
        "  excess   path(1, 0).\n"
        "  excess   … 28 more\n"
    )
    whole = invoke("audit", "more.dl", *FACTS, "--limit", "0")
    assert len(whole.stdout.splitlines()) == 33


@pytest.mark.usefixtures("_spoiled")
def test_the_engine_that_recomputes_can_be_chosen(invoke: Call) -> None:
    arguments = ("audit", write("more.dl", MORE), *FACTS)
    own = invoke(*arguments)
    assert invoke(*arguments, "--recompute-with", "reference").stdout == own.stdout
    assert invoke(*arguments, "--engine", "reference").stdout == own.stdout
    assert invoke(*arguments, "--recompute-with", "steam").exit_code == 2


@pytest.mark.usefixtures("_spoiled")
def test_differences_as_json(invoke: Call) -> None:
    result = invoke("audit", "graph.dl", *FACTS, "--json")
    assert result.exit_code == 1
    (difference,) = json.loads(result.stdout)["differences"]
    assert difference["view"] == "path"
    assert difference["missing"] == [[1, 2]]
    assert len(difference["excess"]) == 30


def test_bad_changes(invoke: Call) -> None:
    write("c.jsonl", CHANGES + "nonsense\n")
    result = invoke("audit", "graph.dl", "--changes", "c.jsonl")
    assert result.exit_code == 1
    assert "c.jsonl, line 3: this is not JSON" in result.stderr
    assert result.stdout == ""
    assert invoke("audit", "graph.dl", "--changes", "none.jsonl").exit_code == 4
