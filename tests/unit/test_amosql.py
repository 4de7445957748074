"""AMOSQL: what statements become, and what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.language.amosql.parser import parse_statements
from deltalog.language.ast import Program
from deltalog.language.printer import print_program
from deltalog.runtime.amosql.session import Selected
from deltalog.runtime.amosql.stored_schema import StoredSchema, change_schema, read_schema
from deltalog.source import Source

ITEMS = """
create type item;
create type supplier;
create function quantity(item) -> integer;
create function min_stock(item) -> integer;
create function supplies(supplier) -> item;
create item instances :item1, :item2;
create supplier instances :sup1, :sup2;
set quantity(:item1) = 3;
set quantity(:item2) = 8;
set min_stock(:item1) = 5;
set supplies(:sup1) = :item1;
"""
"""Item 2 has no minimum, supplier 2 supplies nothing."""


def rules_of(text: str) -> str:
    """The rules of a schema as text."""
    stored = StoredSchema()
    for parsed in parse_statements(Source("<text>", text)):
        stored = stored.extended(parsed)
    return print_program(Program(rules=stored.rules().rules))


@pytest.fixture
def session() -> deltalog.AmosqlSession:
    return deltalog.AmosqlSession(deltalog.connect(program=Program(), engine="reference"))


@pytest.fixture
def items(session: deltalog.AmosqlSession) -> deltalog.AmosqlSession:
    session.execute(ITEMS)
    return session


def selected(session: deltalog.AmosqlSession, text: str) -> list[tuple[Any, ...]]:
    (outcome,) = session.execute(text)
    assert isinstance(outcome, Selected)
    return list(outcome.rows)


def changed(session: deltalog.AmosqlSession, text: str) -> str:
    return str(session.execute(text)[-1])


SCHEMA = """
create type item; create type supplier;
create function quantity(item) -> integer;
create function price(item) -> real;
create function supplies(supplier) -> item;
create function offers(supplier) -> bag of item;
"""


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (  # a function implies the types of its arguments and of its value
            "create function f(item i) -> integer as select quantity(i) + 1;",
            "f(I, Quantity + 1) :- quantity(I, Quantity).",
        ),
        (
            "create function f(item i) -> bag of supplier as"
            " select s for each supplier s where supplies(s) = i;",
            "f(I, S) :- supplies(S, I).",
        ),
        (  # nothing implies that of `j`
            "create function f(item i) -> bag of item as"
            " select j for each item j where quantity(i) = 1;",
            "f(I, J) :- item(J), quantity(I, 1).",
        ),
        (  # one literal for two calls of a stored function
            "create function f(item i) -> integer as select quantity(i) * quantity(i);",
            "f(I, Quantity * Quantity) :- quantity(I, Quantity).",
        ),
        (  # but two for a bag, of which each may be another value
            "create function f(supplier s) -> boolean as select offers(s) != offers(s);",
            "f(S, true) :- offers(S, Offers), offers(S, Offers2), Offers != Offers2.",
        ),
        (
            "create function f(item i) -> boolean as select quantity(i) = 1 or quantity(i) > 7;",
            "f(I, true) :- (quantity(I, 1) ; quantity(I, Quantity), Quantity > 7).",
        ),
        (
            "create function f(item i) -> boolean as select not quantity(i) = 1;",
            "f(I, true) :- item(I), not quantity(I, 1).",
        ),
        (
            "create function f(item i) -> boolean as select not (quantity(i) = 1 or i = i);",
            "f(I, true) :- item(I), not quantity(I, 1), I != I.",
        ),
        (
            "create function f(item i) -> boolean as select not (quantity(i) > 1);",
            "f(I, true) :- item(I), not f_not1(I).\n"
            "f_not1(I) :- quantity(I, Quantity), Quantity > 1.",
        ),
        (  # an int widens where a real is wanted
            "create function f(item i) -> real as select quantity(i);",
            "f(I, float(Quantity)) :- quantity(I, Quantity).",
        ),
        (
            "create function f(item i) -> boolean as select price(i) = quantity(i);",
            "f(I, true) :- quantity(I, Quantity), price(I, Price), Price = Quantity.",
        ),
        (
            "create function f(integer n) -> bag of item as"
            " select i for each item i where quantity(i) = n;",
            "f(N, I) :- quantity(I, N).",
        ),
    ],
)
def test_a_derived_function_is_a_rule(definition: str, expected: str) -> None:
    types = "item(O) :- item_direct(O).\nsupplier(O) :- supplier_direct(O).\n"
    assert rules_of(SCHEMA + definition) == f"{types}{expected}\n"


def test_a_function_that_is_computed_takes_the_place_of_its_calls() -> None:
    text = SCHEMA + (
        "create function double(integer n) -> integer as select 2 * n;"
        "create function at_least(item i, integer n) -> boolean as select not (quantity(i) < n);"
        "create function f(item i) -> integer as select double(double(quantity(i)));"
        "create function g(item i) -> boolean as select true where at_least(i, 4);"
    )
    rules = rules_of(text).splitlines()[2:]
    assert rules == [
        "f(I, 2 * (2 * Quantity)) :- quantity(I, Quantity).",
        "g(I, true) :- item(I), not g_not1(I).",
        "g_not1(I) :- quantity(I, Quantity), Quantity < 4.",
    ]


def test_the_most_specific_type_decides() -> None:
    rules = rules_of(
        "create type item; create type special under item; create type gift under special;"
        "create function basis(item) -> real;"
        "create function price(item) -> real;"
        "create function price(special s) -> real as select 2.0 * basis(s);"
        "create function price(gift) -> real;"
        "create function cost(item i) -> real as select price(i);"
        "create function saved(gift g) -> real as select price(g);"
    )
    assert rules.splitlines()[5:] == [
        "price_special(S, 2.0 * Basis) :- special(S), basis(S, Basis).",
        "cost(I, Price) :- price(I, Price).",
        "saved(G, Price) :- price_gift(G, Price).",
        "price(Item, Value) :- price_item(Item, Value), not special(Item), not gift(Item).",
        "price(S, Value) :- price_special(S, Value), not gift(S).",
        "price(Gift, Value) :- price_gift(Gift, Value).",
    ]


# --- statements


def test_objects_are_named_after_their_variables(items: deltalog.AmosqlSession) -> None:
    assert selected(items, "select i for each item i;") == [("item1",), ("item2",)]
    items.execute("create item instances :item1;")
    assert selected(items, "select :item1;") == [("item1_2",)]
    other = deltalog.AmosqlSession(items.database)
    assert selected(other, "quantity(:item1);") == [(3,)]


def test_what_has_no_value_makes_a_condition_false(items: deltalog.AmosqlSession) -> None:
    low = "select i for each item i where "
    assert selected(items, low + "quantity(i) < min_stock(i);") == [("item1",)]
    assert selected(items, low + "not (quantity(i) < min_stock(i));") == [("item2",)]
    assert selected(items, low + "quantity(i) >= min_stock(i);") == []
    assert selected(items, low + "not (min_stock(i) > 0);") == [("item2",)]


def test_aggregates_range_over_a_select(items: deltalog.AmosqlSession) -> None:
    count = "select i, count(select s for each supplier s where supplies(s) = i) for each item i;"
    assert selected(items, count) == [("item1", 1), ("item2", 0)]
    assert selected(items, "select sum(select quantity(i) for each item i);") == [(11,)]
    assert selected(items, "select max(select min_stock(i) for each item i);") == [(5,)]
    assert selected(items, "select count(select s for each supplier s where 1 = 2);") == [(0,)]
    above = "select i for each item i where quantity(i) > avg(select quantity(j) for each item j);"
    assert selected(items, above) == [("item2",)]


def test_an_aggregate_may_depend_on_a_value_outside(items: deltalog.AmosqlSession) -> None:
    text = (
        "select quantity(i), count(select j for each item j where quantity(j) < quantity(i))"
        " for each item i;"
    )
    assert selected(items, text) == [(3, 0), (8, 1)]


def test_a_variable_of_one_branch_stays_in_it(items: deltalog.AmosqlSession) -> None:
    text = "select i, min_stock(i) for each item i where quantity(i) = 8 or min_stock(i) > 4;"
    assert selected(items, text) == [("item1", 5)]
    text = "select i for each item i where quantity(i) > 7 or min_stock(i) > 4;"
    assert selected(items, text) == [("item1",), ("item2",)]
    text = "set quantity(i) = 1 for each item i where quantity(i) > 7 or min_stock(i) > 4;"
    items.execute(text)
    assert items.database.facts("quantity") == {("item1", 1), ("item2", 1)}


def test_a_select_returns_a_bag(items: deltalog.AmosqlSession) -> None:
    items.execute("set quantity(:item2) = 3;")
    assert selected(items, "select quantity(i) for each item i;") == [(3,), (3,)]


def test_values_are_set_for_each_row_of_a_query(items: deltalog.AmosqlSession) -> None:
    text = "set min_stock(i) = 2 * quantity(i) for each item i where quantity(i) > 0;"
    assert changed(items, text) == (
        "ChangeSet(-min_stock('item1', 5), +min_stock('item1', 6), +min_stock('item2', 16))"
    )
    assert changed(items, "remove min_stock(:item1) = 7;") == "ChangeSet()"
    assert changed(items, "remove min_stock(:item1);") == "ChangeSet(-min_stock('item1', 6))"


def test_a_bag_has_several_values(items: deltalog.AmosqlSession) -> None:
    items.execute(
        "create function colour(item) -> bag of charstring;"
        "add colour(:item1) = 'red'; add colour(:item1) = 'blue'; add colour(:item2) = 'red';"
    )
    assert selected(items, "colour(:item1);") == [("blue",), ("red",)]
    items.execute("remove colour(:item1) = 'red';")
    assert selected(items, "colour(:item1);") == [("blue",)]
    items.execute("add colour(:item1) = 'red'; set colour(:item1) = 'green';")
    assert selected(items, "select i, colour(i) for each item i;") == [
        ("item1", "green"),
        ("item2", "red"),
    ]


def test_a_function_without_arguments_has_one_value(session: deltalog.AmosqlSession) -> None:
    session.execute("create function rate() -> real; set rate() = 1; set rate() = 2.5;")
    assert selected(session, "rate();") == [(2.5,)]


def test_transactions(items: deltalog.AmosqlSession) -> None:
    before = items.database.version
    outcomes = items.execute(
        "begin; set quantity(:item1) = 9; quantity(:item1); set quantity(:item1) = 3; commit;"
    )
    assert [str(each) for each in outcomes[1:]] == ["ChangeSet()"]
    assert items.database.version == before
    items.execute("begin; create item instances :new; set quantity(:new) = 1; rollback;")
    assert selected(items, "select i for each item i;") == [("item1",), ("item2",)]
    with pytest.raises(deltalog.DataError, match="`:new` has no value"):
        items.execute("quantity(:new);")


def test_an_error_ends_the_transaction_and_leaves_nothing(items: deltalog.AmosqlSession) -> None:
    with pytest.raises(deltalog.DeltalogError, match="unknown function"):
        items.execute("begin; set quantity(:item1) = 9; nothing(:item1);")
    assert not items.is_in_transaction
    assert selected(items, "quantity(:item1);") == [(3,)]


def test_variables_of_the_session(items: deltalog.AmosqlSession) -> None:
    items.execute(
        "set :n = 2 + quantity(:item1); select i into :x for each item i where i != :item1;"
    )
    assert selected(items, "select :n, quantity(:x);") == [(5, 8)]


def test_procedures_see_what_they_have_done(items: deltalog.AmosqlSession) -> None:
    items.execute(
        "create function double(item i) -> boolean as set quantity(i) = 2 * quantity(i);"
        "create function more(item i, integer by) -> boolean as"
        " begin double(i); set quantity(i) = quantity(i) + by; double(i); end;"
        "more(:item1, 1);"
    )
    assert selected(items, "quantity(:item1);") == [(14,)]


def test_overloaded_procedures_are_bound_late(items: deltalog.AmosqlSession) -> None:
    items.execute(
        "create type special under item; create special instances :s; set quantity(:s) = 1;"
        "create function reset(item i) -> boolean as set quantity(i) = 0;"
        "create function reset(special i) -> boolean as set quantity(i) = 100;"
        "reset(:s); reset(:item1);"
    )
    assert selected(items, "select i, quantity(i) for each item i;") == [
        ("item1", 0),
        ("item2", 8),
        ("s", 100),
    ]


# --- types


def test_objects_gain_and_lose_types(items: deltalog.AmosqlSession) -> None:
    items.execute("create type special under item; create function rank(special) -> integer;")
    items.execute("add type special to :item1; set rank(:item1) = 1;")
    assert selected(items, "select s, quantity(s) for each special s;") == [("item1", 3)]
    assert changed(items, "remove type special from :item1;") == (
        "ChangeSet(-rank('item1', 1), -special('item1',), -special_direct('item1',))"
    )
    items.execute("add type supplier to :item1; set supplies(:item1) = :item2;")
    items.execute("remove type item from :item1;")
    assert selected(items, "select s, supplies(s) for each supplier s;") == [("item1", "item2")]
    assert selected(items, "select i for each item i;") == [("item2",)]
    assert items.database.facts("quantity") == {("item2", 8)}


def test_an_object_of_a_subtype_stays_in_the_type_above(session: deltalog.AmosqlSession) -> None:
    session.execute(
        "create type item; create type special under item; create function q(item) -> integer;"
        "create special instances :s; set q(:s) = 1; remove type special from :s;"
    )
    assert selected(session, "select i, q(i) for each item i;") == [("s", 1)]


def test_a_deleted_object_leaves_no_value(items: deltalog.AmosqlSession) -> None:
    items.execute("delete :item1;")
    assert items.database.facts("supplies") == set()
    assert items.database.facts("quantity") == {("item2", 8)}
    assert items.database.facts("item") == {("item2",)}
    assert items.database.audit() == ()


# --- overloading


def test_a_second_definition_keeps_the_values_of_the_first(items: deltalog.AmosqlSession) -> None:
    items.execute("create type special under item; create function quantity(special) -> integer;")
    assert items.database.facts("quantity_item") == {("item1", 3), ("item2", 8)}
    items.execute("create special instances :s; set quantity(:s) = 1; add type special to :item2;")
    assert selected(items, "select i, quantity(i) for each item i;") == [("item1", 3), ("s", 1)]
    assert items.database.facts("quantity_special") == {("s", 1)}


def test_the_definition_that_an_object_has_is_set(items: deltalog.AmosqlSession) -> None:
    items.execute(
        "create type special under item; create special instances :s;"
        "create function quantity(special s) -> integer as select 7;"
        "set quantity(:item1) = 4;"
    )
    assert selected(items, "select i, quantity(i) for each item i;") == [
        ("item1", 4),
        ("item2", 8),
        ("s", 7),
    ]
    with pytest.raises(deltalog.ProgramError, match="E1315"):
        items.execute("set quantity(:s) = 4;")


def test_an_interrupted_renaming_is_repeated(items: deltalog.AmosqlSession) -> None:
    """The values are copied before the schema changes, so the old one still holds."""
    items.execute("create type special under item;")
    database, before = items.database, items.stored
    (parsed,) = parse_statements(Source("<text>", "create function quantity(special) -> integer;"))
    after = before.extended(parsed)
    program = database.model.checked.program
    added = next(d for d in after.program().declarations if d.predicate == "quantity_item")
    database.change_program(Program((*program.declarations, added), program.rules, program.facts))
    database.apply(insert={"quantity_item": [("item1", 99), ("gone", 1)]})
    again = deltalog.AmosqlSession(database)
    assert again.stored == before
    change_schema(database, before, after)
    assert database.facts("quantity_item") == {("item1", 3), ("item2", 8)}
    assert read_schema(database) == after


# --- databases


def test_a_file_keeps_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with deltalog.connect(path, program=Program(), engine="reference") as database:
        deltalog.AmosqlSession(database).execute(ITEMS)
    with deltalog.connect(path, engine="reference") as database:
        session = deltalog.AmosqlSession(database)
        session.execute("create function twice(item i) -> integer as select 2 * quantity(i);")
        assert selected(session, "select i, twice(i) for each item i;") == [
            ("item1", 6),
            ("item2", 16),
        ]
        assert database.audit() == ()


def test_rules_beside_the_schema_stay(items: deltalog.AmosqlSession) -> None:
    database = items.database
    program = database.model.checked.program
    text = print_program(program) + "scarce(I) :- quantity(I, Q), Q < 5.\n"
    database.change_program(text)
    session = deltalog.AmosqlSession(database)
    session.execute("create type place; set quantity(:item2) = 1;")
    assert database.facts("scarce") == {("item1",), ("item2",)}


def test_a_schema_that_is_refused_changes_nothing(items: deltalog.AmosqlSession) -> None:
    before = items.database.model.checked.program
    for wrong in (
        "create function f(item i) -> integer as select nothing(i);",
        "create function f(item i) -> bag of integer as select n for each integer n;",
        "create function f(item i) -> integer as select 1 where not f(i) = 1;",
    ):
        with pytest.raises(deltalog.ProgramError):
            items.execute(wrong)
        assert items.database.model.checked.program == before
    assert selected(items, "quantity(:item1);") == [(3,)]
