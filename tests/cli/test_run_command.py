from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest
from command_line import GRAPH, Call, write

ASKING = GRAPH + "edge(1, 2). edge(2, 3).\n? path(1, Y).\n? path(3, 1).\n? edge(1, 2).\n"
TYPES = """\
base t(a: str, b: str?, c: date?, d: decimal, e: float, f: bool).
t("x\\n\\u{1B}[31m,\\"", null, date"2026-01-31", decimal"1.50", 2.0, true).
t("日本", "", null, decimal"-3", 0.1, false).
v(A, B, C, D, E, F) :- t(A, B, C, D, E, F).
"""


def test_the_queries_of_the_program_are_answered(invoke: Call) -> None:
    result = invoke("run", write("asking.dl", ASKING))
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout == (
        "? path(1, Y).\nY\n-\n2\n3\n(2 rows)\n\n? path(3, 1).\nfalse\n\n? edge(1, 2).\ntrue\n"
    )


def test_without_queries_every_view_is_shown(invoke: Call) -> None:
    result = invoke("run", "graph.dl", "--facts", "edge=edges.csv")
    assert result.stdout == ("path(x: int, y: int)\nx  y\n-  -\n1  2\n1  3\n2  3\n(3 rows)\n")


def test_json_lines(invoke: Call) -> None:
    result = invoke("run", write("asking.dl", ASKING), "--format", "json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"query": "? path(1, Y).", "row": {"Y": 2}},
        {"query": "? path(1, Y).", "row": {"Y": 3}},
        {"query": "? edge(1, 2).", "row": {}},
    ]


def test_csv(invoke: Call) -> None:
    result = invoke("run", write("asking.dl", ASKING), "--format", "csv")
    assert result.stdout == "Y\n2\n3\n\nholds\n\nholds\ntrue\n"


def test_a_table_shows_nothing_that_moves_the_cursor(invoke: Call) -> None:
    result = invoke("run", write("types.dl", TYPES))
    assert result.stdout.splitlines()[1:] == [
        "a              b     c             d    e  f",
        "-------------  ----  ----------  ---  ---  -----",
        'x\\n\\x1b[31m,"  null  2026-01-31  1.5  2.0  true',
        "日本                 null         -3  0.1  false",
        "(2 rows)",
    ]


def test_csv_and_json_keep_values_exactly(invoke: Call) -> None:
    write("types.dl", TYPES)
    lines = invoke("run", "types.dl", "--format", "json").stdout.splitlines()
    assert json.loads(lines[0])["row"] == {
        "a": 'x\n\x1b[31m,"', "b": None, "c": "2026-01-31", "d": "1.5", "e": 2.0, "f": True
    }  # fmt: skip
    text = invoke("run", "types.dl", "--format", "csv").stdout
    assert text.endswith('日本,"",,-3,0.1,false\n')
    assert invoke("run", "types.dl", "--output", "v=t.csv").exit_code == 0
    assert Path("t.csv").read_text() == text


def test_tables_of_whole_relations_are_cut(invoke: Call) -> None:
    write("edges.csv", "".join(f"{number},{number}\n" for number in range(60)))
    arguments = ("run", "graph.dl", "--facts", "edge=edges.csv")
    table = invoke(*arguments)
    assert table.stdout.endswith("… 10 more (60 rows, 50 shown)\n")
    assert invoke(*arguments, "--limit", "0").stdout.endswith("(60 rows)\n")
    assert len(invoke(*arguments, "--format", "csv").stdout.splitlines()) == 61
    few = invoke(*arguments, "--format", "csv", "--limit", "2")
    assert few.stdout == "x,y\n0,0\n1,1\n"
    assert few.stderr == "note: 58 more rows of path not shown\n"


def test_show_names_what_is_shown(invoke: Call) -> None:
    result = invoke("run", write("asking.dl", ASKING), "--show", "edge", "--show", "path")
    assert [line for line in result.stdout.splitlines() if "(" in line] == [
        "edge(src: int, dst: int)", "(2 rows)", "path(x: int, y: int)", "(3 rows)"
    ]  # fmt: skip


def test_virtual_views_are_shown_and_written(invoke: Call) -> None:
    write("virtual.dl", GRAPH + "virtual view path.\nedge(1, 2).\n")
    assert (
        "(1 row)"
        in invoke("run", "virtual.dl", "--output", "path=p.jsonl", "--show", "path").stdout
    )
    assert Path("p.jsonl").read_text() == '{"x": 1, "y": 2}\n'


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_what_is_written_can_be_loaded(invoke: Call, suffix: str) -> None:
    write("named.dl", GRAPH + "view path(src: int, dst: int).\n")
    output = f"path=out.{suffix}"
    written = invoke("run", "named.dl", "--facts", "edge=edges.csv", "--output", output)
    assert written.stdout == ""
    assert written.stderr == f"note: wrote 3 rows of path to out.{suffix}\n"
    facts = f"edge=out.{suffix}"
    again = invoke("run", "named.dl", "--facts", facts, "--show", "edge", "--format", "csv")
    assert again.stdout == "src,dst\n1,2\n1,3\n2,3\n"


def test_parquet_is_typed(invoke: Call) -> None:
    invoke("run", "graph.dl", "--facts", "edge=edges.csv", "--output", "path=out.parquet")
    assert str(pyarrow.parquet.read_schema("out.parquet").field("x").type) == "int64"


def test_a_directory_of_facts(invoke: Call) -> None:
    Path("data").mkdir()
    write("data/edge.tsv", "1\t2\n")
    write("data/egde.csv", "1,2\n")
    write("data/README.md", "not facts")
    result = invoke("run", "graph.dl", "--facts-dir", "data", "--facts", "edge=edges.csv")
    assert "(3 rows)" in result.stdout
    assert result.stderr == (
        "note: data/egde.csv is not loaded: no base relation has this name; did you mean `edge`?\n"
    )


def test_a_directory_without_facts(invoke: Call) -> None:
    Path("data").mkdir()
    result = invoke("run", "graph.dl", "--facts-dir", "data")
    assert result.exit_code == 0
    assert result.stderr == "note: no file in data has the name of a base relation\n"


def test_a_directory_with_two_files_for_a_relation(invoke: Call) -> None:
    Path("data").mkdir()
    write("data/edge.csv", "1,2\n")
    write("data/edge.jsonl", "[1, 2]\n")
    result = invoke("run", "graph.dl", "--facts-dir", "data")
    assert result.exit_code == 4
    assert "it contains edge.csv and edge.jsonl" in result.stderr


def test_problems_of_all_files_are_reported_together(invoke: Call) -> None:
    write("bad.csv", "src,dst\n1,2\n2,x\n")
    write("wide.csv", "1,2,3\n")
    result = invoke(
        "run", "graph.dl", "--facts", "edge=bad.csv", "--facts", "edge=wide.csv",
        "--facts", "path=edges.csv", "--facts", "egde=edges.csv",
    )  # fmt: skip
    assert result.exit_code == 1
    assert result.stdout == ""
    for words in (
        'bad.csv, line 3, column `dst`: "x" is not an int',
        "wide.csv, line 1: it has 3 fields",
        "`path` is a view and cannot be changed directly",
        "there is no relation `egde`",
        "did you mean `edge`?",
    ):
        assert words in result.stderr


def test_a_key_that_is_taken_names_the_file(invoke: Call) -> None:
    write("keyed.dl", "base pay(who: str key, much: int).\np(X) :- pay(X, _).\n")
    write("pay.csv", "ann,1\nann,2\n")
    result = invoke("run", "keyed.dl", "--facts", "pay=pay.csv")
    assert result.exit_code == 1
    assert "pay.csv: `pay` already contains the fact" in result.stderr


def test_a_key_that_the_program_has_taken(invoke: Call) -> None:
    write("keyed.dl", 'base pay(who: str key, much: int).\npay("ann", 1).\np(X) :- pay(X, _).\n')
    result = invoke("run", "keyed.dl", "--facts", "pay=" + write("pay.csv", "bo,1\n"))
    assert (result.exit_code, "(2 rows)" in result.stdout) == (0, True)
    result = invoke("run", "keyed.dl", "--facts", "pay=" + write("pay.csv", "ann,2\n"))
    assert result.exit_code == 1
    assert (
        'pay.csv: `pay` already contains the fact pay("ann", 1) with the key "ann"' in result.stderr
    )


def test_a_strategy(invoke: Call) -> None:
    arguments = ("run", "graph.dl", "--facts", "edge=edges.csv", "--strategy")
    assert invoke(*arguments, "magic").stdout == invoke(*arguments, "path=recompute").stdout
    result = invoke(*arguments, "path=delta")
    assert result.exit_code == 1
    assert "the strategy `delta` does not fit `path`" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--facts", "edge=none.csv"], 4, "cannot read `none.csv`: no such file or directory"),
        (["--facts", "edge=."], 4, "`.` has an unknown file format"),
        (["--facts", "edge=edges.xls"], 4, "the known suffixes are .csv"),
        (["--facts", "edge=noise.csv"], 1, "noise.csv, line 1: this is not UTF-8 text"),
        (["--facts", "edge=noise.jsonl"], 1, "noise.jsonl, line 1"),
        (["--facts", "edge=noise.parquet"], 4, "it is broken or not a Parquet file"),
        (["--facts-dir", "none"], 4, "cannot read `none`: no such file or directory"),
        (["--facts-dir", "graph.dl"], 4, "cannot read `graph.dl`: not a directory"),
        (["--facts", "edge"], 2, "RELATION=FILE"),
        (["--facts", "=edges.csv"], 2, "RELATION=FILE"),
        (["--output", "edge="], 2, "RELATION=FILE"),
        (["--show", "pth"], 1, "did you mean `path`?"),
        (["--output", "pth=x.csv"], 1, "there is no relation `pth`"),
        (["--output", "path=none/x.csv"], 4, "there is no directory `none`"),
        (["--output", "path=x.xls"], 4, "`x.xls` has an unknown file format"),
        (["--format", "xml"], 2, "--format"),
        (["--limit", "-1"], 2, "--limit"),
        (["--rounds-max", "0"], 2, "--rounds-max"),
        (["--rounds-max", "many"], 2, "--rounds-max"),
    ],
)
def test_wrong_calls(invoke: Call, arguments: list[str], code: int, words: str) -> None:
    for suffix in ("csv", "jsonl", "parquet"):
        write(f"noise.{suffix}", b"\x80\xff\x00PAR1\xfe")
    result = invoke("run", "graph.dl", *arguments)
    assert result.exit_code == code
    assert words in result.stderr
    assert result.stdout == ""


def test_nothing_to_show_is_said(invoke: Call) -> None:
    result = invoke("run", write("empty.dl", ""))
    assert result.exit_code == 0
    assert "nothing to show" in result.stderr


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--rounds-max=50", "stopped after 50 rounds"),
        ("--facts-max=50", "stopped after generating more than 50 facts"),
        ("--seconds-max=0.05", "stopped after 0.05 seconds"),
    ],
)
def test_limits(invoke: Call, option: str, words: str) -> None:
    grow = write("grow.dl", "n(0).\nn(X + 1) :- n(X).\n")
    result = invoke("run", grow, option, "--engine=reference")  # the other is too fast for this
    assert result.exit_code == 3
    assert words in result.stderr
