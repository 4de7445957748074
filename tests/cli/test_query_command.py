from __future__ import annotations

import json

import pytest
from command_line import GRAPH, Call, write

FACTS = ("--facts", "edge=edges.csv")


def test_queries_are_answered_in_order(invoke: Call) -> None:
    result = invoke("query", "graph.dl", "path(1, Y)", "? path(1, 3).", *FACTS)
    assert result.exit_code == 0
    assert result.stdout == "? path(1, Y).\nY\n-\n2\n3\n(2 rows)\n\n? path(1, 3).\ntrue\n"
    assert result.stderr == ""


def test_only_what_is_needed_is_derived(invoke: Call) -> None:
    write("edges.csv", "".join(f"{number},{number + 1}\n" for number in range(300)))
    result = invoke("query", "graph.dl", "path(298, Y)", "--stats", *FACTS)
    assert "(2 rows)" in result.stdout
    title, *counts = result.stderr.splitlines()
    assert title.startswith("? path(298, Y).  ")
    assert "rounds" in title
    assert any(line.split() == ["3", "path__bf"] for line in counts)
    assert sum(int(line.split()[0]) for line in counts) < 20


def test_formats_and_limit(invoke: Call) -> None:
    csv = invoke("query", "graph.dl", "path(X, Y)", "--format", "csv", "--limit", "1", *FACTS)
    assert csv.stdout == "X,Y\n1,2\n"
    assert "2 more rows" in csv.stderr
    lines = invoke("query", "graph.dl", "path(X, 3)", "--format", "json", *FACTS).stdout
    assert [json.loads(line)["row"] for line in lines.splitlines()] == [{"X": 1}, {"X": 2}]


def test_a_directory_of_facts(invoke: Call, tmp_path: object) -> None:
    write("edge.csv", "7,8\n")
    result = invoke("query", "graph.dl", "path(X, Y)", "--facts-dir", ".", "--format", "csv")
    assert result.stdout == "X,Y\n7,8\n"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("pth(1, Y)", "did you mean `path`?"),
        ("path(1", "expected `,` or `)`"),
        ("", "expected an expression"),
        ("?", "expected an expression"),
        ("path(1, Y). path(2, Y)", "expected one query"),
        ("path(X, Y, Z)", "`path` takes 2 arguments"),
        ("not path(X, 1)", "is not bound"),
        ('path("a", Y)', "does not fit"),
        ("path(X, Y), X = count()", "count"),
        ("path(X__y, 1)", "E0107"),
    ],
)
def test_wrong_queries(invoke: Call, query: str, words: str) -> None:
    result = invoke("query", "graph.dl", query)
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stdout == ""


def test_problems_of_all_queries_are_reported_together(invoke: Call) -> None:
    result = invoke("query", "graph.dl", "path(1, Y)", "pth(1, Y)", "path(1")
    assert result.stderr.count("error[") == 2
    assert result.stdout == ""


def test_a_query_must_be_given(invoke: Call) -> None:
    assert invoke("query", "graph.dl").exit_code == 2


def test_limits(invoke: Call) -> None:
    write("grow.dl", "n(0).\nn(X + 1) :- n(X).\n")
    result = invoke("query", "grow.dl", "n(5)", "--rounds-max", "30")
    assert result.exit_code == 3
    assert "stopped after 30 rounds" in result.stderr


def test_materialized_views_still_work(invoke: Call) -> None:
    write("stored.dl", GRAPH + "materialized view path.\nedge(1, 2).\n")
    assert "(1 row)" in invoke("query", "stored.dl", "path(X, Y)").stdout


def test_parameters_are_read_as_the_column_says(invoke: Call) -> None:
    result = invoke("query", "graph.dl", "path($src, Y)", "--param", "src=1", *FACTS)
    assert result.stdout == "? path(1, Y).\nY\n-\n2\n3\n(2 rows)\n"
    write(
        "names.dl", 'base person(name: str, born: date).\nperson("a \\"b\\"", date"2000-01-01").\n'
    )
    asked = ("query", "names.dl", "person($who, B)", "person(N, D), D < $day")
    result = invoke(*asked, "--param", 'who=a "b"', "--param", "day=2001-01-01", "--format", "csv")
    assert result.stdout == 'B\n2000-01-01\n\nN,D\n"a ""b""",2000-01-01\n'


@pytest.mark.parametrize(
    ("query", "values", "code", "words"),
    [
        ("path($src, Y)", [], 1, "the parameter `$src` has no value"),
        ("path($src, Y)", ["src=one"], 1, "one does not fit the parameter `$src`, which is int"),
        ("path($src, Y)", ["scr=1"], 1, "did you mean `src`?"),
        ("path(X, Y), Z = $z", ["z=1"], 1, "the type of `$z` cannot be inferred"),
        ("path($src, Y)", ["src"], 2, "is not of the form NAME=VALUE"),
        ("path($src, Y)", ["src=1", "src=2"], 2, "`src` has two values"),
    ],
)
def test_wrong_parameters(
    invoke: Call, query: str, values: list[str], code: int, words: str
) -> None:
    options = [word for value in values for word in ("--param", value)]
    result = invoke("query", "graph.dl", query, *options)
    assert result.exit_code == code
    assert words in result.stderr
    if code == 1:
        assert f"1 | {query}\n" in result.stderr


def test_a_query_as_of_a_version(invoke: Call) -> None:
    invoke("create", "g.db", "graph.dl", *FACTS)
    write("changes.jsonl", '{"delete": {"edge": [[2, 3]]}}\n')
    invoke("apply", "g.db", "changes.jsonl")
    asked = ("query", "g.db", "path($src, Y)", "--param", "src=1", "--format", "csv")
    assert invoke(*asked).stdout == "Y\n2\n"
    assert invoke(*asked, "--version", "0").stdout == "Y\n2\n3\n"
    assert "E0909" in invoke(*asked, "--version", "7").stderr
    result = invoke("query", "graph.dl", "path(1, Y)", "--version", "0")
    assert result.exit_code == 2
    assert "only a database file has earlier versions" in result.stderr
