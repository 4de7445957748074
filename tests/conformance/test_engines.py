"""What every engine must do with relations, checked against plain Python sets.

One random history of operations on several relations of all types runs on an engine and on a model
of it; after every operation everything that can be read is compared.
"""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from deltalog.engines import extensions
from deltalog.engines.base import Engine, LazyRows
from deltalog.language.ast import Row
from deltalog.runtime.engine_choice import ENGINES

SHAPES: dict[str, tuple[str, ...]] = {
    "none": (),
    "one": ("int",),
    "pair": ("int", "int"),
    "mixed": ("str", "date", "float"),
    "rest": ("bool", "decimal", "timestamp", "int"),
    "wide": ("int", "str") * 35,
}
VALUES: dict[str, list[Any]] = {
    "int": [0, 1, -1, 7, 2**63 - 1, -(2**63) + 1, None],
    "str": ["", "a", "b", "ä", "a" * 300, None],
    "date": [date(1, 1, 1), date(2026, 1, 31), date(9999, 12, 31), None],
    "float": [0.0, 1.5, -2.25, 1e308, 5e-324, None],
    "bool": [True, False, None],
    "decimal": [Decimal(0), Decimal("1.5"), Decimal("-0.000000000000000001"), None],
    "timestamp": [datetime(1970, 1, 1), datetime(2026, 1, 31, 12, 0, 0, 1), None],
}


class Model:
    """Rows of each relation in the order they came."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Row, int]] = {name: {} for name in SHAPES}
        self.clock = 0

    def insert(self, name: str, rows: list[Row]) -> int:
        new = [row for row in dict.fromkeys(rows) if row not in self.rows[name]]
        for row in new:
            self.rows[name][row] = self.clock
            self.clock += 1
        return len(new)

    def delete(self, name: str, rows: list[Row]) -> int:
        return sum(self.rows[name].pop(row, None) is not None for row in set(rows))


def some_rows(draw: random.Random, name: str, count: int) -> list[Row]:
    return [tuple(draw.choice(VALUES[type_]) for type_ in SHAPES[name]) for _ in range(count)]


def compare(engine: Engine, model: Model, draw: random.Random) -> None:
    for name, held in model.rows.items():
        assert engine.size(name) == len(held)
        assert list(engine.rows(name)) == list(held), "rows stand in the order they came"
        copied = engine.copied(name)
        rows = copied.read() if isinstance(copied, LazyRows) else copied
        assert frozenset(rows) == frozenset(held)
        asked = some_rows(draw, name, 3) + list(held)[:2]
        assert list(engine.present(name, asked)) == [row in held for row in asked]
        for row in asked[:2]:
            columns = draw.sample(range(len(row)), draw.randint(0, len(row)))
            key = {column: row[column] for column in columns}
            fitting = [r for r in held if all(r[c] == v for c, v in key.items())]
            assert list(engine.lookup(name, key)) == fitting
        if not extensions.is_ranked(engine):
            continue
        ranked = list(engine.ranked(name))
        assert [row for _, row in ranked] == list(held)
        assert [rank for rank, _ in ranked] == sorted(rank for rank, _ in ranked)
        assert engine.ranks(name, list(held)) == [rank for rank, _ in ranked]
        assert all(rank < engine.clock for rank, _ in ranked)
    history = sorted(
        (at, name, row) for name in ("one", "pair") for row, at in _ranked(model, name)
    )
    assert list(engine.history(["one", "pair"])) == [(name, row) for _, name, row in history]


def _ranked(model: Model, name: str) -> list[tuple[Row, int]]:
    return list(model.rows[name].items())


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    made = ENGINES[request.param]()
    for name, types in SHAPES.items():
        made.create(name, types)
    return made


def test_what_is_declared_is_there_and_nothing_else(engine: Engine) -> None:
    check_declared(engine)


def check_declared(engine: Engine) -> None:
    for protocol, is_declared in (
        (extensions.RankedEngine, extensions.is_ranked(engine)),
        (extensions.TwinnedEngine, extensions.is_twinned(engine)),
        (extensions.PrefetchingEngine, extensions.is_prefetching(engine)),
        (extensions.FrameEngine, extensions.takes_frames(engine)),
        (extensions.RawInt64Engine, extensions.takes_raw_int64(engine)),
    ):
        members = [name for name in vars(protocol) if not name.startswith("_")]
        assert all(hasattr(engine, name) for name in members) == is_declared, protocol


@pytest.mark.parametrize("seed", range(8))
def test_a_random_history_is_what_sets_say(engine: Engine, seed: int) -> None:
    check_history(engine, seed, 60)


def check_history(engine: Engine, seed: int, operations: int) -> None:
    draw, model = random.Random(seed), Model()
    for _ in range(operations):
        name = draw.choice(list(SHAPES))
        rows = some_rows(draw, name, draw.choice([0, 1, 1, 2, 40]))
        match draw.choice(["insert", "insert", "delete", "clear", "settle"]):
            case "insert":
                assert engine.insert(name, rows) == model.insert(name, rows)
            case "delete":
                rows = rows + draw.sample(list(model.rows[name]), min(3, len(model.rows[name])))
                assert engine.delete(name, rows) == model.delete(name, rows)
            case "clear" if draw.random() < 0.2:
                engine.clear(name)
                model.rows[name].clear()
            case _:
                engine.settle()
        compare(engine, model, draw)


@pytest.mark.parametrize("seed", range(4))
def test_many_rows_come_and_go(engine: Engine, seed: int) -> None:
    """Enough for growth, for dead rows to be given back, and for indexes to follow."""
    draw, model = random.Random(seed), Model()
    assert list(engine.lookup("pair", {0: 1})) == []
    for _ in range(30):
        rows: list[Row] = [(draw.randrange(60), draw.randrange(60)) for _ in range(400)]
        assert engine.insert("pair", rows) == model.insert("pair", rows)
        gone = draw.sample(list(model.rows["pair"]), len(model.rows["pair"]) * 3 // 4)
        assert engine.delete("pair", gone) == model.delete("pair", gone)
        assert list(engine.rows("pair")) == list(model.rows["pair"])
        for value in (0, 1, 59):
            for column in (0, 1):
                fitting = [row for row in model.rows["pair"] if row[column] == value]
                assert list(engine.lookup("pair", {column: value})) == fitting


@pytest.mark.parametrize("name", SHAPES)
def test_facts_are_loaded_with_the_ranks_they_had(engine: Engine, name: str) -> None:
    draw = random.Random(name)
    rows = list(dict.fromkeys(some_rows(draw, name, 50)))
    ranks = sorted(draw.sample(range(10_000), len(rows)))
    ranked = [(rank, *row) for rank, row in zip(ranks, rows, strict=True)]
    half = len(rows) // 2
    engine.insert("one", [(1,)])
    engine.clear("one")
    assert engine.load(name, ranked[:half]) == half
    assert engine.load(name, ranked[half:]) == len(rows) - half
    assert list(engine.ranked(name)) == list(zip(ranks, rows, strict=True))
    assert engine.clock == ranks[-1] + 1
    assert engine.load(name, ranked[-1:]) == 0, "it is there"
    engine.load(name, [])
    assert engine.clock == ranks[-1] + 1, "time does not go back"
    engine.delete(name, rows[:half])
    engine.insert(name, rows[:half])
    expected = range(ranks[-1] + 1, ranks[-1] + 1 + half)
    assert engine.ranks(name, rows[:half]) == list(expected)


def test_what_came_and_went_is_moved_in_the_order_of_derivation(engine: Engine) -> None:
    for name in ("p", "q", "p_gone", "q_gone", "p_come", "q_come"):
        engine.create(name, ("int",))
    engine.insert("p", [(1,), (2,)])
    engine.insert("q", [(1,)])
    engine.insert("p_gone", [(1,)])
    engine.insert("q_come", [(5,)])
    engine.insert("p_come", [(6,)])
    engine.insert("q_come", [(7,)])
    engine.move((("p", "p_gone", "p_come"), ("q", "q_gone", "q_come")))
    assert list(engine.history(["p", "q"])) == [
        ("p", (2,)),
        ("q", (1,)),
        ("q", (5,)),
        ("p", (6,)),
        ("q", (7,)),
    ]
    assert list(engine.rows("p_come")) == [(6,)], "what is moved is still there"


def test_a_copy_is_what_was_there_then(engine: Engine) -> None:
    engine.insert("pair", [(1, 2)])
    copied = engine.copied("pair")
    engine.clear("pair")
    engine.insert("pair", [(3, 4)])
    rows = copied.read() if isinstance(copied, LazyRows) else copied
    assert set(rows) == {(1, 2)}


def test_a_dropped_relation_can_be_made_again_with_other_columns(engine: Engine) -> None:
    engine.insert("pair", [(1, 2)])
    engine.drop("pair")
    engine.create("pair", ("str",))
    assert engine.insert("pair", [("x",)]) == 1
    assert list(engine.rows("pair")) == [("x",)]
