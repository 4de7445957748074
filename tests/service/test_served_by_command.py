"""Sources behind the command `deltalog serve`: a process, sockets, kills, and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from deltalog.sources import PostgresTable, SqliteTable
from postgres_server import postgres_server
from served_command import ServedFile
from waiting import HANG_SECONDS

CLOSURE = """
base edge(src: str, dst: str).
closure(X, Y) :- edge(X, Y).
closure(X, Y) :- edge(X, Z), closure(Z, Y).
"""
FIRST = [("f", "e"), ("e", "d"), ("e", "a"), ("a", "b")]
SECOND = [("d", "c"), ("b", "c"), ("c", "g")]
GAINED = {("h", "d"), ("h", "c"), ("h", "g")}
LOST = {("a", "c"), ("a", "g"), ("b", "c"), ("b", "g")}
VARIABLE = "GRAPH_DATABASE"
OPTIONS = ("--pull-seconds", "0.02", "--virtual", "--strategy", "closure=demand")
Execute = Callable[[str], object]
Change = tuple[str, set[tuple[Any, ...]], set[tuple[Any, ...]]]


@contextmanager
def command(folder: Path) -> Iterator[ServedFile]:
    options = ["--sources", str(folder / "sources.toml"), *OPTIONS]
    service = ServedFile(folder / "closure.dl", options)
    service.start()
    try:
        yield service
    finally:
        service.kill()


def owned(path: Path) -> Execute:
    """The table of edges in a database of SQLite; returns what changes it."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE edge (src TEXT, dst TEXT)")
    connection.execute(SqliteTable(path, "edge").script("src", "dst"))
    return connection.execute


def insert(execute: Execute, rows: list[tuple[str, str]]) -> None:
    for src, dst in rows:
        execute(f"INSERT INTO edge VALUES ('{src}', '{dst}')")


def read(service: ServedFile, offset: str, **more: str) -> httpx.Response:
    asked = {"offset": offset, **more}
    return httpx.get(service.stream("closure"), params=asked, timeout=HANG_SECONDS, trust_env=False)


def rows_of(answer: httpx.Response) -> Change:
    sides: dict[str, set[tuple[Any, ...]]] = {"insert": set(), "delete": set()}
    for message in answer.json() if answer.status_code == 200 else ():
        if "operation" in message["headers"]:
            value = message.get("value") or message["old_value"]
            sides[message["headers"]["operation"]].add(tuple(value.values()))
    return answer.headers["Stream-Next-Offset"], sides["insert"], sides["delete"]


def followed(service: ServedFile, offset: str, gained: set[Any], lost: set[Any]) -> str:
    """Read until all these changes have come, and see that no other did."""
    inserted: set[Any] = set()
    deleted: set[Any] = set()
    while not (inserted == gained and deleted == lost):
        offset, more, fewer = rows_of(read(service, offset, live="long-poll"))
        assert not more & inserted
        assert not fewer & deleted
        inserted |= more
        deleted |= fewer
        assert inserted <= gained
        assert deleted <= lost
    return offset


def check_the_example(folder: Path, one: Execute, two: Execute, kind: str) -> None:
    """Example 4 of the 1996 paper, with `edge` split over two databases, through a kill."""
    insert(one, FIRST)
    insert(two, SECOND)
    (folder / "closure.dl").write_text(CLOSURE, encoding="utf-8")
    first = '[[sources.edge]]\nkind = "sqlite"\npath = "one.sqlite"\ntable = "edge"\n'
    (folder / "sources.toml").write_text(f"{first}\n[[sources.edge]]\n{kind}", encoding="utf-8")
    with command(folder) as service:
        answer = read(service, "-1")
        assert answer.headers["Deltalog-Precision"] == "exact"
        offset, before, _ = rows_of(answer)
        one("INSERT INTO edge VALUES ('h', 'd')")
        offset = followed(service, offset, GAINED, set())
        two("DELETE FROM edge WHERE src = 'b'")
        offset = followed(service, offset, set(), LOST)
        shown = httpx.get(f"{service.address}/v1/sources", trust_env=False)
        assert {each["pending"] for each in shown.json()["sources"]} == {0}
        service.kill()
        two("INSERT INTO edge VALUES ('b', 'c')")
        service.start()
        assert read(service, offset).status_code == 410  # it was in memory
        _, after, _ = rows_of(read(service, "-1"))
        assert after == before | GAINED
        service.stop()


def test_two_databases_of_sqlite(tmp_path: Path) -> None:
    second = 'kind = "sqlite"\npath = "two.sqlite"\ntable = "edge"\n'
    one, two = owned(tmp_path / "one.sqlite"), owned(tmp_path / "two.sqlite")
    check_the_example(tmp_path, one, two, second)


def test_sqlite_and_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    second = f'kind = "postgres"\nvariable = "{VARIABLE}"\ntable = "edge"\n'
    one = owned(tmp_path / "one.sqlite")
    with postgres_server() as text, psycopg.connect(text, autocommit=True) as connection:
        monkeypatch.setenv(VARIABLE, text)
        connection.execute("CREATE TABLE edge (src text, dst text)")
        connection.execute(PostgresTable(VARIABLE, "edge").script("src", "dst"))
        check_the_example(tmp_path, one, connection.execute, second)
        log = (tmp_path / "closure.log").read_text(encoding="utf-8")
        assert "very-secret" not in log
