"""Deterministic foreign functions of AMOSQL: in queries, derived functions, conditions, actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.language.ast import Program
from deltalog.runtime.amosql.session import Selected

SCHEMA = """
create type item;
create function price(item) -> integer;
create function tax(integer price) -> integer as foreign deterministic;
create function order(item i, integer n) -> boolean as foreign;
"""
ITEMS = "create item instances :a, :b; set price(:a) = 100; set price(:b) = 30;"
COST = "create function cost(item i) -> integer as select price(i) + tax(price(i));"


class Shop:
    """A session whose calls of Python are written down."""

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            self.database = deltalog.connect(program=Program(), engine="reference")
        else:
            program = None if path.exists() else Program()
            self.database = deltalog.connect(path, program=program, engine="reference")
        self.calls: list[int] = []
        self.orders: list[tuple[Any, ...]] = []
        self.database.action("tax")(self.tax)
        self.database.action("order")(self.orders.extend)
        self.session = deltalog.AmosqlSession(self.database)

    def tax(self, price: int) -> int | None:
        self.calls.append(price)
        return None if price < 50 else price // 10

    def __call__(self, text: str) -> list[tuple[Any, ...]]:
        """Execute statements; return what the last has selected."""
        self.calls.clear()
        self.orders.clear()
        outcomes = self.session.execute(text)
        last = outcomes[-1] if outcomes else None
        return list(last.rows) if isinstance(last, Selected) else []


@pytest.fixture
def shop() -> Shop:
    made = Shop()
    made(SCHEMA)
    return made


def test_a_query_computes_what_it_needs_and_changes_nothing(shop: Shop) -> None:
    shop(ITEMS)
    version = shop.database.version
    assert shop("select i, tax(price(i)) for each item i;") == [("a", 10)]
    assert sorted(shop.calls) == [30, 100]
    assert shop("select tax(tax(1000) + 900);") == [(100,)]
    assert shop("select i for each item i where tax(price(i)) > 5;") == [("a",)]
    assert shop("select sum(select tax(price(i)) for each item i);") == [(10,)]
    assert shop.database.version == version
    assert shop.database.facts("tax") == set()


def test_a_derived_function_follows_every_change(shop: Shop) -> None:
    shop(COST + ITEMS)
    assert shop.database.facts("cost") == {("a", 110)}
    shop("set price(:b) = 60;")
    assert shop.calls == [60]
    assert shop.database.facts("cost") == {("a", 110), ("b", 66)}
    shop("set price(:a) = 60;")
    assert shop.calls == []
    assert shop.database.facts("cost") == {("a", 66), ("b", 66)}
    shop("begin; set price(:a) = 70; set price(:a) = 80; commit;")
    assert shop.calls == [80]
    shop.database.apply(set={"price": [("b", 200)]})
    assert ("b", 220) in shop.database.facts("cost")
    assert shop.database.audit() == ()


def test_a_function_that_comes_later_finds_all_values(shop: Shop) -> None:
    shop(ITEMS)
    shop(COST + "create function twice(item i) -> integer as select tax(tax(price(i)) * 100);")
    assert shop.database.facts("cost") == {("a", 110)}
    assert shop.database.facts("twice") == {("a", 100)}


def test_a_condition_fires_once_values_are_known(shop: Shop) -> None:
    """Also a negated one, which would hold as long as a value is missing."""
    shop(
        "create rule dear() as for each item i when tax(price(i)) >= 10 do order(i, price(i));"
        "create rule free() as for each item i when price(i) > 0 and not (tax(price(i)) > 0)"
        " do order(i, 0); activate dear(); activate free();"
    )
    shop(ITEMS)
    assert shop.orders == [("a", 100), ("b", 0)]
    shop("set price(:a) = 99;")
    assert shop.orders == []
    shop("set price(:a) = 200;")
    assert shop.orders == [("a", 200)]
    shop("set price(:a) = 20;")
    assert shop.orders == [("a", 0)]


def test_an_action_computes_for_its_instances_only(shop: Shop) -> None:
    shop("create rule r() as for each item i when price(i) > 50 do order(i, tax(price(i)));")
    shop("activate r();" + ITEMS)
    assert (shop.calls, shop.orders) == ([100], [("a", 10)])
    shop("set price(:b) = 70;")
    assert (shop.calls, shop.orders) == ([70], [("b", 7)])


def test_an_update_may_call_one(shop: Shop) -> None:
    shop("create function net(item) -> integer;" + ITEMS)
    shop("set net(i) = price(i) - tax(price(i)) for each item i;")
    assert shop.database.facts("net") == {("a", 90)}


def test_what_fails_changes_nothing(shop: Shop) -> None:
    shop(COST + ITEMS)

    def fail(price: int) -> int:
        raise ValueError("no rate")

    shop.database.action("tax")(fail)
    with pytest.raises(ValueError, match="no rate"):
        shop("set price(:a) = 1000;")
    assert shop.database.facts("cost") == {("a", 110)}
    shop.database.action("tax")(lambda price: "much")
    with pytest.raises(deltalog.DataError, match="E0704"):
        shop("set price(:a) = 1000;")


def test_a_file_keeps_the_values(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    first = Shop(path)
    first(SCHEMA + COST + ITEMS)
    first.database.close()
    again = Shop(path)
    assert again("select i, cost(i) for each item i;") == [("a", 110)]
    assert again.calls == []
    again("set price(:b) = 80;")
    assert again.database.facts("cost") == {("a", 110), ("b", 88)}
    again.database.close()


def test_without_the_function_nothing_is_changed(shop: Shop) -> None:
    database = deltalog.connect(program=Program(), engine="reference")
    session = deltalog.AmosqlSession(database)
    session.execute(SCHEMA + COST)
    with pytest.raises(deltalog.DataError, match="no function is registered as `tax`"):
        session.execute("create item instances :a; set price(:a) = 1;")
    assert database.facts("price") == set()
