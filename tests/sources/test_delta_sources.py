"""Delta tables as sources: probed where they lie, and announcing by their versions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw
import pyarrow
import pyarrow.dataset
import pytest
from deltalake import DeltaTable, write_deltalake

import deltalog
from deltalog.runtime.sourced_database import SourcedDatabase
from deltalog.sources import DeltaLakeTable, SqliteTable
from deltalog.sources.delta_table import DeltaSource

CLOSURE = """
base edge(src: str, dst: str).
closure(X, Y) :- edge(X, Y).
closure(X, Y) :- edge(X, Z), closure(Z, Y).
"""
FIRST = [("f", "e"), ("e", "d"), ("e", "a"), ("a", "b")]
SECOND = [("d", "c"), ("b", "c"), ("c", "g")]
FEED = {"delta.enableChangeDataFeed": "true"}


def rows_table(rows: list[tuple[str, str]], **more: list[Any]) -> pyarrow.Table:
    return pyarrow.table(
        {
            "src": pyarrow.array([r[0] for r in rows], pyarrow.string()),
            "dst": pyarrow.array([r[1] for r in rows], pyarrow.string()),
            "note": pyarrow.array(["" for _ in rows], pyarrow.string()),
            **more,
        }
    )


def written(path: Path, rows: list[tuple[str, str]], **options: Any) -> DeltaLakeTable:
    write_deltalake(str(path), rows_table(rows), mode="append", **options)
    return DeltaLakeTable(path)


def delete(path: Path, src: str, dst: str) -> None:
    DeltaTable(str(path)).delete(f"src = '{src}' AND dst = '{dst}'")


def opened(program: str, sources: dict[str, Any], **options: Any) -> SourcedDatabase:
    made = deltalog.connect(program=program, sources=sources, **options)
    assert isinstance(made, SourcedDatabase)
    return made


@pytest.mark.parametrize("strategy", ["demand", "auto"])
@pytest.mark.parametrize("feed", [None, FEED])
def test_the_closure_over_databases_of_two_kinds(tmp_path: Path, strategy: str, feed: Any) -> None:
    """Example 4 of the 1996 paper, with `edge` split over a Delta table and SQLite."""
    one = written(tmp_path / "one", FIRST, configuration=feed)
    owner = apsw.Connection(str(tmp_path / "two.sqlite"))
    owner.execute("CREATE TABLE edge (src TEXT, dst TEXT)")
    two = SqliteTable(tmp_path / "two.sqlite", "edge")
    owner.execute(two.script("src", "dst"))
    owner.executemany("INSERT INTO edge VALUES (?, ?)", SECOND)
    with opened(CLOSURE, {"edge": [one, two]}, strategy=strategy, materialize=False) as db:
        assert [each.precision for each in db.sources] == ["exact", "exact"]
        assert not db.pull()
        written(tmp_path / "one", [("h", "d")])
        owner.execute("DELETE FROM edge WHERE src = 'b'")
        assert [each.pending for each in db.sources] == [1, 1]
        assert ("h", "c") not in db.facts("closure")  # it is rolled back until it is pulled
        delta = db.pull()
        assert delta.inserted["closure"] == {("h", "d"), ("h", "c"), ("h", "g")}
        assert delta.deleted["closure"] == {("a", "c"), ("a", "g"), ("b", "c"), ("b", "g")}
        delete(tmp_path / "one", "e", "a")
        assert ("e", "a") in db.pull().deleted["edge"]


def test_files_that_are_only_rearranged_announce_nothing(tmp_path: Path) -> None:
    table = written(tmp_path / "one", FIRST)
    written(tmp_path / "one", SECOND)
    with opened(CLOSURE, {"edge": table}) as db:
        DeltaTable(str(tmp_path / "one")).optimize.compact()
        assert not db.pull()
        write_deltalake(str(tmp_path / "one"), rows_table(FIRST), mode="overwrite")
        assert db.pull().deleted["edge"] == set(SECOND)
        assert db.facts("edge") == set(FIRST)


def test_a_row_that_is_there_twice(tmp_path: Path) -> None:
    table = written(tmp_path / "one", FIRST)
    written(tmp_path / "one", FIRST[:1])
    with opened(CLOSURE, {"edge": table}) as db:
        write_deltalake(str(tmp_path / "one"), rows_table(FIRST), mode="overwrite")
        assert not db.pull()
        assert db.facts("edge") == set(FIRST)


def test_partitions_are_columns(tmp_path: Path) -> None:
    table = written(tmp_path / "one", FIRST, partition_by=["src"])
    with opened(CLOSURE, {"edge": table}) as db:
        assert db.facts("edge") == set(FIRST)
        written(tmp_path / "one", [("h", "d")])
        assert db.pull().inserted["edge"] == {("h", "d")}


def test_a_probe_skips_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose bounds exclude a key are not read."""
    for number in range(5):
        written(tmp_path / "one", [(f"{number}a", "x"), (f"{number}z", "y")])
    with opened(CLOSURE, {"edge": DeltaLakeTable(tmp_path / "one")}, materialize=False) as db:
        (source,) = db._external.sources["edge"]
        assert isinstance(source, DeltaSource)
        found = pyarrow.dataset.field("src") == "3m"
        assert len(list(source._table_dataset().get_fragments(filter=found))) == 1
        assert list(db.query('edge("3z", X)')) == [("y",)]


@pytest.mark.parametrize("feed", [None, FEED])
def test_random_versions(tmp_path: Path, feed: Any) -> None:
    """Every pull is the exact difference to the version of the table, whatever made it."""
    path, chance = tmp_path / "one", random.Random(3)
    table = written(path, FIRST, configuration=feed)
    with opened(CLOSURE, {"edge": table}, materialize=False, strategy="demand") as db:
        held = db.facts("closure")
        for _ in range(12):
            for _ in range(chance.randrange(3)):
                row = (chance.choice("abcd"), chance.choice("abcd"))
                action = chance.randrange(4)
                if action == 0:
                    delete(path, *row)
                elif action == 1:
                    DeltaTable(str(path)).update(
                        predicate=f"src = '{row[0]}'", updates={"dst": f"'{row[1]}'"}
                    )
                elif action == 2 and feed is None:
                    DeltaTable(str(path)).optimize.compact()
                else:
                    written(path, [row])
            delta = db.pull()
            held = (held - delta.deleted["closure"]) | delta.inserted["closure"]
            data = DeltaTable(str(path)).to_pyarrow_table(columns=["src", "dst"])
            edges = set(zip(*(column.to_pylist() for column in data.columns), strict=True))
            with deltalog.connect(program=CLOSURE, facts={"edge": list(edges)}) as oracle:
                assert held == oracle.facts("closure")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(deltalog.DataError, match="there is no such table"):
        opened(CLOSURE, {"edge": DeltaLakeTable(tmp_path / "none")})
    write_deltalake(str(tmp_path / "one"), pyarrow.table({"src": ["a"]}))
    with pytest.raises(deltalog.DataError, match="it has no column `dst`"):
        opened(CLOSURE, {"edge": DeltaLakeTable(tmp_path / "one")})
    table = written(tmp_path / "two", FIRST)
    with opened(CLOSURE, {"edge": table}, materialize=False, strategy="demand") as db:
        write_deltalake(str(tmp_path / "two"), rows_table(SECOND), mode="overwrite")
        DeltaTable(str(tmp_path / "two")).vacuum(0, dry_run=False, enforce_retention_duration=False)
        with pytest.raises(deltalog.DataError, match="files of version 0 are gone"):
            db.pull()
