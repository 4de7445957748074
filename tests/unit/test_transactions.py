"""Transactions: the net effect in order, all or nothing, and what is said of misfits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import ChangeSet, DataError, MemoryDatabase, Transaction

PROGRAM = """
    base edge(src: int, dst: int).
    base salary(employee: str key, amount: int).
    base cell(x: int key, y: int key, value: float?).
    base seen().
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    rich(E) :- salary(E, A), A > 9.
    edge(1, 2). salary("ann", 5). cell(0, 0, 1.5).
"""
Rows = list[tuple[Any, ...]]


@pytest.fixture
def db() -> MemoryDatabase:
    return deltalog.connect(program=PROGRAM)


def contents(db: MemoryDatabase) -> dict[str, set[tuple[Any, ...]]]:
    return {name: db.facts(name) for name in db.relations}


def transact(db: MemoryDatabase, *steps: tuple[Any, ...]) -> Transaction:
    """One transaction of these steps, each an operation and its arguments."""
    with db.transaction() as tx:
        for operation, *arguments in steps:
            getattr(tx, operation)(*arguments)
    return tx


def message(action: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """What the error says that the action raises."""
    with pytest.raises(DataError) as caught:
        action(*arguments, **options)
    return str(caught.value)


# --- net effect ---------------------------------------------------------------------------------


def test_insert_and_delete_change_views_too(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3), (3, 4)])
        tx.delete("edge", [(1, 2)])
    assert db.facts("edge") == {(2, 3), (3, 4)}
    assert db.facts("path") == {(2, 3), (3, 4), (2, 4)}
    assert tx.delta == ChangeSet(
        {"edge": {(2, 3), (3, 4)}, "path": {(2, 3), (3, 4), (2, 4)}},
        {"edge": {(1, 2)}, "path": {(1, 2)}},
    )


def test_inserting_what_is_there_and_deleting_what_is_not_is_no_change(db: MemoryDatabase) -> None:
    before = contents(db)
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (1, 2)])
        tx.delete("edge", [(7, 7)])
        tx.set("salary", ("ann", 5))
    assert not tx.delta
    assert len(tx.delta) == 0
    assert contents(db) == before


@pytest.mark.parametrize(
    ("order", "holds"),
    [("id", False), ("di", True), ("idi", True), ("did", False), ("", True), ("d", False)],
)
def test_operations_count_in_the_order_they_are_given(
    db: MemoryDatabase, order: str, holds: bool
) -> None:
    with db.transaction() as tx:
        for operation in order:
            (tx.insert if operation == "i" else tx.delete)("edge", [(1, 2)])
    assert ((1, 2) in db.facts("edge")) == holds
    assert ((1, 2) in db.facts("path")) == holds
    assert bool(tx.delta) != holds


def test_no_rows_at_all_are_no_change(db: MemoryDatabase) -> None:
    before = db.version
    assert not db.apply(insert={"edge": []}, delete={"edge": []})
    assert not db.what_if(delete={"edge": []})
    with db.transaction() as tx:
        tx.insert("edge", [])
    assert not tx.delta
    assert len(tx.delta) == 0
    assert db.version == before


def test_a_fact_inserted_and_deleted_again_never_was(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(8, 9)])
        tx.delete("edge", [(8, 9)])
    assert tx.delta == ChangeSet()


def test_rows_may_come_from_a_generator_and_be_lists(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("edge", ([n, n + 1] for n in range(5, 8)))
    assert db.facts("edge") == {(1, 2), (5, 6), (6, 7), (7, 8)}


def test_a_relation_without_columns_has_one_row_or_none(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("seen", [()])
    assert db.facts("seen") == {()}
    with db.transaction() as tx:
        tx.delete("seen", [()])
    assert tx.delta == ChangeSet({}, {"seen": {()}})
    assert db.facts("seen") == set()


def test_a_transaction_sees_the_database_as_it_was(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
        assert db.facts("path") == {(1, 2)}
    assert db.facts("path") == {(1, 2), (2, 3), (1, 3)}


def test_apply_deletes_before_it_inserts(db: MemoryDatabase) -> None:
    change = db.apply(
        insert={"salary": [("ann", 20)], "edge": [(1, 2)]},
        delete={"salary": [("ann", 5)], "edge": [(1, 2)]},
    )
    assert change.relations == ("rich", "salary")
    assert change.inserted["rich"] == {("ann",)}
    assert db.facts("edge") == {(1, 2)}


# --- keys ---------------------------------------------------------------------------------------


def test_set_replaces_the_fact_with_the_key(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.set("salary", ("ann", 12))
        tx.set("salary", ("bob", 3))
    assert db.facts("salary") == {("ann", 12), ("bob", 3)}
    assert tx.delta.deleted["salary"] == {("ann", 5)}
    assert db.facts("rich") == {("ann",)}


def test_set_twice_keeps_the_last(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.set("salary", ("ann", 6))
        tx.set("salary", ("ann", 7))
    assert db.facts("salary") == {("ann", 7)}
    assert tx.delta == ChangeSet({"salary": {("ann", 7)}}, {"salary": {("ann", 5)}})


def test_one_set_gives_each_key_one_fact(db: MemoryDatabase) -> None:
    before = contents(db)
    rows = [("ann", 6), ("bob", 1), ("ann", 7)]
    for call in (db.apply, db.what_if):
        assert "E0727" in message(call, set={"salary": rows})
    tx = db.transaction()
    tx.set("salary", ("ann", 8))
    assert 'rows 1 and 3 set the key "ann"' in message(tx.set, "salary", rows)
    assert tx.facts("salary") == {("ann", 8)}
    tx.rollback()
    assert contents(db) == before
    db.apply(set={"salary": [("ann", 6), ("ann", 6)]})
    assert db.facts("salary") == {("ann", 6)}


def test_set_there_and_back_is_no_change_at_all(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.set("salary", ("ann", 99))
        tx.set("salary", ("ann", 5))
    assert tx.delta == ChangeSet()
    assert db.facts("salary") == {("ann", 5)}


def test_set_then_delete_leaves_no_fact_with_the_key(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.set("salary", ("ann", 6))
        tx.delete("salary", [("ann", 6)])
    assert db.facts("salary") == set()
    assert tx.delta == ChangeSet({}, {"salary": {("ann", 5)}})


def test_deleting_another_fact_with_the_key_does_not_free_it(db: MemoryDatabase) -> None:
    tx = db.transaction()
    tx.delete("salary", [("ann", 6)])
    with pytest.raises(DataError) as caught:
        tx.insert("salary", [("ann", 7)])
    assert caught.value.codes == ("E0705",)


def test_a_key_is_free_once_its_fact_is_deleted(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.delete("salary", [("ann", 5)])
        tx.insert("salary", [("ann", 7)])
    assert db.facts("salary") == {("ann", 7)}


def test_a_key_of_two_columns_is_taken_only_by_both(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("cell", [(0, 1, 1.0), (1, 0, None)])
        tx.set("cell", (0, 0, None))
    assert db.facts("cell") == {(0, 0, None), (0, 1, 1.0), (1, 0, None)}


@pytest.mark.parametrize("rows", [[("bob", 1), ("bob", 2)], [("ann", 6)], [("zoe", 1), ("ann", 0)]])
def test_inserting_a_second_fact_for_a_key_changes_nothing(db: MemoryDatabase, rows: Rows) -> None:
    before = contents(db)
    with pytest.raises(DataError) as caught:
        transact(db, ("insert", "edge", [(5, 5)]), ("insert", "salary", rows))
    assert caught.value.codes == ("E0705",)
    assert contents(db) == before


def test_a_key_that_another_transaction_has_taken_meanwhile_is_noticed(db: MemoryDatabase) -> None:
    first, second = db.transaction(), db.transaction()
    first.insert("salary", [("bob", 1)])
    second.insert("salary", [("bob", 2)])
    first.commit()
    before = contents(db)
    with pytest.raises(DataError) as caught:
        second.commit()
    assert caught.value.codes == ("E0705",)
    assert contents(db) == before


def test_inserting_the_very_fact_that_has_the_key_is_no_conflict(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("salary", [("ann", 5), ("bob", 1), ("bob", 1)])
    assert db.facts("salary") == {("ann", 5), ("bob", 1)}


@pytest.fixture
def questions(db: MemoryDatabase, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what the engine is asked for, and the rows it answers with."""
    counts: Counter[str] = Counter()
    present, lookup = db.engine.present, db.engine.lookup

    def counted_present(relation: str, rows: Collection[tuple[Any, ...]]) -> Collection[bool]:
        counts["present"] += len(rows)
        return present(relation, rows)

    def counted_lookup(relation: str, key: Any) -> Iterator[tuple[Any, ...]]:
        found = list(lookup(relation, key))
        counts["lookup"] += 1 + len(found)
        return iter(found)

    monkeypatch.setattr(db.engine, "present", counted_present)
    monkeypatch.setattr(db.engine, "lookup", counted_lookup)
    return counts


@pytest.mark.parametrize("size", [2_000, 20_000])
def test_a_bulk_insert_asks_the_engine_a_fixed_number_of_questions_per_row(
    db: MemoryDatabase, questions: Counter[str], size: int
) -> None:
    with db.transaction() as tx:
        tx.insert("salary", [(f"e{n}", n) for n in range(size)])
    assert len(tx.delta.inserted["salary"]) == size
    assert questions["present"] <= 2 * size
    assert questions["lookup"] <= 3 * size


def test_twenty_thousand_keyed_rows_can_be_inserted_and_then_set(db: MemoryDatabase) -> None:
    db.apply(insert={"salary": [(f"e{n}", 0) for n in range(20_000)]})
    with db.transaction() as tx:
        for n in range(20_000):
            tx.set("salary", (f"e{n}", 1))
    assert len(tx.delta) == 40_000
    assert len(db.facts("salary")) == 20_001


# --- what does not fit --------------------------------------------------------------------------

BAD_ROWS: list[tuple[str, Any]] = [
    ("edge", (1,)),
    ("edge", (1, 2, 3)),
    ("edge", ()),
    ("edge", 1),
    ("edge", "ab"),
    ("edge", b"ab"),
    ("edge", {1, 2}),
    ("edge", {"src": 1, "dts": 2}),
    ("edge", None),
    ("edge", (1, "2")),
    ("edge", (1, None)),
    ("edge", (1, True)),
    ("edge", (1, 2.0)),
    ("edge", (1, 2**63)),
    ("edge", (-(2**63), 1)),
    ("edge", (1, [2])),
    ("salary", (None, 1)),
    ("salary", ("\ud800", 1)),
    ("salary", (b"ann", 1)),
    ("cell", (0, 1, float("nan"))),
    ("cell", (0, 1, float("inf"))),
    ("cell", (0, 1, "1.5")),
    ("cell", (0, 1, 10**400)),
    ("seen", (1,)),
]


@pytest.mark.parametrize("operation", ["insert", "delete"])
@pytest.mark.parametrize(("relation", "row"), BAD_ROWS, ids=repr)
def test_a_bad_row_changes_nothing(
    db: MemoryDatabase, relation: str, row: Any, operation: str
) -> None:
    before = contents(db)
    with pytest.raises(DataError) as caught:
        transact(db, ("insert", "edge", [(5, 6)]), (operation, relation, [row]))
    assert caught.value.codes[0] in ("E0703", "E0704", "E0717")
    assert contents(db) == before


def test_one_bad_row_keeps_the_good_ones_of_its_call_out(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        with pytest.raises(DataError):
            tx.insert("edge", [(5, 6), (7, "8")])
        tx.insert("edge", [(9, 9)])
    assert db.facts("edge") == {(1, 2), (9, 9)}


def test_a_view_cannot_be_changed(db: MemoryDatabase) -> None:
    expected = (
        "error[E0702]: `path` is a view and cannot be changed directly\n"
        "  = note: only base relations are changed"
    )
    assert message(db.transaction().insert, "path", [(1, 2)]) == expected
    assert message(db.transaction().delete, "path", [(1, 2)]) == expected
    assert message(db.transaction().set, "path", (1, 2)) == expected


def test_an_unknown_relation_gets_the_nearest_name(db: MemoryDatabase) -> None:
    nearest = "= hint: did you mean `edge`?"
    assert message(db.transaction().insert, "egde", [(1, 2)]).endswith(nearest)
    assert message(db.transaction().delete, "Edge", []).endswith(nearest)
    assert message(db.facts, "edges").endswith(nearest)
    assert message(db.transaction().set, "salry", ("ann", 1)) == (
        "error[E0701]: there is no relation `salry`\n  = hint: did you mean `salary`?"
    )
    assert message(db.facts, "qqq") == "error[E0701]: there is no relation `qqq`"


def test_the_texts_about_rows(db: MemoryDatabase) -> None:
    tx = db.transaction()
    assert message(tx.insert, "edge", [(1,)]) == (
        "error[E0703]: a fact of `edge` has 2 values, but (1) has 1"
    )
    assert message(tx.insert, "edge", [7]) == (
        "error[E0703]: a fact of `edge` has 2 values, but 7 is not a tuple\n"
        "  = hint: a fact is a tuple; write `(value,)` for a single value"
    )
    assert message(tx.insert, "edge", [(1, None)]) == (
        "error[E0704]: null does not fit column `dst` of `edge`, which is int"
    )
    assert message(tx.insert, "edge", [(True, 1)]) == (
        "error[E0704]: true does not fit column `src` of `edge`, which is int\n"
        "  = hint: use an int from -(2^63 - 1) to 2^63 - 1"
    )


def test_the_texts_about_keys(db: MemoryDatabase) -> None:
    assert message(db.transaction().insert, "salary", [("ann", 6)]) == (
        'error[E0705]: `salary` already contains the fact salary("ann", 5) with the key "ann"\n'
        "  = note: a key identifies at most one fact\n"
        "  = hint: `set` replaces it"
    )
    assert message(db.transaction().insert, "cell", [(0, 0, None)]) == (
        "error[E0705]: `cell` already contains the fact cell(0, 0, 1.5) with the key 0, 0\n"
        "  = note: a key identifies at most one fact\n"
        "  = hint: `set` replaces it"
    )
    assert message(db.transaction().set, "edge", (1, 2)) == (
        "error[E0706]: `edge` has no key, so `set` cannot replace anything"
    )


# --- begin and end ------------------------------------------------------------------------------


def test_an_exception_in_the_block_rolls_back_and_goes_on(db: MemoryDatabase) -> None:
    before = contents(db)
    broken = ((n, 1 // n) for n in (1, 0))
    with pytest.raises(ZeroDivisionError):
        transact(db, ("set", "salary", ("ann", 50)), ("insert", "edge", broken))
    assert contents(db) == before


def test_an_ended_transaction_refuses_everything(db: MemoryDatabase) -> None:
    over = "error[E0712]: this transaction has already ended"
    committed, rolled_back = db.transaction(), db.transaction()
    committed.insert("edge", [(2, 3)])
    committed.commit()
    rolled_back.rollback()
    for tx in (committed, rolled_back):
        assert message(tx.commit) == over
        assert message(tx.insert, "edge", [(4, 5)]) == over
        assert message(tx.delete, "edge", [(1, 2)]) == over
        assert message(tx.set, "salary", ("ann", 1)) == over
    assert db.facts("edge") == {(1, 2), (2, 3)}


def test_a_commit_inside_the_block_is_the_only_one(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
        change = tx.commit()
    assert tx.delta is change
    assert change.inserted["path"] == {(2, 3), (1, 3)}


def test_a_rollback_inside_the_block_drops_everything(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
        tx.rollback()
    assert tx.delta == ChangeSet()
    assert db.facts("edge") == {(1, 2)}


def test_delta_is_empty_until_the_commit(db: MemoryDatabase) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
        assert tx.delta == ChangeSet()
    assert tx.delta.relations == ("edge", "path")


def test_undoing_a_delta_restores_everything(db: MemoryDatabase) -> None:
    before = contents(db)
    change = db.apply(insert={"edge": [(2, 1), (2, 3)]}, delete={"salary": [("ann", 5)]})
    base = (-change).only("edge", "salary", "cell", "seen")
    undone = db.apply(
        insert={name: sorted(rows) for name, rows in base.inserted.items()},
        delete={name: sorted(rows) for name, rows in base.deleted.items()},
    )
    assert undone == -change
    assert contents(db) == before


def test_an_unknown_engine_is_named() -> None:
    told = message(deltalog.connect, program=PROGRAM, engine="refrence").splitlines()
    assert told[0] == "error[E0710]: unknown engine `refrence`"
    assert told[1].startswith("  = hint: the engines are ")
    assert "reference" in told[1]


def test_a_program_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing.dl"
    assert message(deltalog.connect, program=path) == (
        f"error[E0713]: cannot read the program `{path}`: no such file or directory"
    )


def test_a_program_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "binary.dl"
    path.write_bytes(b"\xff\xfe edge(1, 2).")
    told = message(deltalog.connect, program=str(path))
    assert told.startswith(f"error[E0713]: cannot read the program `{path}`:")
    assert "utf-8" in told
