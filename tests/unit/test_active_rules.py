"""Active rules: when they fire, in which order, and what they leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.checks.active_rules import endless_rules
from deltalog.language.parser import parse_text
from deltalog.rewrites.strategies import STRATEGIES

# Risch & Sköld 1999, section 1.4.1: the print leaves out the quantities and the procedure `order`
INVENTORY = """
base quantity(item: str key, amount: int).
base max_stock(item: str key, amount: int).
base min_stock(item: str key, amount: int).
base consume_freq(item: str key, amount: int).
base supplies(supplier: str key, item: str).
base delivery_time(item: str key, supplier: str key, days: int).

threshold(I, T) :-
    consume_freq(I, C), delivery_time(I, S, D), supplies(S, I), min_stock(I, M), T = C * D + M.

rule monitor_items for I
  when quantity(I, Q), threshold(I, T), Q < T, max_stock(I, M)
  do call order(I, M - Q).
"""
STOCK: dict[str, list[tuple[Any, ...]]] = {
    "quantity": [("item1", 5000), ("item2", 7500)],
    "max_stock": [("item1", 5000), ("item2", 7500)],
    "min_stock": [("item1", 100), ("item2", 200)],
    "consume_freq": [("item1", 20), ("item2", 30)],
    "supplies": [("sup1", "item1"), ("sup2", "item2")],
    "delivery_time": [("item1", "sup1", 2), ("item2", "sup2", 3)],
}


def opened(program: str, **options: Any) -> deltalog.MemoryDatabase:
    made = deltalog.connect(program=program, engine="reference", **options)
    assert isinstance(made, deltalog.MemoryDatabase)
    return made


def ordering(db: deltalog.MemoryDatabase) -> list[Any]:
    """Register `order`; returns the list that its rows go to."""
    orders: list[Any] = []
    db.action("order")(orders.append)
    return orders


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("materialize", [True, False])
def test_the_inventory_of_the_paper(strategy: str, materialize: bool) -> None:
    if not materialize and strategy in ("delta", "rederive"):
        pytest.skip("it keeps stored views only")
    options = {"threshold": strategy} if materialize else strategy
    db = opened(INVENTORY, facts=STOCK, strategy=options, materialize=materialize)
    orders = ordering(db)
    assert db.facts("threshold") == {("item1", 140), ("item2", 290)}

    def ordered(relation: str, *row: Any) -> Any:
        orders.clear()
        delta = db.apply(set={relation: [row]})
        assert [firing.rule for firing in delta.firings] == ["monitor_items"] * len(orders)
        return orders[0] if orders else []

    assert ordered("quantity", "item1", 140) == []
    assert ordered("quantity", "item1", 139) == [("item1", 4861)]
    assert ordered("quantity", "item1", 120) == []
    assert ordered("quantity", "item2", 289) == [("item2", 7211)]
    assert ordered("quantity", "item1", 150) == []
    assert ordered("min_stock", "item1", 150) == [("item1", 4850)]
    assert ordered("min_stock", "item1", 100) == []
    orders.clear()
    steps = []
    with db.transaction() as tx:
        for amount in (150, 100):
            tx.delete("min_stock", list(tx.query('min_stock(I, M), I = "item1"')))
            steps.append(tx.net())
            tx.insert("min_stock", [("item1", amount)])
            steps.append(tx.net())
    assert [(_amounts(s.inserted), _amounts(s.deleted)) for s in steps] == [
        (set(), {100}),
        ({150}, {100}),
        (set(), {100}),
        (set(), set()),
    ]
    assert not tx.delta
    assert tx.delta.firings == []
    assert orders == []


def _amounts(side: Any) -> set[int]:
    return {amount for _, amount in side["min_stock"]}


def test_what_only_an_action_reads_does_not_trigger_the_rule() -> None:
    where = "do call order(I, M - N) where max_stock(I, M), quantity(I, N)."
    program = INVENTORY.replace(", max_stock(I, M)\n  do call order(I, M - Q).", f"\n  {where}")
    db = opened(program, facts=STOCK)
    orders = ordering(db)
    db.apply(delete={"max_stock": [("item1", 5000)]})
    assert db.apply(set={"quantity": [("item1", 139)]}).firings == [("monitor_items", ("item1",))]
    assert not db.apply(insert={"max_stock": [("item1", 5000)]}).firings
    db.apply(set={"quantity": [("item2", 289)]})
    assert orders == [[("item2", 7211)]]


def test_firings_are_pairs_of_rule_and_instance() -> None:
    db = opened(INVENTORY, facts=STOCK)
    ordering(db)
    delta = db.apply(set={"quantity": [("item1", 5), ("item2", 6)]})
    assert delta.firings == [("monitor_items", ("item1",)), ("monitor_items", ("item2",))]
    assert delta.firings[0].rule == "monitor_items"
    assert delta.firings[0].instance == ("item1",)


def test_an_action_runs_once_for_all_instances() -> None:
    db = opened(INVENTORY, facts=STOCK)
    orders = ordering(db)
    db.apply(set={"quantity": [("item1", 5), ("item2", 6)]})
    assert orders == [[("item1", 4995), ("item2", 7494)]]


def test_instances_are_projected_unless_all_variables_are_shared() -> None:
    rule = "rule low {} when quantity(I, Q), Q < 10 do insert scarce(I)."
    for words, fires in (("for I", False), ("", True), ("for I nervous", True)):
        db = opened(
            "base quantity(i: str key, q: int). base scarce(i: str)." + rule.format(words),
            facts={"quantity": [("nut", 9)]},
        )
        assert bool(db.apply(set={"quantity": [("nut", 8)]}).firings) == fires


def test_else_runs_for_instances_whose_condition_became_false() -> None:
    db = opened("""
        base quantity(i: str key, q: int). base scarce(i: str).
        rule low for I when quantity(I, Q), Q < 10 do insert scarce(I) else delete scarce(I).
    """)
    db.apply(insert={"quantity": [("nut", 5), ("bolt", 50)]})
    assert db.facts("scarce") == {("nut",)}
    delta = db.apply(set={"quantity": [("nut", 15), ("bolt", 5)]})
    assert db.facts("scarce") == {("bolt",)}
    assert delta.deleted["scarce"] == {("nut",)}
    assert delta.firings == [("low", ("bolt",))]


def test_what_was_true_fell_and_rose_again_fires_once_more() -> None:
    """The `else` of `watch` was executed in between, so it was last checked as false."""
    db = opened(
        """
        base p(x: int). base q(x: int). base log(x: int).
        rule watch priority 2 when p(X) do insert log(X) else insert q(X).
        rule restore priority 1 when q(X), not p(X) do insert p(X).
        """,
        facts={"p": [(1,)]},
    )
    delta = db.apply(delete={"p": [(1,)]})
    assert delta.firings == [("restore", (1,)), ("watch", (1,))]
    assert db.facts("log") == {(1,)}


def test_priority_then_the_order_of_the_program() -> None:
    db = opened("""
        base a(x: int). base log(n: int).
        rule first on insert a(X) do insert log(1).
        rule urgent priority 5 on insert a(X) do insert log(2).
        rule last priority -1 on insert a(X) do insert log(3).
        rule second on insert a(X) do insert log(4).
    """)
    names = [firing.rule for firing in db.apply(insert={"a": [(1,)]}).firings]
    assert names == ["urgent", "first", "second", "last"]


def test_an_action_that_falsifies_a_waiting_instance_untriggers_it() -> None:
    db = opened("""
        base a(x: int). base log(x: int).
        rule mend priority 1 when a(X), X < 0 do delete a(X).
        rule complain when a(X), X < 0 do insert log(X).
    """)
    assert db.apply(insert={"a": [(-1,), (2,)]}).firings == [("mend", (-1,))]
    assert db.facts("log") == set()


def test_what_becomes_true_and_false_again_does_not_fire() -> None:
    db = opened("base a(x: int). base b(x: int). rule r when a(X) do insert b(X).")
    with db.transaction() as tx:
        tx.insert("a", [(1,)])
        tx.delete("a", [(1,)])
    assert tx.delta.firings == []


def test_immediate_rules_fire_after_each_operation() -> None:
    db = opened("base a(x: int). base b(x: int). rule r immediate when a(X) do insert b(X).")
    with db.transaction() as tx:
        tx.insert("a", [(1,)])
        assert tx.facts("b") == {(1,)}
        tx.delete("a", [(1,)])
        tx.insert("a", [(1,)])
    assert tx.delta.firings == [("r", (1,)), ("r", (1,))]
    assert db.facts("b") == {(1,)}
    assert db.what_if(insert={"a": [(2,)]}).inserted["b"] == {(2,)}


EVENTS = """
base salary(name: str key, amount: int). base manager(name: str).
base log(what: str, name: str, amount: int).
paid(N) :- salary(N, A), A > 0.
rule comes on insert salary(N, A) do insert log("comes", N, A).
rule goes on delete salary(N, A) when manager(N) do insert log("goes", N, A).
rule moves on set salary(N, A) do insert log("moves", N, A).
rule unpaid on delete paid(N) do insert log("unpaid", N, 0) .
rule zero on insert salary(N, 0) when not manager(N) do insert log("zero", N, 0) else reject "{N}".
"""


def test_events_on_relations_and_views() -> None:
    db = opened(EVENTS, facts={"manager": [("ann",)]})

    def logged(**change: Any) -> set[Any]:
        return set(db.apply(**change).inserted["log"])

    both = [("ann", 5), ("bob", 6)]
    assert logged(insert={"salary": both}) == {("comes", *row) for row in both}
    assert logged(set={"salary": [("ann", 7)]}) == {
        ("comes", "ann", 7),
        ("moves", "ann", 7),
        ("goes", "ann", 5),
    }
    assert logged(set={"salary": [("bob", 0)]}) == {
        ("comes", "bob", 0),
        ("moves", "bob", 0),
        ("unpaid", "bob", 0),
        ("zero", "bob", 0),
    }
    with pytest.raises(deltalog.ConstraintError, match="ann"):
        db.apply(set={"salary": [("ann", 0)]})
    assert logged(delete={"salary": [*both, ("ann", 7)]}) == {
        ("goes", "ann", 7),
        ("unpaid", "ann", 0),
    }


def test_event_variables_keep_the_values_of_their_event() -> None:
    db = opened("""
        base salary(name: str key, amount: int). base seen(amount: int).
        rule mend priority 1 on insert salary(N, A) when A < 0 do set salary(N, 0).
        rule see on insert salary(N, A) do call see(A).
    """)
    seen: list[Any] = []
    db.action("see")(seen.extend)
    db.apply(insert={"salary": [("ann", -5)]})
    assert seen == [(0,)]  # the net change, when it is executed


def test_parameters_and_activation() -> None:
    db = opened("""
        base quantity(i: str key, q: int). base scarce(i: str, l: int).
        rule low(L) for I when quantity(I, Q), Q < L do insert scarce(I, L).
        rule always when quantity(I, 0) do delete quantity(I, 0).
    """)
    db.apply(insert={"quantity": [("nut", 5)]})
    assert [rule.is_active for rule in db.rules()] == [False, True]
    db.activate("low", L=10)
    db.activate("low", L=3)
    assert db.facts("scarce") == set()  # what is the case already is the reference
    assert db.apply(insert={"quantity": [("bolt", 2)]}).firings == [
        ("low", (3, "bolt")),
        ("low", (10, "bolt")),
    ]
    db.deactivate("low", L=10)
    assert db.apply(insert={"quantity": [("rim", 5)]}).firings == []
    assert db.rules()[0].parameters == ((3,),)
    db.deactivate("always")
    assert db.apply(insert={"quantity": [("x", 0)]}, views=[]).firings == [("low", (3, "x"))]
    db.activate("always")
    assert db.apply(insert={"quantity": [("y", 0)]}).firings[0] == ("low", (3, "y"))
    assert db.facts("quantity") >= {("x", 0)}
    assert set(db.relations) == {"quantity", "scarce"}


def test_the_types_of_parameters() -> None:
    program = """
        base quantity(i: str key, q: int). base scarce(i: str key, l: int).
        rule low(L) for I when quantity(I, _) do set scarce(I, L).
        rule same(L) for I when quantity(I, _) do emit same(I) where scarce(I, L).
        rule order(L: float) for I when quantity(I, Q), Q < 5 do call order(I, L).
    """
    db = opened(program)
    called: list[tuple[object, ...]] = []
    db.action("order")(called.extend)
    db.activate("low", L=7)
    db.activate("same", L=7)
    db.activate("order", L=2.5)
    db.apply(insert={"quantity": [("nut", 1)]})
    assert db.facts("scarce") == {("nut", 7)}
    assert len(db.messages()) == 1
    assert called == [("nut", 2.5)]
    with pytest.raises(deltalog.DataError, match='"x" does not fit the parameter `L` of `order`'):
        db.activate("order", L="x")
    with pytest.raises(deltalog.ProgramError, match="the type of `L` cannot be inferred"):
        opened(program.replace("L: float", "L"))


def test_a_function_returns_changes_and_may_raise() -> None:
    db = opened("base a(x: int). base b(x: int). rule r on insert a(X) do call f(X, X * 2).")

    @db.action("f")
    def f(rows: list[Any]) -> dict[str, Any]:
        assert db.facts("a") == set()  # the state before the transaction
        if (9, 18) in rows:
            raise ValueError("nine")
        return {"insert": {"b": [(y,) for _, y in rows]}, "delete": {"a": [(1,)]}}

    delta = db.apply(insert={"a": [(1,), (2,)]})
    assert delta.inserted["b"] == {(2,), (4,)}
    assert delta.inserted["a"] == {(2,)}
    db.apply(delete={"a": [(2,)]})
    with pytest.raises(ValueError, match="nine"):
        db.apply(insert={"a": [(9,)]})
    assert db.facts("a") == set()
    assert db.rules()[0].firings == 2


def test_a_what_if_calls_and_emits_nothing_and_ends_where_a_call_decides() -> None:
    db = opened("""
        base a(x: int). base b(x: int). base c(x: int).
        rule one priority 3 on insert a(X) do insert b(X), emit b(X).
        rule two priority 2 on insert b(X) do insert c(X), call f(X), insert c(X + 1).
        rule three on insert c(X) do insert a(X).
    """)
    tried = db.what_if(insert={"a": [(1,)]})
    assert [firing.rule for firing in tried.firings] == ["one", "two"]
    assert tried.inserted["c"] == {(1,)}
    assert db.messages() == []
    assert db.rules()[0].firings == 0


def test_constraints_are_checked_after_the_last_action() -> None:
    db = opened("""
        base a(x: int). base b(x: int).
        deny unpaired(X) :- a(X), not b(X).
        deny negative(X) :- b(X), X < 0.
        rule pair on insert a(X) do insert b(X).
    """)
    assert db.apply(insert={"a": [(1,)]}).firings == [("pair", (1,))]
    with pytest.raises(deltalog.ConstraintError) as caught:
        db.apply(insert={"a": [(-1,)]})
    assert caught.value.violations[0].causes == (("+", "b", (-1,)),)
    assert db.facts("b") == {(1,)}


def test_nothing_fires_at_load_activation_and_change_of_rules(tmp_path: Path) -> None:
    program = "base a(x: int). base b(x: int). rule r when a(X) do insert b(X)."
    path = tmp_path / "a.db"
    with deltalog.connect(path, program=program, facts={"a": [(1,)]}, engine="reference") as db:
        assert db.facts("b") == set()
        db.apply(insert={"a": [(2,)]})
        assert db.facts("b") == {(2,)}
        db.deactivate("r")
        db.apply(insert={"a": [(3,)]})
    with deltalog.connect(path, engine="reference") as db:
        assert [(rule.is_active, rule.firings) for rule in db.rules()] == [(False, 1)]
        db.activate("r")
        db.change_program("base a(x: int). base b(x: int). rule s when a(X), X > 0 do insert b(X).")
        assert db.facts("b") == {(2,)}
        assert db.apply(insert={"a": [(4,)]}).firings == [("s", (4,))]
        assert db.facts("b", version=1) == {(2,)}
        assert not db.audit()


def test_a_refused_transaction_leaves_no_trace(tmp_path: Path) -> None:
    program = """
        base a(x: int). base b(x: int).
        rule one on insert a(X) do insert b(X), emit b(X).
        rule two on insert b(X) when X < 0 do reject "{X}".
    """
    with deltalog.connect(tmp_path / "a.db", program=program, engine="reference") as db:
        db.apply(insert={"a": [(1,)]})
        before = db.version, db.rules(), db.messages(), db.commits()
        with pytest.raises(deltalog.ConstraintError):
            db.apply(insert={"a": [(-1,)]})
        assert (db.version, db.rules(), db.messages(), db.commits()) == before
        assert db.facts("a") == {(1,)}
        assert [message.arguments for message in db.messages()] == [[1]]


def test_messages_have_a_sequence_and_an_id() -> None:
    db = opened("base a(x: int, y: str). rule r immediate on insert a(X, Y) do emit seen(Y, X).")
    db.apply(insert={"a": [(1, "é"), (2, "b")]})
    with db.transaction() as tx:
        tx.insert("a", [(3, "c")])
        tx.insert("a", [(4, "d")])
    found = db.messages()
    assert [m.arguments for m in found] == [["b", 2], ["é", 1], ["c", 3], ["d", 4]]
    assert [m.sequence for m in found] == sorted({m.sequence for m in found})
    assert len({m.id for m in found}) == 4
    assert {(m.rule, m.name) for m in found} == {("r", "seen")}
    assert db.messages(after=found[1].sequence) == found[2:]


def test_only_influents_of_active_rules_are_tracked() -> None:
    db = opened("""
        base a(x: int). base other(x: int).
        rule r when a(X), X > 3 do delete a(X).
    """)
    db.apply(insert={"other": [(1,)]})
    assert dict(db.statistics.generated) == {}
    db.deactivate("r")
    db.apply(insert={"a": [(9,)]})
    assert dict(db.statistics.generated) == {}


def test_the_budget_of_salaries_costs_what_a_change_costs() -> None:
    """Section 1.1: the sum is kept, so as many facts are generated with few and many employees."""
    program = """
        base income(name: int key, dept: int, amount: int). base budget(dept: int key, amount: int).
        base alarm(dept: int).
        total(D, sum(A)) :- income(_, D, A).
        rule over for D when total(D, S), budget(D, B), S > B do insert alarm(D).
    """
    counts = []
    for employees in (10, 100_000):
        people = [(n, n % 2, 10) for n in range(employees)]
        facts = {"income": people, "budget": [(d, employees * 5) for d in (0, 1)]}
        db = deltalog.connect(program=program, facts=facts)
        delta = db.apply(set={"income": [(0, 0, 11)]})
        assert delta.firings == [("over", (0,))]
        counts.append(sum(db.statistics.generated.values()))
    assert counts[0] == counts[1]


def test_a_program_describes_itself() -> None:
    db = opened("""
        base n(x: int key, y: str?). virtual view v. v(X) :- n(X, _).
        deny warn immediate bad(X) :- n(X, null).
        rule r(L) priority 3 when n(X, _), X > L do delete n(X, _).
        rule s when v(X) do delete n(X, _).
    """)
    assert db.query("sys_rule(N, P, A)") == {("r", 3, False), ("s", 0, True)}
    assert db.facts("sys_constraint") == {("bad", "bad", "warn", True)}
    relations = {("n", "base", True), ("v", "view", False), ("bad", "view", True)}
    assert db.rows("sys_relation") == relations
    assert db.query('sys_column("n", P, C, T, N, K)') == {
        (1, "x", "int", False, True),
        (2, "y", "str", True, False),
    }
    db.activate("r", L=1)
    with db.transaction() as tx:
        assert tx.query('sys_rule("r", _, A)') == {(True,)}
        assert ("decimal",) in tx.query("sys_type(T)")
    with pytest.raises(deltalog.ProgramError, match="E0203"):
        db.query("sys_nothing(X)")


@pytest.mark.parametrize(
    ("rules", "cycles"),
    [
        ("rule a when p(X) do insert q(X). rule b when q(X) do delete p(X).", []),
        ("rule a when p(X) do insert q(X). rule b when q(X) do insert p(X + 1).", [["a", "b"]]),
        ("rule a when v(X) do insert q(X).", []),
        ("rule a when v(X) do delete q(X).", [["a"]]),
        ("rule a when p(X), not q(X) do insert q(X).", []),
        ("rule a when total(N), N > 3 do delete p(N).", [["a"]]),
        ("rule a when p(X) do insert q(X) else delete p(X + 1).", [["a"]]),
        ("rule a on insert p(X) do delete p(X). rule b on delete p(X) do call f(X).", []),
        ("rule a on delete p(X) do insert p(X). rule b when p(X) do delete p(X).", [["a", "b"]]),
    ],
)
def test_rules_that_may_not_end_are_named(rules: str, cycles: list[list[str]]) -> None:
    program = "base p(x: int). base q(x: int). v(X) :- p(X), not q(X). total(count()) :- p(X)."
    found = list(endless_rules(parse_text(program + rules)))
    assert len(found) == len(cycles)
    for diagnostic, names in zip(found, cycles, strict=True):
        assert diagnostic.code == "W1201"
        assert " → ".join(f"`{name}`" for name in (*names, names[0])) in diagnostic.message


def test_a_branch_of_a_condition_may_have_variables_of_its_own() -> None:
    program = """
        base q(i: int, a: int). base p(i: int). base out(i: int).
        rule r for I when (q(I, A), A > 1 ; p(I)) do insert out(I).
    """
    db = deltalog.connect(program=program, engine="reference")
    delta = db.apply(insert={"q": [(1, 5), (3, 0)], "p": [(2,)]})
    assert delta.inserted["out"] == {(1,), (2,)}
