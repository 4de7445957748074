"""Queries on rows that are fetched from an engine that has them elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

import deltalog
from deltalog.engines.embedded.engine import EmbeddedEngine
from deltalog.language.ast import Atom, Constant, Query, Row, Variable
from deltalog.runtime import fetched_rows
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.fetched_rows import FetchedRows

PROGRAM = """
    base edge(src: int, dst: int).
    base closed(node: int).
    path(X, Y) :- edge(X, Y), not closed(Y).
    path(X, Z) :- path(X, Y), edge(Y, Z), not closed(Z).
"""
EDGES = [(1, 2), (2, 3), (3, 4), (7, 8), (8, 9)]


class Elsewhere:
    """An engine that counts what is fetched from it."""

    local = EmbeddedEngine

    def __init__(self, database: deltalog.MemoryDatabase) -> None:
        self._engine = database.engine
        self.fetched: dict[str, set[Row]] = {}

    def size(self, relation: str) -> int:
        return self._engine.size(relation)

    def expect(self, relation: str, columns: tuple[int, ...], keys: Collection[Row]) -> None:
        assert columns, "nothing is expected of a whole relation"

    def find(self, relation: str, columns: tuple[int, ...], keys: Collection[Row]) -> list[Row]:
        found = [
            row
            for key in keys
            for row in self._engine.lookup(relation, dict(zip(columns, key, strict=True)))
        ]
        self.fetched.setdefault(relation, set()).update(found)
        return found


@pytest.fixture
def database() -> deltalog.MemoryDatabase:
    facts = {"edge": EDGES, "closed": [(4,)]}
    return deltalog.connect(program=PROGRAM, facts=facts, materialize=False)


def answers(
    rows: FetchedRows, database: deltalog.MemoryDatabase, query: Query, change: ChangeSet
) -> set[Row] | None:
    limits, model = database.limits, database.model.as_written
    found = rows.answer_query(model, query, limits, None, True, change, ())
    return None if found is None else set(found)


def paths(*terms: Any) -> Query:
    made = (Variable(t) if isinstance(t, str) else Constant(t, "int") for t in terms)
    return Query((Atom("path", tuple(made)),))


def test_only_rows_that_are_looked_up_are_fetched(database: deltalog.MemoryDatabase) -> None:
    source = Elsewhere(database)
    rows = FetchedRows(source, database.model.as_written)  # type: ignore[arg-type]
    assert answers(rows, database, paths(1, "Y"), ChangeSet()) == {(2,), (3,)}
    assert source.fetched == {"edge": {(1, 2), (2, 3), (3, 4)}, "closed": {(4,)}}
    source.fetched.clear()
    assert answers(rows, database, paths(2, "Y"), ChangeSet()) == {(3,)}
    assert not source.fetched


def test_a_change_is_read_over_what_is_fetched(database: deltalog.MemoryDatabase) -> None:
    rows = FetchedRows(Elsewhere(database), database.model.as_written)  # type: ignore[arg-type]
    change = ChangeSet({"edge": {(3, 7)}}, {"closed": {(4,)}})
    found = answers(rows, database, paths(2, "Y"), change)
    assert found == {(3,), (4,), (7,), (8,), (9,)}


def test_what_looks_up_too_much_is_left_to_the_engine(
    database: deltalog.MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Elsewhere(database)
    rows = FetchedRows(source, database.model.as_written)  # type: ignore[arg-type]
    monkeypatch.setattr(fetched_rows, "KEYS_MAX", 0)
    assert answers(rows, database, paths(1, "Y"), ChangeSet()) is None
    monkeypatch.undo()
    assert answers(rows, database, paths(1, "Y"), ChangeSet()) is None
    assert not source.fetched
    assert answers(rows, database, paths("X", 9), ChangeSet()) == {(7,), (8,)}
    monkeypatch.setattr(fetched_rows, "WHOLE_MAX", 4)
    assert answers(rows, database, paths("X", "Y"), ChangeSet()) is None
