"""Queries of states that are not the current one: before a commit, and as of a version."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

import deltalog
from deltalog.rewrites.strategies import STRATEGIES

PROGRAM = """
    base edge(src: int, dst: int).
    base cost(node: int key, price: int).
    base off(node: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    spent(X, sum(P)) :- path(X, Y), cost(Y, P).
    alone(X) :- cost(X, _), not edge(X, _).
    virtual view open.
    open(X, Y) :- path(X, Y), not off(Y).
    virtual view reached.
    reached(X, count()) :- open(X, _).
"""
QUERIES = (
    "path(1, Y)", "spent(X, S)", "alone(X)", "open(X, 3)", "reached(X, N)", "cost(2, P)",
    "edge(X, Y), not path(Y, X)", "path(X, X), cost(X, P), P > 1",
)  # fmt: skip
ENGINES = ("embedded", "reference")


def start(engine: str = "embedded", **options: object) -> deltalog.MemoryDatabase:
    facts = {"edge": [(1, 2), (2, 3)], "cost": [(1, 1), (2, 2), (3, 3)], "off": [(3,)]}
    return deltalog.connect(program=PROGRAM, facts=facts, engine=engine, **options)  # type: ignore[call-overload, no-any-return]


def state(db: deltalog.MemoryDatabase) -> dict[str, set[tuple[object, ...]]]:
    return {name: db.facts(name) for name in db.relations}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_transaction_reads_its_own_writes(engine: str, materialize: bool, strategy: str) -> None:
    """At every point of it, what is read is what a commit there would make."""
    chooser = random.Random(5)
    try:
        db = start(engine, materialize=materialize, strategy=strategy)
    except deltalog.DataError:
        pytest.skip("this strategy does not take recursive views")
    for _ in range(4):
        before = state(db)
        tx = db.transaction()
        twin = start(engine)
        twin.apply(insert={n: before[n] for n in ("edge", "off")})
        twin.apply(delete={n: twin.facts(n) - before[n] for n in ("edge", "off")})
        twin.apply(delete={"cost": twin.facts("cost") - before["cost"]})
        twin.apply(insert={"cost": before["cost"]})
        for _ in range(4):
            row = chooser.randint(1, 3), chooser.randint(1, 3)
            operation = chooser.choice(["insert", "delete", "set", "off"])
            for each in (tx, twin.transaction()):
                if operation == "set":
                    each.set("cost", row)
                elif operation == "off":
                    each.insert("off", [row[:1]])
                else:
                    getattr(each, operation)("edge", [row])
                if each is not tx:
                    each.commit()
            for query in QUERIES:
                assert tx.query(query) == twin.query(query), (query, operation, row)
            for name in db.relations:
                assert tx.facts(name) == twin.facts(name), name
            assert state(db) == before
        tx.commit()
        assert state(db) == state(twin)
        assert db.audit() == ()


def test_parameters_and_errors_in_a_transaction() -> None:
    db = start()
    with db.transaction() as tx:
        tx.insert("edge", [(3, 4)])
        assert tx.query("path($x, Y)", {"x": 2}) == [(3,), (4,)]
        with pytest.raises(deltalog.ProgramError):
            tx.query("pth(1, Y)")
        with pytest.raises(deltalog.DataError, match="did you mean `path`"):
            tx.facts("pth")
    for read in (lambda: tx.query("path(1, Y)"), lambda: tx.facts("path")):
        with pytest.raises(deltalog.DataError, match="E0712"):
            read()


def test_a_read_in_a_transaction_leaves_no_trace_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with deltalog.connect(path, program=PROGRAM) as db:
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2)])
            assert tx.query("path(X, Y)") == [(1, 2)]
            assert tx.facts("path") == {(1, 2)}
            assert db.version == 0
            tx.delete("edge", [(1, 2)])
            assert tx.facts("path") == set()
        assert db.version == 0
    with deltalog.connect(path) as db:
        assert db.facts("path") == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_queries_as_of_a_version(engine: str, tmp_path: Path) -> None:
    """Over changes of facts and of rules, a query answers what it answered then."""
    seen: list[dict[str, object]] = []
    path = tmp_path / "a.db"
    second = PROGRAM.replace("not off(Y)", "off(Y)") + "base more(x: int).\n"
    with deltalog.connect(path, program=PROGRAM, engine=engine) as db:
        chooser = random.Random(7)
        steps = itertools.cycle(["edge", "cost", "off"])
        for number in range(12):
            seen.append({query: list(db.query(query)) for query in QUERIES})
            if number == 6:
                db.change_program(second)
                continue
            name = next(steps)
            row = tuple(chooser.randint(1, 3) for _ in db.relations[name].columns)
            if name == "cost":
                db.apply(set={name: [row]})
            elif row in db.facts(name):
                db.apply(delete={name: [row]})
            else:
                db.apply(insert={name: [row]})
            while db.version < len(seen):
                db.apply(insert={"off": [(100 + len(seen),)]})
        for version, answers in enumerate(seen):
            for query, rows in answers.items():
                assert db.query(query, version=version) == rows, (version, query)
        assert db.query("path($x, Y)", {"x": 1}, version=3) == seen[3]["path(1, Y)"]
        assert db.query("more(X)", version=8) == []
        with pytest.raises(deltalog.ProgramError, match="unknown predicate `more`"):
            db.query("more(X)", version=2)
        with pytest.raises(deltalog.DataError, match="E0909"):
            db.query("path(1, Y)", version=99)


def test_facts_of_the_program_that_were_deleted_are_not_in_later_versions(tmp_path: Path) -> None:
    with deltalog.connect(tmp_path / "a.db", program="p(1). p(2). q(X) :- p(X).") as db:
        db.apply(delete={"p": [(1,)]})
        db.apply(insert={"p": [(3,)]})
        assert [list(db.query("q(X)", version=v)) for v in range(3)] == [
            [(1,), (2,)], [(2,)], [(2,), (3,)]
        ]  # fmt: skip


def test_a_database_in_memory_has_no_versions() -> None:
    db = start()
    for read in (lambda: db.query("path(1, Y)", version=0), lambda: db.facts("path", 0)):
        with pytest.raises(deltalog.DataError, match="E0722"):
            read()


def test_set_in_apply_and_what_if() -> None:
    db = start()
    change = db.what_if(set={"cost": [(1, 5), (9, 9)]})
    assert change.only("cost") == deltalog.ChangeSet({"cost": {(1, 5), (9, 9)}}, {"cost": {(1, 1)}})
    assert db.facts("cost") == {(1, 1), (2, 2), (3, 3)}
    assert db.apply(set={"cost": [(1, 5), (9, 9)]}) == change
    db.apply(delete={"cost": [(2, 2)]}, insert={"cost": [(2, 7)]}, set={"cost": [(2, 8)]})
    assert db.facts("cost") == {(1, 5), (2, 8), (3, 3), (9, 9)}
    with pytest.raises(deltalog.DataError, match="E0706"):
        db.apply(set={"edge": [(1, 2)]})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_closed_database_in_memory(engine: str) -> None:
    with start(engine) as db:
        tx = db.transaction()
        tx.set("cost", (1, 7))
        assert db.query("cost(1, P)") == [(1,)]
    db.close()
    uses = (
        lambda: db.query("edge(X, Y)"),
        lambda: db.facts("edge"),
        lambda: db.apply(insert={"edge": [(1, 2)]}),
        lambda: db.what_if(set={"cost": [(1, 2)]}),
        lambda: db.transaction(),
        lambda: db.change_program(PROGRAM),
        lambda: db.audit(),
        lambda: db.explain(),
        lambda: tx.query("edge(X, Y)"),
        lambda: tx.facts("edge"),
        lambda: tx.commit(),
    )
    for use in uses:
        with pytest.raises(deltalog.DataError, match="the database in memory has been closed"):
            use()


def test_explain_from_python(tmp_path: Path) -> None:
    db = start()
    assert db.explain(show=["strata"]).startswith("strata\n  0  cost, edge, off\n")
    assert "answer__(Y) :- path(1, Y)." in db.explain("path($x, Y)", {"x": 1}, show=["rules"])
    assert "plan, part 1" in db.explain("open(1, Y)")
    assert "node 1: " in db.explain(propagation=True)
    with pytest.raises(deltalog.DataError, match="did you mean `rules`"):
        db.explain(show=["rule"])
    with deltalog.connect(tmp_path / "a.db", program=PROGRAM) as kept:
        assert kept.explain("path(1, Y)") == db.explain("path(1, Y)")
