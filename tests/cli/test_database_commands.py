"""Commands on database files: made, changed, looked at, copied, checked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import GRAPH, Call, write

import deltalog

QUICK = ("--engine", "reference")
ONE = '{"insert": {"edge": [[3, 1]]}}\n'
LESS = GRAPH.replace("path(Z, Y).", "path(Z, Y), X != Y.")


@pytest.fixture(autouse=True)
def _database(_workplace: None, invoke: Call) -> None:
    """`graph.db`, with two edges at version 0 and a third one at version 1."""
    made = invoke("create", "graph.db", "graph.dl", "--facts", "edge=edges.csv", *QUICK)
    assert (made.exit_code, made.stderr) == (0, "note: graph.db contains 5 facts\n")
    done = invoke("apply", "graph.db", write("one.jsonl", ONE), "--format", "json", *QUICK)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["inserted"]["edge"] == [[3, 1]]


def test_create_keeps_what_is_there(invoke: Call) -> None:
    result = invoke("create", "graph.db", "graph.dl", *QUICK)
    assert result.exit_code == 4
    assert "E0912" in result.stderr


def test_run_shows_what_the_file_holds(invoke: Call) -> None:
    result = invoke("run", "graph.db", "--show", "edge", "--format", "csv", *QUICK)
    assert result.stdout == "src,dst\n1,2\n2,3\n3,1\n"
    result = invoke("run", "graph.db", "--show", "path", "--as-of", "0", "--format", "csv", *QUICK)
    assert result.stdout == "x,y\n1,2\n1,3\n2,3\n"
    result = invoke("run", "graph.db", "--output", "edge=out.csv", "--as-of", "0", *QUICK)
    assert Path("out.csv").read_text() == "src,dst\n1,2\n2,3\n"
    assert invoke("run", "graph.db", "--as-of", "9", *QUICK).exit_code == 1
    assert invoke("run", "graph.dl", "--as-of", "0", *QUICK).exit_code == 2
    assert invoke("run", "graph.db", "--show", "pth", *QUICK).exit_code == 1


def test_queries_in_the_program_are_answered(invoke: Call) -> None:
    invoke("create", "asked.db", write("asked.dl", GRAPH + "edge(1, 2).\n? path(1, Y).\n"), *QUICK)
    assert "2\n(1 row)" in invoke("run", "asked.db", *QUICK).stdout


def test_query_and_audit(invoke: Call) -> None:
    result = invoke("query", "graph.db", "path(3, Y)", "--format", "csv", *QUICK)
    assert result.stdout == "Y\n1\n2\n3\n"
    result = invoke("audit", "graph.db", *QUICK)
    assert result.stdout == "1 view agrees with recomputation\n"


@pytest.mark.parametrize("command", [("run",), ("query",), ("audit",), ("repl",)])
def test_facts_beside_a_database(invoke: Call, command: tuple[str, ...]) -> None:
    more = ["edge(X, Y)"] if command == ("query",) else []
    result = invoke(*command, "graph.db", *more, "--facts", "edge=edges.csv", *QUICK)
    assert result.exit_code == 2
    assert "a database file has its own facts" in result.stderr.replace("\n", " ").replace("│", "")


def test_apply_stays_and_what_if_does_not(invoke: Call) -> None:
    write("two.jsonl", '{"delete": {"edge": [[1, 2]]}}\n')
    tried = invoke("apply", "graph.db", "two.jsonl", "--what-if", "--format", "json", *QUICK)
    done = invoke("apply", "graph.db", "two.jsonl", "--durability", "normal", *QUICK)
    assert json.loads(tried.stdout)["deleted"]["edge"] == [[1, 2]]
    assert "version 2" in done.stdout
    with deltalog.connect("graph.db", engine="reference") as database:
        assert database.facts("edge") == {(2, 3), (3, 1)}


def test_repl_changes_the_file(invoke: Call) -> None:
    script = "+edge(7, 8).\nbig(X) :- path(X, _), X > 6.\n"
    result = invoke("repl", "graph.db", *QUICK, given=script)
    assert result.stdout == "+edge(7, 8).\n+path(7, 8).\n+big(7).\n"
    assert invoke("query", "graph.db", "big(X)", "--format", "csv", *QUICK).stdout == "X\n7\n"


def test_log(invoke: Call) -> None:
    shown = invoke("log", "graph.db", "--format", "json", *QUICK)
    (line,) = shown.stdout.splitlines()
    assert json.loads(line)["version"] == 1
    net = invoke("log", "graph.db", "--net", "--show", "edge", "--format", "csv", *QUICK)
    assert net.stdout == 'transaction,version,op,relation,row\n1,1,+,edge,"[3, 1]"\n'
    assert "transaction: version 1" in invoke("log", "graph.db", *QUICK).stdout
    assert invoke("log", "graph.db", "--after", "7", *QUICK).exit_code == 1
    assert GRAPH.rstrip() in invoke("log", "graph.db", "--programs", *QUICK).stdout
    with deltalog.connect("graph.db", engine="reference") as database:
        database.register("billing")
    readers = invoke("log", "graph.db", "--readers", *QUICK)
    assert readers.stdout == "billing: read up to version 1 of 1\n"


def test_migrate_shows_the_change_first(invoke: Call) -> None:
    write("less.dl", LESS)
    tried = invoke("migrate", "graph.db", "less.dl", "--what-if", "--format", "json", *QUICK)
    expected = {
        "version": 2,
        "inserted": {},
        "deleted": {"path": [[1, 1], [2, 2], [3, 3]]},
    }
    assert json.loads(tried.stdout) == expected
    with deltalog.connect("graph.db", engine="reference") as database:
        assert database.version == 1
    done = invoke("migrate", "graph.db", "less.dl", "--yes", "--format", "json", *QUICK)
    assert json.loads(done.stdout) == expected
    assert done.stderr == "note: graph.db has the new program from version 2 on\n"
    with deltalog.connect("graph.db", program=Path("less.dl"), engine="reference") as database:
        assert (database.version, (1, 1) in database.facts("path")) == (2, False)
    wrong = invoke("migrate", "graph.db", write("bad.dl", "p(X) :- q(X)."), *QUICK)
    assert wrong.exit_code == 1
    piped = invoke("migrate", "graph.db", "-", *QUICK, given=GRAPH)
    assert piped.exit_code == 0


def test_backup_and_restore(invoke: Call) -> None:
    assert invoke("backup", "graph.db", "copy.db").stderr == (
        "note: copy.db is graph.db at version 1\n"
    )
    assert invoke("backup", "graph.db", "copy.db").exit_code == 4
    invoke("apply", "graph.db", write("more.jsonl", '{"insert": {"edge": [[5, 6]]}}\n'), *QUICK)
    assert invoke("restore", "copy.db", "graph.db", *QUICK).exit_code == 4
    done = invoke("restore", "copy.db", "graph.db", "--replace", *QUICK)
    assert "the previous graph.db is now graph.db.replaced1\n" in done.stderr
    for name, version in (("graph.db", 1), ("graph.db.replaced1", 2)):
        with deltalog.connect(name, engine="reference") as database:
            assert database.version == version
    assert invoke("restore", "copy.db", "new.db", *QUICK).exit_code == 0
    Path("copy.db").write_bytes(Path("copy.db").read_bytes()[:-5000])
    assert invoke("restore", "copy.db", "other.db", *QUICK).exit_code == 4
    assert not Path("other.db").exists()


def test_restore_over_a_link(invoke: Call) -> None:
    """What the link leads to is replaced, and the link stays."""
    invoke("backup", "graph.db", "copy.db")
    Path("kept").mkdir()
    Path("graph.db").rename("kept/graph.db")
    Path("graph.db").symlink_to("kept/graph.db")
    done = invoke("restore", "copy.db", "graph.db", "--replace", *QUICK)
    assert done.exit_code == 0
    assert Path("graph.db").is_symlink()
    names = sorted(each.name for each in Path("kept").iterdir())
    assert names == ["graph.db", "graph.db.replaced1"]
    for name in ("graph.db", *(f"kept/{each}" for each in names)):
        with deltalog.connect(name, engine="reference") as database:
            assert database.version == 1


def test_restore_over_an_open_database(invoke: Call) -> None:
    invoke("backup", "graph.db", "copy.db")
    with deltalog.connect("graph.db", engine="reference"):
        result = invoke("restore", "copy.db", "graph.db", "--replace", *QUICK)
    assert "E0905" in result.stderr


def test_a_dump_loads_again(invoke: Call) -> None:
    text = (
        "base note(text: str, day: date?, price: decimal, ok: bool, at: timestamp?, x: float).\n"
        'note("a \\"b\\"", date"2026-01-31", decimal"1.5", true, null, 2.0).\n'
        "undeclared(1). undeclared(2).\nv(X) :- undeclared(X).\nv(9).\nholds.\n"
    )
    invoke("create", "all.db", write("all.dl", text), *QUICK)
    with deltalog.connect("all.db", engine="reference") as database:
        database.apply(delete={"undeclared": [(1,), (2,)]})
        expected = {name: database.facts(name) for name in database.relations}
    dumped = invoke("dump", "all.db", *QUICK)
    again = deltalog.connect(program=dumped.stdout, engine="reference")
    assert {name: again.facts(name) for name in again.relations} == expected
    invoke("dump", "graph.db", "--directory", "out", *QUICK)
    invoke("create", "again.db", "out/program.dl", "--facts-dir", "out", *QUICK)
    first, second = (
        deltalog.connect(name, engine="reference", read_only=True)
        for name in ("graph.db", "again.db")
    )
    assert first.facts("path") == second.facts("path")


def test_verify(invoke: Call) -> None:
    result = invoke("verify", "graph.db", *QUICK)
    assert (result.exit_code, result.stdout) == (
        0,
        "all pages have valid checksums, and the SQLite integrity check passes\n"
        "1 view agrees with recomputation\n"
        "the log is consistent over 1 commit\n",
    )
    with deltalog.connect("graph.db", engine="reference") as database:
        database._connection.execute("DELETE FROM path WHERE x = 1")
    result = invoke("verify", "graph.db", *QUICK)
    assert result.exit_code == 1
    assert "path: 3 missing" in result.stdout
    assert "version 1 inserts facts of `path` that are not there" in result.stdout
    assert invoke("verify", "graph.dl").exit_code == 4


def test_compact(invoke: Call) -> None:
    assert invoke("compact", "graph.db", *QUICK).exit_code == 2
    for number in range(5):
        change = f'{{"insert": {{"edge": [[{number}, 50]]}}}}\n'
        invoke("apply", "graph.db", write("step.jsonl", change), *QUICK)
    kept = invoke("compact", "graph.db", "--days", "1", "--versions", "1", *QUICK)
    assert kept.stderr == "note: 0 versions dropped, 0 to 6 remain\n"
    done = invoke("compact", "graph.db", "--versions", "2", *QUICK)
    assert done.stderr == "note: 4 versions dropped, 4 to 6 remain\n"


def test_recover(invoke: Call) -> None:
    """A process that is killed leaves its last commits in the log; there a byte is altered."""
    script = (
        "import deltalog, time\n"
        "db = deltalog.connect('graph.db', engine='reference')\n"
        "for n in range(20): db.apply(insert={'edge': [(n, 99)]})\n"
        "print('done', flush=True)\n"
        "time.sleep(1800)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    log = Path("graph.db-wal")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    for command in (("verify", "graph.db"), ("apply", "graph.db", "one.jsonl")):
        result = invoke(*command, *QUICK)
        assert result.exit_code == 4
        assert "commits in `graph.db-wal` cannot be read" in result.stderr
    assert invoke("recover", "graph.db", *QUICK).exit_code == 0
    with deltalog.connect("graph.db", engine="reference") as database:
        assert 1 < database.version < 21
    assert invoke("verify", "graph.db", *QUICK).exit_code == 0


def test_what_a_program_no_longer_has_can_be_shown_as_of_a_version(invoke: Call) -> None:
    invoke("create", "g.db", "graph.dl", "--facts", "edge=edges.csv")
    write("less.dl", "base edge(src: int, dst: int).\n")
    invoke("migrate", "g.db", "less.dl")
    shown = invoke("run", "g.db", "--show", "path", "--as-of", "0", "--format", "csv")
    assert shown.stdout == "src,dst\n1,2\n1,3\n2,3\n".replace("src,dst", "x,y")
    assert "did you mean `edge`?" in invoke("run", "g.db", "--show", "edges").stderr


def test_migrating_to_the_same_program_says_so(invoke: Call) -> None:
    invoke("create", "g.db", "graph.dl")
    for options in ((), ("--what-if",)):
        result = invoke("migrate", "g.db", "graph.dl", *options)
        assert result.exit_code == 0
        assert result.stderr == "note: g.db already has this program: nothing changes\n"
    with deltalog.connect("g.db", engine="reference", read_only=True) as kept:
        assert (kept.version, len(kept.programs())) == (0, 1)


VIRTUAL = "base e(a: int).\nvirtual view v(a: int).\nv(X) :- e(X), X > 1.\n"


def test_the_log_names_what_it_omits_and_derives_what_is_asked_for(invoke: Call) -> None:
    with deltalog.connect("v.db", program=VIRTUAL, engine="reference") as database:
        database.apply(insert={"e": [(1,)]}, views=[])
        database.apply(insert={"e": [(2,)]}, views=["v"])
        database.apply(insert={"e": [(3,)]}, views=[])
    shown = invoke("log", "v.db", "--format", "json", *QUICK)
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [line["inserted"] for line in lines] == [
        {"e": [[1]]},
        {"e": [[2]], "v": [[2]]},
        {"e": [[3]]},
    ]
    assert [line.get("omitted") for line in lines] == [["v"], None, ["v"]]
    assert shown.stderr == "note: the log omits `v`, which `--show` derives\n"
    asked = invoke("log", "v.db", "--show", "v", "--format", "json", *QUICK)
    assert [json.loads(line)["inserted"] for line in asked.stdout.splitlines()] == [
        {},
        {"v": [[2]]},
        {"v": [[3]]},
    ]
    assert not asked.stderr
    net = invoke("log", "v.db", "--net", "--format", "json", *QUICK)
    assert json.loads(net.stdout)["inserted"] == {"e": [[1], [2], [3]]}
    assert "omits `v`" in net.stderr
    net = invoke("log", "v.db", "--net", "--show", "v", "--format", "json", *QUICK)
    assert json.loads(net.stdout)["inserted"] == {"v": [[2], [3]]}


def test_the_log_knows_near_misses(invoke: Call) -> None:
    invoke("create", "g.db", "graph.dl")
    result = invoke("log", "g.db", "--show", "pth")
    assert result.exit_code == 1
    assert "did you mean `path`?" in result.stderr


def test_create_takes_a_file_that_holds_nothing(invoke: Call) -> None:
    write("g.db", "")
    assert invoke("create", "g.db", "graph.dl").exit_code == 0
    assert "E0912" in invoke("create", "g.db", "graph.dl").stderr
