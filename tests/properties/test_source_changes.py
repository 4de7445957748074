"""Sources that change while they are probed: every pull is the exact change between two snapshots.

Random programs over tables in SQLite files; each probe lets the owner commit one more change, which
the running transaction must not see. A plain database is brought from snapshot to snapshot beside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from effort import effort
from hypothesis import given
from programs import Facts, Features, Row, Scenario, scenarios

import deltalog
from deltalog.runtime.sourced_database import SourcedDatabase
from deltalog.sources import SqliteTable
from deltalog.sources.sqlite_table import SqliteSource
from treatments import LIMITS

Write = tuple[str, bool, Row]
PLACES = 2


class Owner:
    """The tables of all base relations, spread over files; writes wait until they are due."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self.waiting: list[Write] = []
        self.content: dict[str, set[Row]] = {}
        self.at_snapshot: dict[str, set[Row]] = {}
        self._files = [apsw.Connection(str(folder / f"{i}.sqlite")) for i in range(PLACES)]
        self.tables: dict[str, list[SqliteTable]] = {}
        for file in self._files:
            file.execute("PRAGMA journal_mode = WAL")
        for declared in scenario.program.declarations:
            if declared.kind == "base" and declared.columns:
                self._create(folder, declared.predicate, [c.name for c in declared.columns])
        for name, rows in scenario.facts.items():
            for row in rows:
                self.write((name, True, row))

    def _create(self, folder: Path, name: str, columns: list[str]) -> None:
        self.content[name] = set()
        self.tables[name] = [SqliteTable(folder / f"{i}.sqlite", name) for i in range(PLACES)]
        for file, table in zip(self._files, self.tables[name], strict=True):
            file.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            file.execute(table.script(*columns))

    def write(self, change: Write) -> None:
        """Commit one change, at the place of the row."""
        name, is_inserted, row = change
        if name not in self.content or (row in self.content[name]) == is_inserted:
            return  # a relation without columns is no table, and stays empty here
        marks = ", ".join("?" * len(row))
        file = self._files[sum(row) % PLACES]
        if is_inserted:
            file.execute(f"INSERT INTO {name} VALUES ({marks})", row)
            self.content[name].add(row)
        else:
            columns = [each[1] for each in file.execute(f"PRAGMA table_info({name})")]
            tests = " AND ".join(f"{column} = ?" for column in columns)
            file.execute(f"DELETE FROM {name} WHERE {tests}", row)
            self.content[name].discard(row)

    def write_next(self) -> None:
        if self.waiting:
            self.write(self.waiting.pop(0))

    def take_snapshot(self) -> None:
        self.at_snapshot = {name: set(rows) for name, rows in self.content.items()}


def writes(facts: Facts, is_inserted: bool) -> Iterator[Write]:
    for name, rows in sorted(facts.items()):
        for row in sorted(rows):
            yield name, is_inserted, row


def difference(before: Facts, after: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    inserted = {name: sorted(rows - before[name]) for name, rows in after.items()}
    deleted = {name: sorted(before[name] - rows) for name, rows in after.items()}
    return inserted, deleted


def views(database: Any) -> Iterable[str]:
    return sorted(name for name, each in database.relations.items() if each.kind != "base")


@pytest.mark.parametrize("materialize", [False, True], ids=["virtual", "stored"])
def test_pulls_are_exact_while_sources_change(
    materialize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[Owner] = []
    plain_find, plain_open = SqliteSource.find, SqliteSource.open

    def find(self: SqliteSource, columns: tuple[int, ...], key: Any) -> Any:
        owners[-1].write_next()
        return plain_find(self, columns, key)

    def open_(self: SqliteSource) -> None:
        owners[-1].take_snapshot()
        plain_open(self)

    monkeypatch.setattr(SqliteSource, "find", find)
    monkeypatch.setattr(SqliteSource, "open", open_)

    @effort(quick=20, fuzz=1_500)
    @given(scenarios(Features(view_declarations=not materialize)))
    def run(scenario: Scenario) -> None:
        with tempfile.TemporaryDirectory() as folder:
            owner = Owner(Path(folder), scenario)
            owners.append(owner)
            check(scenario, owner, materialize)

    run()


def check(scenario: Scenario, owner: Owner, materialize: bool) -> None:
    common: dict[str, Any] = {"program": scenario.program, "limits": LIMITS}
    known = {name: set(rows) for name, rows in owner.content.items()}
    beside = deltalog.connect(**common, engine="reference", facts=known)
    db = deltalog.connect(**common, materialize=materialize, sources=owner.tables)
    assert isinstance(db, SourcedDatabase)
    with db:
        for inserts, deletes in [*scenario.transactions, ({}, {}), ({}, {})]:
            owner.waiting += [*writes(deletes, False), *writes(inserts, True)]
            for _ in range(len(owner.waiting) // 2):
                owner.write_next()
            delta = db.pull()
            pulled = owner.at_snapshot
            inserted, deleted = difference(known, pulled)
            expected = beside.apply(insert=inserted, delete=deleted)
            known = pulled
            assert delta.only(*views(db)) == expected.only(*views(db))
            for view in views(db):
                assert db.facts(view) == beside.facts(view)
        while owner.waiting:
            owner.write_next()
        db.pull()
        assert not db.audit()
