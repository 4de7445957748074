"""Sources behind the service: what tables elsewhere announce is streamed as exact deltas."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import pyarrow
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake

import deltalog
from deltalog.cli.opening import Settings
from deltalog.cli.progress import Progress
from deltalog.cli.served import Served, open_served
from deltalog.service.app import make_app
from deltalog.service.background import background_app
from deltalog.service.host import Host
from deltalog.service.settings import ServiceSettings
from deltalog.sources import SqliteTable
from waiting import HANG_SECONDS, wait_until

CLOSURE = """
base edge(src: str, dst: str).
base weight(node: str, grams: int).
closure(X, Y) :- edge(X, Y).
closure(X, Y) :- edge(X, Z), closure(Z, Y).
heavy(X) :- weight(X, G), G > 10.
"""
FIRST = [("f", "e"), ("e", "d"), ("e", "a"), ("a", "b")]
SECOND = [("d", "c"), ("b", "c"), ("c", "g")]
SOURCES = """
[[sources.edge]]
kind = "sqlite"
path = "one.sqlite"
table = "edge"

[[sources.edge]]
kind = "delta"
path = "two"

[sources.weight]
kind = "parquet"
path = "weight.parquet"
changes = "weight.changes.jsonl"
"""


class Owners:
    """Somebody else's tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sqlite = apsw.Connection(str(folder / "one.sqlite"))
        self.sqlite.execute("PRAGMA journal_mode = WAL")
        self.sqlite.execute("CREATE TABLE edge (src TEXT, dst TEXT)")
        table = SqliteTable(folder / "one.sqlite", "edge")
        self.sqlite.execute(table.script("src", "dst"))
        self.sqlite.executemany("INSERT INTO edge VALUES (?, ?)", FIRST)
        self.append(SECOND)
        weights = pyarrow.table({"node": ["a"], "grams": [20]})
        pyarrow.parquet.write_table(weights, folder / "weight.parquet")
        (folder / "weight.changes.jsonl").touch()
        (folder / "sources.toml").write_text(SOURCES)
        (folder / "closure.dl").write_text(CLOSURE)

    def append(self, rows: list[tuple[str, str]]) -> None:
        data = pyarrow.table({"src": [r[0] for r in rows], "dst": [r[1] for r in rows]})
        write_deltalake(str(self.folder / "two"), data, mode="append")

    def delete(self, row: tuple[str, str]) -> None:
        DeltaTable(str(self.folder / "two")).delete(f"src = '{row[0]}' AND dst = '{row[1]}'")

    def opened(self, **options: Any) -> deltalog.MemoryDatabase:
        given = Served(self.folder / "closure.dl", sources=self.folder / "sources.toml")
        return open_served(given, Settings(deltalog.Limits(), **options), Progress())


@contextmanager
def served(database: deltalog.MemoryDatabase) -> Iterator[httpx.Client]:
    settings = ServiceSettings(port=0)
    app = make_app(Host(database, pull_seconds=0.02), settings)
    with (
        background_app(app, settings) as address,
        httpx.Client(base_url=address, timeout=HANG_SECONDS, trust_env=False) as client,
    ):
        yield client


def followed(client: httpx.Client, offset: str, view: str = "closure") -> tuple[str, Any, Any]:
    """The next change of a view behind an offset: inserted, deleted."""
    while True:
        read = client.get(f"/v1/views/{view}/stream?offset={offset}&live=long-poll")
        assert read.status_code in (200, 204), read.text
        offset = read.headers["Stream-Next-Offset"]
        if read.status_code == 200 and read.json():
            break
    sides: dict[str, set[tuple[Any, ...]]] = {"insert": set(), "delete": set()}
    for message in read.json():
        value = message.get("value") or message["old_value"]
        sides[message["headers"]["operation"]].add(tuple(value.values()))
    return offset, sides["insert"], sides["delete"]


@pytest.mark.parametrize("materialize", [False, True])
def test_announcements_become_exact_deltas(tmp_path: Path, materialize: bool) -> None:
    """The example of the 1996 paper, with the edges at a Delta table and at SQLite."""
    owners = Owners(tmp_path)
    options = {"materialize": materialize, "strategy": "auto" if materialize else "demand"}
    with served(owners.opened(**options)) as client:
        first = client.get("/v1/views/closure/stream")
        offset = first.headers["Stream-Next-Offset"]
        assert first.headers["Deltalog-Precision"] == "exact"
        owners.sqlite.execute("INSERT INTO edge VALUES ('h', 'd')")
        offset, inserted, deleted = followed(client, offset)
        assert (inserted, deleted) == ({("h", "d"), ("h", "c"), ("h", "g")}, set())
        owners.delete(("b", "c"))
        offset, inserted, deleted = followed(client, offset)
        assert inserted == set()
        assert deleted == {("a", "c"), ("a", "g"), ("b", "c"), ("b", "g")}


def test_only_what_is_subscribed_to_is_propagated(tmp_path: Path) -> None:
    """Shown by counts: without a subscriber a pull generates no fact of a virtual view."""
    owners = Owners(tmp_path)
    database = owners.opened(materialize=False, strategy="demand")
    counts: list[int] = []
    pull = database.pull  # type: ignore[attr-defined]

    def counted(**options: Any) -> Any:
        change = pull(**options)
        if change:
            counts.append(sum(database.statistics.generated.values()))
        return change

    database.pull = counted  # type: ignore[attr-defined]
    with served(database) as client:
        owners.sqlite.execute("INSERT INTO edge VALUES ('h', 'd')")
        wait_until(lambda: len(counts) == 1, "it is pulled")
        offset = client.get("/v1/views/closure/stream").headers["Stream-Next-Offset"]
        owners.sqlite.execute("INSERT INTO edge VALUES ('i', 'h')")
        followed(client, offset)
        wait_until(lambda: len(counts) == 2, "the pull that was streamed has ended")
        assert counts[0] == 0
        assert counts[1] > 3


def test_the_label_of_a_source_is_shown(tmp_path: Path) -> None:
    owners = Owners(tmp_path)
    with served(owners.opened()) as client:
        shown = client.get("/v1/sources").json()
        labels = sorted({(each["relation"], each["precision"]) for each in shown["sources"]})
        assert labels == [("edge", "exact"), ("weight", "eventual")]
        for view, label in (("heavy", "eventual"), ("weight", "eventual"), ("closure", "exact")):
            assert client.get(f"/v1/views/{view}/stream").headers["Deltalog-Precision"] == label


def test_facts_at_a_source_are_not_written(tmp_path: Path) -> None:
    owners = Owners(tmp_path)
    with served(owners.opened()) as client:
        answer = client.post("/v1/transactions", json={"insert": {"edge": [["x", "y"]]}})
        assert answer.json()["code"] == "E1802"
        tried = client.post("/v1/what-if", json={"insert": {"edge": [["x", "y"]]}})
        assert tried.json()["delta"]["inserted"]["closure"] == [["x", "y"]]


def test_a_source_that_fails_comes_back(tmp_path: Path) -> None:
    owners = Owners(tmp_path)
    with served(owners.opened(materialize=False)) as client:
        offset = client.get("/v1/views/closure/stream").headers["Stream-Next-Offset"]
        owners.sqlite.execute("INSERT INTO edge VALUES (17, NULL)")
        wait_until(lambda: problem(client) is not None, "the pull fails")
        assert client.get("/health").status_code == 200
        owners.sqlite.execute("DELETE FROM edge WHERE dst IS NULL")
        owners.sqlite.execute("DELETE FROM edge_changes WHERE dst IS NULL")
        owners.append([("y", "z")])
        offset, inserted, _ = followed(client, offset)
        assert inserted == {("y", "z")}
        assert problem(client) is None


def problem(client: httpx.Client) -> str | None:
    answer = client.get("/v1/sources")
    document = answer.json()
    return str(document["code"]) if answer.status_code != 200 else document["problem"]


def test_a_stream_of_an_earlier_process_begins_anew(tmp_path: Path) -> None:
    owners = Owners(tmp_path)
    with served(owners.opened()) as client:
        offset = client.get("/v1/views/closure/stream").headers["Stream-Next-Offset"]
    with served(owners.opened()) as client:
        assert client.get(f"/v1/views/closure/stream?offset={offset}").status_code == 410
        assert client.get("/v1/views/closure/stream?offset=-1").status_code == 200


def test_copies_equal_recomputation_while_sources_change(tmp_path: Path) -> None:
    owners, chance = Owners(tmp_path), random.Random(5)
    copy: set[tuple[Any, ...]] = set()
    with served(owners.opened(materialize=False, strategy="demand")) as client:
        read = client.get("/v1/views/closure/stream")
        copy = {tuple(m["value"].values()) for m in read.json() if "operation" in m["headers"]}
        offset = read.headers["Stream-Next-Offset"]
        for step in range(10):
            row = (chance.choice("abcd"), chance.choice("efgh"))
            if step % 3:
                owners.sqlite.execute("INSERT INTO edge VALUES (?, ?)", row)
                owners.sqlite.execute("DELETE FROM edge WHERE src = ?", (chance.choice("ef"),))
            else:
                owners.append([row])
        owners.append([("last", "one")])
        while ("last", "one") not in copy:
            offset, inserted, deleted = followed(client, offset)
            assert not inserted & copy
            assert deleted <= copy
            copy = (copy - deleted) | inserted
        data = DeltaTable(str(tmp_path / "two")).to_pyarrow_table()
        edges = {tuple(row.values()) for row in data.to_pylist()}
        edges |= set(owners.sqlite.execute("SELECT src, dst FROM edge"))
        with deltalog.connect(program=CLOSURE, facts={"edge": list(edges)}) as oracle:
            assert copy == oracle.facts("closure")


def test_the_file_of_sources_is_checked(tmp_path: Path) -> None:
    owners = Owners(tmp_path)
    (tmp_path / "sources.toml").write_text(
        '[sources.edge]\nkind = "sqlite"\npath = "x"\ntabel = "edge"\n'
        '[sources.weight]\nkind = "csv"'
    )
    with pytest.raises(deltalog.DataError) as refused:
        owners.opened()
    assert set(refused.value.codes) == {"E1804"}
    assert "table" in str(refused.value)
    assert "delta, parquet, postgres, sqlite" in str(refused.value)
