from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from command_line import COMMAND, GRAPH, Call, write

from deltalog.rewrites.strategies import STRATEGIES
from waiting import HANG_SECONDS

MORE = (
    GRAPH + "one_way(X, Y) :- path(X, Y), not path(Y, X).\nreach(X, count()) :- path(X, _).\n"
    "back(Y, X) :- edge(X, Y).\n"
)
CHANGES = """\
{"insert": {"edge": [[1, 2], [2, 3]]}}
{"insert": {"edge": [[3, 1]]}, "delete": {"edge": [[1, 2], [9, 9]]}}
{"delete": {"edge": [[9, 9]]}}
"""
TYPED = """\
base t(d: date, s: timestamp?, n: decimal, f: float, w: str?).
base pay(who: str key, much: int).
v(D, N) :- t(D, _, N, _, _).
rich(W) :- pay(W, M), M > 10.
"""


def lines(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_one_json_line_for_each_transaction(invoke: Call) -> None:
    result = invoke("apply", "graph.dl", write("c.jsonl", CHANGES), "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        '{"version": 1, "inserted": {"edge": [[1, 2], [2, 3]], "path": [[1, 2], [1, 3], [2, 3]]}, '
        '"deleted": {}}\n'
        '{"version": 2, "inserted": {"edge": [[3, 1]], "path": [[2, 1], [3, 1]]}, '
        '"deleted": {"edge": [[1, 2]], "path": [[1, 2], [1, 3]]}}\n'
        '{"version": 2, "inserted": {}, "deleted": {}}\n'
    )


def test_a_table_by_default(invoke: Call) -> None:
    result = invoke("apply", "graph.dl", write("c.jsonl", CHANGES))
    assert result.stdout == (
        "c.jsonl, line 1: version 1\n"
        "op  relation  row\n--  --------  ----\n"
        "+   edge      1, 2\n+   edge      2, 3\n"
        "+   path      1, 2\n+   path      1, 3\n+   path      2, 3\n"
        "(5 inserted)\n\n"
        "c.jsonl, line 2: version 2\n"
        "op  relation  row\n--  --------  ----\n"
        "-   edge      1, 2\n+   edge      3, 1\n"
        "-   path      1, 2\n-   path      1, 3\n+   path      2, 1\n+   path      3, 1\n"
        "(3 inserted, 3 deleted)\n\n"
        "c.jsonl, line 3: version 2\n(nothing changes)\n"
    )


def test_long_tables_are_cut(invoke: Call) -> None:
    write("c.jsonl", CHANGES)
    result = invoke("apply", "graph.dl", "c.jsonl", "--limit", "1")
    assert "+   edge      1, 2\n… 4 more (5 inserted)\n" in result.stdout
    whole = invoke("apply", "graph.dl", "c.jsonl", "--limit", "1", "--format", "json")
    assert len(lines(whole)[0]["inserted"]["path"]) == 3


def test_colours(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = command("apply", "graph.dl", write("c.jsonl", CHANGES))
    assert "\x1b[32m+   edge      1, 2\x1b[0m" in result.stdout
    assert "\x1b[31m-   edge      1, 2\x1b[0m" in result.stdout


def test_csv(invoke: Call) -> None:
    result = invoke("apply", "graph.dl", write("c.jsonl", CHANGES), "--format", "csv")
    assert result.stdout.startswith(
        'transaction,version,op,relation,row\n1,1,+,edge,"[1, 2]"\n1,1,+,edge,"[2, 3]"\n'
    )
    assert result.stdout.endswith('2,2,+,path,"[2, 1]"\n2,2,+,path,"[3, 1]"\n')


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_files_of_changes_are_written(invoke: Call, suffix: str) -> None:
    write("c.jsonl", CHANGES)
    result = invoke("apply", "graph.dl", "c.jsonl", "-o", f"out.{suffix}")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    if suffix == "jsonl":
        expected = invoke("apply", "graph.dl", "c.jsonl", "--format", "json").stdout
        assert Path("out.jsonl").read_text() == expected
    elif suffix == "parquet":
        rows = pyarrow.parquet.read_table("out.parquet").to_pylist()
        assert rows[0] == {
            "transaction": 1, "version": 1, "op": "+", "relation": "edge", "row": "[1, 2]"
        }  # fmt: skip
        assert len(rows) == 11
    else:
        assert len(Path(f"out.{suffix}").read_text().splitlines()) == 12


@pytest.mark.parametrize("form", [[], ["--virtual"], ["--network", "flat"]])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_strategies_answer_the_same(invoke: Call, strategy: str, form: list[str]) -> None:
    write("more.dl", MORE)
    changes = write("c.jsonl", CHANGES + '{"delete": {"edge": [[2, 3], [3, 1]]}}\n')
    arguments = ("apply", "more.dl", changes, "--format", "json")
    expected = invoke(*arguments, "--strategy", "recompute").stdout
    result = invoke(*arguments, "--strategy", strategy, "--engine", "reference", *form)
    assert result.exit_code == 0
    assert result.stdout == expected
    assert len(expected.splitlines()) == 4


def test_a_strategy_for_one_view(invoke: Call) -> None:
    write("more.dl", MORE)
    strategies = ("--strategy", "rederive", "--strategy", "one_way=differencing")
    result = invoke("apply", "more.dl", write("c.jsonl", CHANGES), *strategies, "--stats")
    assert "one_way__by1_1__plus" in result.stderr
    assert "path__add" in result.stderr


def test_statistics(invoke: Call) -> None:
    result = invoke("apply", "graph.dl", write("c.jsonl", CHANGES), "--stats", "--format", "json")
    titles = [line for line in result.stderr.splitlines() if not line.startswith(" ")]
    assert titles[0].startswith("c.jsonl, line 1  ")
    assert titles[2] == "c.jsonl, line 3  0 rounds, 0 facts"
    assert len(lines(result)) == 3


def test_sets_of_a_line_have_no_order_but_rows_of_a_table_have_one(invoke: Call) -> None:
    write("pay.dl", TYPED)
    line = '{"set": {"pay": [["ann", 5], ["ann", 6]]}}\n'
    result = invoke("apply", "pay.dl", write("c.jsonl", line), "--format", "json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'error[E0727]: c.jsonl, line 1: rows 1 and 2 set the key "ann"' in result.stderr
    table = write("pay.csv", "op,who,much\nset,ann,5\nset,ann,6\n")
    result = invoke("apply", "pay.dl", table, "--format", "json")
    assert lines(result)[0]["inserted"] == {"pay": [["ann", 6]]}


def test_what_if_keeps_nothing(invoke: Call) -> None:
    write("pay.dl", TYPED)
    write("c.jsonl", '{"set": {"pay": [["ann", 50]]}}\n' * 2 + '{"insert": {"pay": [["bo", 1]]}}\n')
    write("pay.csv", "ann,20\n")
    arguments = ("apply", "pay.dl", "c.jsonl", "--facts", "pay=pay.csv", "--format", "json")
    assert lines(invoke(*arguments, "--what-if")) == [
        {"version": 0, "inserted": {"pay": [["ann", 50]]}, "deleted": {"pay": [["ann", 20]]}},
        {"version": 0, "inserted": {"pay": [["ann", 50]]}, "deleted": {"pay": [["ann", 20]]}},
        {"version": 0, "inserted": {"pay": [["bo", 1]]}, "deleted": {}},
    ]
    assert [each["version"] for each in lines(invoke(*arguments))] == [1, 1, 2]


def test_a_stream_is_answered_line_by_line() -> None:
    arguments = [COMMAND, "apply", "graph.dl", "-", "--format", "json"]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(1, 4):
            process.stdin.write(json.dumps({"insert": {"edge": [[number, number + 1]]}}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["version"] == number
            assert len(answer["inserted"]["path"]) == number
        process.stdin.write("{}")  # without an end of line
        _, errors = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, errors) == (0, "")


def test_both_from_standard_input(invoke: Call) -> None:
    result = invoke("apply", "-", "-", given="")
    assert result.exit_code == 2
    assert "standard input cannot be both" in result.stderr


# --- values


def test_values_are_read_by_the_type_of_their_column(invoke: Call) -> None:
    write("typed.dl", TYPED)
    first = ["2026-01-31", "2026-01-31T12:00:00+02:00", "1.50", 2, None]
    second = {"d": "2026-02-01", "n": 0.1, "f": 1e3, "w": "2026-02-01"}
    write("c.jsonl", json.dumps({"insert": {"t": [first, second]}}) + "\n")
    result = invoke("apply", "typed.dl", "c.jsonl", "--format", "json")
    assert result.stderr == ""
    assert lines(result)[0]["inserted"] == {
        "t": [
            ["2026-01-31", "2026-01-31 10:00:00", "1.5", 2.0, None],
            ["2026-02-01", None, "0.1", 1000.0, "2026-02-01"],
        ],
        "v": [["2026-01-31", "1.5"], ["2026-02-01", "0.1"]],
    }
    again = lines(result)[0]["inserted"]["t"]
    write("d.jsonl", json.dumps({"insert": {"t": again}, "delete": {"t": again}}) + "\n")
    assert lines(invoke("apply", "typed.dl", "d.jsonl", "--format", "json")) == lines(result)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "this is not JSON"),
        ("[1]", "[1] is not an object"),
        ("NaN", "this is not JSON"),
        (b"\xff", "this is not UTF-8 text"),
        ('{"inserts": {}}', "`inserts` is not an operation"),
        ('{"inserts": {}}', "did you mean `insert`?"),
        ('{"insert": {}, "insert": {}}', "the name `insert` occurs twice"),
        ('{"insert": [[1, 2]]}', "`insert`: [[1, 2]] does not name relations"),
        ('{"insert": {"edge": 1}}', "`insert` of `edge`: 1 is not an array of rows"),
        ('{"insert": {"edge": [1, 2]}}', "`edge`: 1 is not a row"),
        ('{"insert": {"edge": [[1]]}}', "a fact of `edge` has 2 values, but (1) has 1"),
        ('{"insert": {"edge": [[1, "x"]]}}', '"x" does not fit column `dst` of `edge`'),
        ('{"insert": {"edge": [[1, 1.5]]}}', "1.5 does not fit column `dst` of `edge`"),
        ('{"insert": {"edge": [{"src": 1, "to": 2}]}}', "there is no column `to`"),
        ('{"insert": {"edge": [{"src": 1, "to": 2}]}}', "column `dst` is missing"),
        ('{"insert": {"egde": [[1, 2]]}}', "did you mean `edge`?"),
        ('{"insert": {"path": [[1, 2]]}}', "`path` is a view and cannot be changed directly"),
        ('{"set": {"edge": [[1, 2]]}}', "`edge` has no key"),
        ("[" * 100_000, "this is not JSON"),
    ],
)
def test_a_bad_line(invoke: Call, line: str | bytes, words: str) -> None:
    data = line.encode() if isinstance(line, str) else line
    good = b'{"insert": {"edge": [[1, 2]]}}\n'
    write("c.jsonl", good + b"\n" + data + b"\n" + good.replace(b"1", b"3"))
    result = invoke("apply", "graph.dl", "c.jsonl", "--format", "json")
    assert result.exit_code == 1
    assert "c.jsonl, line 3: " in result.stderr
    assert words in result.stderr
    assert [each["version"] for each in lines(result)] == [1]
    on = invoke("apply", "graph.dl", "c.jsonl", "--format", "json", "--keep-going")
    assert on.exit_code == 1
    assert on.stderr == result.stderr
    assert [each["version"] for each in lines(on)] == [1, 2]


def test_all_problems_of_a_line_are_reported(invoke: Call) -> None:
    write("c.jsonl", '{"insert": {"edge": [[1, "a"], [2]]}, "delete": {"x": []}, "y": 1}\n')
    result = invoke("apply", "graph.dl", "c.jsonl")
    assert result.stderr.count("error[") == 4
    assert result.stdout == ""


def test_a_key_that_is_taken(invoke: Call) -> None:
    write("typed.dl", TYPED)
    write("c.jsonl", '{"insert": {"pay": [["ann", 1]]}}\n{"insert": {"pay": [["ann", 2]]}}\n')
    result = invoke("apply", "typed.dl", "c.jsonl", "--format", "json")
    assert result.exit_code == 1
    assert "c.jsonl, line 2: `pay` already contains the fact" in result.stderr
    assert len(lines(result)) == 1


def test_a_limit_ends_only_its_transaction(invoke: Call) -> None:
    write("grow.dl", "base a(x: int).\nn(X) :- a(X).\nn(X + 1) :- n(X), X < 100.\n")
    write("c.jsonl", "".join(f'{{"insert": {{"a": [[{x}]]}}}}\n' for x in (99, 0, 98)))
    arguments = ("apply", "grow.dl", "c.jsonl", "--rounds-max", "20", "--format", "json")
    result = invoke(*arguments, "--keep-going")
    assert result.exit_code == 3
    assert "c.jsonl, line 2: stopped after 20 rounds" in result.stderr
    assert [each["version"] for each in lines(result)] == [1, 2]
    assert lines(result)[1]["inserted"] == {"a": [[98]], "n": [[98]]}


# --- tables of changes


def test_a_table_is_one_transaction(invoke: Call) -> None:
    write("edge.csv", "op,dst,src\n+,2,1\ninsert,3,2\n-,2,1\nDelete,9,9\n")
    result = invoke("apply", "graph.dl", "edge.csv", "--format", "json")
    assert result.stderr == ""
    assert lines(result) == [
        {"version": 1, "inserted": {"edge": [[2, 3]], "path": [[2, 3]]}, "deleted": {}}
    ]


def test_a_column_groups_transactions(invoke: Call) -> None:
    write("t.tsv", "src\tdst\top\ttransaction\n1\t2\t+\ta\n2\t3\t+\ta\n1\t2\t-\tb\n")
    arguments = ("apply", "graph.dl", "t.tsv", "--relation", "edge")
    result = invoke(*arguments)
    assert 't.tsv, transaction "a": version 1' in result.stdout
    assert 't.tsv, transaction "b": version 2' in result.stdout


def test_parquet(invoke: Call) -> None:
    table = pyarrow.table(
        {"op": ["set", "+", "set"], "transaction": [1, 1, 2], "who": ["ann", "bo", "ann"],
         "much": [5, 20, 30]}
    )  # fmt: skip
    pyarrow.parquet.write_table(table, "pay.parquet")
    write("typed.dl", TYPED)
    result = invoke("apply", "typed.dl", "pay.parquet", "--format", "json")
    assert result.stderr == ""
    assert lines(result) == [
        {"version": 1, "inserted": {"pay": [["ann", 5], ["bo", 20]], "rich": [["bo"]]},
         "deleted": {}},
        {"version": 2, "inserted": {"pay": [["ann", 30]], "rich": [["ann"]]},
         "deleted": {"pay": [["ann", 5]]}},
    ]  # fmt: skip


def test_a_relation_without_columns(invoke: Call) -> None:
    write("rain.dl", "base rain().\nwet :- rain.\n")
    result = invoke("apply", "rain.dl", write("rain.csv", "op\n+\n"), "--format", "json")
    assert lines(result)[0]["inserted"] == {"rain": [[]], "wet": [[]]}
    result = invoke("apply", "rain.dl", write("c.jsonl", '{"insert": {"rain": [[]]}}\n'))
    assert "+   rain\n+   wet\n" in result.stdout


def test_an_empty_file_changes_nothing(invoke: Call) -> None:
    for name in ("edge.csv", "c.jsonl"):
        result = invoke("apply", "graph.dl", write(name, ""), "--format", "json")
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("edge.csv", "op,src,dst\n+,1,x\n", 1, 'edge.csv, line 2, column `dst`: "x" is not an int'),
        (
            "edge.csv",
            "op,src,dst\n*,1,2\n",
            1,
            'edge.csv, line 2, column `op`: "*" is not an operation',
        ),
        ("edge.csv", "src,dst\n1,2\n", 1, "it has no column `op`"),
        ("edge.csv", "op,src\n+,1\n", 1, "missing column `dst`"),
        ("edge.csv", b"\xff\n", 1, "this is not UTF-8 text"),
        ("edge.parquet", b"PAR1", 4, "it is broken or not a Parquet file"),
        ("egde.csv", "op,src,dst\n", 1, "did you mean `edge`?"),
        ("path.csv", "op,x,y\n", 1, "`path` is a view"),
        ("edge.xls", "", 4, "`edge.xls` has an unknown file format"),
        (
            "edge.csv",
            "op,src,dst,transaction\n+,1,2,a\n+,3,4,b\n+,5,6,a\n",
            1,
            "its rows are not consecutive",
        ),
    ],
)
def test_a_bad_table(invoke: Call, name: str, text: str, code: int, words: str) -> None:
    result = invoke("apply", "graph.dl", write(name, text))
    assert result.exit_code == code
    assert words in result.stderr


def test_what_comes_before_a_bad_row_is_applied(invoke: Call) -> None:
    write("edge.csv", "op,src,dst,transaction\n+,1,2,1\n+,2,3,2\n?,3,4,2\n+,4,5,3\n+,x,6,3\n")
    result = invoke("apply", "graph.dl", "edge.csv", "--format", "json", "--keep-going")
    assert result.exit_code == 1
    assert "edge.csv, line 4, column `op`" in result.stderr
    assert "edge.csv, line 6, column `src`" in result.stderr
    assert [each["inserted"]["edge"] for each in lines(result)] == [[[1, 2]]]


def test_a_relation_with_a_column_op(invoke: Call) -> None:
    write("op.dl", "base log(op: str).\nseen(X) :- log(X).\n")
    result = invoke("apply", "op.dl", write("log.csv", "op\n+\n"))
    assert result.exit_code == 1
    assert "`log` has a column `op` itself" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.jsonl"], 4, "cannot read `none.jsonl`: no such file or directory"),
        (["."], 4, "cannot read `.`: is a directory"),
        (["c.jsonl", "--strategy", "magics"], 2, "did you mean `magic`?"),
        (["c.jsonl", "--strategy", "path=magics"], 2, "did you mean `magic`?"),
        (["c.jsonl", "--strategy", "pth=magic"], 1, "unknown view `pth`"),
        (["c.jsonl", "--strategy", "path=delta"], 1, "does not fit `path`"),
        (["c.jsonl", "--strategy", "magic", "--strategy", "delta"], 2, "two strategies"),
        (["c.jsonl", "--engine", "spock"], 2, "unknown engine `spock`"),
        (["c.jsonl", "--network", "deep"], 2, "--network"),
        (["c.jsonl", "--format", "parquet"], 2, "--format"),
        (["c.jsonl", "-o", "out.xls"], 4, "`out.xls` has an unknown file format"),
        (["c.jsonl", "-o", "none/out.jsonl"], 4, "cannot write `none/out.jsonl`"),
        (["c.jsonl", "-o", "none/out.csv"], 4, "cannot write `none/out.csv`"),
        (["c.jsonl", "--facts", "edge=none.csv"], 4, "cannot read `none.csv`"),
    ],
)
def test_wrong_calls(invoke: Call, arguments: list[str], code: int, words: str) -> None:
    write("c.jsonl", CHANGES)
    result = invoke("apply", "graph.dl", *arguments)
    assert result.exit_code == code
    assert words in result.stderr
    assert result.stdout == ""
