"""`deltalog models`: the model state of a disjunctive program, and its minimal models."""

from __future__ import annotations

import json

from command_line import Call, write

PROGRAM = """
base r(x: str).
s(X) ; t(X) :- r(X), not p(X).
p("b").
r("a") ; r("b").
"""


def test_state_and_models(invoke: Call) -> None:
    write("choice.dl", PROGRAM)
    result = invoke("models", "choice.dl")
    assert result.exit_code == 0
    assert result.stdout == (
        'p("b").\nr("a") ; r("b").\nr("b") ; s("a") ; t("a").\n'
        'model 1: r("b")\nmodel 2: r("a"), s("a")\nmodel 3: r("a"), t("a")\n'
    )
    assert result.stderr == "note: 3 minimal models, 3 clauses\n"


def test_as_json(invoke: Call) -> None:
    write("choice.dl", PROGRAM)
    found = json.loads(invoke("models", "choice.dl", "--json").stdout)
    assert found["models"][0] == {"p": [["b"]], "r": [["b"]]}
    assert found["state"][0] == [{"relation": "p", "fact": ["b"]}]


def test_what_is_refused(invoke: Call) -> None:
    write("choice.dl", PROGRAM)
    assert "E1406" in invoke("models", "choice.dl", "--models-max", "1").stderr
    assert "E1403" in invoke("check", "choice.dl").stderr
    assert "E1403" in invoke("run", "choice.dl").stderr
