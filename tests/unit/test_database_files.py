"""A database in a file: what its own methods promise, and what happens when the disk does not."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import apsw
import pytest

import deltalog
from deltalog.runtime.engine_choice import ENGINES
from deltalog.store import copies, readers, schema, storage, synchronization, writer
from deltalog.store.recover import recover_file
from deltalog.store.sqlite import open_connection
from deltalog.store.verify import verify_file
from waiting import HANG_SECONDS

GRAPH = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.db"


def connect(path: Path, program: str | None = GRAPH, **options: Any) -> deltalog.FileDatabase:
    return deltalog.connect(path, program=program, engine="reference", **options)


def contents(database: deltalog.MemoryDatabase) -> dict[str, set[tuple[object, ...]]]:
    return {name: database.facts(name) for name in database.relations}


# --- what is in the file --------------------------------------------------------------------------

EVERY_TYPE = """
    base thing(
        i: int?, f: float?, s: str?, b: bool?, d: date?, t: timestamp?, x: decimal?
    ).
    same(I, F, S, B, D, T, X) :- thing(I, F, S, B, D, T, X).
    flag.
    up :- flag.
"""
ROWS = [
    (None,) * 7,
    (
        2**63 - 1,
        1e308,
        "a\0b'\"\n\u00e9\U0001f600",
        True,
        date(1, 1, 1),
        datetime(1, 1, 1),
        Decimal("12345678901234567890.123456789012345678"),
    ),
    (
        -(2**63) + 1,
        5e-324,
        "",
        False,
        date(9999, 12, 31),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
        Decimal("-0.000000000000000001"),
    ),
    (0, 0.1, "12", True, date(2026, 1, 31), datetime(2026, 1, 31, 12), Decimal("2.5")),
    (1, 1e22, "1e5", False, None, None, Decimal(100)),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_values_of_every_type_come_back(path: Path, engine: str) -> None:
    with deltalog.connect(path, program=EVERY_TYPE, engine=engine) as database:
        database.apply(insert={"thing": ROWS})
        database.apply(delete={"thing": ROWS[:1]})
        database.apply(insert={"thing": ROWS[:1]})
        expected = contents(database)
    with deltalog.connect(path, engine=engine) as database:
        assert contents(database) == expected
        assert [type(value) for row in database.facts("thing") for value in row if value is True]
        assert database.facts("thing", 0) == set()
        assert database.facts("same", 2) == set(ROWS[1:])
        assert database.delta(0, 1).inserted["thing"] == set(ROWS)
        assert verify_file(database).is_clean


def test_any_sqlite_tool_can_read_it(path: Path) -> None:
    with connect(path, EVERY_TYPE) as database:
        database.apply(insert={"thing": ROWS})
    other = sqlite3.connect(path)
    assert other.execute("SELECT i, d, t, x, b FROM thing WHERE s = '12'").fetchall() == [
        (0, "2026-01-31", "2026-01-31 12:00:00", "2.5", 1)
    ]
    kinds = other.execute("SELECT name, type FROM pragma_table_info('thing')").fetchall()
    assert kinds == [
        ("i", "INTEGER"),
        ("f", "REAL"),
        ("s", "TEXT"),
        ("b", "INTEGER"),
        ("d", "TEXT"),
        ("t", "TEXT"),
        ("x", "TEXT"),
        ("rank__", "INTEGER"),
    ]
    changes = other.execute(
        "SELECT version, op, relation, row FROM deltalog__changes WHERE relation = 'thing'"
    ).fetchall()
    assert {each[:3] for each in changes} == {(1, "+", "thing")}
    assert len(changes) == len(ROWS)
    assert other.execute("SELECT text FROM deltalog__programs").fetchall() == [(EVERY_TYPE,)]
    other.close()


@pytest.mark.parametrize("is_open", [False, True])
def test_another_tool_cannot_write(path: Path, is_open: bool) -> None:
    database = connect(path, facts={"edge": [(1, 2), (2, 3)]})
    if not is_open:
        database.close()
    done = subprocess.run([sys.executable, "-c", _TRIES, path], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["6 tables", "only Deltalog writes to this file"]
    if is_open:
        database.apply(delete={"edge": [(1, 2)]})
        database.close()
    with connect(path) as database:
        assert verify_file(database).is_clean


_TRIES = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
tables = other.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
print(len(tables), "tables")
said = set()
for (table,) in tables:
    columns = [name for _, name, *_ in other.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(str(number) for number, _ in enumerate(columns, start=7))
    insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"
    for act in (insert, f"UPDATE {table} SET {columns[0]} = 5", f"DELETE FROM {table}"):
        try:
            other.execute(act)
        except sqlite3.IntegrityError as error:
            said.add(str(error))
assert not other.total_changes
print(*said)
"""


def test_what_another_tool_writes_is_noticed(path: Path) -> None:
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2), (2, 3)]})
    other = sqlite3.connect(path)
    other.execute("DROP TRIGGER path__delete")
    other.execute("DELETE FROM path WHERE x = 1 AND y = 3")
    other.commit()
    other.close()
    with pytest.raises(deltalog.DataError, match="checksum"):
        connect(path)


_INSERT = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
other.execute("DROP TRIGGER edge__insert")
other.execute("INSERT INTO edge VALUES (9, 9, 99)")
other.commit()
"""


@pytest.mark.parametrize("is_grouped", [False, True])
def test_what_another_tool_writes_meanwhile_is_noticed(path: Path, is_grouped: bool) -> None:
    database = connect(path)
    database.apply(insert={"edge": [(1, 2)]})
    with connect(path, None, read_only=True) as reader:
        reader.register("one of ours may write")
    database.apply(insert={"edge": [(2, 3)]})
    subprocess.run([sys.executable, "-c", _INSERT, path], check=True)
    for _ in range(2):
        grouped = database.group() if is_grouped else nullcontext()
        with pytest.raises(deltalog.DataError, match="other than Deltalog") as caught, grouped:
            database.apply(insert={"edge": [(3, 4)]})
        assert caught.value.codes == ("E0903",)
    assert (database.version, database.facts("edge")) == (2, {(1, 2), (2, 3)})
    with pytest.raises(deltalog.DataError, match="other than Deltalog"):
        database.close()
    for is_read_only in (True, False):
        with pytest.raises(deltalog.DataError, match="other than Deltalog") as caught:
            connect(path, None, read_only=is_read_only)
        assert caught.value.codes == ("E0903",)


def test_own_commits_are_no_reason_to_look_closer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite counts them one by one, and so do we."""
    with connect(path, durability="normal") as database:
        database.apply(insert={"edge": [(1, 2)]})
        before = database.version
        monkeypatch.setattr(database._writer.foreign, "check_writes", lambda: 1 // 0)
        for number in range(2, 2_000):
            database.apply(insert={"edge": [(number, -number)]})
        monkeypatch.undo()
        assert database.version == before + 1_998


@pytest.mark.parametrize("type_", ["int", "str"])
@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_of_rows_of_which_some_are_there(path: Path, type_: str, engine: str) -> None:
    """What is really new keeps its order, which is that of its ranks."""
    rows = [(n * 7919 % 100003 if type_ == "int" else f"at {n}", n) for n in range(300)]
    program = f"base e(x: {type_}, y: int). base f(x: int). v(Y, X) :- e(X, Y)."
    with deltalog.connect(path, program=program, engine=engine) as database:
        for change in (
            {"insert": {"e": rows[::9]}},
            {"insert": {"e": rows[::3], "f": [(3,), (1,), (2,)]}},
            {"insert": {"e": rows[1:2]}},
            {"insert": {"e": rows[:200]}, "delete": {"e": rows[200:], "f": [(1,), (7,)]}},
            {"insert": {"e": rows, "f": [(2,), (5,), (4,)]}},
        ):
            database.apply(**change)
            for name, table in schema.read_tables(database._connection).items():
                kept = [(rank, row) for rank, *row in database._connection.execute(table.select)]
                ranked = database.engine.ranked(name)  # type: ignore[attr-defined]
                assert kept == sorted((rank, list(row)) for rank, row in ranked)


def test_a_reader_does_not_follow_what_another_tool_wrote(path: Path) -> None:
    database = connect(path)
    with connect(path, None, read_only=True) as reader:
        subprocess.run([sys.executable, "-c", _INSERT, path], check=True)
        for act in (
            lambda: database.change_program(GRAPH + "far(X) :- path(X, _)."),
            lambda: database.register("somebody"),
            lambda: database.close(),
            lambda: reader.refresh(),
        ):
            with pytest.raises(deltalog.DataError, match="other than Deltalog"):
                act()
        assert reader.facts("edge") == set()


def test_a_file_that_is_cut_off_does_not_even_open(path: Path) -> None:
    """SQLite would take what is missing of the last page for zeros."""
    connect(path, facts={"edge": [(n, n + 1000) for n in range(500)]}).close()
    whole = path.read_bytes()
    for missing in (1, 8, 9, 20, 100, 1000, 2000, 3000, 4000, 4095, 4096, 5000, 12_000):
        path.write_bytes(whole[:-missing])
        with pytest.raises(deltalog.DataError) as caught:
            connect(path, None, read_only=True)
        assert caught.value.codes == ("E0903",)


def test_names_that_sqlite_would_confuse(path: Path) -> None:
    program = """
        base node(aB: int, ab: int, rowid: int, oid: int).
        base nODE(x: int).
        base sqlite_master(x: int).
        view order(select: int).
        order(X) :- node(X, _, _, _), nODE(X), sqlite_master(X).
    """
    with connect(path, program) as database:
        facts = {"node": [(1, 2, 3, 4)], "nODE": [(1,)], "sqlite_master": [(1,)]}
        database.apply(insert=facts)
        expected = contents(database)
    with connect(path, program) as database:
        assert contents(database) == expected
        assert database.apply(delete={"nODE": [(1,)]}).deleted["order"] == {(1,)}


def test_only_one_file_is_left(path: Path) -> None:
    connect(path).close()
    with connect(path, None) as database, connect(path, None, read_only=True) as reader:
        database.apply(insert={"edge": [(1, 2)]})
        reader.refresh()
    with connect(path, None, read_only=True):
        pass
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_program_with_includes_is_kept_whole(path: Path, tmp_path: Path) -> None:
    (tmp_path / "base.dl").write_text("base edge(src: int, dst: int).")
    (tmp_path / "all.dl").write_text('include "base.dl". far(X) :- edge(X, _).')
    connect(path, str(tmp_path / "all.dl")).close()
    (tmp_path / "base.dl").unlink()
    with connect(path, None) as database:
        assert "far" in database.relations
    with pytest.raises(deltalog.DeltalogError):
        connect(path, str(tmp_path / "all.dl"))


def test_other_options_next_time(path: Path) -> None:
    """Views that were virtual are computed and kept; those that become so lose their tables."""
    with connect(path, materialize=False) as database:
        database.apply(insert={"edge": [(1, 2), (2, 3)]})
    with connect(path) as database:
        assert database.facts("path") == {(1, 2), (2, 3), (1, 3)}
        assert database.apply(delete={"edge": [(1, 2)]}).deleted["path"] == {(1, 2), (1, 3)}
        assert verify_file(database).is_clean
    with connect(path, strategy="delta", read_only=True) as database:
        assert database.facts("path") == {(2, 3)}
    with connect(path, materialize=False) as database:
        assert schema.read_tables(database._connection).keys() == {"edge"}
        assert verify_file(database).is_clean


def test_a_load_tells_how_far_it_is(path: Path) -> None:
    connect(path, facts={"edge": [(n, n) for n in range(1000)]}).close()
    told: list[tuple[int, int]] = []
    connect(path, None, watch=lambda rounds, facts: told.append((rounds, facts))).close()
    assert told[-1] == (0, 2000)


# --- one writer, many readers ---------------------------------------------------------------------


def test_a_second_writer_waits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = connect(path)
    with pytest.raises(deltalog.DataError) as caught:
        connect(path)
    assert caught.value.codes == ("E0905",)
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            database.close()

    monkeypatch.setattr("deltalog.store.writer_lock.time.sleep", sleep)
    connect(path, wait=HANG_SECONDS).close()
    assert len(naps) == 3


def test_a_reader_in_another_process_sees_commits(path: Path) -> None:
    script = (
        "import sys, deltalog\n"
        "db = deltalog.connect(sys.argv[1], read_only=True, engine='reference')\n"
        "print(sorted(db.facts('path')), flush=True)\n"
        "for line in sys.stdin:\n"
        "    print(db.refresh().only('path'), db.version, db.audit(), flush=True)\n"
    )
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2)]})
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "[(1, 2)]\n"
        with database.group():
            database.apply(insert={"edge": [(2, 3)]})
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "ChangeSet() 1 ()\n"
        database.apply(delete={"edge": [(1, 2)]})
        child.stdin.write("\n")
        child.stdin.close()
        assert child.stdout.readline() == "ChangeSet(-path(1, 2), +path(2, 3)) 3 ()\n"
        child.wait(timeout=HANG_SECONDS)
        child.stdout.close()


def test_a_reader_that_is_far_behind_still_gets_the_exact_change(path: Path) -> None:
    with connect(path) as database, connect(path, None, read_only=True) as reader:
        for number in range(20):
            database.apply(insert={"edge": [(number, number + 1)]})
        before = contents(reader)
        database.compact(deltalog.Retention(versions=3))
        change = reader.refresh()
        assert contents(reader) == contents(database)
        assert change.inserted["path"] == database.facts("path") - before["path"]


def test_a_reader_cannot_write(path: Path) -> None:
    connect(path).close()
    with connect(path, None, read_only=True) as reader:
        assert reader.what_if(insert={"edge": [(1, 2)]}).inserted["path"] == {(1, 2)}
        for act in (
            lambda: reader.apply(insert={"edge": [(1, 2)]}),
            lambda: reader.change_program(GRAPH + "far(X) :- path(X, _)."),
            lambda: reader.compact(),
        ):
            with pytest.raises(deltalog.DataError) as caught:
                act()
            assert caught.value.codes == ("E0907",)
        assert reader.facts("path") == set()


# --- groups ---------------------------------------------------------------------------------------


def test_a_group_is_on_disk_at_its_end(path: Path) -> None:
    with connect(path) as database:
        with database.group(transactions_max=4):
            for number in range(6):
                database.apply(insert={"edge": [(number, number + 1)]})
            assert (database.version, _version_on_disk(path)) == (6, 4)
        assert _version_on_disk(path) == 6
        assert [each.version for each in database.commits()] == [1, 2, 3, 4, 5, 6]


def test_what_was_made_in_a_group_stays_when_the_block_fails(path: Path) -> None:
    with connect(path) as database:
        with pytest.raises(ZeroDivisionError), database.group():  # noqa: PT012
            database.apply(insert={"edge": [(1, 2)]})
            database.apply(insert={"edge": [(1 // 0, 2)]})
        assert _version_on_disk(path) == database.version == 1


def _version_on_disk(path: Path) -> int:
    with connect(path, None, read_only=True) as reader:
        return reader.version


# --- when the disk does not -----------------------------------------------------------------------


def _full(database: deltalog.FileDatabase) -> None:
    """From now on the file cannot grow."""
    count = database._connection.pragma("page_count")
    database._connection.pragma("max_page_count", count)


MANY = [(number, -1) for number in range(20_000)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strategy", ["auto", "differencing"])
def test_a_full_disk_loses_nothing(path: Path, engine: str, strategy: str) -> None:
    program = "base edge(src: int, dst: int). node(X) :- edge(X, _)."
    database = deltalog.connect(path, program=program, engine=engine, strategy=strategy)
    database.apply(insert={"edge": [(1, 2), (2, 3)]})
    before = contents(database)
    _full(database)
    with pytest.raises(deltalog.DataError, match="the disk is full") as caught:
        database.apply(insert={"edge": MANY}, delete={"edge": [(1, 2)]})
    assert caught.value.codes == ("E0906",)
    assert (contents(database), database.version) == (before, 1)
    database._connection.pragma("max_page_count", 1_000_000)
    assert len(database.apply(insert={"edge": MANY}).inserted["edge"]) == len(MANY)
    assert verify_file(database).is_clean
    database.close()
    with deltalog.connect(path, engine=engine, strategy=strategy) as database:
        assert verify_file(database).is_clean
        assert database.version == 2


def test_a_full_disk_undoes_a_group(path: Path) -> None:
    database = connect(path)
    database.apply(insert={"edge": [(1, 2)]})
    before = contents(database)
    _full(database)
    with pytest.raises(deltalog.DataError), database.group():  # noqa: PT012
        database.apply(insert={"edge": [(2, 3)]})
        database.apply(insert={"edge": MANY})
    assert _version_on_disk(path) == database.version
    assert database.version == 1 or database.facts("edge") == {(1, 2), (2, 3)}
    assert before["edge"] <= database.facts("edge")
    assert verify_file(database).is_clean
    database.close()


def test_an_interrupt_behind_the_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is ahead of memory then, which is read again."""
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2)]})
        kept = database._persistence.before_change

        def interrupted(*arguments: Any) -> None:
            kept(*arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(database._persistence, "before_change", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.apply(insert={"edge": [(2, 3)]})
        monkeypatch.undo()
        assert (database.version, len(database.facts("path"))) == (2, 3)
        database.apply(delete={"edge": [(1, 2)]})
        assert verify_file(database).is_clean


def test_an_interrupt_behind_a_transaction_of_a_group(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to undo any more."""
    with connect(path) as database, database.group():
        database.apply(insert={"edge": [(1, 2)]})
        kept = database._persistence.before_change

        def interrupted(*arguments: Any) -> None:
            kept(*arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(database._persistence, "before_change", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.apply(insert={"edge": [(2, 3)]})
        monkeypatch.undo()
        database.apply(insert={"edge": [(3, 4)]})
        assert (database.version, len(database.facts("edge"))) == (3, 3)
    with connect(path) as database:
        assert verify_file(database).is_clean


@pytest.mark.parametrize("is_grouped", [False, True])
def test_an_interrupt_at_any_line(path: Path, is_grouped: bool) -> None:
    """File and memory are at one version afterwards, and the next transaction goes through."""
    with connect(path, "base edge(src: int, dst: int). to(Y) :- edge(_, Y).") as database:
        lines = _interrupted(partial(database.apply, {"edge": [(0, 1)]}), -1)
        assert lines > 100
        for number in range(1, lines, 7):
            with database.group() if is_grouped else nullcontext():
                database.apply(insert={"edge": [(number, -number)]})
                _interrupted(partial(database.apply, {"edge": [(number, number)]}), number)
                database.apply(insert={"edge": [(-number, number)]})
                edges = database.facts("edge")
                assert database.delta(0).inserted["edge"] == edges
                assert database.version == len(edges)
        assert verify_file(database).is_clean
        expected = contents(database)
    with connect(path, None) as database:
        assert contents(database) == expected


def _interrupted(act: Callable[[], object], number: int) -> int:
    """Interrupt before the `number`th line of ours; answers how many there were."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if "deltalog" not in frame.f_code.co_filename:
            return None
        if event == "line":
            seen += 1
            if seen == number:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return seen


def test_a_version_is_what_it_was_when_it_was_asked_for(path: Path) -> None:
    """Another thread may commit while one waits for its turn."""
    with connect(path) as database, ThreadPoolExecutor(1) as pool:
        database.apply(insert={"edge": [(1, 2)]})
        for ask, expected in (
            (lambda: database.facts("edge", 1), {(1, 2)}),
            (lambda: database.delta(2).inserted["edge"], {(3, 4)}),
        ):
            with database._lock:
                answer = pool.submit(ask)
                time.sleep(0.1)
                database.apply(insert={"edge": [(database.version + 1, database.version + 2)]})
            assert answer.result() == expected


def test_a_failure_in_a_group_undoes_only_its_transaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(path) as database:
        with database.group():
            database.apply(insert={"edge": [(1, 2)]})
            for _ in range(2):
                monkeypatch.setattr(writer, "entries_of_commit", lambda *_: 1 // 0)
                with pytest.raises(ZeroDivisionError):
                    database.apply(insert={"edge": [(2, 3)]})
                monkeypatch.undo()
            database.apply(insert={"edge": [(3, 4)]})
        assert (database.version, database.facts("edge")) == (2, {(1, 2), (3, 4)})
        assert verify_file(database).is_clean
    with connect(path) as database:
        assert database.facts("edge") == {(1, 2), (3, 4)}


def test_a_full_disk_stops_a_migration(path: Path) -> None:
    database = connect(path, facts={"edge": MANY})
    _full(database)
    more = GRAPH + "".join(f"copy{n}(X, Y) :- path(X, Y).\n" for n in range(3))
    with pytest.raises(deltalog.DataError) as caught:
        database.change_program(more)
    assert caught.value.codes == ("E0906",)
    assert (database.version, "copy1" in database.relations) == (0, False)
    assert database.facts("edge") == set(MANY)
    assert verify_file(database).is_clean
    database._connection.pragma("max_page_count", 1_000_000)
    database.change_program(more)
    assert verify_file(database).is_clean
    database.close()


_WRITES = """
import resource, signal, sys
import deltalog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
db = deltalog.connect(sys.argv[1], engine="reference", durability="normal")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
acknowledged = db.version
try:
    while True:
        db.apply(insert={"edge": [(db.version + n, -n) for n in range(1000)]})
        acknowledged = db.version
except deltalog.DataError as error:
    print(error.codes[0], acknowledged, db.version, len(db.audit()))
"""


def test_a_write_that_the_system_refuses(path: Path) -> None:
    """With a limit on the size of files, as on a disk that is really full."""
    connect(path).close()
    done = subprocess.run(
        [sys.executable, "-c", _WRITES, str(path), "1000000"], capture_output=True, text=True
    )
    code, acknowledged, version, differences = done.stdout.split()
    assert (code, acknowledged, differences) == ("E0906", version, "0")
    with connect(path, None) as database:
        assert database.version >= int(acknowledged)
        assert verify_file(database).is_clean


_AS_NOBODY = """
import os, sys
import deltalog, deltalog.diagnostics.render
deltalog.connect(sys.argv[2], program="base a(x: int).", engine="reference").close()
if os.geteuid() == 0:  # whom permissions do not stop
    os.setgid(65534)
    os.setuid(65534)
try:
    deltalog.connect(sys.argv[1], engine="reference").apply(insert={"edge": [(5, 6)]})
except deltalog.DataError as error:
    print(error)
with deltalog.connect(sys.argv[1], engine="reference", read_only=True) as db:
    print(sorted(db.facts("edge")))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such permissions")
def test_a_read_only_file(tmp_path: Path) -> None:
    folder = tmp_path / "fixed"
    folder.mkdir()
    path = folder / "graph.db"
    connect(path, facts={"edge": [(1, 2)]}).close()
    whole = path.read_bytes()
    path.chmod(0o444)
    folder.chmod(0o555)
    for each in (tmp_path, *tmp_path.parents[:3]):
        each.chmod(each.stat().st_mode | 0o055)
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(path), str(tmp_path / "other.db")],
        capture_output=True,
        text=True,
    )
    folder.chmod(0o755)
    assert "cannot open the database" in done.stdout, done.stderr
    assert done.stdout.endswith("[(1, 2)]\n")
    assert path.read_bytes() == whole


# --- formats --------------------------------------------------------------------------------------


def test_an_older_format_is_upgraded_with_a_backup(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2)]})

    def upgrade(connection: apsw.Connection) -> None:
        connection.execute("CREATE TABLE deltalog__more (x INTEGER)")

    for module in (storage, copies):
        monkeypatch.setattr(module, "FORMAT", schema.FORMAT + 1)
    monkeypatch.setitem(copies.UPGRADES, schema.FORMAT, upgrade)
    with pytest.raises(deltalog.DataError, match="old format"):
        connect(path, read_only=True)
    with connect(path) as database:
        assert database.facts("path") == {(1, 2)}
    monkeypatch.undo()
    with pytest.raises(deltalog.DataError) as caught:
        connect(path)
    assert caught.value.codes == ("E0904",)
    with connect(path.with_name(f"graph.db.format{schema.FORMAT}")) as kept:
        assert kept.facts("path") == {(1, 2)}


def test_a_file_whose_commits_could_not_omit_views_is_upgraded(path: Path) -> None:
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2)]})
    connection = open_connection(path, is_writable=True)
    connection.execute("DROP VIEW deltalog__changes; CREATE VIEW deltalog__changes AS SELECT 1")
    connection.pragma("user_version", 1)
    connection.close()
    with connect(path) as database:
        assert database.facts("path", 0) == set()
        assert database.delta(0).inserted["path"] == {(1, 2)}
    connection = open_connection(path, is_writable=False)
    found = connection.execute(
        "SELECT relation FROM deltalog__changes ORDER BY relation"
    ).fetchall()
    connection.close()
    assert found == [("edge",), ("path",)]
    assert path.with_name("graph.db.format1").exists()


# --- other types ----------------------------------------------------------------------------------

BIG = 2**53


def _kinds(rows: set[tuple[object, ...]]) -> set[tuple[object, type]]:
    return {(value, type(value)) for (value,) in rows}


@pytest.mark.parametrize("engine", ENGINES)
def test_ints_that_no_float_is(path: Path, engine: str) -> None:
    """What a change of types does to facts is in its delta, and the past keeps its types."""
    program = "base a(x: {0}). v(X) :- a(X)."
    ints = {(1,), (BIG,), (BIG + 1,), (-BIG - 3,)}
    with deltalog.connect(path, program=program.format("int"), engine=engine) as database:
        database.apply(insert={"a": ints})
        gone, came = {(BIG + 1,), (-BIG - 3,)}, {(-float(BIG) - 4,)}
        expected = deltalog.ChangeSet({"a": came, "v": came}, {"a": gone, "v": gone})
        for is_committed in (False, True):
            changed = database.change_program(program.format("float"), is_committed=is_committed)
            assert changed == expected
        database.apply(insert={"a": [(0.1,)]})
        assert database.change_program(program.format("decimal")) == deltalog.ChangeSet(
            {"a": {(Decimal("0.1"),)}, "v": {(Decimal("0.1"),)}}, {"a": {(0.1,)}, "v": {(0.1,)}}
        )
        database.apply(delete={"a": [(1,)]})
    floats = {(1.0,), (float(BIG),), (-float(BIG) - 4,)}
    states = [set(), ints, floats, {*floats, (0.1,)}]
    with deltalog.connect(path, engine=engine) as database:
        for version, facts in enumerate(states):
            assert _kinds(database.facts("a", version)) == _kinds(facts)
            assert _kinds(database.facts("v", version)) == _kinds(facts)
            wanted = _kinds(database.facts("a") - facts)
            assert _kinds(set(database.delta(version).inserted["a"])) == wanted
            wanted = _kinds(facts - database.facts("a"))
            assert _kinds(set(database.delta(version).deleted["a"])) == wanted
        assert verify_file(database).is_clean


def test_keys_that_become_one(path: Path) -> None:
    with connect(path, "base a(x: int key, y: int).") as database:
        database.apply(insert={"a": [(BIG, 1), (BIG + 1, 2)]})
        with pytest.raises(deltalog.DataError):
            database.change_program("base a(x: float key, y: int).")
        database.change_program("base a(x: int key, y: decimal).")
        assert database.facts("a", 1) == {(BIG, 1), (BIG + 1, 2)}


# --- the log and its readers ----------------------------------------------------------------------


def test_a_reader_holds_the_log(path: Path) -> None:
    with connect(path) as database:
        for number in range(10):
            database.apply(insert={"edge": [(number, number)]})
            if number == 3:
                assert database.register("billing") == 4
        assert database.register("billing") == 4
        assert database.compact(deltalog.Retention(versions=0)).overrun == ()
        assert (database.first_version, database.readers) == (4, {"billing": 4})
        assert database.delta(4).only("edge").inserted["edge"] == {(n, n) for n in range(4, 10)}
        database.acknowledge("billing", 8)
        database.acknowledge("billing", 6)
        database.compact(deltalog.Retention(versions=0))
        assert (database.first_version, database.readers) == (8, {"billing": 8})
        database.unregister("billing")
        database.compact(deltalog.Retention(versions=0))
        assert database.first_version == 9
        assert database.facts("edge", 9) == {(n, n) for n in range(9)}
        assert verify_file(database).is_clean


def test_a_size_limit_goes_over_the_head_of_a_reader_and_says_so(path: Path) -> None:
    with connect(path) as database:
        database.register("slow")
        for number in range(50):
            database.apply(insert={"edge": [(number, number)]})
        database.register("quick")
        with pytest.warns(deltalog.RetentionWarning, match="`slow` has only read up to 0"):
            dropped = database.compact(deltalog.Retention(bytes_max=1_000))
        assert dropped.overrun == ("slow",)
        assert 20 < database.first_version < 50
        with pytest.raises(deltalog.DataError) as caught:
            database.delta(0)
        assert caught.value.codes == ("E0909",)


def test_commits_are_kept_for_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2)]})
        time.sleep(0.05)
        between = datetime.now(UTC)
        time.sleep(0.05)
        database.apply(insert={"edge": [(2, 3)]})
        database.compact(deltalog.Retention(seconds=3600))
        assert database.first_version == 0
        now = between + timedelta(seconds=3600)
        monkeypatch.setattr(readers, "datetime", SimpleNamespace(now=lambda zone: now))
        database.compact(deltalog.Retention(seconds=3600))
        assert database.first_version == 1
        database.compact(deltalog.Retention(versions=1, seconds=0))
        assert database.first_version == 1


def test_retention_works_by_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronization, "COMMITS_BETWEEN_COMPACTIONS", 10)
    with connect(path, retention=deltalog.Retention(versions=5)) as database:
        for number in range(30):
            database.apply(insert={"edge": [(number, number)]})
        assert database.first_version == 25
        with database.group():
            database.apply(insert={"edge": [(99, 99)]})


def test_a_reader_elsewhere_can_acknowledge(path: Path) -> None:
    with connect(path) as database, connect(path, None, read_only=True) as reader:
        database.apply(insert={"edge": [(1, 2)]})
        reader.refresh()
        assert reader.register("far away") == 1
        database.apply(insert={"edge": [(2, 3)]})
        reader.refresh()
        reader.acknowledge("far away", 2)
        assert database.readers == {"far away": 2}


def test_a_large_commit_has_several_rows(path: Path) -> None:
    rows = [(number, -number) for number in range(1, 25_001)]
    with connect(path, "base edge(src: int, dst: int).") as database:
        database.apply(insert={"edge": rows})
        database.apply(delete={"edge": rows[:12_000]})
        parts = database._connection.execute("SELECT version FROM deltalog__log").fetchall()
        assert [version for (version,) in parts] == [0, 1, 1, 1, 2, 2]
        (first, second) = database.commits()
        assert first.change.inserted["edge"] == set(rows)
        assert second.change.deleted["edge"] == set(rows[:12_000])
        assert database.facts("edge", 1) == set(rows)


def test_half_a_dropped_commit_is_not_offered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "ROWS_AT_ONCE", 1)
    with connect(path, "base edge(src: int, dst: int).") as database:
        database.apply(insert={"edge": [(number, 0) for number in range(25_000)]})
        database.apply(insert={"edge": [(1, 1)]})
        dropping = readers._drop_log_until(database._connection, 1)
        for _ in range(2):  # the first row, and one of three of the next commit
            next(dropping)
        dropping.close()
        assert database.first_version == 1
        assert len(database.facts("edge", 1)) == 25_000


# --- copies ---------------------------------------------------------------------------------------


def test_a_backup_is_a_database(path: Path) -> None:
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2)]})
        copy = path.with_name("copy.db")
        database.backup(copy)
        with pytest.raises(deltalog.DataError) as caught:
            database.backup(copy)
        assert caught.value.codes == ("E0912",)
        database.apply(insert={"edge": [(2, 3)]})
    with connect(copy) as other:
        assert (other.version, other.facts("edge")) == (1, {(1, 2)})
        assert other.apply(insert={"edge": [(2, 3)]}).inserted["path"] == {(2, 3), (1, 3)}
        assert verify_file(other).is_clean


def test_vacuum_by_another_tool_keeps_the_order_of_facts(path: Path) -> None:
    """Ranks are a column, so numbering rows anew does not touch them."""
    with connect(path) as database:
        database.apply(insert={"edge": [(n, n + 1) for n in range(5)]})
        database.apply(delete={"edge": [(0, 1)]}, insert={"edge": [(5, 0)]})
        before = list(database.engine.ranked("path"))
        database._connection.execute("VACUUM")
    with connect(path) as database:
        assert list(database.engine.ranked("path")) == before


def test_a_database_that_nobody_holds_any_more_is_closed(path: Path) -> None:
    connect(path).apply(insert={"edge": [(1, 2)]})
    gc.collect()
    with connect(path) as database:
        assert database.facts("path") == {(1, 2)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("how", ["close", "collect", "exit", "use"])
def test_a_forked_process_leaves_the_file_alone(path: Path, how: str) -> None:
    result = subprocess.run([sys.executable, "-c", _FORKS, path, how], capture_output=True)
    assert result.stderr == b""
    assert result.stdout.split() == ([b"E0901"] * 3 if how == "use" else []) + [b"False", b"True"]
    with connect(path, None) as database:
        assert database.facts("edge") == {(1, 2), (3, 4)}
        assert verify_file(database).is_clean


_FORKS = """
import gc, os, sys
from pathlib import Path
import deltalog
from deltalog.store.writer_lock import WriterLock
path, how = sys.argv[1:]
program = "base edge(src: int, dst: int)."
db = deltalog.connect(path, program=program, engine="reference")
db.apply(insert={"edge": [(1, 2)]})
db._lock.acquire()
child = os.fork()
if not child:
    acts = [lambda: db.facts("edge"), lambda: db.apply({"edge": [(5, 6)]}), lambda: db.delta(0)]
    for act in acts if how == "use" else ():
        try:
            print(act())
        except deltalog.DataError as error:
            print(*error.codes, flush=True)
    if how == "close":
        db.close()
    if how == "collect":
        del db
        gc.collect()
    if how == "exit":
        sys.exit()
    os._exit(0)
os.waitpid(child, 0)
db._lock.release()
print(WriterLock(Path(path)).is_free(), os.path.exists(path + "-wal"))
db.apply(insert={"edge": [(3, 4)]})
"""


def test_a_link_is_the_file_itself(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path.name)
    with connect(path):
        with pytest.raises(deltalog.DataError) as caught:
            connect(link, None)
        assert caught.value.codes == ("E0905",)
    with connect(link, None) as database:
        database.apply(insert={"edge": [(1, 2)]})
        with pytest.raises(deltalog.DataError) as caught:
            connect(path, None)
        assert caught.value.codes == ("E0905",)
    assert sorted(each.name for each in path.parent.iterdir()) == ["graph.db", "link.db"]


def test_a_file_with_two_names_is_not_written(path: Path) -> None:
    connect(path).close()
    os.link(path, path.with_name("other.db"))
    with pytest.raises(deltalog.DataError, match="hard link") as caught:
        connect(path)
    assert caught.value.codes == ("E0901",)
    connect(path, None, read_only=True).close()


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
@pytest.mark.parametrize("is_grouped", [False, True])
def test_a_file_that_is_no_longer_there(path: Path, how: str, is_grouped: bool) -> None:
    database, aside = connect(path), path.with_name("aside.db")
    reader = connect(path, None, read_only=True)
    database.apply(insert={"edge": [(1, 2)]})
    if how == "replaced":
        aside.write_bytes(path.read_bytes())
        aside.replace(path)
    elif how == "renamed":
        path.rename(aside)
    else:
        path.unlink()
    acts: list[Callable[[], object]] = [
        lambda: database.apply(insert={"edge": [(2, 3)]}),
        lambda: database.change_program(GRAPH + "far(X) :- path(X, _)."),
        lambda: database.register("somebody"),
        reader.refresh,
        database.check_pages,
    ]
    for act in acts:
        grouped = is_grouped and act is acts[0]
        with (
            pytest.raises(deltalog.DataError) as caught,
            database.group() if grouped else nullcontext(),
        ):
            act()
        assert caught.value.codes == ("E0914",)
    assert (database.version, database.facts("edge")) == (1, {(1, 2)})
    reader.close()
    with pytest.raises(deltalog.DataError) as caught:
        database.close()
    assert caught.value.codes == ("E0914",)
    if how == "renamed":
        with connect(aside, None) as database:
            assert database.facts("edge") == {(1, 2)}


def test_a_log_that_has_lost_its_file_is_left_alone(path: Path) -> None:
    log, aside = path.with_name("graph.db-wal"), path.with_name("aside.db")
    database = connect(path)
    database.apply(insert={"edge": [(1, 2)]})
    kept, main = log.read_bytes(), path.read_bytes()
    assert len(main) > 4096  # a new file does not live in its log alone
    database.close()
    path.rename(aside)
    log.write_bytes(kept)
    with pytest.raises(deltalog.DataError, match="db-wal") as caught:
        connect(path)
    assert caught.value.codes == ("E0901",)
    assert log.read_bytes() == kept
    assert not path.exists()
    with pytest.raises(deltalog.DataError, match="no such file"):
        recover_file(aside.with_name("nowhere.db"), "reference")
    assert sorted(each.name for each in path.parent.iterdir()) == ["aside.db", "graph.db-wal"]


@pytest.mark.parametrize("types", [("int", "str"), ("date", "str"), ("decimal", "date")])
def test_a_page_in_the_place_of_another(path: Path, types: tuple[str, str]) -> None:
    """Its checksum is right, and what is in it is not."""
    values = {"int": 1, "str": "a", "date": date(2026, 1, 31), "decimal": Decimal("2.5")}
    program = "".join(f"base {name}(x: {type_}). " for name, type_ in zip("ab", types, strict=True))
    facts = {name: [(values[type_],)] for name, type_ in zip("ab", types, strict=True)}
    connect(path, program, facts=facts).close()
    other = sqlite3.connect(path)
    roots = dict(other.execute("SELECT name, rootpage FROM sqlite_schema WHERE name IN ('a', 'b')"))
    other.close()
    pages = bytearray(path.read_bytes())
    first, second = ((roots[name] - 1) * 4096 for name in "ab")
    pages[first : first + 4096] = pages[second : second + 4096]
    path.write_bytes(pages)
    with pytest.raises(deltalog.DataError) as caught:
        connect(path, None)
    assert caught.value.codes == ("E0903",)


@pytest.mark.parametrize("given", ["", ":memory:", "a\0b", b"a.db", 5])
def test_what_is_no_path(given: Any) -> None:
    with pytest.raises(deltalog.DataError) as caught:
        connect(given)
    assert caught.value.codes == ("E0901",)


@pytest.mark.parametrize(
    "options",
    [
        {"wait": "x"},
        {"wait": -1},
        {"retention": 5},
        {"retention": deltalog.Retention(versions=-1)},
        {"retention": deltalog.Retention(seconds="x")},  # type: ignore[arg-type]
    ],
)
def test_options_are_looked_at_first(path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(deltalog.DataError) as caught:
        connect(path, **options)
    assert caught.value.codes == ("E0710",)
    assert not path.exists()


@pytest.mark.parametrize("name", [5, None, b"a", "", "\ud800"])
def test_the_name_of_a_reader_is_a_text(path: Path, name: Any) -> None:
    with connect(path) as database:
        for act in (database.register, database.unregister, lambda n: database.acknowledge(n, 0)):
            with pytest.raises(deltalog.DataError) as caught:
                act(name)
            assert caught.value.codes == ("E0710",)
        assert database.readers == {}


@pytest.mark.parametrize(
    "retention",
    [
        5,
        "all",
        deltalog.Retention(versions=-1),
        deltalog.Retention(versions=2.5),  # type: ignore[arg-type]
        deltalog.Retention(seconds=float("nan")),
        deltalog.Retention(bytes_max="x"),  # type: ignore[arg-type]
        deltalog.Retention(bytes_max=True),
    ],
)
def test_what_to_keep_is_looked_at(path: Path, retention: Any) -> None:
    with connect(path) as database:
        database.apply(insert={"edge": [(1, 2)]})
        with pytest.raises(deltalog.DataError) as caught:
            database.compact(retention)
        assert caught.value.codes == ("E0710",)
        for seconds in (float("inf"), 10**15):
            assert database.compact(deltalog.Retention(seconds=seconds)).versions == 0
        with pytest.raises(deltalog.DataError), database.group("x"):  # type: ignore[arg-type]
            pass


def test_a_version_is_a_number(path: Path) -> None:
    version: Any = "1"
    with connect(path) as database, pytest.raises(deltalog.DataError) as caught:
        database.facts("edge", version)
    assert caught.value.codes == ("E0909",)


def test_a_file_that_could_not_be_made_is_not_there(path: Path) -> None:
    with pytest.raises(deltalog.DataError):
        connect(path, facts={"edge": [(1, "two")]})
    assert not list(path.parent.iterdir())


_CREATES = """
import resource, signal, sys
import deltalog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
facts = {"edge": [(number, -number) for number in range(20_000)]}
program = "base edge(src: int, dst: int)."
try:
    deltalog.connect(sys.argv[1], program=program, engine="reference", facts=facts)
except deltalog.DataError as error:
    print(*error.codes)
"""


def test_a_file_that_the_disk_has_no_room_for_is_not_there(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CREATES, str(path)], capture_output=True, text=True
    )
    assert done.stdout == "E0906\n", done.stderr
    assert not list(path.parent.iterdir())


_COPIES = """
import resource, signal, sys
from pathlib import Path
import deltalog
from deltalog.store import copies, storage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
source, target = map(Path, sys.argv[1:])
opened = storage.open_to_read(source)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
for act in (copies.back_up_to, copies.restore_backup):
    try:
        act(opened.connection, source, target)
    except deltalog.DataError as error:
        print(error)
"""


def test_a_copy_that_the_disk_has_no_room_for(path: Path) -> None:
    """It is the copy that cannot be written, and nothing is left of it."""
    connect(path, facts={"edge": MANY}).close()
    target = path.with_name("copy.db")
    command = [sys.executable, "-c", _COPIES, str(path), str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert all(f"error[E0711]: cannot write `{target}`" in line for line in lines)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with pytest.raises(deltalog.DataError, match=r"cannot write .*nowhere"), connect(path) as kept:
        kept.backup(path.with_name("nowhere") / "copy.db")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "5",
        "[]x",
        '["+edge"]',
        '{"+edge": 5}',
        '{"+edge": [5]}',
        '{"+edge": [[1]]}',
        '{"+edge": [[1, "x"]]}',
        '{"?edge": [[1, "2026-01-31"]]}',
        '{"+nothing": [[1]]}',
    ],
)
def test_a_row_of_the_log_that_cannot_be_read(path: Path, text: str) -> None:
    with connect(path, "base edge(src: int, on: date).") as database:
        database.apply(insert={"edge": [(1, date(2026, 1, 31))]})
        database._connection.execute("UPDATE deltalog__log SET changes = ?", (text,))
        for act in (database.commits, lambda: database.delta(0), lambda: verify_file(database)):
            with pytest.raises(deltalog.DataError) as caught:
                act()
            assert caught.value.codes == ("E0903",)
        with suppress(deltalog.DataError):  # what of it concerns the relation
            database.facts("edge", 0)


def test_closing_twice_and_using_what_is_closed(path: Path) -> None:
    database = connect(path)
    database.close()
    database.close()
    for act in (lambda: database.facts("path"), lambda: database.query("path(X, Y)")):
        with pytest.raises(deltalog.DataError) as caught:
            act()
        assert caught.value.codes == ("E0911",)
