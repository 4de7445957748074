"""AMOSQL on a database in tables: the inventory of Risch & Sköld 1999, its rule, and its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import deltalog
from deltalog.language.ast import Program

SCHEMA = """
create type item;
create type supplier;
create function quantity(item) -> integer;
create function max_stock(item) -> integer;
create function min_stock(item) -> integer;
create function consume_freq(item) -> integer;
create function supplies(supplier) -> item;
create function delivery_time(item,supplier) -> integer;
create function threshold(item i) -> integer as
  select consume_freq(i) * delivery_time(i, s) + min_stock(i)
  for each supplier s where supplies(s) = i;
create function order(item i, integer amount) -> boolean as foreign;
create rule monitor_items() as
  for each item i
  when quantity(i) < threshold(i)
  do order(i,max_stock(i) - quantity(i));
"""
OBJECTS = """
begin;
create item instances :item1;
set max_stock(:item1) = 5000;
set min_stock(:item1) = 100;
set consume_freq(:item1) = 20;
create supplier instances :sup1;
set supplies(:sup1) = :item1;
set delivery_time(:item1, :sup1) = 2;
set quantity(:item1) = 5000;
commit;
"""


def test_the_inventory_in_tables(spark: SparkSession, tmp_path: Path) -> None:
    """A rule waits until it is activated; the state is opened again with its program."""
    orders: list[tuple[Any, ...]] = []
    with deltalog.connect(spark=spark, state=tmp_path / "state", program=Program()) as db:
        db.action("order")(orders.extend)
        session = deltalog.AmosqlSession(db)
        session.execute(SCHEMA)
        assert not db.rules()[0].is_active
        session.execute(OBJECTS)
        session.execute("set quantity(:item1) = 139; set quantity(:item1) = 500;")
        assert orders == []
        session.execute("activate monitor_items();")
        assert db.facts("threshold") == {("item1", 140)}
        for amount in (140, 139, 120):
            session.execute(f"set quantity(:item1) = {amount};")
        assert orders == [("item1", 4861)]
        (selected,) = session.execute("select quantity(i) for each item i;")
        assert selected.rows == ((120,),)  # type: ignore[union-attr]
        version, kept = db.version, db.model.checked.program
    with deltalog.connect(spark=spark, state=tmp_path / "state", program=kept) as db:
        db.action("order")(orders.extend)
        session = deltalog.AmosqlSession(db)
        assert (db.version, db.rules()[0].is_active, db.rules()[0].firings) == (version, True, 1)
        session.execute("set min_stock(i) = 150 for each item i where quantity(i) = 120;")
        session.execute("deactivate monitor_items();")
        assert not db.rules()[0].is_active
        assert not db.audit()
