from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Call, write

WRONG = """\
base edge(src: int, dst: int).
path(X, Y) :- egde(X, Y).
far(X, Z) :- edge(X, Y).
"""


def test_a_fine_program_is_summed_up_in_one_line(invoke: Call) -> None:
    result = invoke("check", "graph.dl")
    assert result.exit_code == 0
    assert result.stdout == "graph.dl: 2 relations (1 base, 1 view), 2 rules, 1 stratum\n"
    assert result.stderr == ""


def test_every_problem_is_reported_with_its_place(invoke: Call) -> None:
    result = invoke("check", write("wrong.dl", WRONG))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "error[E0203]: unknown predicate `egde`" in result.stderr
    assert " --> wrong.dl:2:15" in result.stderr
    assert "hint: did you mean `edge`?" in result.stderr
    assert "error[E0301]" in result.stderr
    assert result.stderr.endswith("wrong.dl: 2 problems\n")


def test_each_file_is_a_program_of_its_own(invoke: Call) -> None:
    result = invoke(
        "check", "graph.dl", "missing.dl", write("again.dl", Path("graph.dl").read_text())
    )
    assert result.exit_code == 4
    assert result.stdout.count("1 stratum") == 2
    assert "cannot read the program `missing.dl`: no such file or directory" in result.stderr


def test_json_has_every_part_of_a_problem(invoke: Call) -> None:
    text = "base edge(a: int).\nbase edge(b: int).\n"
    result = invoke("check", "--json", write("twice.dl", text))
    assert result.exit_code == 1
    assert result.stderr == ""
    (problem,) = json.loads(result.stdout)
    assert problem["code"] == "E0201"
    assert problem["message"] == "`edge` is declared twice"
    assert (problem["file"], problem["line"], problem["column"]) == ("twice.dl", 2, 6)
    assert problem["end"] == {"line": 2, "column": 10}
    assert [label["text"] for label in problem["labels"]] == ["", "first declared here"]
    assert problem["note"] is None
    assert problem["hint"] is None


def test_json_of_a_fine_program_is_an_empty_array(invoke: Call) -> None:
    result = invoke("check", "graph.dl", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_json_names_a_file_that_is_not_there(invoke: Call) -> None:
    (problem,) = json.loads(invoke("check", "missing.dl", "--json").stdout)
    assert problem["file"] == "missing.dl"
    assert problem["line"] is None


def test_standard_input_is_a_program_too(invoke: Call) -> None:
    result = invoke("check", "-", given="p(1). q(X) :- p(X).")
    assert result.stdout.startswith("<stdin>: 2 relations")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", 0, "0 relations"),
        ("% nothing but a comment", 0, "0 relations"),
        (b"\xff\xfe\x00garbage", 4, "cannot read the program `strange.dl`"),
        (b"\x00\x01\x02\x03.", 1, "unexpected character"),
        ("p(", 1, "this statement never ends"),
        ('include "nowhere.dl".', 1, "cannot include `nowhere.dl`"),
        ("(" * 5000 + ".", 1, "nested more than"),
    ],
)
def test_strange_files(invoke: Call, text: str | bytes, code: int, words: str) -> None:
    result = invoke("check", write("strange.dl", text))
    assert result.exit_code == code
    assert words in result.output


def test_a_directory_is_not_a_program(invoke: Call) -> None:
    result = invoke("check", ".")
    assert result.exit_code == 4
    assert "is a directory" in result.stderr


def test_only_so_many_problems_are_shown(invoke: Call) -> None:
    text = "".join(f"p{number}(X) :- q{number}(X).\n" for number in range(80))
    result = invoke("check", write("many.dl", text))
    assert result.stderr.count("error[") == 50
    assert "… and 30 more problems\nmany.dl: 80 problems\n" in result.stderr


def test_colours_where_they_are_wanted(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("wrong.dl", WRONG)
    assert "\x1b[" not in command("check", "wrong.dl").stderr
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = command("check", "wrong.dl").stderr
    assert "\x1b[1;31merror[E0203]" in coloured
    assert "\x1b[1;34m2 |" in coloured
    assert "\x1b[1;31m^^^^" in coloured
