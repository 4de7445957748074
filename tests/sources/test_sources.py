"""Base relations at sources: probed, never copied, with exact deltas of what they announce."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pyarrow
import pyarrow.parquet
import pytest

import deltalog
from deltalog.engines.external.relation import ExternalRelation
from deltalog.runtime.sourced_database import SourcedDatabase
from deltalog.sources import ParquetFiles, PostgresTable, SqliteTable
from postgres_server import postgres_server

CLOSURE = """
base edge(src: str, dst: str).
closure(X, Y) :- edge(X, Y).
closure(X, Y) :- edge(X, Z), closure(Z, Y).
"""
FIRST = [("f", "e"), ("e", "d"), ("e", "a"), ("a", "b")]
SECOND = [("d", "c"), ("b", "c"), ("c", "g")]


class Owner:
    """Somebody else's SQLite database, with a table that announces its changes."""

    def __init__(self, path: Path, rows: list[tuple[Any, ...]], types: str = "TEXT") -> None:
        self.table = SqliteTable(path, "edge")
        self.connection = apsw.Connection(str(path))
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute(f"CREATE TABLE edge (src {types}, note TEXT, dst {types})")
        self.connection.execute(self.table.script("src", "dst"))
        self.insert(*rows)

    def insert(self, *rows: tuple[Any, ...]) -> None:
        self.connection.executemany("INSERT INTO edge (src, dst) VALUES (?, ?)", rows)

    def delete(self, *rows: tuple[Any, ...]) -> None:
        for row in rows:
            self.connection.execute(
                "DELETE FROM edge WHERE rowid = "
                "(SELECT rowid FROM edge WHERE src IS ? AND dst IS ? LIMIT 1)", row
            )  # fmt: skip


def opened(program: str, sources: dict[str, Any], **options: Any) -> SourcedDatabase:
    made = deltalog.connect(program=program, sources=sources, **options)
    assert isinstance(made, SourcedDatabase)
    return made


@pytest.mark.parametrize("strategy", ["demand", "magic", "auto"])
@pytest.mark.parametrize("nodes", [10, 500])
def test_the_closure_over_two_databases(tmp_path: Path, strategy: str, nodes: int) -> None:
    """Example 4 of the 1996 paper; the rest of the graph is neither copied nor looked at."""
    rest = [(f"x{i}", f"x{(i + 1) % nodes}") for i in range(nodes)]
    one = Owner(tmp_path / "one.sqlite", [*FIRST, *rest])
    two = Owner(tmp_path / "two.sqlite", [*SECOND, ("x0", "g")])
    with opened(
        CLOSURE, {"edge": [one.table, two.table]}, strategy=strategy, materialize=False
    ) as db:
        assert not db.pull()
        one.insert(("h", "d"))
        two.delete(("b", "c"))
        relation = db._external.external["edge"]
        assert isinstance(relation, ExternalRelation)
        before = relation.probes
        delta = db.pull()
        assert delta.inserted["closure"] == {("h", "d"), ("h", "c"), ("h", "g")}
        assert delta.deleted["closure"] == {("a", "c"), ("a", "g"), ("b", "c"), ("b", "g")}
        assert relation.probes - before < 60
        assert db.statistics.total < 200
        assert not db.audit()


def test_what_is_not_pulled_is_not_seen(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "graph.sqlite", FIRST)
    with opened(CLOSURE, {"edge": owner.table}, materialize=False) as db:
        owner.insert(("b", "z"))
        owner.delete(("f", "e"))
        assert set(db.query('closure("a", Y)')) == {("b",)}
        assert set(db.query('closure("f", "e")')) == {()}
        assert [state.pending for state in db.sources] == [2]
        assert db.what_if(insert={"edge": [("z", "y")]}).inserted["closure"] == {("z", "y")}
        delta = db.pull()
        assert ("a", "z") in delta.inserted["closure"]
        assert [state.pending for state in db.sources] == [0]
        assert set(db.query('closure("a", Y)')) == {("b",), ("z",)}


def test_changes_that_are_undone_are_no_change(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "graph.sqlite", FIRST)
    with opened(CLOSURE, {"edge": owner.table}) as db:
        owner.insert(("b", "z"))
        owner.delete(("b", "z"), ("a", "b"))
        owner.insert(("a", "b"))
        assert not db.pull()
        assert db.version == 0


def test_a_row_that_is_there_twice_holds_until_both_are_gone(tmp_path: Path) -> None:
    one = Owner(tmp_path / "one.sqlite", [("a", "b"), ("a", "b")])
    two = Owner(tmp_path / "two.sqlite", [("a", "b")])
    with opened(CLOSURE, {"edge": [one.table, two.table]}) as db:
        one.delete(("a", "b"))
        assert not db.pull()
        two.delete(("a", "b"))
        assert not db.pull()
        one.delete(("a", "b"))
        assert db.pull().deleted["closure"] == {("a", "b")}
        two.insert(("a", "b"))
        assert db.pull().inserted["closure"] == {("a", "b")}


def test_constraints_refuse_a_pull_until_the_source_is_mended(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "graph.sqlite", FIRST)
    program = CLOSURE + "deny cycle(X) :- closure(X, X)."
    with opened(program, {"edge": owner.table}) as db:
        owner.insert(("b", "f"))
        for _ in range(2):
            with pytest.raises(deltalog.ConstraintError):
                db.pull()
            assert set(db.query('closure("b", Y)')) == set()
        owner.delete(("e", "a"))
        delta = db.pull()
        assert ("b", "f") in delta.inserted["closure"]
        assert not db.audit()


def test_values_of_every_type(tmp_path: Path) -> None:
    path = tmp_path / "values.sqlite"
    table = SqliteTable(path, "v")
    names = ("i", "f", "s", "b", "d", "t", "c")
    owner = apsw.Connection(str(path))
    owner.execute(f"CREATE TABLE v ({', '.join(names)})")
    owner.execute(table.script(*names))
    program = """
    base v(i: int, f: float, s: str, b: bool, d: date, t: timestamp, c: decimal?).
    found(S) :- v(I, F, S, true, D, T, null), I > 0.
    """
    with opened(program, {"v": table}, materialize=False) as db:
        row = (1, 2.5, "ü 'x'", 1, "2026-01-31", "2026-01-31 12:30:00", None)
        owner.execute("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        assert db.pull().inserted["found"] == {("ü 'x'",)}
        owner.execute("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?)", ("one", *row[1:]))
        with pytest.raises(deltalog.DataError, match="E0704"):
            db.pull()
        owner.execute("DELETE FROM v WHERE i = 'one'")
        owner.execute("DELETE FROM v_changes WHERE i = 'one'")
        assert not db.pull()


def test_facts_at_a_source_are_not_changed_from_here(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "graph.sqlite", FIRST)
    program = CLOSURE + "base noted(n: str)."
    with opened(program, {"edge": owner.table}) as db:
        for change in ({"insert": {"edge": [("p", "q")]}}, {"delete": {"edge": [("a", "b")]}}):
            with pytest.raises(deltalog.DataError, match="E1802"):
                db.apply(**change)
        db.apply(insert={"noted": [("n",)]})
        assert db.facts("noted") == {("n",)}
        assert db.facts("edge") == set(FIRST)
    with pytest.raises(deltalog.DataError, match="E1802"):
        opened(CLOSURE, {"edge": owner.table}, facts={"edge": [("p", "q")]})


def test_nothing_is_ever_written_to_a_source(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    owner = Owner(path, FIRST)
    owner.connection.close()
    before = path.read_bytes()
    with opened(CLOSURE, {"edge": owner.table}) as db:
        db.pull()
        db.what_if(insert={"edge": [("p", "q")]})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"egde": SqliteTable("x", "edge")}, "no such relation"),
        ({"closure": SqliteTable("x", "edge")}, "not a declared base relation"),
        ({"edge": "x.sqlite"}, "'x"),
        ({"edge": []}, "empty"),
    ],
)
def test_what_is_no_source_is_refused(sources: dict[str, Any], message: str) -> None:
    with pytest.raises(deltalog.DataError, match=message) as caught:
        opened(CLOSURE, sources)
    assert caught.value.diagnostics[0].code == "E1803"


@pytest.mark.parametrize("columns", [(), (("src", "dst"),)], ids=str)
def test_a_script_is_for_columns_by_name(columns: tuple[Any, ...]) -> None:
    for table in (SqliteTable("graph.sqlite", "edge"), PostgresTable("GRAPH", "edge")):
        with pytest.raises(deltalog.DataError, match=r"E0726[^$]*give the columns one by one"):
            table.script(*columns)


def test_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(deltalog.DataError, match="E1801"):
        opened(CLOSURE, {"edge": SqliteTable(tmp_path / "none.sqlite", "edge")})
    empty = tmp_path / "empty.sqlite"
    apsw.Connection(str(empty)).execute("CREATE TABLE edge (src, dst)")
    hint = r'edge_changes[^$]*runs the SQL of `script\("src", "dst"\)` once'
    with pytest.raises(deltalog.DataError, match=hint):
        opened(CLOSURE, {"edge": SqliteTable(empty, "edge")})
    with pytest.raises(deltalog.DataError, match="E0724"):
        deltalog.connect(
            tmp_path / "file.db",
            program=CLOSURE,
            sources={"edge": SqliteTable(empty, "edge")},  # type: ignore[call-overload]
        )


def test_parquet_files_with_a_file_of_changes(tmp_path: Path) -> None:
    files, changes = tmp_path / "edges", tmp_path / "edges.jsonl"
    files.mkdir()
    write_edges(files, FIRST)
    changes.write_text("", encoding="utf-8")
    source = ParquetFiles(files, changes)
    with opened(CLOSURE, {"edge": source}, materialize=False) as db:
        assert [state.precision for state in db.sources] == ["eventual"]
        write_edges(files, [*FIRST[1:], ("b", "z")])
        announce(changes, "-", "f", "e")
        announce(changes, "+", "b", "z")
        assert ("f", "b") in db.facts("closure")
        delta = db.pull()
        assert ("a", "z") in delta.inserted["closure"]
        assert ("f", "b") in delta.deleted["closure"]
        assert not db.audit()
        with changes.open("a", encoding="utf-8") as file:
            file.write('{"op": "?"}\n')
        with pytest.raises(deltalog.DataError, match=r"line 3 of edges\.jsonl"):
            db.pull()


def write_edges(folder: Path, rows: list[tuple[str, str]]) -> None:
    table = pyarrow.table({"src": [a for a, _ in rows], "dst": [b for _, b in rows]})
    pyarrow.parquet.write_table(table, folder / "part.parquet")


def announce(path: Path, op: str, source: str, target: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"op": op, "row": {"src": source, "dst": target}}) + "\n")


# --- PostgreSQL


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A PostgreSQL server of its own; its connection string is in the environment."""
    with postgres_server() as text:
        monkeypatch.setenv("GRAPH_DATABASE", text)
        yield text


def test_a_table_of_postgresql(server: str) -> None:
    """Transactions that commit in another order than they wrote are not missed."""
    import psycopg

    table = PostgresTable("GRAPH_DATABASE", "edge")
    early = psycopg.connect(server)
    late = psycopg.connect(server, autocommit=True)
    late.execute("CREATE TABLE edge (src text, dst text)")
    late.execute(table.script("src", "dst"))
    late.cursor().executemany("INSERT INTO edge VALUES (%s, %s)", FIRST)
    with opened(CLOSURE, {"edge": table}, materialize=False) as db:
        assert not db.pull()
        early.execute("INSERT INTO edge VALUES ('b', 'early')")
        late.execute("INSERT INTO edge VALUES ('b', 'late')")
        assert ("f", "late") in db.pull().inserted["closure"]
        early.commit()
        delta = db.pull()
        assert ("f", "early") in delta.inserted["closure"]
        assert ("f", "late") not in delta.inserted["closure"]
        early.execute("UPDATE edge SET dst = 'd' WHERE dst = 'early'")
        assert not db.pull()
        early.commit()
        delta = db.pull()
        assert ("a", "early") in delta.deleted["closure"]
        assert ("a", "d") in delta.inserted["closure"]
        assert not db.audit()
        others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
        late.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        with pytest.raises(deltalog.DataError, match="E1801") as caught:
            db.pull()
        assert "secret" not in str(caught.value)
        assert "owner" not in str(caught.value)
    early.close()
    late.close()


def test_credentials_are_in_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = PostgresTable("GRAPH_DATABASE", "edge")
    monkeypatch.delenv("GRAPH_DATABASE", raising=False)
    with pytest.raises(deltalog.DataError, match="no variable GRAPH_DATABASE"):
        opened(CLOSURE, {"edge": table})
    text = f"host={tmp_path} user=someone password=very-secret"
    monkeypatch.setenv("GRAPH_DATABASE", text)
    with pytest.raises(deltalog.DataError, match="E1801") as caught:
        opened(CLOSURE, {"edge": table})
    assert "very-secret" not in str(caught.value)
    assert "someone" not in str(caught.value)
