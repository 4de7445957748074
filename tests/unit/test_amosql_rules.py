"""Rules of AMOSQL: the inventory of Risch & Sköld 1999, and what else can trigger and be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.cli.amosql import schema_in
from deltalog.language.ast import Program
from deltalog.language.parser import parse_text
from deltalog.language.printer import print_program
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.amosql.explained_rules import explain_rules, rule_explanation_text
from deltalog.source import Source

# Section 1.4.1 as printed; the print leaves out `order`, which is defined here, and quantities.
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
  select consume_freq(i) * delivery_time(i, s)
         + min_stock(i)
  for each supplier s where supplies(s) = i;
create function order(item i, integer amount) -> boolean as foreign;
create rule monitor_items() as
  for each item i
  when quantity(i) < threshold(i)
  do order(i,max_stock(i) - quantity(i));
"""
OBJECTS = """
create item instances :item1, :item2;
set max_stock(:item1) = 5000;
set max_stock(:item2) = 7500;
set min_stock(:item1) = 100;
set min_stock(:item2) = 200;
set consume_freq(:item1) = 20;
set consume_freq(:item2) = 30;
create supplier instances :sup1, :sup2;
set supplies(:sup1) = :item1;
set supplies(:sup2) = :item2;
set delivery_time(:item1, :sup1) = 2;
set delivery_time(:item2, :sup2) = 3;
"""
ACTIVE = "activate monitor_items();"


class Inventory:
    """A session in which orders are written down."""

    def __init__(self, path: Path | None = None, **options: Any) -> None:
        options = {"engine": "reference", **options}
        if path is None:
            self.database = deltalog.connect(program=Program(), **options)
        else:
            program = None if path.exists() else Program()
            self.database = deltalog.connect(path, program=program, **options)
        self.orders: list[tuple[Any, ...]] = []
        self.database.action("order")(self.orders.extend)
        self.session = deltalog.AmosqlSession(self.database)

    def __call__(self, text: str) -> list[tuple[Any, ...]]:
        """Execute statements; return what they have ordered."""
        self.orders.clear()
        self.session.execute(text)
        return list(self.orders)


@pytest.fixture
def inventory() -> Inventory:
    made = Inventory()
    made(SCHEMA + OBJECTS + ACTIVE)
    return made


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "delta"])
def test_example_5_to_the_letter(strategy: str) -> None:
    inventory = Inventory(strategy=strategy)
    inventory(SCHEMA + OBJECTS + ACTIVE)
    assert inventory.database.facts("threshold") == {("item1", 140), ("item2", 290)}
    assert inventory("set quantity(:item1) = 5000; set quantity(:item2) = 7500;") == []
    assert inventory("set quantity(:item1) = 140;") == []
    assert inventory("set quantity(:item1) = 139;") == [("item1", 4861)]
    assert inventory("set quantity(:item1) = 120;") == []
    assert inventory("set quantity(:item2) = 289;") == [("item2", 7211)]
    assert inventory("set quantity(:item1) = 150;") == []
    assert inventory("set min_stock(:item1) = 150;") == [("item1", 4850)]
    assert inventory("set min_stock(:item1) = 100;") == []
    assert (
        inventory("begin; set min_stock(:item1) = 150; set min_stock(:item1) = 100; commit;") == []
    )
    assert inventory.database.audit() == ()


def test_the_delta_of_a_transaction_event_by_event(inventory: Inventory) -> None:
    """Section 1.5.2: ⟨{},{100}⟩, ⟨{150},{100}⟩, ⟨{},{100}⟩, ⟨{},{}⟩."""
    inventory("set quantity(:item1) = 150; begin;")
    deltas = []
    for event in (
        "remove min_stock(:item1) = 100;",
        "add min_stock(:item1) = 150;",
        "remove min_stock(:item1) = 150;",
        "add min_stock(:item1) = 100;",
    ):
        inventory(event)
        pending = inventory.session.pending
        sides = (pending.inserted["min_stock"], pending.deleted["min_stock"])
        deltas.append(tuple({row[1] for row in side} for side in sides))
    assert deltas == [(set(), {100}), ({150}, {100}), (set(), {100}), (set(), set())]
    assert inventory("commit;") == []


def test_the_condition_has_five_arcs() -> None:
    (explained,) = explain_rules(schema_in(Source("<text>", SCHEMA)).schema)
    assert [arc.influent for arc in explained.arcs] == [
        "consume_freq",
        "delivery_time",
        "min_stock",
        "quantity",
        "supplies",
    ]
    text = rule_explanation_text(explained)
    assert "\n    cnd_monitor_items(I) :- quantity(I, Quantity), threshold(I, Threshold)" in text
    assert (
        "act_monitor_items(I): call order(I, MaxStock - Quantity) "
        "where max_stock(I, MaxStock), quantity(I, Quantity)"
    ) in text
    (expanded,) = explained.expanded
    read = {literal.predicate for literal in expanded.body if hasattr(literal, "predicate")}
    assert read == {arc.influent for arc in explained.arcs}


def test_the_rules_are_readable_and_read_back() -> None:
    program = schema_in(Source("<text>", SCHEMA)).rules()
    text = print_program(program)
    assert text.endswith(
        "cnd_monitor_items(I) :- "
        "quantity(I, Quantity), threshold(I, Threshold), Quantity < Threshold.\n\n"
        "rule monitor_items\n    when cnd_monitor_items(I)\n"
        "    do call order(I, MaxStock - Quantity) "
        "where max_stock(I, MaxStock), quantity(I, Quantity).\n"
    )
    assert parse_text(text) == program


def test_what_the_action_reads_triggers_nothing(inventory: Inventory) -> None:
    inventory("set quantity(:item1) = 10;")
    assert inventory("set max_stock(:item1) = 9000;") == []
    assert inventory("remove max_stock(:item2); set quantity(:item2) = 10;") == []
    assert inventory("set max_stock(:item2) = 7500;") == []


def test_a_rule_is_inactive_until_it_is_activated() -> None:
    inventory = Inventory()
    inventory(SCHEMA + OBJECTS)
    assert inventory("set quantity(:item1) = 10;") == []
    assert inventory(ACTIVE) == []
    assert inventory("set quantity(:item1) = 11;") == []
    assert inventory("set quantity(:item2) = 10;") == [("item2", 7490)]
    assert inventory("deactivate monitor_items(); set quantity(:item2) = 290;") == []
    assert inventory("set quantity(:item2) = 10;") == []


def test_rules_have_parameters(inventory: Inventory) -> None:
    inventory(
        "create rule low(integer n) as for each item i when quantity(i) < n do order(i, n);"
        "create rule watch(item i) as when quantity(i) < 7 do order(i, -1);"
        "set quantity(:item1) = 1000; set quantity(:item2) = 1000;"
        "deactivate monitor_items(); activate low(5); activate low(8); activate watch(:item2);"
    )
    assert inventory("set quantity(:item1) = 6;") == [("item1", 8)]
    assert inventory("set quantity(:item2) = 4;") == [("item2", 5), ("item2", 8), ("item2", -1)]
    assert inventory("deactivate low(5); set quantity(:item1) = 1;") == []
    with pytest.raises(deltalog.DataError, match='"sup1" is not of type `item`'):
        inventory("activate watch(:sup1);")
    with pytest.raises(deltalog.DataError, match="takes item, got 0"):
        inventory("activate watch();")
    with pytest.raises(deltalog.DataError, match="did you mean `watch`"):
        inventory("activate wach(:item1);")


def test_parameters_have_the_types_that_are_declared(inventory: Inventory) -> None:
    inventory(
        "create rule more(integer n) as for each item i when quantity(i) < 5 do order(i, n);"
        "create rule below(real x) as for each item i when quantity(i) < x do order(i, 1);"
        "create rule equal(real x) as for each item i when quantity(i) = x do order(i, 2);"
        "deactivate monitor_items(); activate more(9); activate below(2.5); activate equal(2.0);"
    )
    assert inventory("set quantity(:item1) = 3;") == [("item1", 9)]
    assert inventory("set quantity(:item1) = 2;") == [("item1", 1), ("item1", 2)]
    assert "rule equal(X: float) for I" in print_program(inventory.database.model.checked.program)


def test_a_condition_without_instances(inventory: Inventory) -> None:
    inventory(
        "create rule full() as when sum(select quantity(i) for each item i) > 100"
        " do set max_stock(i) = 1 for each item i;"
        "activate full(); set quantity(:item1) = 60; set quantity(:item2) = 50;"
    )
    assert inventory.database.facts("max_stock") == {("item1", 1), ("item2", 1)}
    inventory("set max_stock(:item1) = 7; set quantity(:item2) = 70;")
    assert inventory.database.facts("max_stock") == {("item1", 7), ("item2", 1)}


def test_actions_are_procedures(inventory: Inventory) -> None:
    inventory(
        "create function state(item) -> charstring;"
        "create function history(item) -> bag of integer;"
        "create function reorder(item i, integer n) -> boolean as"
        " begin set state(i) = 'ordered'; add history(i) = n; order(i, n); end;"
        "create rule r() as for each item i when quantity(i) < 10"
        " do reorder(i, max_stock(i) - quantity(i));"
        "deactivate monitor_items(); activate r();"
    )
    assert inventory("set quantity(:item1) = 1;") == [("item1", 4999)]
    assert inventory.database.facts("state") == {("item1", "ordered")}
    assert inventory.database.facts("history") == {("item1", 4999)}


def test_a_step_may_have_a_disjunction(inventory: Inventory) -> None:
    inventory(
        "create rule r() as for each item i when quantity(i) < 10"
        " do set max_stock(j) = quantity(i) for each item j"
        " where min_stock(j) > 150 or consume_freq(j) = 21;"
        "deactivate monitor_items(); activate r(); set quantity(:item1) = 1;"
    )
    assert inventory.database.facts("max_stock") == {("item1", 5000), ("item2", 1)}


def test_rules_trigger_rules(inventory: Inventory) -> None:
    inventory(
        "create function late(item) -> boolean;"
        "create rule mark() as for each item i when quantity(i) < 5 do set late(i) = true;"
        "create rule hurry() as for each item i when late(i) do order(i, 1);"
        "deactivate monitor_items(); activate mark(); activate hurry();"
    )
    assert inventory("set quantity(:item1) = 1;") == [("item1", 1)]


def test_events(inventory: Inventory) -> None:
    """A value that is replaced is deleted, too, as the physical events of the paper have it."""
    inventory(
        "create rule sold() as for each item i on update quantity(i) when quantity(i) < 10"
        " do order(i, quantity(i));"
        "create rule lost() as for each item i on delete quantity(i) do order(i, 0);"
        "deactivate monitor_items(); activate sold();"
    )
    assert inventory("set quantity(:item1) = 3;") == []
    assert inventory("set quantity(:item1) = 2;") == [("item1", 2)]
    assert inventory("set quantity(:item1) = 20;") == []
    assert inventory("activate lost(); remove quantity(:item1);") == [("item1", 0)]
    inventory("set quantity(:item1) = 3;")
    assert inventory("set quantity(:item1) = 2;") == [("item1", 2), ("item1", 0)]


def test_a_variable_of_the_action_is_not_one_of_the_condition(inventory: Inventory) -> None:
    inventory(
        "create rule other(integer n) as for each item i when quantity(i) < n"
        " do set max_stock(j) = quantity(j) for each item j where j != i;"
        "set quantity(:item1) = 1000; set quantity(:item2) = 2000;"
        "deactivate monitor_items(); activate other(5); set quantity(:item1) = 1;"
    )
    assert inventory.database.facts("max_stock") == {("item1", 5000), ("item2", 2000)}


def test_a_refused_transaction_orders_nothing(inventory: Inventory) -> None:
    def refuse(rows: list[Any]) -> None:
        raise ValueError("no")

    inventory("set quantity(:item1) = 1000;")
    inventory.database.action("order")(refuse)
    with pytest.raises(ValueError, match="no"):
        inventory("set quantity(:item1) = 1;")
    assert inventory.database.facts("quantity") == {("item1", 1000)}


def test_a_file_keeps_rules_and_their_activation(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    first = Inventory(path)
    first(SCHEMA + OBJECTS + ACTIVE + "set quantity(:item1) = 1000;")
    first.database.close()
    again = Inventory(path)
    assert again("set quantity(:item1) = 100;") == [("item1", 4900)]
    again(
        "create rule none() as for each item i when not (quantity(i) > 0) do order(i, 0);"
        "create function spare(item i) -> integer as select quantity(i) - threshold(i);"
    )
    assert again("set quantity(:item2) = 0;") == [("item2", 7500)]
    again.database.close()
    third = Inventory(path)
    third("activate none(); set quantity(:item1) = 9;")
    assert third("set quantity(:item1) = 0;") == [("item1", 0)]
    assert third.database.audit() == ()
    third.database.close()
