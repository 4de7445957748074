"""What a hostile tester found: each of these went wrong once."""

from __future__ import annotations

import decimal
import enum
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

import deltalog
from deltalog import DataError, DeltalogError, Limits, ProgramError
from deltalog.cli.audit import audit_lines
from deltalog.engines.scalars import function_value
from deltalog.language.parser import parse_query
from deltalog.language.values import VALUE_ERRORS, canonical_value
from deltalog.runtime.engine_choice import ENGINES
from deltalog.runtime.parameters import read_parameters
from deltalog.store.verify import verify_file

WIDE = "12345678901234567890.123456789012345678"


# --- wrong answers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "operands", "expected"),
    [
        ("-", (WIDE, "0.000000000000000001"), "12345678901234567890.123456789012345677"),
        ("-", (WIDE,), f"-{WIDE}"),
        ("abs", (f"-{WIDE}",), WIDE),
    ],
)
def test_decimals_keep_all_38_digits(
    function: str, operands: tuple[str, ...], expected: str
) -> None:
    result = function_value(function, "decimal", [Decimal(text) for text in operands])
    assert result == Decimal(expected)


def test_decimals_do_not_depend_on_the_callers_context() -> None:
    with decimal.localcontext() as context:
        context.prec = 5
        assert function_value("-", "decimal", (Decimal("123456.5"), Decimal(0))) == Decimal(
            "123456.5"
        )
        assert canonical_value(Decimal("1E+19"), "decimal") == Decimal(10) ** 19


def test_storage_does_not_decide_whether_a_query_ends() -> None:
    program = """
        f(5, 50). a(1, 0). a(2, 0). a(3, 0). a(4, 0).
        d(X, Y) :- f(X, Y).
        d(X, Y) :- W = X + 1, d(W, Y), a(X, _).
    """
    limits = Limits(rounds_max=1_000)
    assert deltalog.connect(program=program, limits=limits).query("d(1, Y)") == [(50,)]
    virtual = deltalog.connect(program=program, materialize=False, limits=limits)
    assert virtual.query("d(1, Y)") == [(50,)]


def test_a_constant_beside_an_aggregate_has_the_type_of_its_column() -> None:
    program = "b(1). v(X, 0.5) :- b(X). v(count(), 1) :- b(_)."
    rows = deltalog.connect(program=program).facts("v")
    assert {type(row[1]) for row in rows} == {float}


@pytest.mark.parametrize("materialize", [True, False])
def test_an_expression_in_an_atom_has_the_type_of_its_column(materialize: bool) -> None:
    program = """
        base g(x: float). base n(x: int). g(2.0). n(1).
        f(Z, Z) :- g(Z).
        p(X, Y) :- n(X), f(X + 1, Y).
    """
    db = deltalog.connect(program=program, materialize=materialize)
    assert [type(value) for row in db.query("p(X, Y)") for value in row] == [int, float]


def test_a_mixin_enum_is_the_text_it_stands_for() -> None:
    class Colour(str, enum.Enum):  # noqa: UP042
        RED = "red"

    assert canonical_value(Colour.RED, "str") == "red"


def test_the_order_of_equations_does_not_decide_a_type() -> None:
    base = "base f(x: float). base i(x: int). f(1.0). i(1)."
    types = []
    for body in ("f(X), i(Z), Y = Z, Y = X", "f(X), i(Z), Y = X, Y = Z"):
        db = deltalog.connect(program=f"{base} p(Y) :- {body}.")
        types.append(db.relations["p"].types)
    assert types[0] == types[1]


# --- not a DeltalogError ------------------------------------------------------------------------


def test_a_variable_with_two_types_in_two_branches_is_a_conflict() -> None:
    base = "base f(y: float). base i(x: int). f(1.0). i(1)."
    with pytest.raises(ProgramError):
        deltalog.connect(program=f"{base} p(X) :- f(Y), (i(X) ; X = Y).")


@pytest.mark.parametrize("query", ["(n(X) ; e(X, Y))", "(n(X) ; n(Y))"])
def test_a_query_needs_its_variables_in_every_branch(query: str) -> None:
    program = "base n(x: int). base e(x: int, y: int)."
    with pytest.raises(ProgramError) as caught:
        deltalog.connect(program=program).query(query)
    assert set(caught.value.codes) == {"E0306"}
    with pytest.raises(ProgramError):
        deltalog.connect(program=f"{program} ? {query}.")


@pytest.mark.parametrize("number", ["1e-30", "1e25"])
def test_a_literal_that_is_no_decimal_is_reported_beside_one(number: str) -> None:
    with pytest.raises(ProgramError):
        deltalog.connect(program=f"base d(x: decimal). p(X * {number}) :- d(X).")


def test_a_body_of_a_thousand_literals_is_evaluated_or_refused() -> None:
    body = ", ".join(f"n(X{i}), X{i} = 1" for i in range(600))
    try:
        db = deltalog.connect(program=f"n(1). p(X0) :- {body}.")
    except DeltalogError:
        return
    assert db.facts("p") == {(1,)}


def test_text_that_doubles_comes_to_an_end() -> None:
    facts = deltalog.connect(program='p("a"). p(concat(X, X)) :- p(X).').facts("p")
    assert max(len(text) for (text,) in facts) == 2**19


@pytest.mark.parametrize("rows", [None, 5])
def test_rows_that_cannot_be_iterated_are_a_data_error(rows: Any) -> None:
    db = deltalog.connect(program="base e(x: int).")
    with pytest.raises(DataError):
        db.transaction().insert("e", rows)


# --- nonsense accepted --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["(q(X) ; r(X))", "q(X), (X != null ; r(_))", "q(X), (X > 0 ; r(_))"]
)
def test_null_that_comes_through_one_branch_is_reported(body: str) -> None:
    program = f"base q(a: int?). base r(a: int). view p(x: int). p(X) :- {body}."
    with pytest.raises(ProgramError) as caught:
        deltalog.connect(program=program)
    assert caught.value.codes == ("E0405",)


@pytest.mark.parametrize("literal", ["s(X + 1)", "not s(X + 1)"])
def test_an_expression_of_another_type_than_its_column_is_reported(literal: str) -> None:
    with pytest.raises(ProgramError) as caught:
        deltalog.connect(program=f"base s(x: str). base n(x: int). p(X) :- n(X), {literal}.")
    assert caught.value.codes == ("E0401",)


def test_the_same_key_written_in_two_ways_is_one_key() -> None:
    with pytest.raises(ProgramError) as caught:
        deltalog.connect(program="base s(k: float key, v: int). s(1, 2). s(1.0, 3).")
    assert caught.value.codes == ("E0209",)


def test_the_same_fact_written_in_two_ways_is_one_fact() -> None:
    db = deltalog.connect(program='base s(k: str key, v: decimal). s("a", 5). s("a", 5.0).')
    assert db.facts("s") == {("a", Decimal(5))}


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (b"1.5", "float"),
        (bytearray(b"2"), "float"),
        (numpy.bool_(True), "float"),
        ((0, (1, 2), -1), "decimal"),
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused(value: Any, type_: str) -> None:
    with pytest.raises(VALUE_ERRORS):
        canonical_value(value, type_)


@pytest.mark.parametrize(
    ("value", "expected"), [(numpy.float64(2.5), Decimal("2.5")), (numpy.int64(2), Decimal(2))]
)
def test_numbers_of_numpy_become_decimals(value: Any, expected: Decimal) -> None:
    assert canonical_value(value, "decimal") == expected


@pytest.mark.parametrize("row", [bytearray(b"ab"), memoryview(b"ab")], ids=["array", "view"])
def test_bytes_of_any_kind_are_no_row(row: Any) -> None:
    db = deltalog.connect(program="base e(x: int, y: int).")
    with pytest.raises(DataError):
        db.apply(insert={"e": [row]})


def test_an_insert_with_a_taken_key_inserts_nothing_of_its_call() -> None:
    db = deltalog.connect(program='base s(k: str key, v: int). s("bob", 1).')
    tx = db.transaction()
    with pytest.raises(DataError):
        tx.insert("s", [("ann", 1), ("bob", 2)])
    tx.commit()
    assert db.facts("s") == {("bob", 1)}


def test_a_query_has_a_limit_of_branches_too() -> None:
    program = "base n(x: int). n(1)."
    query = ", ".join(["(n(X) ; X = 1)"] * 11)
    with pytest.raises(ProgramError) as caught:
        deltalog.connect(program=program).query(query)
    assert caught.value.codes == ("E0117",)


def test_a_view_with_named_columns_may_be_null() -> None:
    program = "base q(a: int?). q(null). view p(x). p(X) :- q(X)."
    assert deltalog.connect(program=program).facts("p") == {(None,)}


@pytest.mark.parametrize("engine", ["reference", "embedded"])
@pytest.mark.parametrize("strategy", ["demand", "magic", "differencing", "auto"])
def test_a_change_is_kept_for_who_asks_for_a_state_made_of_it(strategy: str, engine: str) -> None:
    """The change of a virtual helper was dropped after its reader, before that reader's own one."""
    program = """
    base b0(c0: int, c1: int).
    base b2(c0: int, c1: int, c2: int).
    v0(X, Y) :- b0(X, Y).
    v1(X, max(-X)) :- v0(X, X).
    v1(0 - A - Y, count()) :- A = Z, b2(_, Y, Z),
        (v0(W, 1) ; b2(4, Z, 4), W = 4 mod -1, not v0(_, Y)).
    """
    facts = {"b2": [(4, 0, 2)], "b0": [(0, 1)]}
    db = deltalog.connect(
        program=program, engine=engine, strategy=strategy, materialize=False, facts=facts
    )
    change = db.apply(insert={"b2": [(0, 1, 1)]})
    assert change.inserted["v1"] == {(-2, 2)}
    assert change.deleted["v1"] == {(-2, 1)}


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_a_stored_recursive_view_above_a_component_that_is_partly_stored(engine: str) -> None:
    """Its deletion by rank wanted to read the new state of `v3`, which has to be asked for."""
    program = """
    base b(x: int, y: int).
    materialized view v3.
    materialized view v6.
    v1 :- v2(_).
    v2(Y) :- v3, b(Y, _).
    v3 :- b(X, Y), b(Y, X).
    v3 :- b(_, 0), v1.
    v6(1) :- v3.
    v6(Z) :- v6(_), b(Z, _), v3.
    """
    db = deltalog.connect(program=program, materialize=False, engine=engine)
    db.apply(insert={"b": [(0, 1), (0, 0), (1, 0)]})
    db.apply(delete={"b": [(0, 0)]})
    db.apply(delete={"b": [(0, 1)]})
    assert db.audit() == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_transaction_that_hit_a_limit_leaves_nothing_behind(engine: str) -> None:
    """What a station had read and made was still there when the next change came to it."""
    count = "base a(x: int). n(X) :- a(X). n(X + 1) :- n(X), X < 100."
    limits = deltalog.Limits(rounds_max=20)
    database = deltalog.connect(program=count, engine=engine, limits=limits)
    database.apply(insert={"a": [(99,)]})
    with pytest.raises(deltalog.LimitError):
        database.apply(insert={"a": [(0,)]})
    delta = database.apply(insert={"a": [(98,)]})
    assert delta.inserted["n"] == {(98,)}
    assert not database.audit()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_text_that_is_compared_is_empty(engine: str) -> None:
    """There was no place yet for its bytes, of which there are none."""
    program = 'base n(s: str). first(min(S)) :- n(S). m(S) :- n(S), S <= "".'
    database = deltalog.connect(program=program, engine=engine, facts={"n": [("",)]})
    assert database.facts("m") == database.facts("first") == {("",)}
    database.apply(insert={"n": [("a",)]})
    assert database.audit() == ()


# --- rows that leave and return -----------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_returns_is_in_an_index_built_while_it_was_dead(engine: str) -> None:
    program = "base acc(id: int key, state: str)."
    db = deltalog.connect(program=program, facts={"acc": [(1, "on")]}, engine=engine)
    db.apply(delete={"acc": [(1, "on")]}, insert={"acc": [(1, "off")]})
    assert db.query('acc(X, "on")') == []
    db.apply(delete={"acc": [(1, "off")]}, insert={"acc": [(1, "on")]})
    assert db.query('acc(X, "on")') == [(1,)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 3, 20])
def test_a_row_that_returns_is_in_an_index_of_any_shape(engine: str, count: int) -> None:
    """With many rows to a key the links of an index stand side by side."""
    rows = [(number, 3) for number in range(count)]
    db = deltalog.connect(
        program="base b(x: int, y: int). base c(y: int).", facts={"b": rows}, engine=engine
    )
    db.apply(delete={"b": rows[::2]})
    db.change_program("base b(x: int, y: int). base c(y: int). w(X) :- c(Y), b(X, Y).")
    db.apply(insert={"c": [(3,)]})
    db.apply(delete={"c": [(3,)]}, insert={"b": rows[::2]})
    assert db.apply(insert={"c": [(3,)]}).inserted["w"] == {(number,) for number in range(count)}
    assert db.audit() == ()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("materialize", [True, False])
def test_a_what_if_leaves_rows_where_the_file_knows_them(
    tmp_path: Path, engine: str, materialize: bool
) -> None:
    program = "base b(x: int). v(X) :- b(X), X > 0. b(1). b(2)."
    options = {"engine": engine, "strategy": "differencing", "materialize": materialize}
    with deltalog.connect(tmp_path / "z.db", program=program, **options) as db:
        db.what_if(delete={"b": [(1,)]}, insert={"b": [(3,)]})
        db.apply(delete={"b": [(1,)]})
    with deltalog.connect(tmp_path / "z.db", **options) as db:
        assert db.facts("b") == {(2,)}
        assert db.facts("v") == {(2,)}


def test_a_false_deletion_of_a_negated_view_cancels_nothing() -> None:
    db = deltalog.connect(
        program="""
            base q(x: int, y: int). base s(x: int). base t(x: int).
            p(X) :- q(X, _).
            r(X) :- s(X), not p(X).
            r(X) :- t(X).
        """,
        strategy="differencing",
        materialize=False,
        nervous=True,
        facts={"q": [(1, 1)], "s": [(1,)]},
    )
    delta = db.apply(insert={"q": [(1, 2)], "t": [(1,)]})
    assert delta.only("r") == deltalog.ChangeSet({"r": {(1,)}})


def test_a_nervous_union_subtracts_the_old_state() -> None:
    db = deltalog.connect(
        program="base q(x: int). base r(x: int). p(X) :- q(X). p(X) :- r(X).",
        strategy="differencing",
        materialize=False,
        nervous=True,
        facts={"q": [(1,)]},
    )
    assert not db.apply(insert={"r": [(1,)]}).only("p")


# --- found by walks -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 10))
def test_a_change_of_rules_that_is_interrupted_changes_nothing(number: int) -> None:
    """A view that is recomputed for its ranks, after the change was made, was stopped half-way."""
    calls = iter(range(1, 100))

    def watch(rounds: int, facts: int) -> None:
        if next(calls) == number:
            raise KeyboardInterrupt

    edge = "base edge(src: int, dst: int)."
    rules = "path(X, Y) :- edge(X, Y). path(X, Y) :- edge(X, Z), path(Z, Y)."
    db = deltalog.connect(program=edge, engine="reference", facts={"edge": [(1, 2), (2, 3)]})
    db.watch = watch
    try:
        delta = db.change_program(edge + rules)
    except KeyboardInterrupt:
        assert (db.version, set(db.relations)) == (0, {"edge"})
        delta = db.change_program(edge + rules)
    db.watch = None
    assert delta.inserted["path"] == db.facts("path") == {(1, 2), (2, 3), (1, 3)}
    assert db.audit() == ()


def test_progress_is_reported_while_views_are_rebuilt_after_a_change_of_rules() -> None:
    """What the callback raises then comes too late, and is dropped."""
    edge = "base edge(src: int, dst: int)."
    rules = "path(X, Y) :- edge(X, Y). path(X, Y) :- edge(X, Z), path(Z, Y)."
    facts = {"edge": [(n, n + 1) for n in range(6)]}
    db = deltalog.connect(program=edge, engine="reference", facts=facts)
    heard: list[tuple[int, int]] = []

    def watch(rounds: int, facts: int) -> None:
        heard.append((rounds, facts))
        if db.relations.keys() == {"edge", "path"}:  # the new program is in place
            raise KeyboardInterrupt

    db.watch = watch
    db.change_program(edge + rules)
    again = [number for number in range(1, len(heard)) if heard[number][0] < heard[number - 1][0]]
    assert len(again) == 1  # rounds are counted anew for the rebuild
    assert heard[-1][1] == len(db.facts("path")) == 21
    db.watch = None
    assert (db.version, db.audit()) == (1, ())


def test_what_a_file_logs_is_never_nervous(tmp_path: Path) -> None:
    """A change that is none was in the log, and earlier versions were read through it."""
    options: dict[str, Any] = {"strategy": "differencing", "materialize": False}
    program = "base b(x: int, y: int). v(X) :- b(X, _). b(1, 1)."
    with pytest.raises(DataError, match="the log of a file needs exact changes"):
        deltalog.connect(tmp_path / "z.db", program=program, nervous=True, **options)
    assert not list(tmp_path.iterdir())
    with deltalog.connect(tmp_path / "z.db", program=program, **options) as db:
        db.apply(insert={"b": [(1, 2)]})
        assert db.facts("v", 0) == {(1,)}
    with deltalog.connect(tmp_path / "z.db", read_only=True, nervous=True, **options) as reader:
        assert reader.what_if(delete={"b": [(1, 2)]}).deleted["v"] == {(1,)}


@pytest.mark.parametrize("strategy", ["auto", "delta"])
def test_a_written_fact_that_was_deleted_stays_deleted_under_other_rules(strategy: str) -> None:
    """Where views are recomputed and compared, facts in both texts came back."""
    old, new = ("base b(x: int). b(1). b(2). v(X) :- b(X), X " + test for test in ("> 0.", "> 1."))
    db = deltalog.connect(program=old, engine="reference", strategy=strategy)
    db.apply(delete={"b": [(2,)]})
    assert db.change_program(new) == deltalog.ChangeSet({}, {"v": {(1,)}})
    assert (db.facts("b"), db.facts("v")) == ({(1,)}, set())


def test_a_reader_follows_to_a_program_without_a_view_it_has_a_strategy_for(tmp_path: Path) -> None:
    """The writer went over to it, and its reader could not."""
    old, new = "base b(x: int). v(X) :- b(X).", "base b(x: int). w(X) :- b(X). b(1)."
    with deltalog.connect(tmp_path / "z.db", program=old, engine="reference") as db:
        options: dict[str, Any] = {"engine": "reference", "strategy": {"v": "recompute"}}
        with deltalog.connect(tmp_path / "z.db", read_only=True, **options) as reader:
            delta = db.change_program(new)
            assert reader.refresh() == delta
            assert reader.facts("w") == {(1,)}


def test_audit_and_verify_find_two_facts_under_one_key(tmp_path: Path) -> None:
    program = "base e(x: int key, y: int). v(X) :- e(X, _)."
    with deltalog.connect(tmp_path / "e.db", program=program, engine="reference") as database:
        database.apply(insert={"e": [(1, 2), (2, 2)]})
        assert database.audit() == ()
        database.engine.insert("e", [(1, 3), (4, None)])
        database.engine.insert("v", [(4,)])
        (found,) = database.audit()
        assert (found.view, found.missing) == ("e", frozenset())
        assert found.excess == {(1, 2), (1, 3), (4, None)}
        assert verify_file(database).differences == (found,)
        assert str(next(iter(audit_lines(database, [found])))) == (
            "e: 3 facts against its declaration (key, or null)"
        )


EDGES = "base e(x: int, y: int)."


@pytest.mark.parametrize("name", ["rounds_max", "facts_max", "seconds_max"])
@pytest.mark.parametrize("value", ["a", float("nan"), -1, True])
def test_limits_are_numbers(name: str, value: Any) -> None:
    with pytest.raises(DataError, match=rf"`Limits\.{name}` cannot be") as caught:
        Limits(**{name: value})
    assert caught.value.codes == ("E0726",)


@pytest.mark.parametrize(
    "options",
    [
        {"limits": 5},
        {"facts": [("e", (1, 2))]},
        {"facts": 5},
        {"facts": 0},
        {"program": 5},
        {"strategy": 5},
        {"watch": 5},
    ],
)
def test_arguments_of_connect_are_of_their_kind(options: dict[str, Any], tmp_path: Path) -> None:
    (name,) = options
    for place in ((), (tmp_path / "e.db",)):
        with pytest.raises(DataError, match=f"`{name}` cannot be") as caught:
            deltalog.connect(*place, **{"program": EDGES, "engine": "reference", **options})
        assert caught.value.codes == ("E0726",)
    assert not (tmp_path / "e.db").exists()


def test_arguments_of_a_database_are_of_their_kind() -> None:
    db = deltalog.connect(program=EDGES, engine="reference")
    for facts in ([("e", (1, 2))], 5, ()):
        with pytest.raises(DataError, match="`insert` cannot be"):
            db.apply(insert=facts)  # type: ignore[arg-type]
    for parameters in ("x", pandas.Series({"x": 1}), 5):
        with pytest.raises(DataError, match="`parameters` cannot be"):
            db.query("e($x, Y)", parameters)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="`propagation` cannot be"):
        db.explain("e(1, Y)", propagation=True)
    with pytest.raises(DataError, match="is not a list") as caught:
        db.apply(insert={"e": numpy.array(5)})
    assert caught.value.codes == ("E0703",)


def test_an_unknown_relation_of_a_query_is_not_declared() -> None:
    db = deltalog.connect(program=EDGES, engine="reference")
    with pytest.raises(ProgramError, match="the relations are e"):
        db.query("quite_other(X)")


def test_a_set_replaces_what_another_transaction_committed_meanwhile() -> None:
    db = deltalog.connect(program="base e(x: int key, y: int).", engine="reference")
    db.apply(insert={"e": [(1, 1), (2, 1)]})
    tx = db.transaction()
    tx.set("e", [(1, 5), (3, 5)])
    tx.set("e", (2, 5))
    tx.delete("e", [(2, 5)])
    db.apply(set={"e": [(1, 2), (3, 2), (2, 2)]})
    assert tx.facts("e") == {(1, 5), (3, 5)}
    assert tx.commit() == deltalog.ChangeSet(
        {"e": {(1, 5), (3, 5)}}, {"e": {(1, 2), (2, 2), (3, 2)}}
    )
    assert db.facts("e") == {(1, 5), (3, 5)}


def test_null_and_misfits_as_parameters() -> None:
    program = "base e(x: int, d: date?). e(1, null)."
    db = deltalog.connect(program=program, engine="reference")
    for text in ("e(X, D), X > $z", "e(X, D), $z <= X + 1", "e(X, D), X = $z"):
        assert db.query(text, {"z": None}) == []
    assert db.query("e(X, $z)", {"z": None}) == [(1,)]
    assert db.query("e(X, D), X < $z", {"z": 2.5}) == [(1, None)]
    for text, value in (("e($z, D)", None), ("e(X, D), X < $z", "a"), ("e(X, D), D = $z", "2020")):
        with pytest.raises(ProgramError) as caught:
            db.query(text, {"z": value})
        assert caught.value.codes == ("E0721",)


def test_a_product_as_a_query_is_not_called_a_rule() -> None:
    facts = {"e": [(x, x) for x in range(100)]}
    limits = Limits(facts_max=1000)
    db = deltalog.connect(program=EDGES, facts=facts, engine="reference", limits=limits)
    with pytest.raises(DeltalogError, match="the query itself has too many answers"):
        db.query("e(A, B), e(C, D)")


def test_a_fact_without_a_list_around_it() -> None:
    db = deltalog.connect(program=EDGES, engine="reference")
    with pytest.raises(DataError, match=r"one fact is given in a list: `\[\(1, 2\)\]`"):
        db.apply(insert={"e": (1, 2)})


def test_single_moments_of_numpy_and_pandas() -> None:
    db = deltalog.connect(program="base e(d: date?, t: timestamp?).", engine="reference")
    day, moment = numpy.datetime64("2026-01-31"), numpy.datetime64("2026-01-31T12:00:00.123456789")
    nothing = numpy.datetime64("NaT")
    db.apply(insert={"e": [(day, moment), (pandas.NaT, nothing)]})
    assert db.facts("e") == {
        (date(2026, 1, 31), datetime(2026, 1, 31, 12, 0, 0, 123456)),
        (None, None),
    }
    for row in ((moment, None), (None, day)):
        with pytest.raises(DataError) as caught:
            db.apply(insert={"e": [row]})
        assert caught.value.codes == ("E0704",)


def test_a_moment_out_of_range_is_shown() -> None:
    db = deltalog.connect(program="base e(d: date, t: timestamp).", engine="reference")
    far = numpy.array(["12026-01-31"], "datetime64[D]"), numpy.array(["12026"], "datetime64[s]")
    with pytest.raises(DataError, match=r"(?s)12026-01-31.*of the years 1 to 9999") as caught:
        db.apply(insert={"e": dict(zip("dt", far, strict=True))})
    assert caught.value.codes == ("E0704", "E0704")


def test_null_as_a_parameter_on_the_command_line() -> None:
    db = deltalog.connect(program="base e(x: int, d: date?).", engine="reference")
    query = parse_query("e(X, $d)")
    assert read_parameters(query, {"d": "null"}, db.relations) == {"d": None}
    with pytest.raises(ProgramError, match='"" does not fit the parameter'):
        read_parameters(query, {"d": ""}, db.relations)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_with_a_part_that_only_has_to_exist_keeps_its_columns(engine: str) -> None:
    """The helper of that part stands before the rule of the answer."""
    db = deltalog.connect(
        program="base a(x: int). base b(y: int).", facts={"a": [(1,)], "b": [(2,)]}, engine=engine
    )
    found = db.query("a(X), b(_)")
    assert (found.names, list(found)) == (("X",), [(1,)])
